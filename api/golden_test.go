package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// noon is when the fixed store is asked.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// fixed is a store that says the same each time, of everything there can be.
type fixed struct{ api.Store }

// fixedJobs are the newest first. Each time they are others in memory: who asks may
// take out what is hidden.
func fixedJobs() []stint.JobInfo {
	failed := stint.JobInfo{
		ID: 42, Kind: "send_invoice", State: stint.Failed, Queue: "mail", Priority: -3, Args: json.RawMessage(`{"customer":9007199254740993,"note":"<b>&"}`), Attempt: 2, Losses: 1,
		Reason: "retries exhausted", Tags: []string{"vip", "a b"}, URN: "order:7", Source: "crm", Metadata: json.RawMessage(`{"trace":"x1"}`), Correlation: "40", Retry: "fixed:1:1s",
		Timeout: retry.Duration(time.Minute), StartBy: noon, Created: ago(time.Hour), Due: ago(time.Hour), Started: ago(time.Minute), Finished: ago(58 * time.Second), MaxLosses: 3,
		Origin: stint.Origin{Recovered: 40},
		Attempts: []stint.Attempt{
			{Attempt: 1, Outcome: stint.OutcomeLost, Started: ago(50 * time.Minute), Finished: ago(50 * time.Minute), Instance: "one", Host: "h1", PID: 11, Engine: 1<<63 - 5, Slot: 2},
			{Attempt: 2, Outcome: stint.OutcomeFailed, Final: true, Reason: "retries exhausted", Started: ago(time.Minute), Finished: ago(58 * time.Second), Instance: "two", Host: "h2", PID: 12,
				Engine: 6, Slot: 1, Recoverable: new(true),
				Error: &stint.Failure{Class: "timeout", Classes: []string{"timeout", "net.OpError"}, Message: "no answer from <smtp>", Stack: "goroutine 1 [running]:\nmain.send()", Note: "odd", Recoverable: true}},
		},
	}
	done := stint.JobInfo{
		ID: 41, Kind: "send_invoice", State: stint.Completed, Queue: "mail", Args: json.RawMessage(`{}`), Attempt: 1, Reason: retry.ReasonDone, Correlation: "41", Retry: "none",
		Created: ago(time.Hour), Due: ago(time.Hour), Started: ago(time.Minute), Finished: ago(58 * time.Second), MaxLosses: 3,
		Attempts: []stint.Attempt{
			{Attempt: 1, Outcome: stint.OutcomeCompleted, Final: true, Reason: retry.ReasonDone, Started: ago(time.Minute), Finished: ago(58 * time.Second), Instance: "one", Host: "h1", PID: 11, Engine: 5, Slot: 1,
				Result: json.RawMessage(`{"sent":12345678901234567890}`)},
		},
	}
	running := stint.JobInfo{
		ID: 43, Kind: "send_invoice", State: stint.Running, Begun: true, Queue: "mail", Args: json.RawMessage(`[]`), Attempt: 3, Faulty: true, Correlation: "43", Retry: "exponential:10:1m",
		Created: ago(time.Minute), Due: ago(time.Minute), Started: ago(time.Second), MaxLosses: 3,
	}
	return []stint.JobInfo{running, failed, done}
}

var worker = store.EngineInfo{
	Token: 1<<63 - 5, Instance: "one", Host: "h1", BootID: "b", PID: 11, PIDStarted: 77, Version: "v1.2.3", Queues: []string{"mail", "default"}, Kinds: []string{"send_invoice"}, Slots: 8,
	TimeToLive: 6 * time.Second, Joined: ago(time.Hour), Beat: ago(time.Second), Running: []store.Position{7}, Started: map[store.Position]time.Time{7: ago(40 * time.Second)},
}

func (fixed) Now(context.Context) (time.Time, error) { return noon, nil }

