package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// The roles of a store that a server has. A name of who does something is not sent: the
// server knows who asks by the token.
var _ interface {
	stint.Enqueuer
	store.Awaiter
	store.Inspector
	store.Operator
	store.Pauser
	store.ScheduleKeeper
	store.StepReader
	store.Signaler
	store.Questioner
	store.LogReader
	report.LiveStats
	report.ErrorAnalyst
	store.Clock
	ops.Caller
} = (*Store)(nil)

// Enqueue implements [stint.Enqueuer]: of up to 10,000 jobs at once, of a flow too, and in no
// transaction of the caller's. A client's own checks are repeated by the server,
// whose limits may be others.
func (s *Store) Enqueue(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	switch {
	case tx.Handle != nil:
		return nil, inNone(tx)
	case len(jobs) > ops.MostJobs:
		return nil, valid.Invalid("jobs", "%d are more than the %d that a server takes at once", len(jobs), ops.MostJobs)
	case len(jobs) == 0:
		return nil, nil
	case slices.ContainsFunc(jobs, func(j stint.NewJob) bool { return j.Member != nil && j.Member.Call }):
		return nil, valid.Invalid("jobs", "only the engine that runs a job can call another for it")
	}
	all := ops.NewJobs{Jobs: make([]ops.NewJob, len(jobs)), Force: true, Exact: true}
	for i, j := range jobs {
		var err error
		if all.Jobs[i], err = ops.ExactJob(j); err != nil {
			return nil, err
		}
		if j.Member != nil {
			all.Members = append(all.Members, *j.Member)
		}
	}
	made, err := ops.EnqueueJobs.Call(ctx, s, ops.JobsInput{Body: all})
	if err == nil && len(made.Items) != len(jobs) {
		err = fmt.Errorf("the server answers with %d receipts for %d jobs", len(made.Items), len(jobs))
	}
	return made.Items, err
}

// Job implements [store.Inspector].
func (s *Store) Job(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	j, err := ops.ShowJob.Call(ctx, s, ops.ShowInput{ID: int64(id)})
	return j.JobInfo, err
}

// Steps implements [store.StepReader]. A server may hide the results from viewers.
func (s *Store) Steps(ctx context.Context, id stint.ID) ([]stint.RecordedStep, error) {
	steps, err := ops.ListSteps.Call(ctx, s, ops.JobName{ID: int64(id)})
	if errors.Is(err, stint.ErrNotFound) {
		return nil, nil
	}
	var all []stint.RecordedStep
	for _, x := range steps.Items {
		all = append(all, stint.RecordedStep{Name: x.Name, Began: x.Began, Ended: x.Ended, Result: x.Result, Question: x.Question})
	}
	return all, err
}

// Signal implements [store.Signaler], in no transaction of the caller's.
func (s *Store) Signal(ctx context.Context, tx stint.Tx, job stint.ID, signal stint.Signal) error {
	if err := inNone(tx); err != nil {
		return err
	}
	_, err := ops.SendSignal.Call(ctx, s, ops.SignalInput{
		JobName: ops.JobName{ID: int64(job)}, Body: ops.NewSignal{Name: signal.Name, Value: signal.Value, Key: signal.Key},
	})
	return err
}

// Signals implements [store.SignalReader]. A server may hide the values from viewers.
func (s *Store) Signals(ctx context.Context, job stint.ID) ([]stint.SentSignal, error) {
	signals, err := ops.ListSignals.Call(ctx, s, ops.JobName{ID: int64(job)})
	if errors.Is(err, stint.ErrNotFound) {
		return nil, nil
	}
	var all []stint.SentSignal
	for _, x := range signals.Items {
		all = append(all, x.SentSignal)
	}
	return all, err
}

// Answer implements [store.Questioner], in no transaction of the caller's. The server knows by the token who
// answers, whatever the answer says.
func (s *Store) Answer(ctx context.Context, tx stint.Tx, job stint.ID, question string, a stint.Answer) error {
	if err := inNone(tx); err != nil {
		return err
	}
	_, err := ops.AnswerQuestion.Call(ctx, s, ops.AnswerInput{
		JobName: ops.JobName{ID: int64(job)}, Body: ops.NewAnswer{Question: question, Choice: a.Choice, Comment: a.Comment},
	})
	return err
}

