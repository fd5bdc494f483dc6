package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// sluggish is a store that takes its time with what engines ask for every second, so
// that fake months go by fast.
type sluggish struct {
	store.Store
	store.Scheduler
}

func (d sluggish) Promote(ctx context.Context, from time.Time, limit int) (store.Promotion, error) {
	doze(ctx, 20*time.Minute)
	return d.Store.Promote(ctx, from, limit)
}

func (d sluggish) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	doze(ctx, 20*time.Minute)
	return d.Store.Engines(ctx)
}

func (d sluggish) FireSchedules(ctx context.Context, f store.FireRequest, plan store.PlanFunc) (store.FireResult, error) {
	fired, err := d.Scheduler.FireSchedules(ctx, f, plan)
	if d := min(fired.Next, 20*time.Minute) - time.Second; d > 0 {
		doze(ctx, d)
		fired.Next -= d
	}
	return fired, err
}

// seldom is how often an engine on a sluggish store looks by itself.
var seldom = engine.Config{TimeToLive: 2 * time.Hour, Poll: 20 * time.Minute}

func doze(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// fired are the occurrences of a schedule's jobs, oldest first.
func fired(t *testing.T, s store.Inspector, name string) (times []time.Time, jobs []stint.JobInfo) {
	t.Helper()
	for f := (store.Filter{Schedule: name, Limit: 1000}); ; {
		page, err := s.Jobs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range page {
			times = append([]time.Time{j.Origin.Occurrence}, times...)
			jobs = append([]stint.JobInfo{j}, jobs...)
		}
		if len(page) < f.Limit {
			return times, jobs
		}
		f.Before = page[len(page)-1].ID
	}
}

func TestSchedulesOfTheProgramFireOnTime(t *testing.T) {
	inBubble(t, 10*24*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		var seen []stint.Origin
		handle(mux, "report", func(_ context.Context, job *stint.Job) error {
			seen = append(seen, job.Origin)
			if late := job.Started.Sub(job.Due); late > 50*time.Millisecond || !job.Due.Equal(job.Origin.Occurrence) {
				t.Errorf("number %d of %v, due at %v, began %v late", job.Origin.Nth, job.Origin.Occurrence, job.Due, late)
			}
			return nil
		})
		mux.Schedule(stint.Schedule{Name: "hourly", Recurrence: cron.MustParse("0 * * * *"), Job: stint.NewJob{Kind: "report"}})
		config := seldom
		config.Instance = "me"
		stop := start(t, sluggish{s, s}, mux, config)
		time.Sleep(5*time.Hour + time.Minute)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if len(seen) != 5 || seen[4].Nth != 5 || seen[4].Schedule != "hourly" || seen[4].Occurrence.Minute() != 0 {
			t.Errorf("it ran %+v", seen)
		}
		info, err := s.Schedule(t.Context(), "hourly")
		if err != nil || info.By != "me" || info.Fired != 5 || !info.LastOccurrence.Equal(seen[4].Occurrence) {
			t.Errorf("it says %+v, error %v", info, err)
		}
	})
}