// blocked is a job that waits for signals.
var blocked = stint.JobInfo{
	ID: 44, Kind: "order", State: stint.Blocked, Queue: "default", Args: json.RawMessage(`{}`), Attempt: 1, Correlation: "44", Retry: "none",
	Created: ago(time.Hour), Due: noon.Add(72 * time.Hour), MaxLosses: 3, Awaits: []string{"approved", "withdrawn"},
}

// asking is a job that waits for answers.
var asking = stint.JobInfo{
	ID: 46, Kind: "order", State: stint.Blocked, Queue: "default", Args: json.RawMessage(`{}`), Attempt: 1, Correlation: "46", Retry: "none",
	Created: ago(time.Hour), Due: noon.Add(72 * time.Hour), MaxLosses: 3, Asks: []string{"approve", "ship <b>"},
}

var pay = stint.Question{Text: "Pay 900 EUR to <ACME>?", Choices: []string{"pay", "refuse"}, Until: noon.Add(72 * time.Hour)}

func (fixed) Questions(_ context.Context, f store.QuestionFilter) ([]store.OpenQuestion, error) {
	if f.Before > 0 {
		return nil, nil
	}
	return []store.OpenQuestion{
		{Job: 46, Kind: "order", Queue: "default", Name: "approve", Asked: ago(time.Hour), Question: pay},
		{Job: 46, Kind: "order", Queue: "default", Name: "ship <b>", Asked: ago(time.Minute), Question: stint.Question{Text: "How?", Choices: []string{"air"}, Until: noon.Add(time.Hour)}},
	}, nil
}

func (fixed) Answer(_ context.Context, _ stint.Tx, id stint.ID, question string, a stint.Answer) error {
	if id == 77 {
		return stint.ErrNotFound
	}
	switch question {
	case "approve":
		if a.By != "ann" {
			return fmt.Errorf("answered by %q", a.By)
		}
		return nil
	case "budget":
		return &stint.AnsweredError{Question: question, Answer: stint.Answer{Choice: "yes", By: "bob", Comment: "<ok>", At: ago(time.Minute)}}
	case "late":
		return stint.ErrNoAnswer
	}
	return stint.ErrNotAsked
}

// needing is a job of a flow that needs another.
var needing = stint.JobInfo{
	ID: 45, Kind: "sum", State: stint.Blocked, Queue: "default", Args: json.RawMessage(`{}`), Attempt: 1, Correlation: "45", Retry: "none",
	Created: ago(time.Hour), Due: ago(time.Hour), MaxLosses: 3, Flow: 12, Node: "sum", NeedsFirst: 17,
}

func (fixed) Job(_ context.Context, id stint.ID) (*stint.JobInfo, error) {
	for _, j := range append(fixedJobs(), blocked, needing, asking) {
		if j.ID == id {
			return &j, nil
		}
	}
	return nil, stint.ErrNotFound
}

