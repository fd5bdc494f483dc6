//go:build unix

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/store"
)

// Ticks are the schedules that each worker of a fleet declares when it joins, all
// alike.
type Ticks struct {
	Schedules  int
	Recurrence string    // of each; an interval of at least a second, or cron's
	Until      time.Time // the last occurrence comes no later
}

// tickKind is the kind of their jobs.
const tickKind = "tick"

// names are those of the schedules.
func (t *Ticks) names() []string {
	all := make([]string, t.Schedules)
	for i := range all {
		all[i] = fmt.Sprintf("tick-%04d", i)
	}
	return all
}

// declared are the schedules. Whatever was missed is made up for, so that each
// occurrence has its job however long nobody fired.
func (t *Ticks) declared() []stint.Schedule {
	all := make([]stint.Schedule, t.Schedules)
	for i, name := range t.names() {
		all[i] = stint.Schedule{
			Name: name, Recurrence: cron.MustParse(t.Recurrence), Missed: stint.MissedAll(1000), NotAfter: t.Until,
			Job: stint.NewJob{Kind: tickKind},
		}
	}
	return all
}

// runTicks works as any program with schedules does. Its database is a server's
// or a file.
func (w *Worker) runTicks(ctx context.Context) error {
	ground, err := Open(ctx, w.DB)
	if err != nil {
		return err
	}
	defer ground.Close()
	diary, err := os.OpenFile(w.path(w.Name+tickSuffix), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer diary.Close()
	mux := stint.NewMux()
	mux.Schedule(w.Ticks.declared()...)
	mux.Add(stint.KindInfo{Name: tickKind}, func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
		p := job.Origin
		// One write is whole or missing, whenever the process dies.
		if _, err := fmt.Fprintln(diary, job.ID, p.Schedule, p.Nth, p.Occurrence.UnixMicro(), job.Due.UnixMicro()); err != nil {
			return nil, err
		}
		return nil, w.busy(ctx, &Args{})
	})
	e, err := engine.New(ground.Store, mux, engine.Config{
		Instance: w.Name, Slots: w.Slots, TimeToLive: w.TimeToLive, Grace: w.Grace, Poll: w.Poll, OnEvent: logEvents(logLines(os.Stderr)),
	})
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

// tickSuffix names the files in which workers write down what they ran.
const tickSuffix = ".ticks"

// tick is the run of a job, as its handler was told about it.
type tick struct {
	job        stint.ID
	schedule   string
	nth        int64
	occurrence int64 // in microseconds
	due        int64 // likewise
}

// ticks are all runs that handlers wrote down.
func (f *Fleet) ticks() (all []tick, err error) {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(f.Dir), "*"+tickSuffix))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			var t tick
			if _, err := fmt.Sscan(lines.Text(), &t.job, &t.schedule, &t.nth, &t.occurrence, &t.due); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", file, lines.Text(), err)
			}
			all = append(all, t)
		}
	}
	return all, nil
}

// AwaitTicks waits until all schedules have come to their end and all their jobs
// are final.
func (f *Fleet) AwaitTicks(ctx context.Context, g *Ground, t *Ticks, within time.Duration) {
	f.t.Helper()
	for until := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		list, err := g.Store.Schedules(ctx)
		left := t.Schedules
		for i := range list {
			if !list[i].Ended.IsZero() {
				left--
			}
		}
		if err == nil && left == 0 {
			break
		}
		if time.Now().After(until) {
			f.t.Fatalf("after %v %d of %d schedules have not come to their end, %v", within, left, t.Schedules, err)
		}
	}
	f.Drain(ctx, g.Store, within)
}

// Lateness is how much later than their occurrence jobs were made, and began.
type Lateness struct {
	Jobs        int
	Runs        int // with those that were lost
	Fired       [3]time.Duration
	Began       [3]time.Duration
	Occurrences int // of each schedule
}

// String tells it in a line.
func (l Lateness) String() string {
	text := func(of [3]time.Duration) string {
		return fmt.Sprintf("p50 %v, p99 %v, max %v", of[0].Round(time.Millisecond), of[1].Round(time.Millisecond), of[2].Round(time.Millisecond))
	}
	return fmt.Sprintf("%d jobs of %d occurrences each, %d runs; fired late by %s; begun for the last time late by %s",
		l.Jobs, l.Occurrences, l.Runs, text(l.Fired), text(l.Began))
}

