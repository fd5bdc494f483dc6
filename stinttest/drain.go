package stinttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

// DefaultLimit is how many runs a drain may take.
const DefaultLimit = 1000

// Option says how to drain.
type Option func(*drain)

// Limit is how many runs may take place before the drain fails the test: jobs
// that snooze, or enqueue each other, for ever would not let it end. By
// default [DefaultLimit].
func Limit(runs int) Option { return func(d *drain) { d.limit = runs } }

// Within performs only what is due within a time from now, as if that time had
// passed; the test's time is that much later when Drain returns. Without it
// everything is performed, however far away, but schedules do not fire, because
// they have no end, and the waits for signals (stint.Await) do not end. In a bubble they do
// when time passes their end, also since another job is due later.
func Within(span time.Duration) Option { return func(d *drain) { d.within = new(span) } }

// FailOnError fails the test when a run fails, whether it was the last of its job or not.
func FailOnError() Option { return func(d *drain) { d.failOnError = true } }

// LeaveUnknown allows jobs to be left over for which the mux has no handler or no
// retry function. Otherwise they fail the test, since a job that was not
// tried proves nothing.
func LeaveUnknown() Option { return func(d *drain) { d.leaveUnknown = true } }

// drain is one call of Drain.
type drain struct {
	limit        int
	within       *time.Duration
	failOnError  bool
	leaveUnknown bool
	kill         *kill

	began  time.Time
	report *Report
	err    error // why it stopped early
}

// Drain performs all jobs there are, one at a time: those that are ready in
// the order of an engine, then those that wait in the order of their times, each
// with what it enqueues, and every retry. It returns when no job is left that
// it may perform, with a report of every run.
//
// It fails the test at once when the jobs do not end ([Limit]) or the store
// fails, and at the end if jobs are left for which it has no handler.
func (w *Worker) Drain(options ...Option) *Report {
	w.t.Helper()
	d := &drain{limit: DefaultLimit, report: new(Report)}
	for _, o := range options {
		o(d)
	}
	if err := w.drain(w.t.Context(), d); err != nil {
		w.t.Fatalf("stinttest: drain: %v\n%v", err, d.report.last(20))
	}
	if failed := d.report.Failed(); d.failOnError && len(failed) > 0 {
		w.t.Errorf("stinttest: %d of %d runs failed\n%v", len(failed), len(d.report.Runs), d.report)
	}
	if d.kill.unseen() {
		w.t.Errorf("stinttest: no run came to the step %q, where it was to be killed\n%v", d.kill.step, d.report)
	}
	for _, left := range d.report.Left {
		if left.mistake && !d.leaveUnknown {
			w.t.Errorf("stinttest: job %d (%s) is left: %s; say LeaveUnknown if that is meant", left.Job.ID, left.Job.Kind, left.Why)
		}
	}
	return d.report
}

func (w *Worker) drain(ctx context.Context, d *drain) error {
	var by time.Time
	now, err := w.time.now(ctx)
	if err != nil {
		return err
	}
	d.began = now
	if err := w.declare(ctx); err != nil {
		return err
	}
	if d.within != nil {
		by = now.Add(*d.within)
	}
	for more := true; more; {
		if err := w.ready(ctx, d); err != nil {
			return err
		}
		if more, err = w.time.next(ctx, by); err != nil {
			return err
		}
	}
	d.report.Left, err = w.left(ctx)
	return err
}

// declare stores the schedules of the mux, as an engine does when it joins.
func (w *Worker) declare(ctx context.Context) error {
	schedules := w.mux.Schedules()
	scheduler, ok := w.store.(store.Scheduler)
	switch {
	case len(schedules) == 0:
		return nil
	case !ok:
		return fmt.Errorf("stinttest: the store %T keeps no schedules: %w", w.store, errors.ErrUnsupported)
	}
	planner := w.planner()
	return store.Declare(ctx, scheduler, "stinttest", schedules, planner.Functions(), planner.Plan)
}

