package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// schedulesTests are about what people do to schedules; those about firing are in
// fire.go.
var schedulesTests = []test{
	{"Everything said of a schedule comes back exactly", func(t *T) {
		s := stint.Schedule{
			Name: "nightly 'x' ✓", Recurrence: cron.MustParse("30 2 * * MON-FRI"), Zone: "Europe/Berlin", Unique: true, Missed: stint.MissedAll(7),
			Job: repeated(), NotBefore: time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC), NotAfter: time.Date(2101, 2, 3, 4, 5, 6, 0, time.UTC),
		}
		s.Job.StartWithin = 90 * time.Minute
		plain := every("plain")
		before := t.clock()
		t.declare(s, plain)
		for _, want := range []stint.Schedule{s, plain} {
			got := t.schedule(want.Name)
			ready := must(want.Ready(stint.Limits{}))(t)
			expect(t, got.Problem == nil, "%s: %v", want.Name, got.Problem)
			comparer := cmp.Comparer(func(a, b cron.Recurrence) bool { return a == b })
			noDiff(t, cmp.Diff(ready, got.Schedule, append(sameJob, comparer, cmpopts.IgnoreUnexported(stint.Schedule{}))...),
				"%s (-want +got)", want.Name)
			for _, at := range []time.Time{got.Created, got.Declared, got.After} {
				expect(t, between(at, before.Truncate(time.Microsecond), t.clock()),
					"%s says %v, and was declared after %v", want.Name, at, before)
			}
			expect(t, got.By == "somebody" && got.State() == "active" && got.Next.IsZero() &&
				got.Fired+got.Skipped+got.Passed == 0 && got.LastJob == 0,
				"people see %+v", got)
		}
		list := must(as[store.ScheduleKeeper](t).Schedules(t.ctx))(t)
		expect(t, len(list) == 2 && list[0].Name == s.Name && list[1].Name == "plain", "listed are %v", list)
	}},
	{"Declared again it is one, with the new policies and all that it has", func(t *T) {
		s := every("s")
		t.declare(s)
		t.tick("s", 3)
		old := t.schedule("s")
		s.Job.Queue, s.Job.Retry, s.Unique, s.Missed = "another", retry.Fixed(2, time.Second), true, stint.MissedNone
		t.declare(s)
		got := t.schedule("s")
		expect(t, got.Job.Queue == "another" && got.Job.Retry == s.Job.Retry && got.Unique && got.Missed == stint.MissedNone,
			"it is as it was: %+v", got.Schedule)
		expect(t, got.Fired == 3 && got.LastJob == old.LastJob && got.LastOccurrence.Equal(old.LastOccurrence) &&
			got.Next.Equal(old.Next) && got.After.Equal(old.After) && got.Created.Equal(old.Created),
			"it was %+v, and is %+v", old, got)
		expect(t, got.Declared.After(old.Declared) && got.Revision != old.Revision,
			"declared at %v, revision %d; before %v, %d", got.Declared, got.Revision, old.Declared, old.Revision)
		t.declare(s)
		expect(t, t.schedule("s").Revision == got.Revision, "declared as it is it counts as changed")
	}},
	{"With another recurrence, zone or bound its next occurrence is found anew, behind all that came", func(t *T) {
		s := every("s")
		t.declare(s)
		for _, change := range []func(){
			func() { s.Recurrence = cron.MustParse("0 3 * * *") },
			func() { s.Zone = "Asia/Tokyo" },
			func() { s.NotBefore = time.Unix(1e9, 0).UTC() },
			func() { s.NotAfter = time.Unix(5e9, 0).UTC() },
		} {
			t.tick("s", 1)
			old := t.schedule("s")
			change()
			before := t.clock()
			t.declare(s)
			got := t.schedule("s")
			expect(t, got.Next.IsZero() && !got.After.Before(before.Truncate(time.Microsecond)) && got.Fired == old.Fired,
				"next is %v, all is dealt with up to %v, %d fired; want none, after %v, %d", got.Next, got.After, got.Fired,
				before, old.Fired)
		}
	}},
	{"A schedule that ended goes on when it is declared with another recurrence only", func(t *T) {
		s := every("s")
		t.declare(s)
		before := t.clock()
		t.fire(store.FireRequest{}, func(s *store.ScheduleInfo, _ time.Time) (store.Plan, error) {
			return store.Plan{After: s.After, Ended: true}, nil
		})
		got := t.schedule("s")
		expect(t, got.State() == "ended" && !got.Ended.Before(before.Truncate(time.Microsecond)),
			"it is %s since %v", got.State(), got.Ended)
		t.declare(s)
		f := t.fire(store.FireRequest{}, never(t))
		expect(t, f.Next < 0, "it is to be looked at in %v", f.Next)
		s.Recurrence = cron.Every(time.Hour)
		t.declare(s)
		t.tick("s", 1)
	}},
	{"A paused schedule fires nothing, and once resumed it goes on from then", func(t *T) {
		k := as[store.ScheduleKeeper](t)
		t.declare(every("s"), every("goes on"), every("rests"))
		t.must(errOf(k.PauseSchedule(t.ctx, "rests", "", "")))
		t.tick("s", 1)
		changed := must(k.PauseSchedule(t.ctx, "s", "who\x00", "why"))(t)
		again := must(k.PauseSchedule(t.ctx, "s", "another", "reason"))(t)
		got := t.schedule("s")
		expect(t, changed && !again && got.State() == "paused" && got.PausedBy[:3] == "who" && got.PausedWhy == "why",
			"pausing answers %v, then %v; people see %+v", changed, again, got)
		t.due()
		f := t.fire(store.FireRequest{Except: []string{"goes on"}}, never(t))
		expect(t, len(f.Jobs) == 0 && f.Next < 0, "it fires: %+v", f)
		t.declare(every("s")) // a program that starts again does not resume it
		before := t.clock()
		changed = must(k.ResumeSchedule(t.ctx, "s"))(t)
		again = must(k.ResumeSchedule(t.ctx, "s"))(t)
		got = t.schedule("s")
		expect(t, changed && !again && got.State() == "active" && got.Next.IsZero() &&
			!got.After.Before(before.Truncate(time.Microsecond)) && got.PausedBy+got.PausedWhy == "",
			"resuming answers %v, then %v; people see %+v", changed, again, got)
		active, paused := t.schedule("goes on"), t.schedule("rests")
		expect(t, active.State() == "active" && paused.State() == "paused",
			"the others are %s and %s", active.State(), paused.State())
		t.tick("s", 1)
	}},
	{"A schedule that is removed takes along what has not begun, and nothing else", func(t *T) {
		w := t.join("k")
		t.declare(every("s"), every("other"))
		kept := t.enqueue(job("k", stint.Queue("kept")))[0]
		done := t.tick("s", 1)[0]
		w.Complete(w.Claim(lane(stint.DefaultQueue), 1)...)
		running := t.tick("s", 1)[0]
		entry := w.Claim(lane(stint.DefaultQueue), 1)
		retrying := t.tick("s", 1)[0]
		w.Finish(failed, w.Claim(lane(stint.DefaultQueue), 1)...)
		available := t.tick("s", 1)[0]
		w.Finish(returned, w.Claim(lane(stint.DefaultQueue), 1)...)
		others := t.tick("other", 1)[0]
		time.Sleep(2 * time.Millisecond)
		before := t.now()
		ids := must(as[store.ScheduleKeeper](t).RemoveSchedule(t.ctx, "s", "not needed"))(t)
		want := []stint.ID{retrying, available}
		expect(t, slices.Equal(ids, want), "it cancelled %v, want %v", ids, want)
		for id, want := range map[stint.ID]stint.State{
			done: stint.Completed, running: stint.Running, retrying: stint.Cancelled, available: stint.Cancelled,
			others: stint.Available, kept: stint.Available,
		} {
			t.state(id, want)
		}
		for _, id := range ids {
			j := t.info(id)
			expect(t, j.Reason == "not needed" && !j.Finished.Before(before),
				"job %d was cancelled after %v and shows %v, reason %q", id, before, j.Finished, j.Reason)
		}
		w.Complete(entry...)
		t.state(running, stint.Completed)
		fails(t, errOf(as[store.ScheduleKeeper](t).Schedule(t.ctx, "s")), stint.ErrNoSchedule, "shown, it is %v")
		t.shows(store.Filter{Schedule: "s"}, available, retrying, running, done)
		t.ended(retrying, available)
	}},
	{"Run out of turn, it makes a job of no occurrence, and the next one stays", func(t *T) {
		t.declare(every("s"))
		t.tick("s", 2)
		old := t.schedule("s")
		before := t.clock()
		id := must(as[store.ScheduleKeeper](t).RunSchedule(t.ctx, "s"))(t)
		info, got := t.info(id), t.schedule("s")
		p := info.Origin
		expect(t, p.Schedule == "s" && p.Nth == 3 && p.Occurrence.IsZero(), "it was made by %+v", p)
		expect(t, !info.Due.Before(before.Truncate(time.Microsecond)) && info.State == stint.Available,
			"it is %s, due at %v", info.State, info.Due)
		expect(t, got.Fired == 3 && got.LastJob == id && got.Next.Equal(old.Next) && got.After.Equal(old.After) &&
			got.LastOccurrence.Equal(old.LastOccurrence),
			"the schedule was %+v, and is %+v", old, got)
		if _, err := as[store.ScheduleKeeper](t).RunSchedule(t.ctx, "s"); err != nil {
			t.Errorf("another one: %v", err)
		}
		t.must(errOf(as[store.ScheduleKeeper](t).PauseSchedule(t.ctx, "s", "", "")))
		_, err := as[store.ScheduleKeeper](t).RunSchedule(t.ctx, "s")
		expect(t, err == nil, "paused: %v", err)
		next := t.resumeAndTick("s")
		equal(t, t.info(next).Origin.Nth, 6, "the next is number %d, want %d")
	}},
	{"Run out of turn, a unique schedule says which of its jobs has not ended", func(t *T) {
		w := t.join("k")
		s := every("s")
		s.Unique = true
		t.declare(s)
		id := t.tick("s", 1)[0]
		var busy *store.ScheduleBusyError
		_, err := as[store.ScheduleKeeper](t).RunSchedule(t.ctx, "s")
		expect(t, errors.As(err, &busy) && busy.Job == id && busy.Schedule == "s",
			"the error is %v, want one that names job %d", err, id)
		got := t.schedule("s")
		expect(t, got.Skipped == 0 && got.Fired == 1, "people see %+v", got)
		w.Complete(w.One())
		if _, err := as[store.ScheduleKeeper](t).RunSchedule(t.ctx, "s"); err != nil {
			t.Error(err)
		}
	}},
	{"Engines are rung when a schedule is declared, paused, resumed, run and removed", func(t *T) {
		k := as[store.ScheduleKeeper](t)
		t.declare(every("s"))
		if s, ok := t.Store.(store.IdleNotifier); ok {
			t.must(s.Asleep(t.ctx, t.join("k").Info.Token, true)) // or nobody need be rung for a job
		}
		bell := t.listen(t.Store)
		bell.rings("at a declaration", func() { t.declare(every("s")) })
		bell.rings("at a pause", func() { t.must(errOf(k.PauseSchedule(t.ctx, "s", "", ""))) })
		bell.rings("at a resumption", func() { t.must(errOf(k.ResumeSchedule(t.ctx, "s"))) })
		bell.rings("out of turn", func() { t.must(errOf(k.RunSchedule(t.ctx, "s"))) })
		bell.rings("at an occurrence", func() { t.tick("s", 1) })
		bell.rings("at a removal", func() { t.must(errOf(k.RemoveSchedule(t.ctx, "s", ""))) })
	}},
	{"What names no schedule is said to be none, or no name", func(t *T) {
		k := as[store.ScheduleKeeper](t)
		for _, name := range []string{"s", "S", "%"} {
			for what, err := range each(t, k, name) {
				fails(t, err, stint.ErrNoSchedule, "%s %q: %v", what, name)
			}
			t.declare(every("s" + name))
		}
		for what, err := range each(t, k, "a\x00\xff") {
			expect(t, err != nil, "%s succeeded", what)
		}
	}},
	{"What this program cannot read of a schedule is told, and the rest is shown", func(t *T) {
		s := every("s")
		s.Recurrence = cron.Function("of a newer program")
		t.declare(s)
		got := t.schedule("s")
		expect(t, got.Problem == nil && (got.Stored.Function == "" || got.Stored.Function == "of a newer program") &&
			got.Stored.Recurrence == s.Recurrence.String(),
			"people see %+v", got)
		text, err := json.Marshal(got)
		expect(t, err == nil && json.Valid(text), "as JSON: %s, %v", text, err)
	}},
}