func (fixed) FlowGraph(_ context.Context, flow stint.ID, _, _ int) (store.FlowGraph, error) {
	if flow != 12 {
		return store.FlowGraph{}, stint.ErrNotFound
	}
	ran := func(o stint.Outcome, final bool, began, took time.Duration) store.FlowRun {
		return store.FlowRun{Outcome: o, Final: final, Begun: true, Started: ago(began), Finished: ago(began - took)}
	}
	return store.FlowGraph{
		Jobs: []store.FlowJob{
			{ID: 9, Flow: 8, Node: "<old>", Kind: "fetch", State: stint.Completed, Created: ago(2 * time.Hour), Runs: []store.FlowRun{ran(stint.OutcomeCompleted, true, 90*time.Minute, time.Minute)}},
			{ID: 12, Kind: "import", IsFlow: true, State: stint.Blocked, Created: ago(time.Hour)},
			{ID: 13, Flow: 12, Kind: "page", State: stint.Failed, Created: ago(time.Hour), Runs: []store.FlowRun{ran(stint.OutcomeFailed, false, 50*time.Minute, time.Minute), ran(stint.OutcomeLost, true, 40*time.Minute, 0)}},
			{ID: 14, Flow: 12, Node: "pages", Kind: "inner", IsFlow: true, State: stint.Blocked, Created: ago(time.Hour)},
			{ID: 15, Flow: 14, Kind: "page", State: stint.Running, Created: ago(time.Hour)},
			{ID: 16, Flow: 14, Kind: "page", State: stint.Completed, Created: ago(time.Hour), Runs: []store.FlowRun{ran(stint.OutcomeCompleted, true, 30*time.Minute, time.Minute)}},
			{ID: 17, Flow: 12, Node: "sum", Kind: "sum", State: stint.Blocked, Created: ago(time.Hour), Due: noon.Add(time.Hour)},
			{ID: 18, Flow: 12, Kind: "page", State: stint.Completed, Recovered: 13, Created: ago(20 * time.Minute), Runs: []store.FlowRun{ran(stint.OutcomeCompleted, true, 10*time.Minute, time.Minute)}},
		},
		Needs: []store.FlowNeed{{Child: 15, Parent: 9, Wants: stint.WantsSuccess}, {Child: 17, Parent: 4, Wants: stint.WantsEnd}, {Child: 17, Parent: 14, Wants: stint.WantsSuccess}, {Child: 17, Parent: 18, Wants: stint.WantsFailure}},
	}, nil
}

func (fixed) Steps(_ context.Context, id stint.ID) ([]stint.RecordedStep, error) {
	if id == 46 {
		return []stint.RecordedStep{
			{Name: "budget", Began: ago(2 * time.Hour), Ended: ago(time.Hour), Result: json.RawMessage(`{"at":"2026-03-01T11:00:00Z","by":"bob","choice":"yes"}`),
				Question: &stint.Question{Text: "Is there a budget?", Choices: []string{"yes", "no"}, Until: noon.Add(time.Hour)}},
			{Name: "approve", Began: ago(time.Hour), Question: &pay},
		}, nil
	}
	if id != 42 {
		return nil, nil
	}
	return []stint.RecordedStep{
		{Name: "charge", Began: ago(time.Minute), Ended: ago(59 * time.Second), Result: json.RawMessage(`{"ref":"<7>","cents":9007199254740993}`)},
		{Name: "report", Began: ago(59 * time.Second), Ended: ago(59 * time.Second), Result: json.RawMessage(`"` + strings.Repeat("x", view.MostResult) + `"`)},
		{Name: "nothing", Began: ago(59 * time.Second), Ended: ago(58 * time.Second), Result: json.RawMessage(`null`)},
	}, nil
}

func (fixed) Signals(_ context.Context, id stint.ID) ([]stint.SentSignal, error) {
	if id != 44 {
		return nil, nil
	}
	return []stint.SentSignal{
		{N: 7, Name: "paid", Sent: ago(time.Hour), Step: "payment", Value: json.RawMessage(`{"cents":9007199254740993,"by":"<ann>"}`)},
		{N: 9, Name: "scan", Sent: ago(time.Minute), Key: "page 2", Value: json.RawMessage(`"` + strings.Repeat("x", view.MostResult) + `"`)},
		{N: 12, Name: "seen", Sent: ago(time.Second), Value: json.RawMessage(`null`)},
	}, nil
}

func (fixed) Signal(_ context.Context, _ stint.Tx, id stint.ID, _ stint.Signal) error {
	switch id {
	case 44:
		return nil
	case 42:
		return fmt.Errorf("job 42: %w", stint.ErrEnded)
	}
	return stint.ErrNotFound
}

func (fixed) Log(_ context.Context, id stint.ID, f store.LogFilter) ([]stint.LogLine, error) {
	if id != 42 || f.Run > 60 {
		return nil, nil
	}
	return []stint.LogLine{
		{Run: 42, Attempt: 1, N: 1, At: ago(time.Hour), Text: "page <1> & 2"},
		{Run: 60, Attempt: 2, N: 1, At: ago(time.Minute), Level: slog.LevelWarn, Text: "slow"},
		{Run: 60, Attempt: 2, N: 40, At: ago(time.Second), Level: slog.LevelError + 1, Text: ""},
	}, nil
}

