package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// TestARestoredLogLosesNothingAndRunsNothingAgain copies all rows into a
// server whose transaction numbers are elsewhere, while somebody works there.
func TestARestoredLogLosesNothingAndRunsNothingAgain(t *testing.T) {
	low, high := pgtest.Start(t, pgtest.Options{}), pgtest.Start(t, pgtest.Options{})
	for _, c := range []struct {
		name     string
		from, to *pgtest.Server
		schema   string
	}{
		{"into a server that is behind", high, low, "stint"},
		{"into a server that is ahead", low, high, "stint"},
		{"into another schema of the same database", low, nil, "copy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			old := openStore(t, installed.On(t, c.from))
			burn(t, old, map[*pgtest.Server]int{low: 100, high: 40_000}[c.from])
			l := live(t, old)
			url := old.url()
			if c.to != nil {
				url = c.to.New(t)
			}
			restored := openStore(t, url, Config{Schema: c.schema, SkipCheck: true})
			if c.to != nil {
				burn(t, restored, map[*pgtest.Server]int{low: 10, high: 90_000}[c.to])
			}
			copyAll(t, old, restored)
			l.goesOn(t, restored)
		})
	}
}

// TestARestoredLogLosesNothingWhenOthersUseUpNumbersMeanwhile holds the rebase up
// when it has its number, until others have got later ones and ended.
func TestARestoredLogLosesNothingWhenOthersUseUpNumbersMeanwhile(t *testing.T) {
	old, restored := newStore(t), openStore(t, pgtest.New(t), Config{SkipCheck: true})
	l := live(t, old)
	copyAll(t, old, restored)
	exec(t, restored, `create function stint.stop_here() returns trigger language plpgsql as $$
		begin perform pg_advisory_lock_shared(7); perform pg_advisory_unlock_shared(7); return null; end $$`)
	exec(t, restored, `create trigger stop_here before update on stint.entries for each statement execute function stint.stop_here()`)
	gate := connect(t, restored)
	_, err := gate.Exec(t.Context(), `select pg_advisory_lock(7)`)
	must(t, err)
	opened := make(chan error, 1)
	go func() { opened <- install(t.Context(), restored.url(), Config{}) }()
	must(t, (&bench{t, restored, nil}).blocked())
	burn(t, old, 10)
	_, err = gate.Exec(t.Context(), `select pg_advisory_unlock(7)`)
	must(t, err)
	must(t, <-opened)
	if !value[bool](t, restored.pool, `
		select bool_and(e.xid < c.xid) from stint.entries e join stint.claims c using (lane) where e.pos = $1 and c.engine = 0`, l.unclaimed[0]) {
		t.Fatal("nobody used up a number while the log was rebased")
	}
	l.goesOn(t, restored)
}

// life is what stood in the old database.
type life struct {
	finished, claimed, unclaimed, pending, waiting, retried []stint.ID
	engine                                                  store.EngineID
}

// live leaves jobs in every stage. The transaction of the pending ones is in
// progress when claims pass it, and commits afterwards.
func live(t *testing.T, s *Store) life {
	b := &bench{t, s, nil}
	var l life
	w := b.join()
	l.engine = w.Info.Token
	slow := b.enqueue(3, stint.Queue("slow")) // of a lane whose frontier stays behind
	w.Complete(w.Claim(store.LaneOf("slow", 0, store.PartNormal, "").ID, 1)...)
	l.finished = b.enqueue(20)
	w.Complete(w.Claim(normal, 100)...)
	l.retried = b.enqueue(2)
	w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("no")}, w.Claim(normal, 100)...)
	tx := begin(b, s)
	l.pending = b.enqueueIn(Tx(tx), 3)
	l.claimed = b.enqueue(5)
	if got := ids(w.Claim(normal, 100)); !slices.Equal(got, l.claimed) {
		t.Fatalf("claimed %v, want %v", got, l.claimed)
	}
	other := begin(b, s) // of what it brings a lane a claim takes a part only
	cut, lane := b.enqueueIn(Tx(other), 3, stint.Queue("cut")), store.LaneOf("cut", 0, store.PartNormal, "").ID
	before := b.enqueue(1, stint.Queue("cut"))
	w.Complete(w.Claim(lane, 100)...)
	must(t, other.Commit(t.Context()))
	w.Complete(w.Claim(lane, 1)...)
	late := b.enqueue(4) // finished, with numbers above the pending ones
	w.Complete(w.Claim(normal, 100)...)
	l.finished = append(append(l.finished, late...), slow[0], cut[0], before[0])
	must(t, tx.Commit(t.Context()))
	l.unclaimed = slices.Concat(b.enqueue(6), b.enqueue(2, stint.Queue("untouched")), slow[1:], cut[1:])
	l.waiting = b.enqueue(2, stint.Delay(time.Millisecond))
	return l
}

