package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

// open is how many jobs have not ended, and how many schedules.
func (y *year) open(ctx context.Context) (n int64) {
	list, err := y.store.Schedules(ctx)
	if err != nil {
		y.wrongf("list the schedules: %v", err)
	}
	for i := range list {
		if list[i].Ended.IsZero() {
			n++
		}
	}
	counts, err := y.store.Counts(ctx)
	if err != nil {
		y.wrongf("count the jobs: %v", err)
	}
	for state, of := range counts {
		if !state.Final() {
			n += of
		}
	}
	return n
}

// sweepOften writes down what has ended and deletes it, so that the file stays
// small.
func (y *year) sweepOften(ctx context.Context) {
	for {
		timer := time.NewTimer(yearSweep)
		select {
		case <-timer.C:
			y.sweep(ctx)
		case <-y.done:
			timer.Stop()
			return
		}
	}
}

func (y *year) sweep(ctx context.Context) {
	for {
		jobs, err := y.store.Jobs(ctx, stint.Filter{States: []stint.State{stint.Completed, stint.Failed, stint.Cancelled}, Limit: 1000})
		if err != nil {
			y.wrongf("list the jobs: %v", err)
		}
		if len(jobs) == 0 {
			return
		}
		ids := make([]stint.ID, len(jobs))
		for i := range jobs {
			ids[i] = jobs[i].ID
			y.keepBook(&jobs[i])
		}
		if _, err := y.store.Delete(ctx, ids); err != nil {
			y.wrongf("delete jobs: %v", err)
			return
		}
	}
}

// keepBook writes down what a job was of.
func (y *year) keepBook(j *stint.JobInfo) {
	p := j.Provenance
	y.mu.Lock()
	list := y.jobs[p.Schedule]
	for int64(len(list)) < p.Nth {
		list = append(list, 0)
	}
	twice, runs := list[p.Nth-1] != 0, y.ran[j.ID]
	list[p.Nth-1] = p.Occurrence.Unix()
	y.jobs[p.Schedule] = list
	delete(y.ran, j.ID)
	y.finished++
	y.mu.Unlock()
	if twice || runs == 0 || j.State != stint.Completed {
		y.wrongf("%s: job %d, number %d, of %v: it is %s, ran %d times, and there is another one of its number: %v",
			p.Schedule, j.ID, p.Nth, p.Occurrence, j.State, runs, twice)
	}
}

// judge compares the jobs with the calendar.
func (y *year) judge(ctx context.Context) {
	want := walk(y.plans, y.began, y.until)
	for _, p := range y.plans {
		info, err := y.store.Schedule(ctx, p.name)
		if err != nil {
			y.wrongf("%s: %v", p.name, err)
			continue
		}
		all := want[p.name]
		list := slices.DeleteFunc(slices.Clone(all), func(at int64) bool { return y.passes(p, all, at) })
		if got := y.jobs[p.name]; !slices.Equal(got, list) {
			y.wrongf("%s (%s in %s): %s", p.name, p.recurrence(), p.zone, difference(got, list))
		}
		if left := int64(len(all) - len(list)); info.Fired != int64(len(list)) || info.Passed+info.Skipped != left || info.Ended.IsZero() {
			y.wrongf("%s: it says that it fired %d, missed %d and skipped %d; the calendar has %d and %d that are not made up for",
				p.name, info.Fired, info.Passed, info.Skipped, len(list), left)
		}
	}
}

// passes tells whether an occurrence is not made up for: while there was no
// engine, and not the last one then, or too late for a schedule that wants none.
func (y *year) passes(p planned, all []int64, at int64) bool {
	for _, o := range y.outages {
		if at < o.from.Unix() || at > o.to.Unix() {
			continue
		}
		i, _ := slices.BinarySearch(all, at)
		last := i+1 == len(all) || all[i+1] > o.to.Unix()
		switch {
		case p.missed == stint.MissedNone:
			return !last || o.to.Sub(time.Unix(at, 0)) > stint.MissedAfter
		case p.missed == stint.MissedOne || p.unique:
			return !last
		}
	}
	return false
}

// difference tells the first one.
func difference(got, want []int64) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	at := func(list []int64) string {
		if i >= len(list) {
			return "none"
		}
		return time.Unix(list[i], 0).UTC().Format(time.DateTime)
	}
	return fmt.Sprintf("%d jobs of %d occurrences; number %d is of %s, want %s", len(got), len(want), i+1, at(got), at(want))
}

func (y *year) summary() string {
	return fmt.Sprintf("%d schedules, %d jobs, %d runs; %d lives, %d killed, %d buried, %d times nobody was there",
		len(y.plans), y.finished, y.runs, y.lives, y.killed, y.buried.Load(), len(y.outages))
}