func (fixed) Progress(_ context.Context, id stint.ID) ([]stint.Progress, error) {
	if id != 42 {
		return nil, nil
	}
	return []stint.Progress{
		{Run: 42, Attempt: 1, N: 7, At: ago(time.Hour), Fraction: 0.25},
		{Run: 60, Attempt: 2, N: 3, At: ago(time.Second), Fraction: 1, Text: "<all>"},
	}, nil
}

func (fixed) Jobs(_ context.Context, f store.Filter) ([]stint.JobInfo, error) {
	jobs := fixedJobs()
	for i := range jobs {
		jobs[i].Attempts = nil
	}
	return jobs[:min(f.Limit, len(jobs))], nil
}

func (fixed) Find(_ context.Context, f store.Filter) ([]stint.ID, error) {
	return []stint.ID{43, 42, 41}[:min(f.Limit, 3)], nil
}

func (fixed) Counts(context.Context) (map[stint.State]int64, error) {
	return map[stint.State]int64{stint.Running: 1, stint.Failed: 2, stint.Completed: 10_000_000}, nil
}

func (fixed) Kinds(context.Context) ([]stint.KindInfo, error) {
	return []stint.KindInfo{
		{Name: "send_invoice", Queue: "mail", Priority: -3, Retry: retry.Default(), Timeout: time.Minute, Tags: []string{"vip"}, MaxLosses: new(0), StartWithin: time.Hour, Declared: ago(time.Hour)},
		{Name: "tidy", Queue: "default", Retry: retry.None(), Declared: ago(time.Hour)},
	}, nil
}

func (fixed) Queues(context.Context) ([]store.QueueInfo, error) {
	return []store.QueueInfo{
		{Name: "mail", Counts: map[stint.State]int64{stint.Running: 1, stint.Failed: 2}},
		{Name: "old", Paused: ago(time.Hour), By: "ann", Why: "it leaks", Counts: map[stint.State]int64{}},
	}, nil
}

func (fixed) Paused(context.Context) ([]string, error) { return []string{"old"}, nil }

func (fixed) Engines(context.Context) ([]store.EngineInfo, error) {
	silent := store.EngineInfo{Token: 6, Instance: "two", Host: "h2", PID: 12, Queues: []string{}, Kinds: []string{"tidy"}, Running: []store.Position{}, Slots: 1, TimeToLive: 6 * time.Second, Joined: ago(time.Hour), Beat: ago(time.Minute)}
	return []store.EngineInfo{worker, silent}, nil
}

func (fixed) FormerEngines(_ context.Context, f store.FormerFilter) ([]store.FormerEngine, error) {
	killed := store.FormerEngine{EngineInfo: worker, EngineEnd: store.EngineEnd{At: ago(time.Minute), Why: store.WhySilent, By: worker.Token, ByInstance: "one", Freed: 3, Lost: 2, LostAt: []store.Position{7}}}
	killed.Token, killed.Instance, killed.Beat, killed.Running = 4, "killed <b>", ago(2*time.Minute), nil
	stopped := killed
	stopped.Token, stopped.Instance, stopped.EngineEnd = 3, "stopped", store.EngineEnd{At: ago(time.Hour), Why: store.WhyLeft}
	all := []store.FormerEngine{killed, stopped}
	return slices.DeleteFunc(all, func(e store.FormerEngine) bool { return len(f.Engines) > 0 && !slices.Contains(f.Engines, e.Token) }), nil
}

func (fixed) LostAttempts(context.Context, store.EngineID) ([]store.LostAttempt, error) {
	return []store.LostAttempt{{Job: 42, Attempt: 1, Kind: "send_invoice", Queue: "mail", State: stint.Failed}}, nil
}

