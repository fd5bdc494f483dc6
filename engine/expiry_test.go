package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// expired checks that a job has expired after attempts that came to something.
func expired(t *testing.T, s store.Inspector, id stint.ID, before ...stint.Outcome) {
	t.Helper()
	job := info(t, s, id)
	if job.State != stint.Failed || job.Reason != retry.ReasonExpired || len(job.Attempts) != len(before)+1 {
		t.Errorf("job %d is %s (%s) after %d executions, want it to be expired after %d", id, job.State, job.Reason, len(job.Attempts), len(before)+1)
		return
	}
	charged := 1
	for i, x := range job.Attempts {
		last := i == len(before)
		if want := slices.Concat(before, []stint.Outcome{stint.OutcomeExpired})[i]; x.Outcome != want || x.Final != last {
			t.Errorf("execution %d of job %d is %v, final %v; want %v", i+1, id, x.Outcome, x.Final, want)
		}
		if x.Attempt != charged || last && x.Slot != 0 {
			t.Errorf("execution %d of job %d is attempt %d, in slot %d; want attempt %d", i+1, id, x.Attempt, x.Slot, charged)
		}
		if x.Outcome == stint.OutcomeFailed {
			charged++
		}
	}
}

func TestAJobThatIsTooLateIsNotBegun(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var j, told journal
		mux := stint.NewMux()
		handle(mux, "work", func(_ context.Context, job *stint.Job) error { j.note(job.ID, "ran"); return nil })
		handle(mux, "plain", func(_ context.Context, job *stint.Job) error { told.note(job.ID, "ran"); return nil })
		mux.Hook(j.hooks(""))
		past := time.Now().Add(-time.Hour)
		late := enqueue(t, s, "work", `{}`, stint.StartBy(past))
		bare := enqueue(t, s, "plain", `{}`, stint.StartBy(past), stint.MaxLosses(0))
		inTime := enqueue(t, s, "work", `{}`, stint.StartBy(time.Now().Add(time.Hour)))
		within := enqueue(t, s, "work", `{}`, stint.StartWithin(time.Hour))
		stop := start(t, s, mux, engine.Config{Slots: 1, OnEvent: func(e event.Event) {
			if e.Job != nil {
				told.note(e.Job.ID, "%s", e.Type)
			}
		}})
		for _, id := range []stint.ID{late, bare} {
			until(t, s, id, stint.Failed)
			expired(t, s, id)
		}
		until(t, s, inTime, stint.Completed)
		until(t, s, within, stint.Completed)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[stint.ID]string{
			late: "failure 1, last 1, finally 1", bare: "failure 1, last 1, finally 1",
			inTime: "ran, success 1, finally 1", within: "ran, success 1, finally 1",
		} {
			if got := j.of(id); got != want {
				t.Errorf("job %d: %s; want %s", id, got, want)
			}
		}
		for id, want := range map[stint.ID]string{late: "failed", bare: "failed", inTime: "started, ended"} {
			if got := told.of(id); got != want {
				t.Errorf("of job %d is told: %s; want %s", id, got, want)
			}
		}
	})
}

func TestAJobThatBeganInTimeIsNotCut(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "long", func(ctx context.Context, job *stint.Job) error {
			if _, bounded := ctx.Deadline(); bounded {
				return errors.New("its context ends")
			}
			time.Sleep(90 * time.Second)
			return ctx.Err()
		})
		stop := start(t, s, mux, engine.Config{})
		id := enqueue(t, s, "long", `{}`, stint.StartWithin(time.Second))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if job := info(t, s, id); job.State != stint.Completed || len(job.Attempts) != 1 {
			t.Errorf("it is %s (%s)", job.State, job.Reason)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestARetryThatWouldComeTooLateIsNotWaitedFor(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var j journal
		mux := stint.NewMux()
		handle(mux, "fails", func(context.Context, *stint.Job) error { return errors.New("no") })
		mux.Hook(j.hooks(""))
		stop := start(t, s, mux, engine.Config{})
		id := enqueue(t, s, "fails", `{}`, stint.Retry(retry.Fixed(9, 10*time.Second)), stint.StartWithin(25*time.Second))
		time.Sleep(21 * time.Second)
		synctest.Wait()
		job := info(t, s, id)
		if job.State != stint.Failed || job.Reason != retry.ReasonExpired || len(job.Attempts) != 3 {
			t.Errorf("it is %s (%s) after %d executions", job.State, job.Reason, len(job.Attempts))
		}
		if x := job.Attempts[2]; x.Outcome != stint.OutcomeFailed || !x.Final || x.Error == nil || !x.Error.Recoverable {
			t.Errorf("the last execution is %+v", x)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got, want := j.of(id), "failure 1, finally 1, failure 2, finally 2, failure 3, last 3, finally 3"; got != want {
			t.Errorf("the hooks are %s; want %s", got, want)
		}
	})
}

