package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/store"
)

// fireTests are about occurrences: each makes one job, whoever fires and whatever
// dies meanwhile.
var fireTests = []test{
	{"An occurrence makes a job that is due at it and says what made it", func(t *T) {
		s := every("s")
		s.Job = repeated()
		s.Job.StartWithin = time.Hour
		t.declare(s)
		before := t.clock()
		ids := t.tick("s", 2)
		w := t.join(s.Job.Kind)
		entries := w.ClaimAll()
		need(t, len(entries) == 2, "%d can be claimed, want 2", len(entries))
		for i, e := range entries {
			p := e.Origin
			expect(t, e.ID == ids[i] && p.Schedule == "s" && p.Nth == int64(i+1) && !p.Occurrence.IsZero(),
				"job %d was made by %+v", e.ID, p)
			expect(t, e.Due.Equal(p.Occurrence) && e.StartBy.Equal(p.Occurrence.Add(time.Hour)) &&
				!e.Created.Before(before.Truncate(time.Microsecond)),
				"job %d is of %v, due at %v, to begin by %v, made at %v", e.ID, p.Occurrence, e.Due, e.StartBy, e.Created)
			info := t.info(e.ID)
			noDiff(t, cmp.Diff(p, info.Origin, sameJob...), "people see another origin (-claimed +shown)")
			expect(t, sameJSON(e.Args, s.Job.Args) && sameJSON(e.Metadata, s.Job.Metadata) && e.URN == s.Job.URN &&
				slices.Equal(e.Tags, s.Job.Tags) && e.Retry == s.Job.Retry,
				"job %d is %+v", e.ID, e.Job)
		}
		t.shows(store.Filter{Schedule: "s"}, ids[1], ids[0])
		t.shows(store.Filter{Schedule: "s", Tag: s.Job.Tags[0], States: []stint.State{stint.Running}}, ids[1], ids[0])
		t.shows(store.Filter{Schedule: "S"})
		w.Finish(failed, entries[0])
		p := t.info(ids[0]).Origin
		expect(t, p.Nth == 1 && p.Schedule == "s", "while it waits, it was made by %+v", p)
	}},
	{"Occurrences that are fired together make a job each, with all that was said", func(t *T) {
		s := every("s")
		s.Job = repeated()
		t.declare(s)
		f := t.fire(store.FireRequest{}, func(s *store.ScheduleInfo, now time.Time) (store.Plan, error) {
			first, second := s.After.Add(time.Millisecond), s.After.Add(2*time.Millisecond)
			return store.Plan{Occurrences: []time.Time{first, second}, After: second, Next: now.Add(time.Hour)}, nil
		})
		need(t, len(f.Jobs) == 2, "it fires %+v", f)
		for _, tag := range s.Job.Tags {
			t.shows(store.Filter{Tag: tag}, f.Jobs[1].ID, f.Jobs[0].ID)
		}
	}},
	{"Nothing is fired early, and who asks is told when", func(t *T) {
		t.declare(every("s"))
		plan := ticking("s", time.Hour, 1)
		f := t.fire(store.FireRequest{}, plan)
		expect(t, f.Next == 0 && f.Moved == 1 && len(f.Jobs) == 0, "the first look gives %+v", f)
		f = t.fire(store.FireRequest{}, never(t))
		expect(t, f.Moved == 0 && len(f.Jobs) == 0 && f.Next >= 59*time.Minute && f.Next <= time.Hour,
			"the next look gives %+v", f)
		t.declare(every("new"))
		f = t.fire(store.FireRequest{OnlyNew: true}, ticking("new", time.Second, 1))
		expect(t, f.Moved == 1 && len(f.Jobs) == 0, "a look at what is new gives %+v", f)
		got := t.schedule("new")
		expect(t, got.Next.Equal(got.After.Add(time.Second)), "its next is %v, want a second after %v", got.Next, got.After)
	}},
	{"What is new is planned without firing what is due", func(t *T) {
		t.declare(every("s"))
		t.tick("s", 1)
		t.due()
		t.declare(every("new"))
		f := t.fire(store.FireRequest{OnlyNew: true}, ticking("", time.Millisecond, 1))
		expect(t, len(f.Jobs) == 0 && f.Moved == 1, "it fires %+v", f)
	}},
	{"Many who fire at once make one job of each occurrence", manyFire},
	{"Whatever is cut off, each occurrence has its one job", cutFiring},
	{"What is changed while it is planned goes by the change, and planning holds nobody up", func(t *T) {
		for name, change := range map[string]func(){
			"paused":        func() { t.must(errOf(as[store.ScheduleKeeper](t).PauseSchedule(t.ctx, "s", "", ""))) },
			"removed":       func() { t.must(errOf(as[store.ScheduleKeeper](t).RemoveSchedule(t.ctx, "s", ""))) },
			"declared anew": func() { s := every("s"); s.Job.Queue = "another"; t.declare(s) },
			"fired":         func() { t.tick("s", 1) },
			"run":           func() { t.must(errOf(as[store.ScheduleKeeper](t).RunSchedule(t.ctx, "s"))) },
		} {
			t.declare(every("s"))
			t.tick("s", 1)
			t.due()
			plan := ticking("s", time.Millisecond, 1)
			f := t.fire(store.FireRequest{}, func(s *store.ScheduleInfo, now time.Time) (store.Plan, error) {
				change()
				return plan(s, now)
			})
			expect(t, len(f.Jobs) == 0 && f.Moved == 0, "%s meanwhile, it fires %+v", name, f)
			_, _ = as[store.ScheduleKeeper](t).RemoveSchedule(t.ctx, "s", "")
		}
	}},
	{"What was planned for a schedule that was removed is not done to a new one of its name", func(t *T) {
		t.declare(every("s"))
		plan := ticking("s", time.Hour, 1)
		f := t.fire(store.FireRequest{}, func(s *store.ScheduleInfo, now time.Time) (store.Plan, error) {
			t.must(errOf(as[store.ScheduleKeeper](t).RemoveSchedule(t.ctx, "s", "")))
			t.declare(every("s"))
			return plan(s, now)
		})
		got := t.schedule("s")
		expect(t, f.Moved == 0 && got.Next.IsZero(), "it fires %+v, and then says %+v", f, got)
	}},
	{"An occurrence that has its job does not get another one, whatever is planned", func(t *T) {
		at := t.clock().Add(time.Hour).UTC().Truncate(time.Microsecond)
		plan := func(s *store.ScheduleInfo, _ time.Time) (store.Plan, error) {
			return store.Plan{Occurrences: []time.Time{at}, After: at, Next: at.Add(time.Hour)}, nil
		}
		t.declare(every("s"))
		if f := t.fire(store.FireRequest{}, plan); len(f.Jobs) != 1 {
			t.Fatalf("the first time it fires %+v", f)
		}
		t.must(errOf(as[store.ScheduleKeeper](t).RemoveSchedule(t.ctx, "s", "")))
		t.declare(every("s"))
		f := t.fire(store.FireRequest{}, plan)
		expect(t, len(f.Jobs) == 0, "the second time it fires %+v", f)
		got := t.schedule("s")
		expect(t, got.Fired == 0 && got.Next.Equal(at.Add(time.Hour)), "it says %+v", got)
		t.declare(every("other"))
		f = t.fire(store.FireRequest{}, plan)
		expect(t, len(f.Jobs) == 1, "another schedule fires %+v", f)
	}},
	{"A plan that goes back makes nothing", func(t *T) {
		t.declare(every("s"))
		t.tick("s", 1)
		old := t.schedule("s")
		t.due()
		for name, p := range map[string]store.Plan{
			"an old occurrence": {Occurrences: []time.Time{old.LastOccurrence}, After: old.After, Next: old.Next.Add(time.Hour)},
			"twice the same":    {Occurrences: []time.Time{old.Next, old.Next}, After: old.Next, Next: old.Next.Add(time.Hour)},
			"next is old":       {Occurrences: []time.Time{old.Next}, After: old.Next, Next: old.Next},
			"after is old":      {Occurrences: []time.Time{old.Next}, After: old.After.Add(-time.Second), Next: old.Next.Add(time.Hour)},
		} {
			f := t.fire(store.FireRequest{}, func(*store.ScheduleInfo, time.Time) (store.Plan, error) { return p, nil })
			expect(t, len(f.Jobs) == 0 && f.Moved == 0 && f.Problems["s"] != nil, "%s: %+v", name, f)
		}
	}},
	{"A job that is deleted does not come back", func(t *T) {
		w := t.join("k")
		t.declare(every("s"))
		ids := t.tick("s", 2)
		w.Complete(w.ClaimAll()...)
		t.deletes(map[stint.ID]store.DeleteStatus{ids[0]: store.DeletedNow, ids[1]: store.DeletedNow})
		last := t.schedule("s").LastOccurrence
		next := t.tick("s", 1)[0]
		p := t.info(next).Origin
		expect(t, p.Nth == 3 && p.Occurrence.After(last), "the next is %+v, after %v", p, last)
	}},
	{"A unique schedule fires nothing while its last job has not ended", unique},
	{"What one program cannot plan is left to others and holds up nobody", func(t *T) {
		f := every("f")
		f.Recurrence = cron.Function("f")
		t.declare(f, every("a"), every("b"))
		plan := ticking("b", time.Hour, 1)
		got := t.fire(store.FireRequest{}, plan)
		expect(t, got.Moved == 1 && len(got.Problems) == 1 && got.Problems["a"] != nil && got.Next == 0,
			"who has no functions sees %+v", got)
		got = t.fire(store.FireRequest{Limit: 1, Except: []string{"a"}}, never(t))
		expect(t, got.Moved == 0 && got.Next >= time.Minute, "who passes over what it cannot plan sees %+v", got)
		got = t.fire(store.FireRequest{Functions: []string{"g", "f"}, Except: []string{"a"}}, ticking("f", time.Hour, 1))
		expect(t, got.Moved == 1 && len(got.Problems) == 0, "who has the function sees %+v", got)
		got = t.fire(store.FireRequest{}, ticking("a", time.Hour, 1))
		expect(t, got.Moved == 1, "who can plan the last one sees %+v", got)
	}},
	{"Missed and skipped occurrences are counted as planned", func(t *T) {
		t.declare(every("s"))
		t.tick("s", 1)
		t.due()
		expect(t, t.schedule("s").PassedAt.IsZero(), "nothing was missed, and it was found %v", t.schedule("s").PassedAt)
		before := t.clock()
		f := t.fire(store.FireRequest{}, func(s *store.ScheduleInfo, now time.Time) (store.Plan, error) {
			return store.Plan{Passed: 5, Skipped: 2, After: now, Next: now.Add(time.Hour)}, nil
		})
		got := t.schedule("s")
		expect(t, f.Moved == 1 && got.Passed == 5 && got.Skipped == 2 && got.Fired == 1, "it says %+v", got)
		expect(t, between(got.PassedAt, before.Add(-time.Millisecond), t.clock().Add(time.Millisecond)), "it was found %v, not after %v", got.PassedAt, before)
	}},
	{"A schedule fires also when nobody knows its kind", func(t *T) {
		s := every("s")
		s.Job.Kind = "nobody has heard of it"
		t.declare(s)
		t.state(t.tick("s", 1)[0], stint.Available)
	}},
	{"A call whose context has ended fires and declares nothing", func(t *T) {
		t.declare(every("s"))
		t.tick("s", 1)
		t.due()
		ended := t.over()
		if _, err := as[store.Scheduler](t).FireSchedules(ended, store.FireRequest{Limit: 1}, ticking("s", time.Millisecond, 1)); err == nil {
			t.Error("it fired")
		}
		expect(t, as[store.Scheduler](t).DeclareSchedules(ended, "", []stint.Schedule{every("never")}) != nil, "it declared")
		list := must(as[store.ScheduleKeeper](t).Schedules(t.ctx))(t)
		expect(t, len(list) == 1 && list[0].Fired == 1, "there are %+v", list)
	}},
}