func (fixed) Held(context.Context, store.EngineID, int64, ...int64) ([]store.Claim, error) {
	return []store.Claim{{Positions: []store.Position{7}}}, nil
}

func (fixed) Fetch(_ context.Context, at []store.Position) ([]store.Entry, error) {
	return []store.Entry{{Job: stint.Job{ID: 43, Kind: "send_invoice", Queue: "mail", Attempt: 3}, Pos: 7, Ready: ago(time.Minute)}}[:min(len(at), 1)], nil
}

func (fixed) Schedule(_ context.Context, name string) (*store.ScheduleInfo, error) {
	if name != "nightly" {
		return nil, stint.ErrNoSchedule
	}
	return &store.ScheduleInfo{
		Schedule: stint.Schedule{Name: "nightly", Recurrence: cron.MustParse("30 2 * * *"), Zone: "Europe/Berlin", Job: stint.NewJob{Kind: "report"}, Unique: true},
		Created:  ago(24 * time.Hour), Declared: ago(24 * time.Hour), By: "ann@api", After: ago(time.Hour), Next: noon.Add(13 * time.Hour), Fired: 7, Skipped: 1, LastJob: 43,
		Paused: ago(time.Minute), PausedBy: "ben", PausedWhy: "holiday",
		Stored: store.ScheduleTexts{Recurrence: "30 2 * * *", Missed: "one", Job: json.RawMessage(`{"kind":"report","args":{"to":"ops"}}`)},
	}, nil
}

func (f fixed) Schedules(ctx context.Context) ([]store.ScheduleInfo, error) {
	s, err := f.Schedule(ctx, "nightly")
	return []store.ScheduleInfo{*s}, err
}

func (fixed) Leases(context.Context) ([]store.Lease, error) {
	return []store.Lease{{Name: "retention", Engine: 1<<63 - 5, Instance: "one", Host: "h1", Acquired: ago(time.Hour), Renewed: ago(time.Second), Expires: noon.Add(5 * time.Second)}, {Name: "sums"}}, nil
}

func (fixed) Limits(context.Context) ([]store.LimitInfo, error) {
	return []store.LimitInfo{
		{Name: "erp", Rule: "any", Gates: 1, Held: 2, Engines: 1},
		{Name: "tenant", Rule: "2,100/1m", Declared: "10", Set: "2,100/1m", SetAt: ago(time.Hour), By: "ann", Why: "it's <slow>", Gates: 40_000, Held: 1_234_567, Asked: 3, Engines: 2},
	}, nil
}

func (fixed) Gates(_ context.Context, limit string, most int) ([]store.GateInfo, error) {
	return []store.GateInfo{
		{Gate: "tenant=acme", Key: "acme", Rule: "2,100/1m", Held: 2, Asked: 3, Holds: []store.GateHolding{
			{Engine: 1<<63 - 5, Instance: "one", Held: 2}, {Engine: 6, Instance: "two", Asked: 3, Since: ago(time.Second)}}},
		{Gate: "tenant=b c", Key: "b c", Rule: "2,100/1m", Held: 1, Holds: []store.GateHolding{{Engine: 6, Instance: "two", Held: 1}}},
	}[:min(most, 2)], nil
}

func (fixed) Errors(context.Context, report.ErrorFilter) (report.ErrorReport, error) {
	return report.ErrorReport{Attempts: 30, CutOff: true, Counts: report.ErrorCounts{Open: 3, Returned: 1, Muted: 2}, From: ago(time.Hour), Step: 150 * time.Second, Groups: []report.ErrorGroup{
		{Key: "0123456789abcdef", Pattern: "index out of <range>", Trend: []int{29, 0, 0, 1}, State: report.ErrorsReturned, At: ago(2 * time.Minute), By: "ann", Why: "it's <fixed>", Class: "panic", Place: "mail.send (mail.go:7)", Kind: "send_invoice", Attempts: 30, Jobs: 12, First: ago(time.Hour), Last: ago(time.Minute), Message: "index out of <range>", Job: 42},
	}}, nil
}

