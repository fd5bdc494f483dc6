//go:build unix

package chaos_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// The schema is upgraded while a fleet works on it, programs of both versions
// work side by side, and those that are too old are told to leave.
func TestARollingUpgradeLosesAndDoublesNothing(t *testing.T) {
	atLength(t)
	t.Parallel()
	ttl := pace.Of(2 * time.Second)
	w := newWorld(t, pgtest.New(t))
	l := w.load(0, 2, ttl, 200*time.Millisecond)
	start := func(name string, knows int) *chaos.Process {
		return w.Start(chaos.Worker{Name: name, DB: w.url, Slots: 10, TimeToLive: ttl, Knows: knows})
	}
	upgrade := func(knows int) {
		t.Helper()
		began := time.Now()
		p := w.Start(chaos.Worker{Name: fmt.Sprintf("upgrader-%d", knows), DB: w.url, Knows: knows, Upgrades: true})
		if code, _ := p.Exit(time.Minute); code != 0 {
			t.Fatalf("the upgrade ends with %d: %s", code, w.Said(p.Name))
		}
		t.Logf("the schema has version %d after %v, work resumed after %v", w.number(`select version from stint.meta`), time.Since(began), w.recovers())
	}
	refused := func(name string, knows int, says string) {
		t.Helper()
		p := start(name, knows)
		if code, _ := p.Exit(30 * time.Second); code != 1 || !strings.Contains(w.Said(name), says) {
			t.Errorf("%s ends with %d, and says %s", name, code, w.Said(name))
		}
	}
	old := []*chaos.Process{start("old-1", 0), start("old-2", 0)}
	w.works()
	refused("new-too-early", 2, "run the migration")

	upgrade(2)
	fresh := []*chaos.Process{start("new-1", 2), start("new-2", 2)}
	w.until("both versions work", `select count(*) = 4 from stint.engines`)
	old[1].Kill() // who comes after it is old as well
	old[1] = start("old-3", 0)
	t.Logf("work resumed after %v", w.works())
	for _, name := range []string{"old-1", "old-3", "new-1", "new-2"} {
		w.until(name+" does something beside the others", `
			select exists (select from stint.executions x join stint.engine_history h on h.token = x.engine where h.instance = $1 and x.outcome = 1)`, name)
	}

	upgrade(3)
	for _, p := range old {
		if _, gone := p.Exit(30 * time.Second); gone == 0 || chaos.Count(w.Events(p.Name), event.EventLeft) != 1 {
			t.Errorf("%s did not leave in good order: %s", p.Name, w.Said(p.Name))
		}
		t.Logf("%s said: %s", p.Name, lastLine(w.Said(p.Name)))
	}
	refused("old-too-late", 0, "needs programs of version 2 or newer; this one knows version 1")
	t.Logf("work resumed after %v", w.works())
	l.end(time.Minute)
	for _, p := range fresh {
		if err := p.Stop(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
