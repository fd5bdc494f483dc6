package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal: what is written to one end is typed at the other.
func terminal(t *testing.T) (keys, program *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals here: ", err)
	}
	t.Cleanup(func() { keys.Close() })
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return keys, program
}

// shown is what a program writes to people while somebody looks on.
type shown struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// until waits for a text.
func (s *shown) until(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		there := strings.Contains(s.text.String(), text)
		s.mu.Unlock()
		if there {
			time.Sleep(50 * time.Millisecond) // the terminal is asked to be silent right behind the question
			return
		}
	}
	t.Fatalf("%q never came", text)
}

func TestAPasswordIsNotShownWhileItIsTyped(t *testing.T) {
	keys, program := terminal(t)
	var (
		out  bytes.Buffer
		errs shown
		seen bytes.Buffer
		all  sync.WaitGroup
	)
	a := &app{in: program, out: &out, err: &errs, env: func(string) string { return "" }, exit: func(int) { t.Error("the program exited by itself") }}
	all.Go(func() { _, _ = io.Copy(&seen, keys) }) // until the other end is closed
	all.Go(func() {
		defer program.Close()
		if code := a.run([]string{"dashboard", "password", "ann"}); code != exitOK {
			t.Errorf("exit code %d", code)
		}
	})
	for _, question := range []string{"Password: ", "Again: "} {
		errs.until(t, question)
		if _, err := io.WriteString(keys, "correct horse\n"); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	if !strings.Contains(out.String(), `bcrypt = "$2a$12$`) {
		t.Errorf("it prints %s%s", out.String(), errs.text.String())
	}
	if strings.Contains(seen.String(), "horse") {
		t.Errorf("the terminal shows %q", seen.String())
	}
}