func (fixed) Analyze(context.Context, report.AnalyticsFilter) (report.Analytics, error) {
	return report.Analytics{Queued: 1234567, Postponed: 5, Running: 3, Zombies: 1, AttemptFigures: report.AttemptFigures{
		Ended: 60, PerSecond: 1, Latency: report.Percentiles{P50: time.Millisecond, P95: time.Second, P99: time.Second}, Execution: report.Percentiles{P50: 1500 * time.Microsecond, P95: time.Second, P99: 2 * time.Second},
	}}, nil
}

func (fixed) Unsummed(context.Context, int) (int, error) { return 0, nil }
func (fixed) Demand(context.Context, []string, time.Duration) (report.Demand, error) {
	return report.Demand{At: noon, Groups: []report.DemandGroup{
		{Queue: "mail", Kind: "send_invoice", Ready: 1200, Due: 60, Arrived: 90, Running: 8, Oldest: ago(time.Minute)},
		{Queue: "old", Kind: "send_invoice", Ready: 5, Oldest: ago(time.Hour)},
	}}, nil
}
func (fixed) Stats(context.Context, report.StatsFilter) ([]report.Stats, error) {
	sums := report.Totals{Attempts: 200, Took: report.Durations{Count: 199, Fastest: time.Millisecond, Longest: 3 * time.Second, Total: 100 * time.Second}, LastAt: ago(time.Minute)}
	return []report.Stats{{Kind: "send_invoice", Queue: "mail", Outcome: stint.OutcomeCompleted, Totals: sums}, {Kind: "send_invoice", Queue: "mail", Outcome: stint.OutcomeFailed, Totals: sums}}, nil
}

func (fixed) Changes(context.Context, store.ChangeFilter) ([]store.Change, error) {
	return []store.Change{{ID: 3, At: ago(time.Minute), Ended: ago(time.Minute), Result: store.ChangeFailed, Problem: "it was away",
		NewChange: store.NewChange{By: "ann", Role: "operator", Way: store.WayAPI, Operation: "queues pause", Subject: "mail", Details: json.RawMessage(`{"why":"a leak"}`)}}}, nil
}

func (fixed) BeginChange(context.Context, store.NewChange) (int64, error) { return 4, nil }
func (fixed) EndChange(context.Context, int64, string) error              { return nil }

func (fixed) Cancel(context.Context, []stint.ID, string) (map[stint.ID]stint.CancelStatus, error) {
	return map[stint.ID]stint.CancelStatus{41: stint.CancelTooLate, 43: stint.CancelRequested}, nil
}

func (fixed) Pause(context.Context, string, string, string) (bool, error) {
	return false, errors.New("the disk of db-1 is full")
}