// ready performs what is ready, and what that makes ready.
func (w *Worker) ready(ctx context.Context, d *drain) error {
	for {
		// Its present stands still meanwhile, or is the clock's.
		now, err := w.time.now(ctx)
		if err != nil {
			return err
		}
		shift := time.Until(now)
		n, err := w.engine.RunReady(d.kill.context(ctx, w), func(job *stint.Job, x store.Completion) bool {
			w.takeBegun()
			return d.note(runOf(job, x), x.Ended, shift)
		})
		killed, err := d.kill.killed(ctx, w, err)
		for _, run := range killed {
			d.note(run, run.At, shift)
		}
		if err := errors.Join(err, d.err); err != nil || n == 0 && len(killed) == 0 {
			return err
		}
	}
}

// note adds a run to the report, and reports whether to go on.
func (d *drain) note(run Run, ended time.Time, shift time.Duration) bool {
	if run.At.IsZero() {
		run.At = ended
	}
	run.At = run.At.Add(shift)
	run.After = max(0, run.At.Sub(d.began)).Round(time.Millisecond)
	d.report.Runs = append(d.report.Runs, run)
	if len(d.report.Runs) < d.limit {
		return true
	}
	d.err = d.report.endless(d.limit)
	return false
}

// endless returns the error of a drain that does not end, with the job or kind that seems to cause it.
func (r *Report) endless(limit int) error {
	runs, kinds := map[stint.ID]int{}, map[string]int{}
	var most *Run
	for i := range r.Runs {
		run := &r.Runs[i]
		runs[run.Job.ID]++
		kinds[run.Job.Kind]++
		if most == nil || runs[run.Job.ID] >= runs[most.Job.ID] {
			most = run
		}
	}
	if n := runs[most.Job.ID]; n > 1 {
		return fmt.Errorf("there is no end to it after %d runs: job %d (%s) ran %d times, the last one %s; if there is an end, stinttest.Limit allows more runs",
			limit, most.Job.ID, most.Job.Kind, n, most.Outcome)
	}
	return fmt.Errorf("there is no end to it after %d runs: %d of the kind %s, each of another job; if there is an end, stinttest.Limit allows more runs",
		limit, kinds[most.Job.Kind], most.Job.Kind)
}

// left lists what a drain has not ended, oldest first, and why.
func (w *Worker) left(ctx context.Context) ([]Left, error) {
	paused := []string{}
	if p, ok := w.store.(store.Pauser); ok {
		var err error
		if paused, err = p.Paused(ctx); err != nil {
			return nil, fmt.Errorf("look for paused queues: %w", err)
		}
	}
	jobs, err := listJobs(ctx, w.store, "that are left", stint.Scheduled, stint.Retrying, stint.Blocked, stint.Available, stint.Running)
	if err != nil {
		return nil, err
	}
	all := make([]Left, len(jobs))
	for i := range jobs {
		all[i] = w.why(&jobs[i], paused)
	}
	return all, nil
}

// why says what keeps a job from its end.
func (w *Worker) why(job *stint.JobInfo, paused []string) Left {
	queues, left := w.config.Queues, Left{Job: *job}
	switch {
	case job.IsFlow:
		left.Why = "it is a flow, and waits for its jobs"
	case job.PendingRetry != "":
		left.Why, left.mistake = "it waits for the retry function "+job.PendingRetry, true
	case len(queues) > 0 && !slices.Contains(queues, "*") && !slices.Contains(queues, job.Queue):
		left.Why = "the worker does not work on the queue " + job.Queue
	case w.mux.Handler(job.Kind) == nil:
		left.Why, left.mistake = "the mux has no handler for its kind", true
	case slices.Contains(paused, job.Queue):
		left.Why = "the queue " + job.Queue + " is paused"
	case job.State == stint.Running:
		left.Why = "somebody else runs it"
	case job.State == stint.Blocked && len(job.Awaits)+len(job.Asks) == 0:
		left.Why = "it waits for other jobs"
		if job.NeedsFirst != 0 {
			left.Why = fmt.Sprintf("it needs job %d to end first", job.NeedsFirst)
		}
	case job.State == stint.Blocked:
		left.Why = "it " + words.Awaits(job.Awaits, job.Asks)
	case job.State == stint.Scheduled || job.State == stint.Retrying:
		left.Why = "it is not due yet"
	default:
		left.Why = "it is " + string(job.State)
	}
	return left
}
