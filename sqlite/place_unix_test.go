//go:build unix

package sqlite

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
)

// A process that was stopped keeps its jobs, and goes on with them.
func TestAProcessThatIsStoppedStaysAlive(t *testing.T) {
	const ttl = time.Second
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	c, id := running(t, s, ttl)
	watcher(t, s, ttl, func(context.Context) error { return nil })
	before, _ := s.engineNamed(t, "child")
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * ttl)
	if e, there := s.engineNamed(t, "child"); !there || !e.Held || time.Since(e.Beat) < 2*ttl {
		t.Errorf("after it was stopped for %v the roster has it: %v, %+v", 4*ttl, there, e)
	}
	if err := c.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "its job has completed", 10*time.Second, func() bool { return s.stateOf(t, id) == stint.Completed })
	if job, _ := s.Job(t.Context(), id); len(job.Attempts) != 1 || job.Attempts[0].Engine != int64(before.Token) {
		t.Errorf("the job was tried as %+v", job.Attempts)
	}
	if c.says(event.EventBuried) {
		t.Errorf("it was fenced")
	}
}