func TestAnswersAreAsTheyWere(t *testing.T) {
	s := &site{T: t, who: guard.Identity{Name: "ann", Role: guard.Admin}}
	s.serve(api.New(fixed{}, api.Config{HideArgs: true}))
	for _, c := range []struct {
		file               string // of the answer
		role               guard.Role
		status             int
		method, path, body string
	}{
		{"job", guard.Operator, 200, "GET", "/jobs/42", ""},
		{"job_with_a_result", guard.Operator, 200, "GET", "/jobs/41", ""},
		{"job_that_runs", guard.Operator, 200, "GET", "/jobs/43", ""},
		{"job_for_viewers", guard.Viewer, 200, "GET", "/jobs/42", ""},
		{"steps_for_viewers", guard.Viewer, 200, "GET", "/jobs/42/steps", ""},
		{"steps_of_a_job_without", guard.Viewer, 200, "GET", "/jobs/41/steps", ""},
		{"problem_no_such_job_with_steps", guard.Viewer, 404, "GET", "/jobs/77/steps", ""},
		{"log", guard.Operator, 200, "GET", "/jobs/42/log", ""},
		{"log_of_a_job_without", guard.Operator, 200, "GET", "/jobs/41/log?limit=5&last=true", ""},
		{"log_that_goes_on", guard.Operator, 200, "GET", "/jobs/42/log?run=61&n=40", ""},
		{"problem_no_such_job_with_a_log", guard.Operator, 404, "GET", "/jobs/77/log", ""},
		{"problem_log_for_viewers", guard.Viewer, 403, "GET", "/jobs/42/log", ""},
		{"progress", guard.Operator, 200, "GET", "/jobs/42/progress", ""},
		{"progress_for_viewers", guard.Viewer, 200, "GET", "/jobs/42/progress", ""},
		{"progress_of_a_job_without", guard.Viewer, 200, "GET", "/jobs/41/progress", ""},
		{"problem_no_such_job_with_progress", guard.Viewer, 404, "GET", "/jobs/77/progress", ""},
		{"job_that_awaits", guard.Operator, 200, "GET", "/jobs/44", ""},
		{"job_that_needs_another", guard.Operator, 200, "GET", "/jobs/45", ""},
		{"signals", guard.Operator, 200, "GET", "/jobs/44/signals", ""},
		{"signals_for_viewers", guard.Viewer, 200, "GET", "/jobs/44/signals", ""},
		{"signals_of_a_job_without", guard.Viewer, 200, "GET", "/jobs/41/signals", ""},
		{"problem_no_such_job_with_signals", guard.Viewer, 404, "GET", "/jobs/77/signals", ""},
		{"signalled", guard.Operator, 200, "POST", "/jobs/44/signal", `{"name":"approved","value":{"by":"ann"},"key":"k"}`},
		{"problem_ended", guard.Operator, 409, "POST", "/jobs/42/signal", `{"name":"approved"}`},
		{"problem_no_such_job_to_signal", guard.Operator, 404, "POST", "/jobs/77/signal", `{"name":"approved"}`},
		{"problem_no_signal", guard.Operator, 422, "POST", "/jobs/44/signal", `{"name":" approved"}`},
		{"problem_role_of_a_signal", guard.Viewer, 403, "POST", "/jobs/44/signal", `{"name":"approved"}`},
		{"job_that_asks", guard.Operator, 200, "GET", "/jobs/46", ""},
		{"job_that_asks_for_viewers", guard.Viewer, 200, "GET", "/jobs/46", ""},
		{"questions", guard.Operator, 200, "GET", "/questions", ""},
		{"questions_for_viewers", guard.Viewer, 200, "GET", "/questions?limit=2", ""},
		{"questions_none", guard.Viewer, 200, "GET", "/questions?before=46", ""},
		{"answered", guard.Operator, 200, "POST", "/jobs/46/answer", `{"question":"approve","choice":"pay","comment":"fine"}`},
		{"problem_answered", guard.Operator, 409, "POST", "/jobs/46/answer", `{"question":"budget","choice":"no"}`},
		{"problem_no_answer_in_time", guard.Operator, 409, "POST", "/jobs/46/answer", `{"question":"late","choice":"no"}`},
		{"problem_not_asked", guard.Operator, 404, "POST", "/jobs/46/answer", `{"question":"none","choice":"no"}`},
		{"problem_no_such_job_to_answer", guard.Operator, 404, "POST", "/jobs/77/answer", `{"question":"approve","choice":"pay"}`},
		{"problem_no_choice", guard.Operator, 422, "POST", "/jobs/46/answer", `{"question":"approve","choice":" pay"}`},
		{"problem_role_of_an_answer", guard.Viewer, 403, "POST", "/jobs/46/answer", `{"question":"approve","choice":"pay"}`},
		{"jobs", guard.Operator, 200, "GET", "/jobs?limit=2", ""},
		{"job_ids", guard.Viewer, 200, "GET", "/jobs/ids?limit=2", ""},
		{"counts", guard.Viewer, 200, "GET", "/jobs/counts", ""},
		{"flow_graph", guard.Viewer, 200, "GET", "/flows/12/graph", ""},
		{"flow_graph_of_all", guard.Viewer, 200, "GET", "/flows/12/graph?all=true", ""},
		{"problem_no_such_flow", guard.Viewer, 404, "GET", "/flows/42/graph", ""},
		{"queues", guard.Viewer, 200, "GET", "/queues", ""},
		{"kinds", guard.Viewer, 200, "GET", "/kinds", ""},
		{"engines", guard.Viewer, 200, "GET", "/engines", ""},
		{"engine", guard.Viewer, 200, "GET", "/engines/9223372036854775803", ""},
		{"engines_gone", guard.Viewer, 200, "GET", "/engines/gone", ""},
		{"engine_gone", guard.Viewer, 200, "GET", "/engines/4", ""},
		{"schedules", guard.Operator, 200, "GET", "/schedules", ""},
		{"schedules_for_viewers", guard.Viewer, 200, "GET", "/schedules", ""},
		{"schedule", guard.Operator, 200, "GET", "/schedules/nightly", ""},
		{"leases", guard.Viewer, 200, "GET", "/leases", ""},
		{"limits", guard.Viewer, 200, "GET", "/limits", ""},
		{"limit", guard.Viewer, 200, "GET", "/limits/tenant?most=1", ""},
		{"keys", guard.Viewer, 200, "GET", "/limits/tenant/keys", ""},
		{"errors", guard.Operator, 200, "GET", "/errors", ""},
		{"errors_for_viewers", guard.Viewer, 200, "GET", "/errors", ""},
		{"analytics", guard.Viewer, 200, "GET", "/analytics", ""},
		{"stats", guard.Viewer, 200, "GET", "/stats", ""},
		{"scale", guard.Viewer, 200, "GET", "/scale?queues=mail,old&target=1m&max=3", ""},
		{"changes", guard.Operator, 200, "GET", "/changes", ""},
		{"cancelled", guard.Operator, 200, "POST", "/jobs/cancel", `{"ids":[41,43]}`},
		{"dry_run", guard.Operator, 200, "POST", "/jobs/cancel", `{"filter":{},"dry_run":true}`},
		{"problem_invalid", guard.Operator, 422, "GET", "/jobs?longer=soon&kind=%20x", ""},
		{"problem_of_the_document", guard.Operator, 422, "GET", "/jobs?limit=0&state=asleep", ""},
		{"problem_no_such_job", guard.Operator, 404, "GET", "/jobs/77", ""},
		{"problem_no_such_limit", guard.Viewer, 404, "GET", "/limits/fax", ""},
		{"problem_no_rule", guard.Operator, 422, "PUT", "/limits/tenant", `{"rule":"many"}`},
		{"problem_role", guard.Viewer, 403, "GET", "/jobs/ids?error=4111", ""},
		{"problem_restricted", guard.Operator, 403, "POST", "/jobs", `{"jobs":[{"kind":"sh"}],"force":true}`},
		{"problem_unexpected", guard.Operator, 500, "POST", "/queues/mail/pause", `{}`},
	} {
		s.who.Role = c.role
		var body any
		if c.body != "" {
			body = c.body
		}
		status, text := s.ask(c.method, c.path, body)
		if status != c.status {
			t.Errorf("%s %s answers %d %s, want %d", c.method, c.path, status, text, c.status)
			continue
		}
		var got bytes.Buffer
		if err := json.Indent(&got, bytes.TrimSpace(text), "", "  "); err != nil { // which leaves numbers and order as they are
			t.Fatal(err)
		}
		got.WriteByte('\n')
		file := filepath.Join("testdata", "answers", c.file+".json")
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s %s answers otherwise than %s; if it is to be so: go test ./api -update (-was +is):\n%s", c.method, c.path, file, diff)
		}
	}
}