// Questions implements [store.QuestionReader]. A server may hide texts and choices from viewers.
func (s *Store) Questions(ctx context.Context, f store.QuestionFilter) (all []store.OpenQuestion, err error) {
	in := ops.Page{Before: int64(max(0, f.Before))}
	for {
		if in.Limit = 1000; f.Limit > 0 {
			in.Limit = min(in.Limit, f.Limit-len(all))
		}
		p, err := ops.ListQuestions.Call(ctx, s, in)
		all = append(all, p.Questions...)
		if err != nil || p.Next == 0 || f.Limit > 0 && len(all) >= f.Limit {
			return all, err
		}
		in.Before = int64(p.Next)
	}
}

// Log implements [store.LogReader]. A server may refuse it to viewers.
func (s *Store) Log(ctx context.Context, job stint.ID, f store.LogFilter) (all []stint.LogLine, err error) {
	in := ops.LogInput{JobName: ops.JobName{ID: int64(job)}, Run: f.Run, N: f.N, Last: f.Last}
	for {
		in.Limit = linesPage
		if f.Limit > 0 {
			in.Limit = min(linesPage, f.Limit-len(all))
		}
		page, err := ops.ReadLog.Call(ctx, s, in)
		lines := page.Items
		if errors.Is(err, stint.ErrNotFound) {
			return nil, nil
		}
		all = append(all, lines...)
		if err != nil || f.Last || len(lines) < in.Limit || len(all) == f.Limit {
			return all, err
		}
		in.Run, in.N = lines[len(lines)-1].Run, lines[len(lines)-1].N
	}
}

// Progress implements [store.LogReader]. A server may hide the texts from viewers.
func (s *Store) Progress(ctx context.Context, job stint.ID) ([]stint.Progress, error) {
	all, err := ops.ReadProgress.Call(ctx, s, ops.JobName{ID: int64(job)})
	if errors.Is(err, stint.ErrNotFound) {
		err = nil
	}
	return all.Items, err
}

// inNone refuses a transaction of the caller's.
func inNone(tx stint.Tx) error {
	if tx.Handle == nil {
		return nil
	}
	return valid.Invalid("transaction", "a server takes part in none, and this is a %T", tx.Handle)
}

// How much one request asks for: jobs carry arguments.
var (
	linesPage   = 1000
	jobsPage    = 200
	idsPage     = 10_000
	changesPage = 200
)

// Jobs implements [store.Inspector].
func (s *Store) Jobs(ctx context.Context, f store.Filter) ([]stint.JobInfo, error) {
	return pages(f.Limit, jobsPage, f.Before, func(before stint.ID, limit int) ([]stint.JobInfo, stint.ID, error) {
		p, err := ops.ListJobs.Call(ctx, s, ops.JobsQuery{Filter: ops.FilterOf(f), Page: ops.Page{Before: int64(before), Limit: limit}})
		return p.Jobs, p.Next, err
	})
}

// Find implements [store.Operator].
func (s *Store) Find(ctx context.Context, f store.Filter) ([]stint.ID, error) {
	return pages(f.Limit, idsPage, f.Before, func(before stint.ID, limit int) ([]stint.ID, stint.ID, error) {
		p, err := ops.FindJobs.Call(ctx, s, ops.IDsQuery{Filter: ops.FilterOf(f), Before: int64(before), Limit: limit})
		return p.IDs, p.Next, err
	})
}

// Changes lists changes as [store.ChangeKeeper] does. It is for operators.
func (s *Store) Changes(ctx context.Context, f store.ChangeFilter) ([]store.Change, error) {
	return pages(f.Limit, changesPage, f.Before, func(before int64, limit int) ([]store.Change, int64, error) {
		p, err := ops.ListChanges.Call(ctx, s, ops.ChangesInput{
			By: f.By, Operation: f.Operation, Subject: f.Subject, Since: ops.At(f.At.From), Until: ops.At(f.At.To), Before: before, Limit: limit,
		})
		return p.Changes, p.Next, err
	})
}

// pages puts together a list; a limit of 0 is 100.
func pages[T any, N ~int64](limit, size int, before N, get func(before N, limit int) (page []T, next N, err error)) ([]T, error) {
	var all []T
	for left := cmp.Or(limit, 100); left > 0; {
		page, next, err := get(before, min(left, size))
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if left -= len(page); next == 0 || len(page) == 0 {
			break
		}
		before = next
	}
	return all, nil
}