func TestWhatNobodyCameToInTimeExpiresWhenSomebodyDoes(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var j journal
		mux := stint.NewMux()
		handle(mux, "work", func(_ context.Context, job *stint.Job) error { j.note(job.ID, "ran"); return nil })
		handle(mux, "naps", func(_ context.Context, job *stint.Job) error { return stint.Snooze(time.Minute) })
		within := stint.StartWithin(30 * time.Second)
		ready, due := enqueue(t, s, "work", `{}`, within), enqueue(t, s, "work", `{}`, within, stint.Delay(time.Minute))
		later := enqueue(t, s, "work", `{}`, within, stint.Delay(110*time.Second))
		pause(t, s, "still")
		still := enqueue(t, s, "work", `{}`, stint.StartWithin(150*time.Second), stint.Queue("still"))
		time.Sleep(2 * time.Minute)
		for id, state := range map[stint.ID]stint.State{ready: stint.Available, due: stint.Scheduled} {
			if job := info(t, s, id); job.State != state {
				t.Errorf("before anybody came job %d is %s, want %s", id, job.State, state)
			}
		}
		stop := start(t, s, mux, engine.Config{})
		naps := enqueue(t, s, "naps", `{}`, within)
		time.Sleep(40 * time.Second)
		if job := info(t, s, still); job.State != stint.Available {
			t.Errorf("in the paused queue it is %s", job.State)
		}
		resume(t, s, "still")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		expired(t, s, ready)
		expired(t, s, due)
		expired(t, s, still)
		expired(t, s, naps, stint.OutcomeSnoozed)
		if job := info(t, s, later); job.State != stint.Completed {
			t.Errorf("what was due 10 seconds before an engine came is %s (%s)", job.State, job.Reason)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		for _, id := range []stint.ID{ready, due, still} {
			if got := j.of(id); got != "" {
				t.Errorf("job %d %s", id, got)
			}
		}
	})
}

// whenClaimed notes when each entry came into the engine's hands.
type whenClaimed struct {
	*sqlite.Store
	mu sync.Mutex
	at map[store.Position]time.Time
}

func (w *whenClaimed) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	c, err := w.Store.Claim(ctx, req)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pos := range c.Positions {
		w.at[pos] = time.Now()
	}
	return c, err
}

func TestWhatWasClaimedInTimeAndComesToASlotTooLateIsNotBegun(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var j journal
		mux := stint.NewMux()
		for kind, takes := range map[string]time.Duration{"short": time.Millisecond, "long": 400 * time.Millisecond} {
			handle(mux, kind, func(_ context.Context, job *stint.Job) error { j.note(job.ID, "ran"); time.Sleep(takes); return nil })
		}
		// Short ones teach the engine to hold some in advance; then a long one
		// is in the way.
		fill(t, s, "short", 200, stint.DefaultQueue)
		enqueue(t, s, "long", `{}`)
		by := time.Now().Add(450 * time.Millisecond)
		late, fine := enqueue(t, s, "short", `{}`, stint.StartBy(by)), enqueue(t, s, "short", `{}`, stint.StartWithin(time.Hour))
		w := &whenClaimed{Store: s, at: map[store.Position]time.Time{}}
		stop := start(t, w, mux, engine.Config{Slots: 1})
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if at := w.at[store.Position(late)]; at.IsZero() || at.After(by) {
			t.Fatalf("it was claimed %v after it was to begin: the test tests nothing", at.Sub(by))
		}
		expired(t, s, late)
		if j.of(late) != "" || j.of(fine) != "ran" {
			t.Errorf("the one that was late: %q, the other: %q", j.of(late), j.of(fine))
		}
	})
}

