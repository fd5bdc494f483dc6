//go:build unix

package chaos_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// A database that is away for long costs its engines nothing but the wait:
// their logs, goroutines and memory stay small, and when it is back they have as
// many connections as before.
func TestADatabaseThatIsAwayForLongCostsLittle(t *testing.T) {
	t.Parallel()
	atLength(t)
	const (
		workers     = 3
		connections = 6 + 1 + 2 + 2 // of each: for the engine, to listen, for the store and for the workload
		own         = 3             // that are not of workers
		bytesEach   = 600
	)
	away := 12 * time.Second
	if long() {
		away = time.Minute
	}
	server := pgtest.Start(t, pgtest.Options{})
	w := newWorld(t, server.New(t))
	var keepers []*chaos.Keeper
	for i := range workers {
		keepers = append(keepers, w.Keep(chaos.Worker{Name: fmt.Sprintf("worker-%d", i+1), DB: w.url + "&pool_max_conns=2", Slots: 10, Vitals: true, Diary: true}))
	}
	w.until("all joined", fmt.Sprintf(`select count(*) = %d from stint.engines`, workers))
	mixed := func(i int) chaos.Args { return chaos.Args{Tx: i%2 == 0, Work: i % 20} }
	w.enqueue("before", 0, 500, mixed)
	w.Drain(t.Context(), w.store, time.Minute)
	w.enqueue("amid", 0, 30, func(int) chaos.Args { return chaos.Args{Work: 2000} })
	time.Sleep(1500 * time.Millisecond)

	over := w.CutOff("")
	before := make([]int, workers)
	for i, k := range keepers {
		before[i] = len(w.Diary(k.Process().Name))
	}
	left := time.Now()
	server.Stop(pgtest.Immediate)
	time.Sleep(away)
	for i, k := range keepers {
		said := w.Diary(k.Process().Name)[before[i]:]
		n, most := bytes.Count(said, []byte("\n")), 20+int(linesOfTrouble*away.Minutes())
		t.Logf("%s wrote %d lines, %d bytes", k.Process().Name, n, len(said))
		if n > most || len(said) > most*bytesEach {
			t.Errorf("%s wrote %d lines, %d bytes in %v:\n%s", k.Process().Name, n, len(said), away, said)
		}
	}
	server.Start()
	over()
	came := time.Now()
	w.enqueue("after", 0, 500, mixed)
	took := w.recovers()
	t.Logf("work resumed after %v", took)
	if took > pace.Of(5*time.Second) {
		t.Errorf("work resumed %v after the server, more than 5s", took)
	}
	w.Drain(t.Context(), w.store, time.Minute)
	time.Sleep(time.Second)
	if n := w.number(`select count(*) from pg_stat_activity where datname = current_database() and application_name like 'stint%'`); n > workers*connections+own {
		t.Errorf("there are %d connections", n)
	}
	for _, k := range keepers {
		w.flat(k.Process().Name, left, came)
		k.Stop()
		if k.Lives > 1 {
			t.Errorf("%s had %d lives", k.Process().Name, k.Lives)
		}
	}
	w.Burials(t.Context(), w.ground)
	t.Log(w.Judge(t.Context(), w.ground))
}

// flat makes sure that a worker was no larger between two instants and behind
// them than it was before.
func (w *world) flat(process string, from, to time.Time) {
	w.t.Helper()
	var before, amid, after chaos.Use
	for _, s := range w.Uses(process) {
		into := &after
		switch {
		case s.At.Before(from):
			into = &before
		case s.At.Before(to):
			into = &amid
		}
		into.Goroutines, into.Heap = max(into.Goroutines, s.Goroutines), max(into.Heap, s.Heap)
	}
	w.t.Logf("%s had at most %d goroutines and %d kB before, %d and %d amid, %d and %d after", process,
		before.Goroutines, before.Heap/1024, amid.Goroutines, amid.Heap/1024, after.Goroutines, after.Heap/1024)
	if most := before.Goroutines + 20; amid.Goroutines > most || after.Goroutines > most {
		w.t.Errorf("%s has more goroutines than before", process)
	}
	if most := before.Heap + 16<<20; amid.Heap > most || after.Heap > most {
		w.t.Errorf("%s has more memory than before", process)
	}
}
