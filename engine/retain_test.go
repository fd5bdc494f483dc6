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
	"github.com/stint-go/stint/report"
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
	read            map[time.Time]int // rows, by passes for one age, by the minute
}

func (a *archive) Retain(_ context.Context, r store.RetainStep) (done store.Retained, err error) {
	if done.Next = r.From; r.Part != store.RetainJobs {
		return done, nil
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
	if r.Age != 0 {
		a.read[time.Now().Truncate(time.Minute)] += seen
	}
	done.More = seen == r.Limit
	return done, nil
}

func TestABacklogThatEndedLateIsNotReadEveryMinuteAndIsDeletedInTheEnd(t *testing.T) {
	inBubble(t, 12*time.Hour, func(t *testing.T, s *sqlite.Store) {
		const jobs = 50_000
		a := &archive{appended: time.Now(), gone: make([]bool, jobs), read: map[time.Time]int{}}
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
		for minute, n := range a.read {
			if all += n; n > 40_000 { // a pass a minute, or two
				t.Errorf("at %v %d rows are read", minute.Format(time.TimeOnly), n)
			}
		}
		if all > 15*jobs {
			t.Errorf("%d rows are read, though there are %d", all, jobs)
		}
	})
}

// Where jobs waited for minutes, more of them than a pass reads in vain have been there for long and
// ended lately. They are not left to the next whole pass.
func TestWhatWaitedForMinutesIsDeletedWhenItIsOld(t *testing.T) {
	inBubble(t, 12*time.Hour, func(t *testing.T, s *sqlite.Store) {
		a := &archive{appended: time.Now(), gone: make([]bool, 50_000), read: map[time.Time]int{}}
		a.left.Store(50_000)
		time.Sleep(2 * time.Minute)
		a.ended = time.Now()
		time.Sleep(5 * time.Minute)
		stop := start(t, struct {
			store.Store
			store.Leaser
			store.Retainer
		}{s, s, a}, stint.NewMux(), engine.Config{
			TimeToLive: time.Hour, LeaseFor: time.Hour, PollTo: time.Minute, Retention: store.Retention{KeepFor: store.KeepFor{All: time.Hour}},
		})
		time.Sleep(time.Until(a.ended.Add(62 * time.Minute))) // the next whole pass is three later
		synctest.Wait()
		if n := a.left.Load(); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// flood is a store of which as many jobs grow old as are deleted: no pass comes to its end. It notes
// the steps for one age.
type flood struct {
	row     time.Duration // what each costs
	varies  bool          // in every other second twice as much
	young   store.RetainMark
	steps   []floodStep
	full    bool
	revoked bool             // whether the lease is revoked in the middle
	endless store.RetainPart // of which a whole pass does not come to the end either
	parts   []store.RetainPart

	report.StatsStore
	deleting atomic.Bool  // whoever sums up finds the sums locked
	summed   atomic.Int32 // how often they were not
}

func (f *flood) SumUp(context.Context) (more bool, err error) {
	if !f.deleting.Load() {
		f.summed.Add(1)
	}
	return false, nil
}

type floodStep struct {
	began, ended time.Time
	limit        int
	from         store.RetainMark
}

func (f *flood) Retain(_ context.Context, r store.RetainStep) (store.Retained, error) {
	f.deleting.Store(true)
	defer f.deleting.Store(false)
	if r.Age == 0 {
		if f.parts = append(f.parts, r.Part); r.Part == f.endless {
			time.Sleep(time.Duration(r.Limit) * f.row)
			return store.Retained{Deleted: r.Limit, Next: store.RetainMark{Pos: r.From.Pos + store.Position(r.Limit)}, More: true}, nil
		}
		return store.Retained{Next: r.From}, nil
	}
	s := floodStep{began: time.Now(), limit: r.Limit, from: r.From}
	if time.Sleep(time.Duration(r.Limit) * f.row); f.varies && s.began.Unix()%2 == 0 {
		time.Sleep(time.Duration(r.Limit) * f.row)
	}
	s.ended = time.Now()
	f.steps = append(f.steps, s)
	return store.Retained{Deleted: r.Limit, Next: store.RetainMark{Pos: r.From.Pos + store.Position(r.Limit)}, More: f.full, Young: f.young}, nil
}

// flooded has an engine delete from a flood for two minutes, and returns what it tells of itself.
func flooded(t *testing.T, s *sqlite.Store, f *flood) report.Metrics {
	t.Helper()
	e, err := engine.New(struct {
		store.Store
		store.Leaser
		store.Retainer
		report.StatsStore
	}{s, s, f, f}, stint.NewMux(), engine.Config{TimeToLive: time.Hour, LeaseFor: 10 * time.Second, PollTo: time.Minute,
		Retention: store.Retention{KeepFor: store.KeepFor{All: 10 * time.Second}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	time.Sleep(time.Minute)
	if f.revoked {
		if _, _, err := s.Revoke(t.Context(), store.LeaseRetention, "ann", "a test"); err != nil {
			t.Error(err)
		}
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	m := e.Metrics()
	if stop(); <-done != nil {
		t.Error("the engine failed")
	}
	return m
}

// A step is as large as it is quick, within bounds: it holds locks. Pauses are as long as steps until
// a pass is late.
func TestRetentionDoesAsMuchAsItCanInShortSteps(t *testing.T) {
	for row, limit := range map[time.Duration]int{
		time.Microsecond / 10: 20_000, 5 * time.Microsecond: 8000, time.Millisecond: 2000,
	} {
		bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
			f := &flood{row: row, full: true}
			m := flooded(t, s, f)
			early, last := f.steps[:10], f.steps[len(f.steps)-10:]
			if early[0].limit != 2000 {
				t.Errorf("the first step looks at %d rows", early[0].limit)
			}
			for i := 1; i < 10; i++ {
				was := early[i-1]
				if took := was.ended.Sub(was.began); row < time.Millisecond && early[i].began.Sub(was.ended) != took {
					t.Errorf("after a step of %v, in time, the pause is %v", took, early[i].began.Sub(was.ended))
				}
				if gap := last[i].began.Sub(last[i-1].ended); gap != 0 || last[i].limit != limit {
					t.Errorf("rows that cost %v: a late step looks at %d, after a pause of %v; want %d and none", row, last[i].limit, gap, limit)
				}
			}
			if f.summed.Load() == 0 {
				t.Errorf("rows that cost %v: nobody came to the sums", row)
			}
			if m.Late() < 100*time.Second || m.Retention.Kept != 10*time.Second || m.Retention.Deleted == 0 {
				t.Errorf("it tells %+v, %v late", m.Retention, m.Late())
			}
		})
	}
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		f := &flood{row: 5 * time.Microsecond, varies: true, full: true}
		flooded(t, s, f)
		for i, long := 1, 50*time.Millisecond; i < len(f.steps); i++ {
			if was, is := f.steps[i-1], f.steps[i]; was.ended.Sub(was.began) > long && is.ended.Sub(is.began) > long {
				t.Fatalf("after a step of %v comes one of %v", was.ended.Sub(was.began), is.ended.Sub(is.began))
			}
		}
	})
	bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		if m := flooded(t, s, &flood{row: time.Microsecond}); m.Late() > 10*time.Second || m.Late() <= 0 {
			t.Errorf("of passes that end it tells %+v, %v late", m.Retention, m.Late())
		}
	})
}

// Where a pass never comes to its end, what was too young when it came by would stay.
func TestAPassThatDoesNotEndComesBackToWhatWasTooYoung(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		f := &flood{row: 5 * time.Microsecond, full: true, young: store.RetainMark{Pos: 7, N: 1}}
		flooded(t, s, f)
		var back []time.Time
		for _, s := range f.steps {
			if s.from == f.young {
				back = append(back, s.began)
			}
		}
		if len(back) < 8 || len(back) > 13 {
			t.Errorf("in two minutes it begins %d times at the first job that was too young, want every ten seconds", len(back))
		}
	})
}