// each does everything that is done by name.
func each(t *T, k store.ScheduleKeeper, name string) map[string]error {
	return map[string]error{
		"showing": errOf(k.Schedule(t.ctx, name)), "pausing": errOf(k.PauseSchedule(t.ctx, name, "", "")),
		"resuming": errOf(k.ResumeSchedule(t.ctx, name)), "removing": errOf(k.RemoveSchedule(t.ctx, name, "")),
		"running": errOf(k.RunSchedule(t.ctx, name)),
	}
}

// repeated is all that can be said of the jobs of a schedule.
func repeated() stint.NewJob {
	j := rich()
	j.RunAt, j.Delay, j.StartBy, j.IdempotencyKey = time.Time{}, 0, time.Time{}, ""
	return j
}

// every is a schedule of jobs of the kind k. The tests say themselves when it is
// due: see ticking.
func every(name string) stint.Schedule {
	return stint.Schedule{Name: name, Recurrence: cron.Every(time.Minute), Job: stint.NewJob{Kind: "k"}}
}

func (t *T) declare(schedules ...stint.Schedule) {
	t.Helper()
	ready := make([]stint.Schedule, len(schedules))
	for i, s := range schedules {
		ready[i] = must(s.Ready(stint.Limits{}))(t)
	}
	t.must(as[store.Scheduler](t).DeclareSchedules(t.ctx, "somebody", ready))
}