// unique goes through all that a job may be while the next occurrence comes.
func unique(t *T) {
	w := t.join("k")
	s := every("s")
	s.Unique = true
	s.Job.Args = json.RawMessage(`{"n":1}`)
	t.declare(s)
	skips := func(when string, want int64) {
		t.Helper()
		for since := time.Now(); t.schedule("s").Skipped < want && time.Since(since) < patience(); {
			f := t.fire(store.FireRequest{}, ticking("s", time.Millisecond, 1))
			need(t, len(f.Jobs) == 0, "%s it fires %+v", when, f.Jobs)
		}
	}
	// What others came to says nothing of it.
	t.enqueue(jobs(2, "k")...)
	others := w.ClaimAll()
	w.Complete(others[0])
	w.Finish(returned, others[1])
	w.Complete(w.One())
	id := t.tick("s", 1)[0]
	skips("while it is available", 1)
	e := w.One()
	skips("while it runs", 2)
	w.Finish(failed, e)
	t.state(id, stint.Retrying)
	skips("while it waits to be retried", 3)
	t.retry(stint.RerunOptions{}, id)
	skips("while it is available again", 4)
	w.Finish(failed, w.One())
	skips("while it waits once more", 5)
	t.retry(stint.RerunOptions{}, id)
	w.Complete(w.One())
	got := t.schedule("s")
	expect(t, got.Fired == 1 && got.LastJob == id, "people see %+v", got)
	second := t.tick("s", 1)[0]
	w.Finish(failedFinally, w.One())
	third := t.tick("s", 1)[0]
	w.Complete(w.One())
	t.deletes(map[stint.ID]store.DeleteStatus{third: store.DeletedNow})
	fourth := t.tick("s", 1)[0]
	t.cancels(map[stint.ID]stint.CancelStatus{fourth: stint.CancelledNow}, "while it was ready")
	p := t.info(t.tick("s", 1)[0]).Origin
	expect(t, p.Nth == 5, "after job %d comes %+v", second, p)
}

