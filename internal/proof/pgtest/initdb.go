package pgtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const superuser = "postgres"

// defaults are the settings of every server. They make it quick to start and to drop and change nothing that a client
// can see: transactions, locks and synchronous commits are those of production.
var defaults = map[string]string{
	"listen_addresses":           "127.0.0.1",
	"unix_socket_permissions":    "0700",
	"max_connections":            "200",
	"max_prepared_transactions":  "64",
	"shared_buffers":             "128MB",
	"timezone":                   "UTC",
	"log_timezone":               "UTC",
	"log_line_prefix":            "%m [%p] %d ",
	"log_checkpoints":            "off",
	"dynamic_shared_memory_type": "mmap", // lies in the data directory, so that a killed server leaves nothing elsewhere
}

// fleeting are the settings of servers whose data need not survive the machine.
var fleeting = map[string]string{
	"fsync":            "off",
	"full_page_writes": "off",
	"max_wal_size":     "256MB", // A checkpoint is cheap here, and the log may lie in memory.
}

// initialise creates the cluster's data directory. Who can open the socket's directory is trusted; over TCP, where
// every user of the machine could come in, a random password is asked for.
func (s *Server) initialise(options Options) error {
	password := filepath.Join(s.dir.path, "password")
	if err := os.WriteFile(password, []byte(s.password+"\n"), 0o600); err != nil {
		return err
	}
	if err := giveToServer(password); err != nil {
		return err
	}
	if options.Clock {
		if err := s.dir.setClock(0); err != nil {
			return err
		}
	}
	err := s.run("initdb",
		"-D", s.dir.data(), "-U", superuser, "--encoding=UTF8", "--locale=C", "--no-sync",
		"--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile="+password)
	if err != nil {
		return err
	}
	if err := os.Truncate(s.dir.log(), 0); err != nil { // What initdb says is of interest only when it fails.
		return err
	}
	return appendTo(filepath.Join(s.dir.data(), "postgresql.conf"), configuration(options))
}

// createLog creates the file that the server, and the programs that are run for it, write to.
func (s *Server) createLog() error {
	log, err := os.OpenFile(s.dir.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := log.Close(); err != nil {
		return err
	}
	return giveToServer(s.dir.log())
}

// run runs one of the installation's programs to its end, as the servers' user.
func (s *Server) run(program string, args ...string) error {
	log, err := os.OpenFile(s.dir.log(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	mark := s.logSize()
	if err := runAsServer(s.installation.program(program), args, s.dir.path, log); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, s.LogTail(mark))
	}
	return nil
}

// configuration returns the lines for postgresql.conf; where a setting occurs twice, the server takes the last one.
func configuration(options Options) string {
	settings := maps.Clone(defaults)
	if !options.Fsync {
		maps.Copy(settings, fleeting)
	}
	maps.Copy(settings, options.Settings)
	var b strings.Builder
	b.WriteString("\n# Settings of pgtest.\n")
	quote := strings.NewReplacer(`'`, `''`, `\`, `\\`)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, quote.Replace(settings[name]))
	}
	return b.String()
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// freePort picks a port at random from below the range that systems take the ports of outgoing connections from.
// A port from that range could be gone while its server is down for a restart.
func freePort() (int, error) {
	var last error
	for range 100 {
		port := 20_000 + rand.IntN(12_000)
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			return port, l.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}
