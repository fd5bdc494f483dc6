package deploy

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// afterGrace is what a stop may take when the grace is over: handlers and hooks have five seconds each to return, spans to be
// exported, and the database writes the last outcomes.
const afterGrace = 20 * time.Second

// A site is where a file's programs run in place of the machines that it is for. Ports are free ones here, and /etc/stint is a
// directory.
type site struct {
	url, dir string
	replace  *strings.Replacer
}

func newSite(t *testing.T, url string) *site {
	t.Helper()
	s := &site{url: url, dir: t.TempDir()}
	pairs := []string{"/etc/stint", s.dir, "/usr/local/bin/stint", stint}
	for _, port := range []string{"9070", "7070"} {
		pairs = append(pairs, port, freePort(t))
	}
	s.replace = strings.NewReplacer(pairs...)
	return s
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// settings writes a file of settings with the database, and a token as the command makes it.
func (s *site) settings(t *testing.T, name string) {
	t.Helper()
	token, err := exec.Command(stint, "dashboard", "token", "prometheus").Output()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("db = %q\n\n[work]\nkinds = [\"http\"]\n\n%s", s.url, token)
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A program is what a file starts.
type program struct {
	args  []string
	env   map[string]string
	asked []string   // URLs that have to answer 200
	asks  [][]string // arguments of the command that have to succeed, with the same environment
	kill  time.Duration
	once  bool   // it ends by itself
	root  string // the image that it runs in
	while func() // is called when it is ready
}

// run starts a program, waits until its probes succeed, stops it as its supervisor does, and sees it end in time and well.
func (p program) run(t *testing.T) {
	t.Helper()
	p.enoughTime(t)
	cmd := p.command(p.args)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	fail := func(format string, args ...any) {
		t.Helper()
		_ = cmd.Process.Kill()
		<-ended
		t.Fatalf("stint %s, with %v: %s\n%s", strings.Join(p.args, " "), p.env, fmt.Sprintf(format, args...), out.String())
	}
	if p.once {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("stint %s: %v\n%s", strings.Join(p.args, " "), err, out.String())
			}
		case <-time.After(time.Minute):
			fail("it does not end")
		}
		return
	}
	until := time.Now().Add(time.Minute)
	for problem := p.problem(); problem != nil; problem = p.problem() {
		select {
		case err := <-ended:
			ended <- err
			fail("it ended: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(until) {
			fail("%v", problem)
		}
	}
	if p.while != nil {
		p.while()
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("stint %s ended with %v\n%s", strings.Join(p.args, " "), err, out.String())
		}
	case <-time.After(p.kill):
		fail("it does not end within %v", p.kill)
	}
}

// enoughTime checks that a supervisor kills no engine that stops as it should.
func (p program) enoughTime(t *testing.T) {
	t.Helper()
	if p.once {
		return
	}
	grace := time.Duration(0)
	if p.args[0] == "work" {
		if grace, _ = time.ParseDuration(p.env["STINT_GRACE"]); grace == 0 {
			t.Errorf("no grace is said, so that nobody sees that %v is enough for it", p.kill)
		}
	}
	if p.kill < grace+afterGrace {
		t.Errorf("stint %s is killed after %v, and may need %v", strings.Join(p.args, " "), p.kill, grace+afterGrace)
	}
}

func (p program) command(args []string) *exec.Cmd {
	cmd := exec.Command(stint, args...)
	cmd.Env = []string{"PATH=/nowhere", "TMPDIR=/nowhere"} // of the machine they have nothing
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		cmd.Env = append(cmd.Env, name+"="+p.env[name])
	}
	if p.root != "" {
		enter(cmd, p.root)
	}
	return cmd
}

// problem is why a program is not ready, by its own probes.
func (p program) problem() error {
	for _, url := range p.asked {
		answer, err := http.Get(url)
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, answer.Status)
		}
	}
	for _, args := range p.asks {
		if out, err := p.command(args).CombinedOutput(); err != nil {
			return fmt.Errorf("stint %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}
