//go:build unix

package chaos_test

import (
	"testing"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// full is how long the disk is.
const full = 3 * time.Second

// mostTroubles is how many events of trouble an engine may tell in a second
// without a database that works: each makes a line in a log.
const mostTroubles = 20

// A server whose disk is full refuses what needs room, and ends when its log
// does. When there is room again, and somebody has started it, work goes on.
func TestADiskThatIsFullAndHasRoomAgainLosesNothing(t *testing.T) {
	t.Parallel()
	atLength(t)
	server := pgtest.Start(t, pgtest.Options{
		Space:    200 << 20,
		Settings: map[string]string{"min_wal_size": "32MB", "max_wal_size": "64MB"},
	})
	w := newWorld(t, server.New(t))
	l := w.load(3, 2, pace.Of(3*time.Second), 50*time.Millisecond)
	w.works()
	for _, log := range []bool{false, true} {
		over := w.CutOff("")
		before, began := w.troubles(l.keepers), time.Now()
		server.Fill()
		_, err := w.pool.Exec(t.Context(), `create table room as select repeat('x', 1000) from generate_series(1, 100000)`)
		if err == nil {
			t.Error("there is room for a table")
		}
		for err = nil; log && err == nil && time.Since(began) < time.Minute; {
			_, err = w.pool.Exec(t.Context(), `select pg_logical_emit_message(false, 'filler', repeat('x', 1000000)), pg_switch_wal()`)
		}
		time.Sleep(time.Until(began.Add(full)))
		told := float64(w.troubles(l.keepers)-before) / time.Since(began).Seconds() / float64(len(l.keepers))
		server.Empty()
		if log {
			server.Restart(pgtest.Immediate)
		}
		over()
		took := w.recovers()
		t.Logf("room for the log: %v (%v); each engine told of %.1f troubles in a second; work resumed after %v", !log, err, told, took)
		if told > mostTroubles {
			t.Errorf("each engine told of %.1f troubles in a second, more than %d", told, mostTroubles)
		}
		if took > pace.Of(5*time.Second) {
			t.Errorf("work resumed after %v, more than 5s", took)
		}
	}
	l.end(time.Minute)
}

// troubles counts what engines said that failed.
func (w *world) troubles(keepers []*chaos.Keeper) int {
	w.t.Helper()
	n := 0
	for _, k := range keepers {
		n += chaos.Count(w.Events(k.Process().Name), event.EventTrouble)
	}
	return n
}
