package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

// How long ago something was is counted by the database's clock, whatever this
// machine's says: pages and command agree.
func TestTheCommandCountsByTheDatabasesClock(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{Clock: true})
	server.SetClock(3 * time.Hour)
	url := server.New(t)
	run := func(args ...string) string {
		t.Helper()
		out, errs, code := session(t, false, append(args, "--db", url)...)
		if code != exitOK {
			t.Fatalf("%v: exit code %d, %s", args, code, errs)
		}
		return out
	}
	run("enqueue", "k", "--force", "--queue", "q")
	run("schedules", "add", "tick", "--every", "5m", "--force", "k")
	run("queues", "pause", "q")
	for _, args := range [][]string{
		{"jobs", "list"}, {"jobs", "show", "1"}, {"schedules", "list"}, {"schedules", "show", "tick"}, {"queues", "list"}, {"changes"}, {"jobs", "cancel", "--queue", "q", "--dry-run"},
		{"schedules", "add", "tick", "--every", "4m", "--force", "k"},
	} {
		if out := run(args...); strings.Contains(out, "in 3h") || strings.Contains(out, "in 1") || !strings.Contains(out, "now") && !strings.Contains(out, "s ago") && !strings.Contains(out, "in 4m") && !strings.Contains(out, "in 3m") && !strings.Contains(out, "in 5m") {
			t.Errorf("%v says\n%s", args, out)
		}
	}
}