func (t *T) schedule(name string) *store.ScheduleInfo {
	t.Helper()
	return must(as[store.ScheduleKeeper](t).Schedule(t.ctx, name))(t)
}

// fire fires once.
func (t *T) fire(f store.FireRequest, plan store.PlanFunc) store.FireResult {
	t.Helper()
	if f.Limit == 0 {
		f.Limit = 100
	}
	return must(as[store.Scheduler](t).FireSchedules(t.ctx, f, plan))(t)
}

// ticking has a schedule of a name, or each when that is empty, occur every so
// often from its declaration on, up to n times at once.
func ticking(name string, step time.Duration, n int) store.PlanFunc {
	return func(s *store.ScheduleInfo, now time.Time) (store.Plan, error) {
		if name != "" && s.Name != name {
			return store.Plan{}, errors.New("not this one")
		}
		if s.Next.IsZero() {
			after := s.After
			if s.LastOccurrence.After(after) {
				after = s.LastOccurrence
			}
			return store.Plan{After: after, Next: after.Add(step)}, nil
		}
		p := store.Plan{After: s.After, Next: s.Next}
		for len(p.Occurrences) < n && !p.Next.After(now) {
			p.Occurrences, p.After, p.Next = append(p.Occurrences, p.Next), p.Next, p.Next.Add(step)
		}
		return p, nil
	}
}