// An engine that loses the lease for a moment is as late after it as it was before.
func TestWhoGetsTheLeaseOfRetentionAgainIsAsLateAsBefore(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		f := &flood{row: 5 * time.Microsecond, full: true, revoked: true}
		m, gap := flooded(t, s, f), time.Duration(0)
		for i := range f.steps[1:] {
			gap = max(gap, f.steps[i+1].began.Sub(f.steps[i].ended))
		}
		if gap < time.Second || m.Late() < 100*time.Second {
			t.Errorf("the lease was away for %v, and it tells %+v, %v late", gap, m.Retention, m.Late())
		}
	})
}

// A whole pass for which there is always more would keep the others from their turn, and its later
// parts too.
func TestAWholePassKeepsNothingFromItsTurn(t *testing.T) {
	for _, endless := range []store.RetainPart{store.RetainJobs, store.RetainClaims} {
		bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
			f := &flood{row: 5 * time.Microsecond, full: true, endless: endless}
			flooded(t, s, f)
			for i, step := range f.steps[1:] {
				if gap := step.began.Sub(f.steps[i].ended); gap > 15*time.Second {
					t.Errorf("while there is no end of %s, nothing is deleted for %v", endless, gap)
				}
			}
			if came := slices.Contains(f.parts, store.RetainChanges); came != (endless == store.RetainJobs) {
				t.Errorf("while there is no end of %s, it came to the last part: %v", endless, came)
			}
		})
	}
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
		// Another one does the rest. What had not ended when it was old enough is left to whole passes, an hour apart.
		stop := start(t, s, mux, engine.Config{})
		eventually(t, "all have ended", func() bool {
			l, err = s.Audit(t.Context())
			return err == nil && len(l.Waiting) == 0 && !slices.ContainsFunc(l.Jobs, func(j store.LedgerJob) bool { return j.State != stint.Completed && j.State != stint.Failed })
		})
		if err := stop(); err != nil {
			t.Error(err)
		}
		// What is kept for a second is gone soon.
		stop = start(t, s, mux, engine.Config{Retention: store.Retention{KeepFor: store.KeepFor{All: time.Second}}, LeaseWait: 20 * time.Millisecond})
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
