package pgtest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// childVariable makes the test binary run as a test process that is about to be killed.
const childVariable = "STINT_PGTEST_CHILD"

// runAsChild starts a server, tells where it is and waits for its end, which comes from outside.
func runAsChild() {
	installation, err := Find(0)
	if err == nil {
		var server *Server
		if server, err = open(installation, Options{}); err == nil {
			fmt.Println(server.Addr(), server.dir.path)
			time.Sleep(time.Hour) // The watchdog's pipe stays open for as long as this process lives.
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func TestAKilledTestProcessLeavesNoServer(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1")
	child.Stderr = t.Output()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	addr, dir, ok := strings.Cut(strings.TrimSpace(line), " ")
	if !ok || !listens(addr) {
		t.Errorf("the child has no server at %q", addr)
	}
	if err := child.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = child.Wait() // It says that the process was killed.
	eventually(t, "the server stops", func() bool { return !listens(addr) })
	eventually(t, "the run directory goes", func() bool { _, err := os.Stat(dir); return os.IsNotExist(err) })
}

func listens(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func eventually(t *testing.T, what string, true func() bool) {
	t.Helper()
	for begin := time.Now(); !true(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("waited 20 s until %s", what)
		}
	}
}

func TestTheNextRunRemovesAbandonedDirectories(t *testing.T) {
	base := t.TempDir()
	old := time.Now().Add(-time.Hour)
	make := func(name string, age time.Time) string {
		dir := filepath.Join(base, runPrefix+name)
		if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, age, age); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	lock := func(dir string) *os.File {
		f, err := takeLock(filepath.Join(dir, lockName))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
		return f
	}
	young, lockless := make("young", time.Now()), make("lockless", old)
	owned, orphaned := make("owned", old), make("orphaned", old)
	defer lock(owned).Close()
	lock(orphaned).Close()

	sweep(base)

	for dir, want := range map[string]bool{young: true, lockless: false, owned: true, orphaned: false} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(dir), err == nil, want)
		}
	}
}
