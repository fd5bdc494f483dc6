package check

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The test binary is also the processes that it starts.
func TestMain(m *testing.M) {
	switch os.Getenv("CHECK_TEST_CHILD") {
	case "clock":
		fmt.Println(int64(Now()))
		return
	case "work":
		workForever(os.Getenv("CHECK_TEST_DIR"), os.Getenv("CHECK_TEST_NAME"))
	}
	os.Exit(m.Run())
}

func child(t *testing.T, does string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), "CHECK_TEST_CHILD="+does), env...)
	cmd.Stderr = t.Output()
	return cmd
}

// workForever writes from several goroutines and says, after each start that
// was written, how many there were.
func workForever(dir, name string) {
	w, err := Create(dir, name)
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex
	n := 0
	for range 4 {
		go func() {
			for {
				i := w.Intend("a key", `a "quoted" key`)
				i.Committed(1, 2)
				mu.Lock()
				r := w.Start(Run{Job: int64(n), Attempt: 1})
				n++
				fmt.Println(n)
				mu.Unlock()
				r.End(OK, "")
			}
		}()
	}
	select {}
}

func TestWhatAKilledProcessWroteIsThere(t *testing.T) {
	dir := t.TempDir()
	const children = 3
	var said [children]int
	var wg sync.WaitGroup
	for i := range children {
		wg.Go(func() {
			cmd := child(t, "work", "CHECK_TEST_DIR="+dir, fmt.Sprintf("CHECK_TEST_NAME=worker-%d", i))
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Error(err)
				return
			}
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				// What comes after the kill was said before it. A last number
				// that was cut off is smaller, which is no matter.
				said[i], _ = strconv.Atoi(lines.Text())
				if said[i] == 2000 {
					_ = cmd.Process.Kill()
				}
			}
			_ = cmd.Wait()
		})
	}
	wg.Wait()
	h, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Processes) != children {
		t.Fatalf("%d processes, want %d", len(h.Processes), children)
	}
	var started [children]int
	for i, r := range h.Runs {
		if want := int64(started[r.Process]); r.Job != want {
			t.Fatalf("run %d is of job %d, want %d", i, r.Job, want)
		}
		started[r.Process]++
	}
	for i, p := range h.Processes {
		if said[i] < 2000 || started[i] < said[i] {
			t.Errorf("%s: %d starts in the log, but it said %d", p.Name, started[i], said[i])
		}
		if p.Stopped != 0 {
			t.Errorf("%s was killed, but its log says that it stopped", p.Name)
		}
	}
	t.Logf("said %v, in the log %v, torn %d", said, started, h.Torn)
}

func TestInstantsAreComparableBetweenProcesses(t *testing.T) {
	before := Now()
	out, err := child(t, "clock").Output()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if at, after := Instant(n), Now(); at < before || at > after {
		t.Errorf("the child's instant %d is not within %d and %d", at, before, after)
	}
}

func TestInstantsFollowFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := Now()
		time.Sleep(time.Hour)
		if got := Now().Sub(before); got != time.Hour {
			t.Errorf("an hour took %v", got)
		}
	})
}