// manyFire has several handles fire several schedules that tick fast.
func manyFire(t *T) {
	const firers, schedules, each, step = 5, 5, 15, time.Millisecond
	var names []string
	made := map[string]*atomic.Int64{}
	for i := range schedules {
		name := fmt.Sprint("s", i)
		names, made[name] = append(names, name), new(atomic.Int64)
		t.declare(every(name))
	}
	stores := []Store{t.Store}
	for len(stores) < firers {
		stores = append(stores, t.again())
	}
	missing := func() bool {
		return slices.ContainsFunc(names, func(name string) bool { return made[name].Load() < each })
	}
	errs := atOnce(firers, func(i int) error {
		for since := time.Now(); missing(); {
			f, err := stores[i].(store.Scheduler).FireSchedules(t.ctx, store.FireRequest{Limit: 3}, ticking("", step, 2))
			if err != nil {
				return err
			}
			for _, j := range f.Jobs {
				made[j.Schedule].Add(1)
			}
			if time.Since(since) > patience() {
				return errors.New("not all of them fired often enough")
			}
			if f.Next > 0 {
				time.Sleep(f.Next)
			}
		}
		return nil
	})
	t.must(errors.Join(errs...))
	for _, name := range names {
		t.unbroken(name, step)
		n := len(t.occurrences(name))
		expect(t, int64(n) == made[name].Load(), "%s has %d jobs, and %d were told", name, n, made[name].Load())
	}
}

// cutFiring cuts calls off at any moment of their writing: what they did is not
// known.
func cutFiring(t *T) {
	const step = time.Millisecond
	rng := NewSeed(t).Rand("cuts")
	t.declare(every("a"), every("b"))
	t.tick("a", 1)
	took := time.Millisecond
	for i := range 80 {
		time.Sleep(3 * step)
		ctx, cancel := context.WithCancel(t.ctx)
		var planned time.Time
		after := time.Duration(rng.Int64N(int64(took)*5/4 + 1))
		plan := func(s *store.ScheduleInfo, now time.Time) (store.Plan, error) {
			if planned.IsZero() {
				planned = time.Now()
				if i%10 != 0 {
					time.AfterFunc(after, cancel)
				}
			}
			return ticking("", step, 3)(s, now)
		}
		_, err := as[store.Scheduler](t).FireSchedules(ctx, store.FireRequest{Limit: 10}, plan)
		if err == nil && i%10 == 0 {
			took = min(took*3, time.Since(planned)) // of one that nobody cut off
		}
		cancel()
	}
	// What committed after its caller had gone is over when the rows can be
	// locked.
	for _, name := range []string{"a", "b"} {
		t.tick(name, 2)
		t.unbroken(name, step)
	}
}
