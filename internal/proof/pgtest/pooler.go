//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Pooler is a PgBouncer between programs and a server. It gives a session of the server to whoever has a transaction to
// run, so that what a session remembers is of no use to anybody.
type Pooler struct {
	dir      *runDir
	watchdog *watchdog
	process  *serverProcess
	port     int
}

// StartPooler starts a pooler in front of the server that a URL leads to, and stops it when the test ends. Settings are
// those of PgBouncer's configuration, and win over the defaults of this package; that of auth_file is the text of the
// file. Where no PgBouncer is installed the test is skipped, but for CI.
func StartPooler(t testing.TB, upstream string, settings map[string]string) *Pooler {
	t.Helper()
	const missing = "there is no PgBouncer: make pgbouncer installs one"
	program := poolerProgram()
	if program == "" && os.Getenv("CI") != "" {
		t.Fatal(missing)
	} else if program == "" {
		t.Skip(missing)
	}
	p, err := openPooler(program, upstream, settings)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(p.dir.log())
			t.Logf("the end of PgBouncer's log:\n%s", text[max(0, len(text)-4000):])
		}
		if err := p.close(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return p
}

// URL is that of a database, by way of the pooler.
func (p *Pooler) URL(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		panic(err)
	}
	u.Host = p.Addr()
	return u.String()
}

// Addr returns host and port of the pooler.
func (p *Pooler) Addr() string { return "127.0.0.1:" + strconv.Itoa(p.port) }

// CanPool tells whether there is a program for [StartPooler].
func CanPool() bool { return poolerProgram() != "" }

// poolerProgram finds the program, which lies outside the PATH of most users.
func poolerProgram() string {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer", "/opt/homebrew/bin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func openPooler(program, upstream string, settings map[string]string) (_ *Pooler, err error) {
	p := &Pooler{}
	if p.dir, err = newRunDir(false); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.watchdog, err = newWatchdog(p.dir.path); err != nil {
		return nil, err
	}
	if p.port, err = freePort(); err != nil {
		return nil, err
	}
	if err := p.configure(upstream, settings); err != nil {
		return nil, err
	}
	return p, p.launch(program)
}

func (p *Pooler) settings() string { return filepath.Join(p.dir.path, "pgbouncer.ini") }

// configure writes the configuration. Whoever asks gets in, as the user of the URL; with an auth_file those in it do, as
// themselves.
func (p *Pooler) configure(upstream string, settings map[string]string) error {
	u, err := url.Parse(upstream)
	if err != nil {
		return err
	}
	password, _ := u.User.Password()
	login := fmt.Sprintf(" user=%s password=%s", u.User.Username(), password)
	all := map[string]string{
		"listen_addr": "127.0.0.1", "listen_port": strconv.Itoa(p.port), "unix_socket_dir": "",
		"auth_type": "any", "pool_mode": "transaction", "default_pool_size": "20", "max_client_conn": "1000",
	}
	maps.Copy(all, settings)
	files := map[string]string{p.dir.log(): ""}
	if users, own := all["auth_file"]; own {
		login, all["auth_file"] = "", filepath.Join(p.dir.path, "userlist.txt")
		files[all["auth_file"]] = users
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[databases]\n* = host=%s port=%s%s\n\n[pgbouncer]\n", u.Hostname(), u.Port(), login)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s = %s\n", name, all[name])
	}
	files[p.settings()] = b.String()
	for path, text := range files {
		if err := writeFile(path, text); err != nil {
			return err
		}
	}
	return nil
}

// launch starts the program and returns when it takes connections.
func (p *Pooler) launch(program string) error {
	log, err := os.OpenFile(p.dir.log(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	as, _ := serverUser()
	child, err := startProcess(program, []string{p.settings()}, p.dir.path, -1, log, as)
	if err != nil {
		return err
	}
	p.process = &serverProcess{child, idFileIn(p.dir.path)}
	if err := os.WriteFile(p.process.idFile, []byte(strconv.Itoa(child.pid)+"\n"), 0o600); err != nil {
		return err
	}
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", p.Addr(), time.Second)
		if err == nil {
			return conn.Close()
		}
		if time.Since(begin) > startLimit {
			return fmt.Errorf("it takes no connections within %v: %w", startLimit, err)
		}
	}
}

// close stops the pooler and removes all that it had.
func (p *Pooler) close() error {
	var err error
	if p.process != nil {
		err = p.process.end(syscall.SIGTERM) // it drops everybody at once
	}
	err = errors.Join(err, p.dir.remove())
	if p.watchdog != nil {
		err = errors.Join(err, p.watchdog.dismiss())
	}
	return err
}