// goesOn opens the restored log, works it off and counts.
func (l life) goesOn(t *testing.T, s *Store) {
	// Somebody's transaction has its number before the rebase, and enqueues later.
	foreign := begin(t, s)
	value[int64](t, foreign, `select pg_current_xact_id()::text::bigint`)
	r := openStore(t, s.url(), Config{Schema: s.schema})
	t.Cleanup(func() { storetest.Verify(t, r) })
	b := &bench{t, r, nil}
	for id, want := range map[stint.ID]stint.State{
		l.finished[0]: stint.Completed, l.finished[23]: stint.Completed, l.claimed[0]: stint.Running, l.unclaimed[0]: stint.Available,
		l.unclaimed[7]: stint.Available, l.pending[0]: stint.Available, l.retried[0]: stint.Retrying, l.waiting[0]: stint.Scheduled,
	} {
		if j, err := r.Job(t.Context(), id); err != nil || j.State != want {
			t.Errorf("after the restore job %d is %+v, error %v, want %s", id, j, err, want)
		}
	}
	during := b.enqueueIn(Tx(foreign), 3)
	w := storetest.Join(t, r, "k")
	first := w.ClaimAll()
	must(t, foreign.Commit(t.Context()))
	fresh := b.enqueue(2)
	if n, err := r.Bury(t.Context(), store.Burial{Engine: l.engine, Unless: time.Nanosecond}, judge); err != nil || n != len(l.claimed) {
		t.Errorf("the burial of the old engine concluded %d, error %v", n, err)
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if p, err := r.Promote(t.Context(), past, 100); err != nil || p.Moved > 0 {
			must(t, err)
			break
		}
	}
	got := append(ids(first), ids(w.ClaimAll())...)
	want := slices.Concat(l.claimed, l.unclaimed, l.pending, l.waiting, during, fresh)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("claimed after the restore: %v\nwant %v\n(%+v)", got, want, l)
	}
	if opened := openStore(t, s.url(), Config{Schema: s.schema}); value[int](t, opened.pool, opened.sql.in(`select count(*) from stint.claims where engine = 0`)) != 3 { // for the lanes that had a frontier
		t.Errorf("opening again rebased again")
	}
}

// burn uses up transaction numbers.
func burn(t *testing.T, s *Store, n int) {
	exec(t, s, fmt.Sprintf(`do $$ begin for i in 1..%d loop perform pg_current_xact_id(); commit; end loop; end $$`, n))
}

// copyAll makes the schema and copies all rows, as a dump and its restore do.
func copyAll(t *testing.T, from, to *Store) {
	source, target := connect(t, from), connect(t, to)
	text, err := to.PrintSchema(0)
	must(t, err)
	_, err = target.PgConn().Exec(t.Context(), text).ReadAll()
	must(t, err)
	exec(t, to, `truncate stint.meta, stint.summed`) // what an installation writes into them
	for _, table := range value[[]string](t, source, `select array_agg(relname::text) from pg_class where relkind = 'r' and relnamespace = 'stint'::regnamespace`) {
		var data bytes.Buffer
		_, err := source.PgConn().CopyTo(context.Background(), &data, `copy stint.`+table+` to stdout`)
		must(t, err)
		_, err = target.PgConn().CopyFrom(context.Background(), &data, `copy `+pgx.Identifier{to.schema, table}.Sanitize()+` from stdin`)
		must(t, err)
	}
}

// Nobody may be in the middle of a claim, a burial or a promotion while the log is
// rebased.
func TestARebaseWaitsForWhoeverWrites(t *testing.T) {
	for _, table := range []string{"engines", "claims", "entries", "waiting"} {
		old, restored := newStore(t), openStore(t, pgtest.New(t), Config{SkipCheck: true})
		live(t, old)
		copyAll(t, old, restored)
		writer := begin(t, restored)
		_, err := writer.Exec(t.Context(), `lock table stint.`+table+` in row exclusive mode`)
		must(t, err)
		opened := make(chan error, 1)
		go func() { opened <- install(t.Context(), restored.url(), Config{}) }()
		must(t, (&bench{t, restored, nil}).blocked())
		must(t, writer.Commit(t.Context()))
		must(t, <-opened)
	}
}