// Counts implements [store.Inspector].
func (s *Store) Counts(ctx context.Context) (map[stint.State]int64, error) {
	return ops.CountJobs.Call(ctx, s, ops.None{})
}

// Ahead implements [store.Inspector].
func (s *Store) Ahead(ctx context.Context, id stint.ID, most int) (int, error) {
	j, err := ops.ShowJob.Call(ctx, s, ops.ShowInput{ID: int64(id)})
	return min(j.Ahead, most), err
}

// Kinds implements [store.Inspector].
func (s *Store) Kinds(ctx context.Context) ([]stint.KindInfo, error) {
	return ops.Items(ops.ListKinds.Call(ctx, s, ops.None{}))
}

// Cancel cancels jobs as [store.Canceller] does; up to 500 in a call.
func (s *Store) Cancel(ctx context.Context, ids []stint.ID, why string) (map[stint.ID]stint.CancelStatus, error) {
	return named(ids, func(named ops.Selection) (ops.Done[stint.CancelStatus], error) {
		return ops.CancelJobs.Call(ctx, s, ops.CancelInput{Body: ops.Cancelling{Selection: named, Why: ops.Why{Why: why}}})
	})
}

// Retry implements [store.Operator]; up to 500 jobs in a call.
func (s *Store) Retry(ctx context.Context, ids []stint.ID, again stint.RerunOptions) (map[stint.ID]stint.RerunResult, error) {
	return named(ids, func(named ops.Selection) (ops.Done[stint.RerunResult], error) {
		return ops.RetryJobs.Call(ctx, s, ops.RetryOf(named, again))
	})
}

// Delete implements [store.Operator]; up to 500 jobs in a call.
func (s *Store) Delete(ctx context.Context, ids []stint.ID) (map[stint.ID]store.DeleteStatus, error) {
	return named(ids, func(named ops.Selection) (ops.Done[store.DeleteStatus], error) {
		return ops.DeleteJobs.Call(ctx, s, ops.DeleteInput{Body: named})
	})
}

// named does something to jobs in one transaction.
func named[A any](ids []stint.ID, do func(ops.Selection) (ops.Done[A], error)) (map[stint.ID]A, error) {
	if len(ids) == 0 {
		return map[stint.ID]A{}, nil
	}
	done, err := do(ops.Selection{IDs: ids})
	return done.Answers, err
}

// Pause implements [store.Pauser].
func (s *Store) Pause(ctx context.Context, queue, _, why string) (bool, error) {
	c, err := ops.PauseQueue.Call(ctx, s, ops.QueueWhy{QueueName: ops.QueueName{Queue: queue}, Body: ops.Why{Why: why}})
	return c.Changed, err
}

// Resume implements [store.Pauser].
func (s *Store) Resume(ctx context.Context, queue string) (bool, error) {
	c, err := ops.ResumeQueue.Call(ctx, s, ops.QueueName{Queue: queue})
	return c.Changed, err
}

// Paused implements [store.Pauser].
func (s *Store) Paused(ctx context.Context) ([]string, error) {
	return ops.Items(ops.ListPausedQueues.Call(ctx, s, ops.None{}))
}

// Queues implements [store.Pauser].
func (s *Store) Queues(ctx context.Context) ([]store.QueueInfo, error) {
	return ops.Items(ops.ListQueues.Call(ctx, s, ops.None{}))
}

// Schedules implements [store.ScheduleKeeper]. What is not told is zero: the instant
// After, and the Revision.
func (s *Store) Schedules(ctx context.Context) ([]store.ScheduleInfo, error) {
	return ops.Items(ops.ListSchedules.Call(ctx, s, ops.None{}))
}

// Schedule implements [store.ScheduleKeeper], as [Store.Schedules] does.
func (s *Store) Schedule(ctx context.Context, name string) (*store.ScheduleInfo, error) {
	shown, err := ops.ShowSchedule.Call(ctx, s, ops.ScheduleName{Schedule: name})
	return shown.Schedule.Schedule, err
}

// PauseSchedule implements [store.ScheduleKeeper].
func (s *Store) PauseSchedule(ctx context.Context, name, _, why string) (bool, error) {
	c, err := ops.PauseSchedule.Call(ctx, s, ops.ScheduleWhy{ScheduleName: ops.ScheduleName{Schedule: name}, Body: ops.Why{Why: why}})
	return c.Changed, err
}

