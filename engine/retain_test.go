package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// U112: as long as was said of a queue and of a state.
func TestJobsAreDeletedWhenTheyAreOld(t *testing.T) {
	inBubble(t, 12*time.Hour, func(t *testing.T, s *sqlite.Store) {
		const day = 2 * time.Minute // an engine looks around every second, which months of would take long
		mux := stint.NewMux()
		handle(mux, "ok", func(context.Context, *stint.Job) error { return nil })
		handle(mux, "no", func(context.Context, *stint.Job) error { return stint.NoRetry(errors.New("no")) })
		handle(mux, "slow", func(context.Context, *stint.Job) error { time.Sleep(3 * day); return nil })
		handle(mux, "late", func(context.Context, *stint.Job) error { return nil })
		var deleted atomic.Int32
		stop := start(t, struct {
			store.Store
			store.Leaser
			store.Retainer
		}{s, s, s}, mux, engine.Config{
			TimeToLive: time.Hour, LeaseFor: time.Hour, PollTo: time.Minute,
			Retention: store.Retention{
				KeepFor: store.KeepFor{All: 5 * day, Failed: 30 * day},
				Queues:  map[string]store.KeepFor{"short": {All: day}, "audit": {Completed: store.Forever}},
			},
			OnEvent: func(e event.Event) {
				if e.Type == event.EventRetained {
					deleted.Add(int32(e.Count))
				}
			},
		})
		lives := map[string]struct {
			id       stint.ID
			from, to time.Duration // there at the first, gone at the second
		}{
			"slow":               {enqueue(t, s, "slow", `{}`), 6 * day, 24 * day},
			"completed":          {enqueue(t, s, "ok", `{}`), 4 * day, 6 * day},
			"failed":             {enqueue(t, s, "no", `{}`), 29 * day, 31 * day},
			"completed, short":   {enqueue(t, s, "ok", `{}`, stint.Queue("short")), day / 2, 3 * day},
			"failed, short":      {enqueue(t, s, "no", `{}`, stint.Queue("short")), day / 2, 3 * day},
			"completed, audited": {enqueue(t, s, "ok", `{}`, stint.Queue("audit")), 60 * day, 0},
			"failed, audited":    {enqueue(t, s, "no", `{}`, stint.Queue("audit")), 29 * day, 31 * day},
			"late":               {enqueue(t, s, "late", `{}`, stint.Delay(20*day)), 24 * day, 27 * day},
		}
		began := time.Now()
		for _, at := range []time.Duration{day / 2, 3 * day, 4 * day, 6 * day, 24 * day, 27 * day, 29 * day, 31 * day, 60 * day} {
			time.Sleep(time.Until(began.Add(at)))
			synctest.Wait()
			for name, life := range lives {
				_, err := s.Job(t.Context(), life.id)
				if at <= life.from && err != nil {
					t.Errorf("%s: after %v it is gone: %v", name, at, err)
				}
				if life.to > 0 && at >= life.to && !errors.Is(err, stint.ErrNotFound) {
					t.Errorf("%s: after %v it is there, error %v", name, at, err)
				}
			}
		}
		if n := deleted.Load(); n != int32(len(lives)-1) {
			t.Errorf("%d deletions were told, want %d", n, len(lives)-1)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// archive is a store of jobs that were all appended at once, and ended later. It
// counts what is read of it.
type archive struct {
	appended, ended time.Time
	gone            []bool
	left            atomic.Int32
	pages           map[time.Time]int // of passes for one age, by the minute
}

func (a *archive) Retain(_ context.Context, r store.RetainStep) (done store.Retained, err error) {
	if done.Next = r.From; r.Part != store.RetainJobs {
		return done, nil
	}
	if r.Age != 0 {
		a.pages[time.Now().Truncate(time.Minute)]++
	}
	age, seen := r.Keep.Shortest(), 0
	for pos := int(r.From.Pos) + 1; pos <= len(a.gone) && seen < r.Limit && time.Since(a.appended) >= age; pos++ {
		done.Next.Pos = store.Position(pos)
		switch {
		case a.gone[pos-1]:
			continue
		case time.Since(a.ended) >= age:
			a.gone[pos-1] = true
			done.Deleted++
			a.left.Add(-1)
		case done.Young == store.RetainMark{}:
			done.Young = store.RetainMark{Pos: store.Position(pos - 1), N: 1}
		}
		seen++
	}
	done.More = seen == r.Limit
	return done, nil
}

func TestABacklogThatEndedLateIsNotReadEveryMinuteAndIsDeletedInTheEnd(t *testing.T) {
	inBubble(t, 12*time.Hour, func(t *testing.T, s *sqlite.Store) {
		const jobs = 50_000
		a := &archive{appended: time.Now(), gone: make([]bool, jobs), pages: map[time.Time]int{}}
		a.left.Store(jobs)
		time.Sleep(6 * time.Hour)
		a.ended = time.Now()
		time.Sleep(5 * time.Minute)
		stop := start(t, struct {
			store.Store
			store.Leaser
			store.Retainer
		}{s, s, a}, stint.NewMux(), engine.Config{
			TimeToLive: time.Hour, LeaseFor: time.Hour, PollTo: time.Minute, Retention: store.Retention{KeepFor: store.KeepFor{All: time.Hour}},
		})
		time.Sleep(time.Until(a.ended.Add(59 * time.Minute)))
		synctest.Wait()
		if n := a.left.Load(); n != jobs {
			t.Errorf("%d of %d young jobs are left", n, jobs)
		}
		time.Sleep(time.Until(a.ended.Add(2*time.Hour + 10*time.Minute)))
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := a.left.Load(); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
		all := 0
		for minute, n := range a.pages {
			if all += n; n > 40 { // a pass a minute, or two
				t.Errorf("at %v %d pages are read", minute.Format(time.TimeOnly), n)
			}
		}
		if all > 500 {
			t.Errorf("%d pages are read, though there are %d", all, jobs/500)
		}
	})
}

// It could do nothing with the lease, and those who delete would not get it.
func TestAnEngineThatKeepsEverythingLeavesTheLeaseToOthers(t *testing.T) {
	inBubble(t, 12*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		ever := start(t, s, mux, engine.Config{Instance: "ever", Retention: store.Retention{KeepFor: store.KeepFor{All: store.Forever}}})
		id := enqueue(t, s, "k", `{}`)
		time.Sleep(5 * time.Minute)
		if leases, err := s.Leases(t.Context()); err != nil || len(leases) != 0 {
			t.Errorf("the leases are %+v, error %v", leases, err)
		}
		minute := start(t, s, mux, engine.Config{Instance: "minute", Retention: store.Retention{KeepFor: store.KeepFor{All: time.Minute}}})
		time.Sleep(5 * time.Minute)
		if leases, err := s.Leases(t.Context()); err != nil || len(leases) != 1 || leases[0].Instance != "minute" {
			t.Errorf("the leases are %+v, error %v", leases, err)
		}
		if _, err := s.Job(t.Context(), id); !errors.Is(err, stint.ErrNotFound) {
			t.Errorf("of a job that is to be deleted it says %v", err)
		}
		if err := errors.Join(ever(), minute()); err != nil {
			t.Error(err)
		}
	})
}

// After a storm of kills nothing of the dead is left but their history, and
// in the end not even that.
func TestOfDeadEnginesNothingStays(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, job *stint.Job) error {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		var tokens []store.EngineID
		for i := range 5 {
			stop := start(t, s, mux, engine.Config{Instance: fmt.Sprint("engine-", i), Grace: time.Second, LeaseWait: 20 * time.Millisecond})
			for range 10 {
				enqueue(t, s, "k", `{}`, stint.Retry(retry.Fixed(3, time.Millisecond)))
			}
			eventually(t, "it leads", func() bool {
				all, err := s.(store.Leaser).Leases(t.Context())
				return err == nil && len(all) == 1 && all[0].Engine != 0
			})
			// The one before may have joined anew just before it stopped.
			var roster []store.EngineInfo
			var err error
			eventually(t, "it is alone", func() (alone bool) {
				roster, err = s.Engines(t.Context())
				return err == nil && len(roster) == 1
			})
			tokens = append(tokens, roster[0].Token)
			kill(t, s, roster[0].Token)
			_ = stop()
			if roster, err = s.Engines(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, e := range roster {
				kill(t, s, e.Token)
			}
		}
		l, err := s.Audit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leases, err := s.(store.Leaser).Leases(t.Context())
		if err != nil || len(l.Engines) != 0 || slices.ContainsFunc(leases, func(l store.Lease) bool { return l.Engine != 0 }) {
			t.Errorf("the roster has %v, the leases are %+v, error %v", l.Engines, leases, err)
		}
		for _, token := range tokens {
			if _, ok := l.Buried[token]; !ok {
				t.Errorf("engine %d is not in the history", token)
			}
		}
		// The last ones do the rest; what is kept for a second is gone soon.
		stop := start(t, s, mux, engine.Config{Retention: store.Retention{KeepFor: store.KeepFor{All: time.Second}}, LeaseWait: 20 * time.Millisecond})
		eventually(t, "everything is gone", func() bool {
			l, err = s.Audit(t.Context())
			return err == nil && len(l.Jobs)+len(l.Entries)+len(l.Executions)+len(l.Waiting) == 0
		})
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// kill buries an engine, once nothing that it writes is in the way.
func kill(t *testing.T, s store.Store, token store.EngineID) {
	t.Helper()
	eventually(t, "the engine is buried", func() bool {
		_, err := engine.Bury(t.Context(), s, token, "the test")
		if err != nil && !errors.Is(err, store.ErrBuried) && !errors.Is(err, store.ErrBurialBlocked) {
			t.Fatal(err)
		}
		return !errors.Is(err, store.ErrBurialBlocked)
	})
}

func TestARetentionThatMakesNoSenseIsRefused(t *testing.T) {
	for _, r := range []store.Retention{
		{KeepFor: store.KeepFor{All: -1}}, {KeepFor: store.KeepFor{Failed: time.Millisecond}},
		{Queues: map[string]store.KeepFor{"": {All: time.Hour}}}, {Queues: map[string]store.KeepFor{"*": {All: time.Hour}}},
		{Queues: map[string]store.KeepFor{"q": {Cancelled: 1}}},
	} {
		if _, err := engine.New(nil, stint.NewMux(), engine.Config{Retention: r}); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%+v gives %v", r, err)
		}
	}
}
