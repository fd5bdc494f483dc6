package postgres

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// blocked waits until somebody waits for a lock.
func blocked(t *testing.T, s *Store) {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(2 * time.Millisecond) {
		if value[bool](t, s.pool, `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`) {
			return
		}
	}
	t.Error("nobody waits for a lock")
}

// A job that is told to run now while its promotion is under way is not looked
// for in the log before that has ended.
func TestRunningNowWaitsForThePromotionUnderWay(t *testing.T) {
	for _, commit := range []bool{true, false} {
		s := verified(t)
		b := &bench{t, s, nil}
		id := b.enqueue(1, stint.Delay(time.Millisecond))[0]
		time.Sleep(5 * time.Millisecond)
		tx := begin(t, s)
		if n := value[int](t, tx, `select moved from stint.promote('-infinity', 10)`); n != 1 {
			t.Fatalf("%d jobs were promoted", n)
		}
		answer := make(chan stint.RerunResult, 1)
		go func() {
			got, err := s.Retry(t.Context(), []stint.ID{id}, stint.RerunOptions{})
			if err != nil {
				t.Error(err)
			}
			answer <- got[id]
		}()
		blocked(t, s)
		want := stint.RerunReady
		if commit {
			want = stint.RerunAvailable
			must(t, tx.Commit(t.Context()))
		} else {
			must(t, tx.Rollback(t.Context()))
		}
		if got := <-answer; got.Answer != want {
			t.Errorf("the promotion committed: %v; the answer is %q, want %q", commit, got.Answer, want)
		}
		w := b.join()
		w.Complete(w.One())
	}
}