// JudgeTicks fails the test unless every occurrence, as the times say and not the
// program, has exactly one job: numbered without a gap, completed, counted by
// its schedule, and due at its occurrence as its handler was told.
func (f *Fleet) JudgeTicks(ctx context.Context, g *Ground, t *Ticks, step time.Duration) Lateness {
	f.t.Helper()
	jobs, err := jobsBySchedule(ctx, g.Store)
	if err != nil {
		f.t.Fatal(err)
	}
	var late Lateness
	var report check.Report
	var fired, began []time.Duration
	told := map[stint.ID]tick{}
	for _, name := range t.names() {
		info, err := g.Store.Schedule(ctx, name)
		if err != nil {
			f.t.Fatal(err)
		}
		list := jobs[name]
		delete(jobs, name)
		want := t.occurrences(info, list, step)
		late.Occurrences = len(want)
		if len(want) != len(list) || info.Fired != int64(len(want)) || info.Passed+info.Skipped != 0 {
			f.t.Errorf("%s: %d jobs of %d occurrences; it says that it fired %d, missed %d and skipped %d",
				name, len(list), len(want), info.Fired, info.Passed, info.Skipped)
		}
		for i, j := range list {
			p := j.Origin
			if i >= len(want) || p.Nth != int64(i+1) || !p.Occurrence.Equal(want[i]) || j.State != stint.Completed {
				f.t.Errorf("%s: job %d is number %d, of %v, %s; want number %d of %v",
					name, j.ID, p.Nth, p.Occurrence, j.State, i+1, want[min(i, len(want)-1)])
				break
			}
			told[j.ID] = tick{j.ID, name, p.Nth, p.Occurrence.UnixMicro(), p.Occurrence.UnixMicro()}
			fired, began = append(fired, j.Created.Sub(p.Occurrence)), append(began, j.Started.Sub(p.Occurrence))
		}
		if n := len(list); n > 0 && (info.LastJob != list[n-1].ID || !info.LastOccurrence.Equal(list[n-1].Origin.Occurrence)) {
			f.t.Errorf("%s: it says that its last job is %d, of %v", name, info.LastJob, info.LastOccurrence)
		}
		late.Jobs += len(list)
		report.Lost += max(0, len(want)-len(list))
		report.Doubled += max(0, len(list)-len(want))
	}
	for name, list := range jobs {
		f.t.Errorf("%d jobs are of %q", len(list), name)
	}
	late.Runs = f.checkTicks(told)
	late.Fired, late.Began = quantiles(fired), quantiles(began)
	report.Jobs, report.Runs = late.Jobs, late.Runs
	report.Reruns = map[string]int{check.ReasonCrash: max(0, late.Runs-late.Jobs)}
	f.Account(ctx, g, judged(&report))
	return late
}

// occurrences are those that a schedule must have had since it was declared. An
// interval begins with its declaration, a minute on the clock.
func (t *Ticks) occurrences(info *store.ScheduleInfo, list []stint.JobInfo, step time.Duration) (all []time.Time) {
	first := info.Created.Truncate(step).Add(step)
	if len(list) > 0 && info.Recurrence.String() != everyMinute {
		first = list[0].Origin.Occurrence
		if d := first.Sub(info.Created) - step; d.Abs() > 50*time.Millisecond {
			return nil // it does not begin as it should
		}
	}
	for at := first; !at.After(info.NotAfter); at = at.Add(step) {
		all = append(all, at)
	}
	return all
}

const everyMinute = "* * * * *"

// checkTicks checks that what handlers were told is what is recorded, of every
// job. It returns how many runs there were.
func (f *Fleet) checkTicks(told map[stint.ID]tick) int {
	f.t.Helper()
	runs, err := f.ticks()
	if err != nil {
		f.t.Fatal(err)
	}
	ran := map[stint.ID]bool{}
	for _, r := range runs {
		ran[r.job] = true
		if told[r.job] != r {
			f.t.Errorf("a handler was told %+v; recorded is %+v", r, told[r.job])
		}
	}
	if len(ran) != len(told) {
		f.t.Errorf("%d of %d jobs ran", len(ran), len(told))
	}
	return len(runs)
}

// jobsBySchedule are all jobs, the oldest of each schedule first.
func jobsBySchedule(ctx context.Context, st store.Inspector) (map[string][]stint.JobInfo, error) {
	all := map[string][]stint.JobInfo{}
	for filter := (store.Filter{Limit: 1000}); ; {
		page, err := st.Jobs(ctx, filter)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, j := range page {
			all[j.Origin.Schedule] = append(all[j.Origin.Schedule], j)
		}
		filter.Before = page[len(page)-1].ID
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b stint.JobInfo) int { return int(a.Origin.Nth - b.Origin.Nth) })
	}
	return all, nil
}

// quantiles are the median, what 99 of 100 do not exceed, and the most.
func quantiles(all []time.Duration) (q [3]time.Duration) {
	if len(all) == 0 {
		return q
	}
	slices.Sort(all)
	return [3]time.Duration{all[len(all)/2], all[len(all)*99/100], all[len(all)-1]}
}