// While what runs has its grace, an engine that stops fires nothing: it would not run it. Another one fires it, or the next.
func TestAnEngineThatStopsFiresNoSchedules(t *testing.T) {
	for name, tell := range map[string]func(e *engine.Engine, cancel func()){
		"a stop":  func(_ *engine.Engine, cancel func()) { cancel() },
		"a drain": func(e *engine.Engine, _ func()) { e.Drain(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 48*time.Hour, func(t *testing.T, s *sqlite.Store) {
				mux := stint.NewMux()
				handle(mux, "tick", func(context.Context, *stint.Job) error { return nil })
				handle(mux, "long", func(context.Context, *stint.Job) error {
					time.Sleep(time.Minute)
					return nil
				})
				mux.Schedule(stint.Schedule{Name: "ticks", Recurrence: cron.Every(5 * time.Second), Missed: stint.MissedNone, Job: stint.NewJob{Kind: "tick"}})
				e := newEngine(t, s, mux, engine.Config{Grace: time.Hour})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- e.Run(ctx) }()
				enqueue(t, s, "long", `{}`)
				time.Sleep(12 * time.Second)
				synctest.Wait()
				before, _ := fired(t, s, "ticks")
				tell(e, cancel)
				time.Sleep(30 * time.Second)
				synctest.Wait()
				after, jobs := fired(t, s, "ticks")
				if len(before) == 0 || len(after) != len(before) || jobs[len(jobs)-1].State != stint.Completed {
					t.Errorf("it fired %d times, and %d after it was told to end; the last one is %s", len(before), len(after)-len(before), jobs[len(jobs)-1].State)
				}
				stop := start(t, s, mux, engine.Config{}) // beside it
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if now, jobs := fired(t, s, "ticks"); len(now) == len(after) || jobs[len(jobs)-1].State != stint.Completed {
					t.Error("no other engine fires and runs it")
				}
				if err := errors.Join(<-ended, stop()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// Fake days, with the night in which Berlin's clocks skip two to three.
func TestDaysOfSchedulesLoseAndDoubleNothing(t *testing.T) {
	inBubble(t, 15000*24*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		job := stint.NewJob{Kind: "k"}
		mux.Schedule(
			stint.Schedule{Name: "nightly", Recurrence: cron.MustParse("30 2 * * *"), Zone: "Europe/Berlin", Job: job},
			stint.Schedule{Name: "interval", Recurrence: cron.Every(5 * time.Hour), Job: job},
		)
		mux.Recurrence("dozen", func(after time.Time, _ *time.Location) (time.Time, bool) { return after.Add(12 * time.Hour), true })
		mux.Schedule(stint.Schedule{Name: "function", Recurrence: cron.Function("dozen"), Job: job})
		began := time.Date(2026, 3, 24, 12, 0, 0, 0, time.UTC)
		time.Sleep(time.Until(began)) // bubbles begin in the year 2000
		config := seldom
		stops := []func() error{start(t, sluggish{s, s}, mux, config), start(t, sluggish{s, s}, mux, config)}
		const days = 10
		time.Sleep(days*24*time.Hour + time.Minute)
		synctest.Wait()
		for _, stop := range stops {
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
		berlin, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		times, jobs := fired(t, s, "nightly")
		for i, at := range times {
			want := time.Date(2026, 3, 25+i, 2, 30, 0, 0, berlin)
			if want.Month() == time.March && want.Day() == 29 {
				want = time.Date(2026, 3, 29, 3, 0, 0, 0, berlin)
			}
			if !at.Equal(want) || jobs[i].State != stint.Completed || jobs[i].Started.Sub(at) > time.Second {
				t.Errorf("number %d is of %v, %s at %v; want %v", i+1, at, jobs[i].State, jobs[i].Started, want)
			}
		}
		if len(times) != days {
			t.Errorf("there were %d nights, want %d", len(times), days)
		}
		for name, step := range map[string]time.Duration{"interval": 5 * time.Hour, "function": 12 * time.Hour} {
			times, _ := fired(t, s, name)
			for i := 1; i < len(times); i++ {
				if d := times[i].Sub(times[i-1]); d != step {
					t.Errorf("%s: number %d comes %v after the one before", name, i+1, d)
				}
			}
			if want := int(days * 24 * time.Hour / step); len(times) != want {
				t.Errorf("%s: it fired %d times, want %d", name, len(times), want)
			}
		}
	})
}

func TestAfterAnOutageMissedOccurrencesRunAsThePolicySays(t *testing.T) {
	inBubble(t, 10*24*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		hour := cron.MustParse("0 * * * *")
		for name, missed := range map[string]stint.Missed{"one": stint.MissedOne, "none": stint.MissedNone, "three": stint.MissedAll(3)} {
			mux.Schedule(stint.Schedule{Name: name, Recurrence: hour, Missed: missed, Job: stint.NewJob{Kind: "k"}})
		}
		stop := start(t, sluggish{s, s}, mux, seldom)
		time.Sleep(90 * time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Hour)
		stop = start(t, sluggish{s, s}, mux, seldom)
		time.Sleep(time.Minute)
		synctest.Wait()
		for name, want := range map[string]struct{ fired, passed int64 }{"one": {2, 9}, "none": {1, 10}, "three": {4, 7}} {
			info, err := s.Schedule(t.Context(), name)
			if err != nil || info.Fired != want.fired || info.Passed != want.passed {
				t.Errorf("%s: %d fired, %d missed, error %v; want %d, %d", name, info.Fired, info.Passed, err, want.fired, want.passed)
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestDeclaringAndResumingWakeTheEngine(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		start(t, s, mux, engine.Config{})
		c := stint.NewClient(s)
		began := time.Now()
		if err := c.Schedule(t.Context(), "test", stint.Schedule{Name: "s", Recurrence: cron.Every(time.Second), Job: stint.NewJob{Kind: "k"}}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "two occurrences", func() bool { times, _ := fired(t, s, "s"); return len(times) >= 2 })
		if took := time.Since(began); took < 2*time.Second {
			t.Errorf("two came within %v", took)
		}
		keeper := s.(store.ScheduleKeeper)
		if changed, err := keeper.PauseSchedule(t.Context(), "s", "", ""); err != nil || !changed {
			t.Fatal(changed, err)
		}
		before, _ := fired(t, s, "s")
		time.Sleep(1100 * time.Millisecond)
		if after, _ := fired(t, s, "s"); len(after) != len(before) {
			t.Errorf("paused, it fired %d times", len(after)-len(before))
		}
		if changed, err := keeper.ResumeSchedule(t.Context(), "s"); err != nil || !changed {
			t.Fatal(changed, err)
		}
		eventually(t, "another occurrence", func() bool { times, _ := fired(t, s, "s"); return len(times) > len(before) })
	})
}

func TestAFunctionFiresWhereItIsAndItsPanicIsTroubleOnly(t *testing.T) {
	inBubble(t, 10*24*time.Hour, func(t *testing.T, s *sqlite.Store) {
		plain := func() *stint.Mux {
			mux := stint.NewMux()
			handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
			return mux
		}
		broken, works := plain(), plain()
		broken.Recurrence("f", func(time.Time, *time.Location) (time.Time, bool) { panic("no") })
		broken.Schedule(
			stint.Schedule{Name: "f", Recurrence: cron.Function("f"), Job: stint.NewJob{Kind: "k"}},
			stint.Schedule{Name: "hourly", Recurrence: cron.MustParse("0 * * * *"), Job: stint.NewJob{Kind: "k"}},
		)
		var calls atomic.Int64
		works.Recurrence("f", func(after time.Time, _ *time.Location) (time.Time, bool) {
			calls.Add(1)
			return after.Add(30 * time.Minute), true
		})
		var mu sync.Mutex
		var troubles []error
		note := func(e event.Event) {
			if e.Type == event.EventTrouble {
				mu.Lock()
				troubles = append(troubles, e.Err)
				mu.Unlock()
			}
		}
		config := seldom
		config.OnEvent = note
		stops := []func() error{start(t, sluggish{s, s}, broken, config), start(t, sluggish{s, s}, plain(), config)}
		time.Sleep(2*time.Hour + time.Second)
		synctest.Wait()
		if times, _ := fired(t, s, "f"); len(times) != 0 {
			t.Errorf("nobody can tell when, and it fired %v", times)
		}
		if times, _ := fired(t, s, "hourly"); len(times) != 2 {
			t.Errorf("beside it another one fired %d times, want 2", len(times))
		}
		mu.Lock()
		if n := len(troubles); n == 0 || n > 300 || !strings.Contains(troubles[0].Error(), "panicked") {
			t.Errorf("there were %d troubles in two hours, the first: %v", n, troubles[:1])
		}
		mu.Unlock()
		stops = append(stops, start(t, sluggish{s, s}, works, seldom))
		time.Sleep(2*time.Hour + time.Second)
		synctest.Wait()
		if times, _ := fired(t, s, "f"); len(times) < 4 || calls.Load() == 0 {
			t.Errorf("with the function it fired %v", times)
		}
		for _, stop := range stops {
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAFunctionThatHangsHoldsUpNoOtherSchedule(t *testing.T) {
	inBubble(t, 10*24*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		hangs, calls := make(chan struct{}), atomic.Int64{}
		mux.Recurrence("hangs", func(after time.Time, _ *time.Location) (time.Time, bool) {
			calls.Add(1)
			<-hangs
			return after.Add(time.Hour), true
		})
		mux.Schedule(
			stint.Schedule{Name: "hangs", Recurrence: cron.Function("hangs"), Job: stint.NewJob{Kind: "k"}},
			stint.Schedule{Name: "s", Recurrence: cron.Every(time.Minute), Missed: stint.MissedAll(10), Job: stint.NewJob{Kind: "k"}},
		)
		stop := start(t, sluggish{s, s}, mux, seldom)
		time.Sleep(5*time.Minute + 30*time.Second)
		synctest.Wait()
		if times, _ := fired(t, s, "s"); len(times) != 5 || calls.Load() != 1 {
			t.Errorf("beside it another one fired %v, and it was asked %d times", times, calls.Load())
		}
		close(hangs)
		time.Sleep(62 * time.Minute)
		synctest.Wait()
		if times, _ := fired(t, s, "hangs"); len(times) != 1 {
			t.Errorf("when it answers it fires %v", times)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// unstorable is a store that cannot hold a schedule of one name.
type unstorable struct {
	store.Store
	store.Scheduler
}

func (u unstorable) DeclareSchedules(ctx context.Context, by string, schedules []stint.Schedule) error {
	for _, s := range schedules {
		if s.Name == "bad" {
			return stint.ErrUnstorable
		}
	}
	return u.Scheduler.DeclareSchedules(ctx, by, schedules)
}

func TestAScheduleThatCannotBeStoredKeepsNoOtherFromFiring(t *testing.T) {
	inBubble(t, 10*24*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		for _, name := range []string{"a", "bad", "z"} {
			mux.Schedule(stint.Schedule{Name: name, Recurrence: cron.Every(time.Minute), Job: stint.NewJob{Kind: "k"}})
		}
		var troubles atomic.Int64
		stop := start(t, unstorable{s, s}, mux, engine.Config{OnEvent: func(e event.Event) {
			if e.Type == event.EventTrouble && errors.Is(e.Err, stint.ErrUnstorable) {
				troubles.Add(1)
			}
		}})
		time.Sleep(90 * time.Second)
		synctest.Wait()
		for _, name := range []string{"a", "z"} {
			if times, _ := fired(t, s, name); len(times) != 1 {
				t.Errorf("%s fired %v", name, times)
			}
		}
		if troubles.Load() != 1 {
			t.Errorf("it was told %d times, want once", troubles.Load())
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// comesAndGoes is a store that cannot fire at times.
type comesAndGoes struct {
	store.Store
	store.Scheduler
	err atomic.Pointer[error]
}

func (r *comesAndGoes) FireSchedules(ctx context.Context, f store.FireRequest, plan store.PlanFunc) (store.FireResult, error) {
	if err := r.err.Load(); err != nil {
		return store.FireResult{}, *err
	}
	return r.Scheduler.FireSchedules(ctx, f, plan)
}

func TestWhileTheStoreFailsNothingIsLost(t *testing.T) {
	inBubble(t, 10*24*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		mux.Schedule(stint.Schedule{Name: "s", Recurrence: cron.Every(time.Minute), Missed: stint.MissedAll(100), Job: stint.NewJob{Kind: "k"}})
		r := &comesAndGoes{Store: s, Scheduler: s}
		stop := start(t, r, mux, engine.Config{})
		for range 3 {
			time.Sleep(3 * time.Minute)
			away := errors.New("the database is away")
			r.err.Store(&away)
			time.Sleep(3 * time.Minute)
			r.err.Store(nil)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		times, _ := fired(t, s, "s")
		for i := 1; i < len(times); i++ {
			if times[i].Sub(times[i-1]) != time.Minute {
				t.Errorf("number %d comes %v after the one before", i+1, times[i].Sub(times[i-1]))
			}
		}
		if len(times) < 18 {
			t.Errorf("there are %d, want 18 at least", len(times))
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// longLook is a store whose looks for schedules take long.
type longLook struct {
	store.Store
	store.Scheduler
	looks atomic.Int64
}

func (l *longLook) FireSchedules(ctx context.Context, f store.FireRequest, plan store.PlanFunc) (store.FireResult, error) {
	l.looks.Add(1)
	doze(ctx, 20*time.Millisecond)
	return l.Scheduler.FireSchedules(ctx, f, plan)
}

func (l *longLook) Listen(ctx context.Context, ring func(store.News)) error {
	return l.Store.(store.Listener).Listen(ctx, ring)
}

func TestLooksForSchedulesThatTakeLongAreFewerAndNoLater(t *testing.T) {
	inBubble(t, 24*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		mux.Schedule(stint.Schedule{Name: "s", Recurrence: cron.Every(10 * time.Second), Job: stint.NewJob{Kind: "k"}})
		l := &longLook{Store: s, Scheduler: s}
		stop := start(t, l, mux, engine.Config{})
		for range 1500 {
			enqueue(t, s, "k", `{}`) // which rings
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		if n := l.looks.Load(); n < 10 || n > 100 {
			t.Errorf("in a quarter of a minute it looked %d times", n)
		}
		times, jobs := fired(t, s, "s")
		if len(times) < 1 {
			t.Errorf("it fired %v", times)
		}
		for i, j := range jobs {
			if late := j.Created.Sub(times[i]); late > 45*time.Millisecond {
				t.Errorf("the job of %v was made %v late", times[i], late)
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}
