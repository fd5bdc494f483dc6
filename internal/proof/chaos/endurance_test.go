//go:build unix

package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// A random sequence of everything that programs and people do, and of what
// happens to processes. In the end every job is final or deleted, the counts add
// up, and what the handlers wrote down agrees with the database. The log of a
// failure is the sequence; STINT_CHAOS_SEED=… draws it again.
func TestEnduranceNoSequenceOfActsAndKillsLosesOrDoublesAJob(t *testing.T) {
	t.Parallel()
	onEach(t, endure)
}

// onEach runs a test on either database.
func onEach(t *testing.T, f func(t *testing.T, db string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, filepath.Join(t.TempDir(), "jobs.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		f(t, pgtest.New(t))
	})
}

// open opens a database, and makes it ready for the workload.
func open(t *testing.T, db string) *chaos.Ground {
	t.Helper()
	ground, err := chaos.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ground.Close)
	if err := ground.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ground
}

func endure(t *testing.T, db string) {
	const workers = 3
	ttl := pace.Of(2 * time.Second)
	ground := open(t, db)
	fleet := chaos.NewFleet(t)
	fleet.Seed = seed(t)
	dice := rand.New(rand.NewPCG(fleet.Seed, 118))
	m := &chaos.Mixed{
		T: t, Fleet: fleet, Rand: dice, TTL: ttl, Rest: 100 * time.Millisecond,
		People:   &chaos.People{Fleet: fleet, Store: ground.Store},
		Producer: &chaos.Producer{Name: "producer", Ground: ground, History: fleet.History, Mixed: true, Varied: true, Deadly: true, Slow: true, Rand: dice},
	}
	for i := range workers {
		m.Workers = append(m.Workers, chaos.Kept{Keeper: fleet.Keep(chaos.Worker{
			Name: fmt.Sprintf("worker-%d", i+1), DB: db, Slots: 8, TimeToLive: ttl, MaxOutage: 4 * ttl, Grace: 2 * time.Second,
		})})
	}
	// One lives through all of it, and must not grow.
	steady := fleet.Start(chaos.Worker{Name: "steady", DB: db, Slots: 8, TimeToLive: ttl, Vitals: true})
	trouble := minutes(t, "STINT_ENDURANCE_MINUTES", 6*time.Second)
	m.Run(t.Context(), trouble)
	calm := time.Now()
	if missing := m.Missing(); trouble >= muchTime && len(missing) > 0 {
		t.Errorf("of these troubles nothing was made: %v", missing)
	}
	fleet.Drain(t.Context(), ground.Store, 2*time.Minute)
	t.Logf("everything was done %v after the trouble ended", time.Since(calm))
	lives := 0
	for _, w := range m.Workers {
		w.Stop()
		lives += w.Lives
	}
	if err := steady.Stop(); err != nil {
		t.Error(err)
	}
	t.Log(fleet.Flat(steady.Name))
	buried := fleet.Burials(t.Context(), ground)
	report := fleet.Judge(t.Context(), ground)
	t.Logf("%s; %d lives of %d workers, %d engines buried; %v", m.Done(), lives, workers, buried, report)
	addUp(t, ground, m.People, report.Enqueues-report.RolledBack-report.UnknownAbsent)
}

// addUp compares what people see with what was enqueued, recovered and deleted.
func addUp(t *testing.T, ground *chaos.Ground, people *chaos.People, enqueued int) {
	t.Helper()
	counts, err := ground.Store.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for state, n := range counts {
		if seen += int(n); !state.Final() && n > 0 {
			t.Errorf("%d jobs are %s", n, state)
		}
	}
	t.Logf("%d enqueued + %d recovered - %d deleted = %d: %d completed, %d failed, %d cancelled", enqueued, people.Recovered, people.Deleted, seen,
		counts[stint.Completed], counts[stint.Failed], counts[stint.Cancelled])
	if want := enqueued + people.Recovered - people.Deleted; seen != want && people.Failed == 0 {
		t.Errorf("there are %d jobs, and %d were enqueued or recovered and not deleted", seen, want)
	}
}