// slowBeats takes its time with signs of life.
type slowBeats struct {
	*sqlite.Store
	takes time.Duration
}

func (s slowBeats) Heartbeat(ctx context.Context, token store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	time.Sleep(s.takes)
	return s.Store.Heartbeat(ctx, token, b)
}

func TestWhatIsAnnouncedTooLateIsNotBegun(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var j journal
		mux := stint.NewMux()
		handle(mux, "once", func(_ context.Context, job *stint.Job) error { j.note(job.ID, "ran"); return nil })
		slow := slowBeats{s, 100 * time.Millisecond}
		stop := start(t, slow, mux, engine.Config{})
		time.Sleep(time.Second)
		late := enqueue(t, s, "once", `{}`, stint.MaxLosses(0), stint.StartWithin(50*time.Millisecond))
		time.Sleep(10 * time.Second)
		fine := enqueue(t, s, "once", `{}`, stint.MaxLosses(0), stint.StartWithin(time.Minute))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		expired(t, s, late)
		if j.of(late) != "" || j.of(fine) != "ran" {
			t.Errorf("the one that was late: %q, the other: %q", j.of(late), j.of(fine))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		e := newEngine(t, slow, mux, engine.Config{})
		x, err := e.RunNow(t.Context(), newJob("once", `{}`, stint.StartWithin(50*time.Millisecond)))
		if err != nil || x.Outcome != stint.OutcomeExpired || j.of(x.Job) != "" {
			t.Errorf("run now it came to %+v, %v", x, err)
		}
	})
}

func TestRunNowRunsNothingThatIsTooLate(t *testing.T) {
	var j journal
	fill := func(mux *stint.Mux) {
		handle(mux, "work", func(_ context.Context, job *stint.Job) error { j.note(job.ID, "ran"); return nil })
	}
	onEachNow(t, fill, func(t *testing.T, s anyStore, e *engine.Engine) {
		x := runNow(t, e, newJob("work", `{}`, stint.StartBy(time.Now().Add(-time.Second))))
		if x.Outcome != stint.OutcomeExpired || !x.Final || x.Reason != retry.ReasonExpired {
			t.Errorf("it came to %+v", x)
		}
		expired(t, s, x.Job)
		if x := runNow(t, e, newJob("work", `{}`, stint.StartWithin(time.Hour))); x.Outcome != stint.OutcomeCompleted {
			t.Errorf("in time it came to %+v", x)
		}
	})
}

// clocked is a store on a server whose clock somebody sets.
type clocked struct {
	*sqlite.Store
	ahead *atomic.Int64
}

func (c clocked) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c clocked) Now(context.Context) (time.Time, error) { return c.now(), nil }

func (c clocked) Heartbeat(ctx context.Context, token store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	orders, err := c.Store.Heartbeat(ctx, token, b)
	orders.Now = c.now()
	return orders, err
}

func TestABoundHoldsByWhatTheServersClockShowsNow(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		server := clocked{s, new(atomic.Int64)}
		server.ahead.Store(int64(time.Hour))
		stop := start(t, server, mux, engine.Config{})
		time.Sleep(10 * time.Second)
		late := enqueue(t, s, "work", `{}`, stint.StartBy(time.Now().Add(30*time.Minute)))
		time.Sleep(10 * time.Second)
		server.ahead.Store(0)
		time.Sleep(10 * time.Second)
		fine := enqueue(t, s, "work", `{}`, stint.StartBy(time.Now().Add(30*time.Minute)))
		time.Sleep(10 * time.Second)
		expired(t, s, late)
		isNow(t, s, fine, stint.Completed)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