// ResumeSchedule implements [store.ScheduleKeeper]. The server finds when the schedule
// fires next, if it can.
func (s *Store) ResumeSchedule(ctx context.Context, name string) (bool, error) {
	c, err := ops.ResumeSchedule.Call(ctx, s, ops.ScheduleName{Schedule: name})
	return c.Changed, err
}

// RemoveSchedule implements [store.ScheduleKeeper].
func (s *Store) RemoveSchedule(ctx context.Context, name, why string) ([]stint.ID, error) {
	c, err := ops.RemoveSchedule.Call(ctx, s, ops.RemovedSchedule{ScheduleName: ops.ScheduleName{Schedule: name}, Why: why})
	return c.Cancelled, err
}

// RunSchedule implements [store.ScheduleKeeper].
func (s *Store) RunSchedule(ctx context.Context, name string) (stint.ID, error) {
	r, err := ops.RunSchedule.Call(ctx, s, ops.ScheduleName{Schedule: name})
	return r.ID, err
}

// Engines lists the roster as [store.Roster] does.
func (s *Store) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	told, err := ops.ListEngines.Call(ctx, s, ops.None{})
	var all []store.EngineInfo
	for _, e := range told.Items {
		all = append(all, e.Info())
	}
	return all, err
}

// FormerEngines lists engines that are gone as [store.EngineHistory] does, at most 1,000.
func (s *Store) FormerEngines(ctx context.Context, f store.FormerFilter) ([]store.FormerEngine, error) {
	in := ops.FormerQuery{Instance: f.Instance, Since: ops.At(f.Since), Limit: min(f.Limit, 1000)}
	for _, token := range f.Engines {
		in.Engines = append(in.Engines, int64(token))
	}
	told, err := ops.ListFormerEngines.Call(ctx, s, in)
	var all []store.FormerEngine
	for _, e := range told.Items {
		all = append(all, e.Former())
	}
	return all, err
}

// LostAttempts lists what was lost with an engine as [store.EngineHistory] does.
func (s *Store) LostAttempts(ctx context.Context, engine store.EngineID) ([]store.LostAttempt, error) {
	e, err := ops.ShowEngine.Call(ctx, s, ops.EngineToken{Token: int64(engine)})
	if errors.Is(err, store.ErrBuried) {
		return nil, nil
	}
	return e.Lost, err
}

// Drain asks an engine to leave, as [store.Roster] does.
func (s *Store) Drain(ctx context.Context, token store.EngineID) error {
	_, err := ops.DrainEngine.Call(ctx, s, ops.EngineWhy{EngineToken: ops.EngineToken{Token: int64(token)}})
	return err
}

// EngineMetrics lists what engines counted, as [report.MetricsKeeper] does.
func (s *Store) EngineMetrics(ctx context.Context) ([]report.Metrics, error) {
	return ops.Items(ops.ListEngineMetrics.Call(ctx, s, ops.None{}))
}

// Leases lists the leases, as [store.Leaser] does.
func (s *Store) Leases(ctx context.Context) ([]store.Lease, error) {
	return ops.Items(ops.ListLeases.Call(ctx, s, ops.None{}))
}

// Revoke frees a lease, as [store.Leaser] does.
func (s *Store) Revoke(ctx context.Context, name, _, why string) (store.Revocation, bool, error) {
	d, err := ops.ReleaseLease.Call(ctx, s, ops.LeaseWhy{Lease: name, Body: ops.Why{Why: why}})
	if errors.Is(err, ops.ErrFreeLease) {
		return d, false, nil
	}
	return d, err == nil, err
}

// Limits lists the limits, as [store.Limiter] does.
func (s *Store) Limits(ctx context.Context) ([]store.LimitInfo, error) {
	return ops.Items(ops.ListLimits.Call(ctx, s, ops.None{}))
}

// Gates lists the gates of a limit, as [store.Limiter] does; up to 10,000.
func (s *Store) Gates(ctx context.Context, limit string, most int) ([]store.GateInfo, error) {
	gates, err := ops.Items(ops.ListKeys.Call(ctx, s, ops.LimitMost{LimitName: ops.LimitName{Limit: limit}, Most: most}))
	if errors.Is(err, ops.ErrNoLimit) {
		return nil, nil
	}
	return gates, err
}