// never is asked about nothing.
func never(t *T) store.PlanFunc {
	return func(s *store.ScheduleInfo, _ time.Time) (store.Plan, error) {
		t.Errorf("%s is to be planned", s.Name)
		return store.Plan{}, errors.New("no")
	}
}

// tick has a schedule fire n times, once each, and returns the jobs.
func (t *T) tick(name string, n int) []stint.ID {
	t.Helper()
	var ids []stint.ID
	for since := time.Now(); len(ids) < n; {
		for _, j := range t.fire(store.FireRequest{}, ticking(name, time.Millisecond, 1)).Jobs {
			ids = append(ids, j.ID)
		}
		need(t, time.Since(since) <= patience(), "%s has not fired %d times: %+v", name, n, t.schedule(name))
	}
	return ids
}

func (t *T) resumeAndTick(name string) stint.ID {
	t.Helper()
	t.must(errOf(as[store.ScheduleKeeper](t).ResumeSchedule(t.ctx, name)))
	return t.tick(name, 1)[0]
}

// occurrences are those of the jobs of a schedule, in the order of their numbers,
// which are checked.
func (t *T) occurrences(name string) []time.Time {
	t.Helper()
	var all []stint.JobInfo
	for f := (store.Filter{Schedule: name}); ; {
		page := must(t.Store.Jobs(t.ctx, f))(t)
		if all = append(all, page...); len(page) == 0 {
			break
		}
		f.Before = page[len(page)-1].ID
	}
	slices.SortFunc(all, func(a, b stint.JobInfo) int { return int(a.Origin.Nth - b.Origin.Nth) })
	var times []time.Time
	for i, j := range all {
		expect(t, j.Origin.Nth == int64(i+1), "%s: job %d is number %d, want %d", name, j.ID, j.Origin.Nth, i+1)
		times = append(times, j.Origin.Occurrence)
	}
	return times
}

// unbroken checks that a schedule that ticks lost and doubled no occurrence, and
// that it counts them.
func (t *T) unbroken(name string, step time.Duration) {
	t.Helper()
	times, info := t.occurrences(name), t.schedule(name)
	for i := 1; i < len(times); i++ {
		equal(t, times[i].Sub(times[i-1]), step, "%s: number %d is %v after the one before, want %v", name, i+1)
	}
	n := len(times)
	expect(t, n != 0 && info.Fired == int64(n) && info.Next.Equal(times[n-1].Add(step)) && info.LastOccurrence.Equal(times[n-1]),
		"%s: it has %d jobs, and says %s", name, n, fmt.Sprintf("%+v", info))
}