// An engine whose answer was lost repeats its outcome at the very moment that
// the job is deleted: the repetition waits for the deletion, and then no row is
// there any more that it would be in conflict with.
func TestAnOutcomeThatIsRepeatedBesideADeletionIsNotRecorded(t *testing.T) {
	for _, commit := range []bool{true, false} {
		s := verified(t)
		b := &bench{t, s, nil}
		id := b.enqueue(1)[0]
		w := b.join()
		x := w.Conclude(w.One(), completed)
		if _, err := w.TryFinish(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		tx := begin(t, s)
		if got := value[[]string](t, tx, `select stint.erase($1)`, []int64{int64(id)}); got[0] != "deleted" {
			t.Fatalf("the answer is %v", got)
		}
		done := make(chan error, 1)
		go func() {
			n, err := w.TryFinish(t.Context(), x)
			if n != 0 {
				t.Errorf("the repetition recorded %d", n)
			}
			done <- err
		}()
		blocked(t, s)
		if commit {
			must(t, tx.Commit(t.Context()))
		} else {
			must(t, tx.Rollback(t.Context()))
		}
		must(t, <-done)
		if _, err := s.Job(t.Context(), id); errors.Is(err, stint.ErrNotFound) != commit {
			t.Errorf("the deletion committed: %v; the job is shown with %v", commit, err)
		}
	}
}

func TestTheNoteOfADeletionGoesWhenNothingIsLeftToRepeat(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	ids := b.enqueue(2)
	w := b.join()
	w.Complete(w.ClaimAll()...)
	if _, err := s.Delete(t.Context(), ids[:1]); err != nil {
		t.Fatal(err)
	}
	notes := func() int { return value[int](t, s.pool, `select count(*) from stint.deletions`) }
	beat := func(low int64) {
		if _, err := s.Heartbeat(t.Context(), w.Info.Token, store.Heartbeat{Low: low}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		age  string
		low  int64
		want int
	}{{"0 s", 1, 1}, {"0 s", 100, 1}, {"1 h", 1, 1}, {"1 h", 100, 0}} {
		exec(t, s, `update stint.deletions set at = clock_timestamp() - $1::interval`, step.age)
		beat(step.low)
		if got := notes(); got != step.want {
			t.Errorf("after %s, with %d as the bound: %d notes, want %d", step.age, step.low, got, step.want)
		}
	}
	// That of another one stays until he beats.
	other := b.join()
	exec(t, s, `insert into stint.deletions (engine, serial, at) values ($1, 1, clock_timestamp() - interval '1 h')`, other.Info.Token)
	if beat(100); notes() != 1 {
		t.Errorf("of another engine there are %d notes", notes())
	}
	exec(t, s, `delete from stint.deletions`)
	// Of those who left there is none, and another deletion forgets theirs, whoever stands.
	exec(t, s, `insert into stint.deletions (engine, serial) values (1, 1)`)
	w.Leave()
	if _, err := s.Delete(t.Context(), ids[1:]); err != nil || notes() != 0 {
		t.Errorf("%d notes are left, error %v", notes(), err)
	}
}

func TestASweepFindsNothingOfWhatWasDeleted(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	ids := b.enqueue(3)
	w := b.join()
	w.Complete(w.ClaimAll()...)
	if _, err := s.Delete(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	exec(t, s, `update stint.beats set low = 100`)
	must(t, s.transact(t.Context(), func(tx pgx.Tx) error {
		_, err := s.condemn(t.Context(), tx, store.Burial{Engine: w.Info.Token})
		return err
	}))
	exec(t, s, `update stint.engine_history set ended = clock_timestamp() - interval '1 min'`)
	if n, err := s.Sweep(t.Context(), storetest.Judge); err != nil || n != 0 {
		t.Errorf("it swept up %d, error %v", n, err)
	}
}

// A marker that somebody set by SQL and that came too late for a job that was
// deleted since must not stay for ever: each claim would ask about it.
func TestAMarkerOfADeletedJobIsTidiedUp(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	id := b.enqueue(1)[0]
	tx := begin(t, s)
	if got := value[string](t, tx, `select stint.cancel($1)`, id); got != "cancelled" {
		t.Fatalf("the answer is %q", got)
	}
	w := b.join()
	w.Complete(w.One())
	if got, err := s.Delete(t.Context(), []stint.ID{id}); err != nil || got[id] != store.DeletedNow {
		t.Fatalf("%v, error %v", got, err)
	}
	must(t, tx.Commit(t.Context()))
	if _, err := s.Promote(t.Context(), past, 1); err != nil {
		t.Fatal(err)
	}
	if n := value[int](t, s.pool, `select count(*) from stint.cancellations`); n != 0 {
		t.Errorf("%d markers are left", n)
	}
}

// U24: programs in other languages pause queues too.
func TestSQLPausesAndResumesAQueue(t *testing.T) {
	s := verified(t)
	rung, stop := listening(t, s)
	conn := connect(t, s)
	for _, step := range []struct {
		sql  string
		want bool
	}{
		{`select stint.pause('mail', why => 'the server is down')`, true}, {`select stint.pause('mail')`, false},
		{`select stint.resume('mail')`, true}, {`select stint.resume('mail')`, false},
		{`select stint.pause('mail', '')`, true},
	} {
		if got := value[bool](t, conn, step.sql); got != step.want {
			t.Errorf("%s gives %v", step.sql, got)
		}
		if !step.want {
			continue
		}
		select {
		case <-rung:
		case <-time.After(patience):
			t.Errorf("%s did not ring", step.sql)
		}
	}
	stop()
	for _, name := range []string{`''`, `'*'`, `null`, `' a'`, `E'a\nb'`, `repeat('q', 256)`} {
		_, err := conn.Exec(t.Context(), `select stint.pause(`+name+`)`)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "22023" || !strings.Contains(pg.Message, "is no name of a queue") {
			t.Errorf("pausing %s gives %v", name, err)
		}
	}
	queues, err := s.Queues(t.Context())
	if err != nil || len(queues) != 1 || queues[0].Name != "mail" || queues[0].By != "" || queues[0].Paused.IsZero() {
		t.Errorf("the queues are %+v, error %v", queues, err)
	}
}

// Whoever cancels in SQL is told what the job is now: of what has ended or is none
// nothing is noted, and of what is noted nothing twice.
func TestSQLCancelsWhatHasNotEnded(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	ids := b.enqueue(3)
	w := b.join()
	w.Complete(w.Claim(normal, 1)...)
	running := w.Claim(normal, 1)
	want := []string{"completed", "running", "cancelled", "none", "running", "cancelled"}
	for i, id := range append(ids, 1<<40, ids[1], ids[2]) {
		if got := value[string](t, s.pool, `select coalesce(stint.cancel($1, 'why'), 'none')`, id); got != want[i] {
			t.Errorf("cancelling job %d answers %q, want %q", id, got, want[i])
		}
	}
	if marked := value[[]stint.ID](t, s.pool, `select array_agg(job order by job) from stint.cancellations`); !slices.Equal(marked, ids[1:]) {
		t.Errorf("marked are %v, want %v", marked, ids[1:])
	}
	w.Finish(store.Result{Outcome: stint.OutcomeCancelled}, append(running, w.One())...)
}

// A deletion is noted for the engines that may record the job once more: those of
// its attempts that stand, and that either ended one just now or hold a claim for as
// long.
func TestADeletionIsNotedForTheEnginesThatMayRepeatTheJob(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	id := b.enqueue(1)[0]
	again := store.Result{Outcome: stint.OutcomeReturned, Part: store.PartNormal}
	first, lately, holds, later, sure, gone, last, bystander := b.join(), b.join(), b.join(), b.join(), b.join(), b.join(), b.join(), b.join()
	own := map[*storetest.Worker]int{first: 1, lately: 2, holds: 3, later: 4, sure: 1, gone: 1, last: 8, bystander: 6}
	lane := store.LaneOf("own", 0, store.PartNormal, "").ID
	for _, w := range []*storetest.Worker{first, lately, holds, later, sure, gone, last, bystander} {
		switch w {
		case bystander:
		case last:
			w.Complete(w.One())
		default:
			w.Finish(again, w.One())
		}
		for range own[w] {
			b.enqueue(1, stint.Queue("own"))
			w.Complete(w.Claim(lane, 1)...)
		}
	}
	const made = `update stint.claims set made = made - interval '20 minutes' where engine = $1`
	for _, w := range []*storetest.Worker{first, holds, later, sure, gone, last} {
		exec(t, s, `update stint.executions set started = started - interval '15 minutes', finished = finished - interval '15 minutes' where engine = $1`, w.Info.Token)
		exec(t, s, made, w.Info.Token)
	}
	// Who claims again and again says in time what is recorded.
	low := value[int64](t, s.pool, `select max(serial) from stint.claims where engine = $1`, later.Info.Token)
	exec(t, s, `update stint.claims set made = now() where engine = $1 and serial = $2`, later.Info.Token, low)
	for w, low := range map[*storetest.Worker]int64{lately: 100, later: low, sure: 9 /* as only the last one claimed */, bystander: 1} {
		_, err := s.Heartbeat(t.Context(), w.Info.Token, store.Heartbeat{Number: 1, Low: low})
		must(t, err)
	}
	gone.Leave()
	if got, err := s.Delete(t.Context(), []stint.ID{id}); err != nil || got[id] != store.DeletedNow {
		t.Fatalf("deleting gives %v, error %v", got, err)
	}
	want := map[int64]int64{}
	for _, w := range []*storetest.Worker{first, lately, holds, last} {
		want[int64(w.Info.Token)] = value[int64](t, s.pool, `select max(serial) from stint.claims where engine = $1`, w.Info.Token)
	}
	got := map[int64]int64{}
	rows, err := s.pool.Query(t.Context(), `select engine, serial from stint.deletions`)
	must(t, err)
	var engine, serial int64
	_, err = pgx.ForEachRow(rows, []any{&engine, &serial}, func() error { got[engine] = serial; return nil })
	must(t, err)
	if !maps.Equal(got, want) {
		t.Errorf("noted are %v, want %v", got, want)
	}
	// The next deletion adds to that.
	another := value[stint.ID](t, s.pool, `select min(pos) from stint.executions where engine = $1`, bystander.Info.Token)
	if got, err := s.Delete(t.Context(), []stint.ID{another}); err != nil || got[another] != store.DeletedNow {
		t.Fatalf("deleting gives %v, error %v", got, err)
	}
	want[int64(bystander.Info.Token)] = value[int64](t, s.pool, `select max(serial) from stint.claims where engine = $1`, bystander.Info.Token)
	if n := value[int](t, s.pool, `select count(*) from stint.deletions`); n != len(want) {
		t.Errorf("%d are noted, want %d", n, len(want))
	}
	// What is noted of who is in no roster is tidied up, and nothing else.
	exec(t, s, `insert into stint.deletions (engine, serial) values (1, 1)`)
	_, err = s.Retain(t.Context(), store.RetainStep{Part: store.RetainEngines, Limit: 10})
	must(t, err)
	if n := value[int](t, s.pool, `select count(*) from stint.deletions`); n != len(want) {
		t.Errorf("%d are noted still, want %d", n, len(want))
	}
}

// What somebody marked in SQL is about to end, and is not run any more: to have it
// run again is to recover it. A marker of another job changes nothing.
func TestWhatIsMarkedIsNotRunNowButRecovered(t *testing.T) {
	for _, again := range []stint.RerunOptions{{}, {Delay: time.Hour}} {
		s := verified(t)
		b := &bench{t, s, nil}
		ids := b.enqueue(2, stint.Delay(time.Hour))
		exec(t, s, `insert into stint.cancellations (job) values ($1)`, ids[0])
		got, err := s.Retry(t.Context(), ids, again)
		must(t, err)
		want := map[bool]stint.RerunStatus{true: stint.RerunReady, false: stint.RerunScheduled}[again.Delay == 0]
		if got[ids[0]].Answer != stint.RerunRecovered || got[ids[1]].Answer != want {
			t.Errorf("%+v gives %+v, want the first recovered and the other %q", again, got, want)
		}
	}
}

// Who changes what becomes of jobs sees what those before have done, or is refused.
func TestJobsAreOperatedInReadCommittedTransactionsOnly(t *testing.T) {
	s := newStore(t)
	id := (&bench{t, s, nil}).enqueue(1, stint.Delay(time.Hour))[0]
	for _, text := range []string{`select stint.again(array[$1]::bigint[], null, 0, false, false)`, `select stint.erase(array[$1]::bigint[])`,
		`select stint.settle(array[$1]::bigint[])`} {
		tx := begin(t, s, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		_, err := tx.Exec(t.Context(), text, id)
		_ = tx.Rollback(t.Context())
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "ST001" {
			t.Errorf("%s gives %v", text, err)
		}
	}
}

// What cannot be taken from where it waits, for a reason that nobody thought of, is
// not answered with nothing.
func TestAJobThatCannotBeRunAgainIsAnError(t *testing.T) {
	s := newStore(t)
	id := (&bench{t, s, nil}).enqueue(1, stint.Delay(time.Hour))[0]
	exec(t, s, `create function stint.keep() returns trigger language plpgsql as $$ begin return null; end $$`)
	exec(t, s, `create trigger keep before delete on stint.waiting for each row execute function stint.keep()`)
	if got, err := s.Retry(t.Context(), []stint.ID{id}, stint.RerunOptions{}); err == nil || !strings.Contains(err.Error(), "it stays scheduled") {
		t.Errorf("it is answered with %+v, error %v", got, err)
	}
}