// SetLimit sets the rule of a limit, as [store.Limiter] does.
func (s *Store) SetLimit(ctx context.Context, name string, rule stint.LimitRule, _, why string) error {
	_, err := ops.SetLimit.Call(ctx, s, ops.NewLimitRule{LimitName: ops.LimitName{Limit: name}, Body: ops.LimitRule{Rule: rule.String(), Why: ops.Why{Why: why}}})
	return err
}

// ResetLimit takes back what SetLimit set, as [store.Limiter] does.
func (s *Store) ResetLimit(ctx context.Context, name string) (bool, error) {
	c, err := ops.ResetLimit.Call(ctx, s, ops.LimitName{Limit: name})
	return c.Changed, err
}

// PauseLimit pauses a limit, as [store.Limiter] does, without a trial.
func (s *Store) PauseLimit(ctx context.Context, gate string, p store.Pause) error {
	body := ops.LimitPause{For: retry.FormatDuration(p.For), Why: ops.Why{Why: p.Why}}
	_, err := ops.PauseLimit.Call(ctx, s, ops.PausedLimit{LimitName: ops.LimitName{Limit: gate}, Body: body})
	return err
}

// ResumeLimit ends a pause, as [store.Limiter] does.
func (s *Store) ResumeLimit(ctx context.Context, gate string) (bool, error) {
	c, err := ops.ResumeLimit.Call(ctx, s, ops.LimitName{Limit: gate})
	return c.Changed, err
}

// Unblock lets the jobs of a gate go on, as [store.Limiter] does.
func (s *Store) Unblock(ctx context.Context, gate string) ([]stint.ID, error) {
	u, err := ops.UnblockLimit.Call(ctx, s, ops.LimitName{Limit: gate})
	return u.Skipped, err
}

// Now implements [store.Clock]: it is the time by the clock of the server's database,
// or else by the server's own.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	c, err := ops.ReadClock.Call(ctx, s, ops.None{})
	return c.Now, err
}

// Analyze implements [report.LiveStats].
func (s *Store) Analyze(ctx context.Context, f report.AnalyticsFilter) (report.Analytics, error) {
	return ops.Analyze.Call(ctx, s, ops.AnalyticsOf(f))
}

// AnalyzeKinds implements [report.LiveStats].
func (s *Store) AnalyzeKinds(ctx context.Context, f report.AnalyticsFilter) ([]report.KindAnalytics, error) {
	return ops.Items(ops.AnalyzeKinds.Call(ctx, s, ops.AnalyticsOf(f)))
}

// DueBy implements [report.LiveStats]; a limit is 10,000 at most.
func (s *Store) DueBy(ctx context.Context, field report.Field, f report.AnalyticsFilter, limit int) ([]report.DueGroup, error) {
	if err := field.Check(); err != nil {
		return nil, err
	}
	return ops.Items(ops.DueBy.Call(ctx, s, ops.DueInput{AnalyticsFilter: ops.AnalyticsOf(f), By: string(field), Limit: limit}))
}

// Errors implements [report.ErrorAnalyst].
func (s *Store) Errors(ctx context.Context, f report.ErrorFilter) (report.ErrorReport, error) {
	return ops.ListErrors.Call(ctx, s, ops.ErrorsOf(f))
}

// MarkErrors marks a group of errors, as [report.ErrorMarker] does, or is [ops.ErrNoErrors]
// when there is none.
func (s *Store) MarkErrors(ctx context.Context, m report.ErrorMark) (report.ErrorMark, error) {
	if err := m.Check(); err != nil {
		return report.ErrorMark{}, err
	}
	op := ops.MuteErrors
	if m.State == report.ErrorsResolved {
		op = ops.ResolveErrors
	}
	return op.Call(ctx, s, ops.ErrorsMark{ErrorsKey: ops.ErrorsKey{Key: m.Key}, Body: ops.ErrorsWhy{Why: ops.Why{Why: m.Why}}})
}

// ReopenErrors implements [report.ErrorMarker].
func (s *Store) ReopenErrors(ctx context.Context, key string) (bool, error) {
	c, err := ops.ReopenErrors.Call(ctx, s, ops.ErrorsKey{Key: key})
	return c.Changed, err
}
