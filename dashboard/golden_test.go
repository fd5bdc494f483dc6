package dashboard

import (
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

var update = flag.Bool("update", false, "write the golden files")

// noon is when the golden pages are looked at.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func seen[T any](value T) sample.Seen[T] {
	return sample.Seen[T]{Value: value, At: noon.Add(-3 * time.Second)}
}

// old makes figures that could not be read for a while.
func old[T any](s sample.Seen[T]) sample.Seen[T] {
	s.At, s.Err = noon.Add(-8*time.Minute), errors.New("no answer")
	return s
}

// goldenPages are pages with all that they can show, by the name of their file.
func goldenPages(t *testing.T) map[string]struct {
	here string
	data any
} {
	t.Helper()
	failed := stint.JobInfo{
		ID: 42, Kind: "send_invoice", State: stint.Failed, Queue: "mail", Priority: -3, Args: json.RawMessage(`{"customer":9007199254740993,"note":"<b>&"}`), Attempt: 2, Losses: 1,
		Reason: "retries exhausted", Tags: []string{"vip", "a b"}, URN: "order:7", Source: "crm", Metadata: json.RawMessage(`{"trace":"x1"}`), Correlation: "40", Retry: "fixed:1:1s",
		Timeout: retry.Duration(time.Minute), StartBy: noon.Add(-time.Second), Created: noon.Add(-time.Hour), Due: noon.Add(-time.Hour), Started: noon.Add(-time.Minute), Finished: noon.Add(-58 * time.Second), MaxLosses: 3,
		Origin: stint.Origin{Recovered: 40},
		Attempts: []stint.Attempt{
			{Attempt: 1, Outcome: stint.OutcomeLost, Started: noon.Add(-50 * time.Minute), Finished: noon.Add(-50 * time.Minute), Instance: "one", Host: "h1", PID: 11, Engine: 5, Slot: 2},
			{Attempt: 2, Outcome: stint.OutcomeFailed, Final: true, Reason: "retries exhausted", Started: noon.Add(-time.Minute), Finished: noon.Add(-58 * time.Second), Instance: "two", Host: "h2", PID: 12, Engine: 6, Slot: 1,
				Error: &stint.Failure{Class: "timeout", Classes: []string{"timeout", "net.OpError"}, Message: "no answer from <smtp>", Stack: "goroutine 1 [running]:\nmain.send()", Note: "odd"}, Recoverable: new(false)},
		},
	}
	waiting := stint.JobInfo{ID: 43, Kind: "send_invoice", State: stint.Retrying, Queue: "mail", Attempt: 3, Faulty: true, StartBy: noon.Add(time.Hour), Metadata: json.RawMessage(`{"edited_from":42}`), Created: noon.Add(-time.Minute), Due: noon.Add(90 * time.Second), Correlation: "43"}
	running := stint.JobInfo{ID: 44, Kind: "send_invoice", State: stint.Running, Begun: true, Queue: "mail", Attempt: 1, Created: noon.Add(-time.Minute), Due: noon.Add(-20 * time.Second), Correlation: "44"}
	blocked := stint.JobInfo{ID: 47, Kind: "order", State: stint.Blocked, Queue: "default", Attempt: 1, Awaits: []string{"approved <b>"}, Created: noon.Add(-time.Minute), Due: noon.Add(72 * time.Hour), Correlation: "47"}
	asking := stint.JobInfo{ID: 49, Kind: "order", State: stint.Blocked, Queue: "default", Attempt: 1, Asks: []string{"approve <b>"}, Created: noon.Add(-time.Minute), Due: noon.Add(72 * time.Hour), Correlation: "49"}
	pay := &stint.Question{Text: "Pay 900 EUR\nto <ACME>?", Choices: []string{"pay <now>", "refuse"}, Until: noon.Add(72 * time.Hour)}
	needing := stint.JobInfo{ID: 48, Kind: "sum", State: stint.Blocked, Queue: "default", Attempt: 1, Flow: 12, Node: "sum <b>", NeedsFirst: 17, Created: noon.Add(-time.Minute), Due: noon.Add(-time.Minute), Correlation: "import"}
	flow := stint.JobInfo{ID: 12, Kind: "import", State: stint.Failed, Queue: "default", Attempt: 1, IsFlow: true, Reason: "job 48 (sum) was cancelled", Created: noon.Add(-time.Minute), Due: noon.Add(-time.Minute), Started: noon, Finished: noon, Correlation: "import",
		Attempts: []stint.Attempt{{Attempt: 1, Outcome: stint.OutcomeFailed, Final: true, Reason: "job 48 (sum) was cancelled", Started: noon, Finished: noon}}}
	ready := stint.JobInfo{ID: 45, Kind: "send_invoice", State: stint.Available, Queue: "mail", Attempt: 1, Created: noon.Add(-time.Minute), Due: noon.Add(-time.Minute), Correlation: "45"}
	limited := ready
	limited.ID, limited.Limits = 46, []string{"smtp", "tenant=a<b>"}
	smtp := store.GateInfo{Gate: "smtp", Rule: "10,100/1m", Held: 10, Asked: 3, Next: noon.Add(43 * time.Second), Holds: []store.GateHolding{{Engine: 5, Instance: "one", Held: 7}, {Engine: 6, Instance: "two", Held: 3, Asked: 3}}}
	tenant := store.GateInfo{Gate: "tenant=a<b>", Key: "a<b>", Rule: "2", Held: 1, Next: noon.Add(2 * time.Minute), Holds: []store.GateHolding{{Engine: 5, Instance: "one", Held: 1}}}
	limits := []limitRow{
		{store.LimitInfo{Name: "smtp", Rule: "10,100/1m", Declared: "5", Set: "10,100/1m", SetAt: noon.Add(-time.Hour), By: "ann", Why: "a <new> server", Gates: 1, Held: 10, Asked: 3, Engines: 2}},
		{store.LimitInfo{Name: "tenant", Rule: "2", Declared: "2", Gates: 1234, Held: 2001, Engines: 2}},
		{store.LimitInfo{Name: "fax", Rule: "0", Set: "0", SetAt: noon.Add(-time.Hour)}},
		{store.LimitInfo{Name: "erp", Rule: "any", Gates: 1, Held: 4, Engines: 1}},
	}
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	graph := &flowGraph{report.FlowGraph{
		Flow: 12, Kind: "import", State: stint.Failed, Jobs: 10_001, States: map[stint.State]int{stint.Completed: 9_998, stint.Failed: 2, stint.Running: 1}, OldestOpen: 17, NewestOpen: 18, Folded: true, LeftOut: 7, Cut: true,
		Nodes: []report.FlowNode{
			{ID: 9, Name: "old", Kind: "fetch", Flow: 8, Outside: true, State: stint.Completed, Outcome: stint.OutcomeCompleted, Jobs: 1},
			{ID: 10, Kind: "deleted", Outside: true, Deleted: true, State: stint.Cancelled, Outcome: stint.OutcomeCancelled, Jobs: 1},
			{ID: 13, Name: "fetch <b>", Kind: "fetch", Flow: 12, State: stint.Completed, Outcome: stint.OutcomeCompleted, Jobs: 1, Critical: true, Replaces: []stint.ID{11}, Created: at(-60), Ready: at(-60), Started: at(-55), Finished: at(-30),
				Runs: []report.FlowRun{{Outcome: stint.OutcomeFailed, Started: at(-55), Finished: at(-50)}, {Outcome: stint.OutcomeCompleted, Started: at(-40), Finished: at(-30)}}},
			{ID: 15, Kind: "page", Flow: 12, State: stint.Failed, Jobs: 9_998, States: map[stint.State]int{stint.Completed: 9_996, stint.Failed: 2}, Layer: 1, Created: at(-60), Started: at(-29), Finished: at(-10)},
			{ID: 16, Name: "inner", Kind: "parts", Flow: 12, IsFlow: true, State: stint.Blocked, Jobs: 2, States: map[stint.State]int{stint.Completed: 1, stint.Running: 1}, Layer: 1, Created: at(-60)},
			{ID: 17, Name: "sum", Kind: "sum", Flow: 12, State: stint.Running, Jobs: 1, Layer: 2, Created: at(-60), Ready: at(-5)},
			{ID: 19, Name: "alarm", Kind: "alarm", Flow: 12, State: stint.Cancelled, Outcome: stint.OutcomeSkipped, Jobs: 1, Layer: 2, Created: at(-60), Ready: at(-9), Finished: at(-9), Runs: []report.FlowRun{{Outcome: stint.OutcomeSkipped, Finished: at(-9)}}},
			{ID: 20, Kind: "tidy", Flow: 12, State: stint.Blocked, Jobs: 1, Layer: 3, Created: at(-60)},
		},
		Edges: []report.FlowEdge{{From: 9, To: 15, Wants: "success", Satisfied: 9_998}, {From: 10, To: 15, Wants: "end", Satisfied: 1}, {From: 13, To: 15, Wants: "success", Satisfied: 9_998}, {From: 13, To: 16, Wants: "success", Satisfied: 1},
			{From: 13, To: 19, Wants: "failure", Broken: 1}, {From: 15, To: 17, Wants: "success", Satisfied: 9_996, Broken: 2}, {From: 16, To: 17, Wants: "end", Open: 1}, {From: 17, To: 20, Wants: "end", Open: 1}},
	}}
	filter := choice(url.Values{"state": {"failed", "retrying"}, "kind": {"send_invoice"}})
	recurrence, err := cron.Parse("30 2 * * *")
	if err != nil {
		t.Fatal(err)
	}
	nightly := &store.ScheduleInfo{
		Schedule: stint.Schedule{Name: "nightly", Recurrence: recurrence, Zone: "Europe/Berlin", Job: stint.NewJob{Kind: "report"}, Unique: true},
		Created:  noon.Add(-24 * time.Hour), Declared: noon.Add(-24 * time.Hour), By: "ann", Next: noon.Add(13 * time.Hour), Fired: 7, Skipped: 1, LastJob: 43,
		Stored: store.ScheduleTexts{Recurrence: "30 2 * * *", Missed: "one", Job: json.RawMessage(`{"kind":"report"}`)},
	}
	worker := engineRow{store.EngineInfo{
		Token: 5, Instance: "one", Host: "h1", PID: 11, Version: "v1.2.3", Queues: []string{"mail", "default"}, Kinds: []string{"send_invoice"}, Slots: 8, TimeToLive: 6 * time.Second,
		Joined: noon.Add(-time.Hour), Beat: noon.Add(-time.Second), Running: make([]store.Position, 8),
	}, view.Working}
	killed := formerRow{store.FormerEngine{EngineInfo: worker.EngineInfo, EngineEnd: store.EngineEnd{At: noon.Add(-10 * time.Minute), Why: store.WhyProcessGone, By: 5, ByInstance: "one", Freed: 5, Lost: 3}}}
	killed.Token, killed.Instance, killed.PID, killed.Beat = 4, "killed <b>", 10, noon.Add(-11*time.Minute)
	stopped := store.FormerEngine{EngineInfo: worker.EngineInfo, EngineEnd: store.EngineEnd{At: noon.Add(-20 * time.Minute), Why: store.WhyLeft}}
	stopped.Token, stopped.Instance = 3, "stopped"
	counted := report.Metrics{Instance: "one", Engine: 5, Since: noon.Add(-time.Hour), At: noon.Add(-5 * time.Second), Workers: report.WorkerMetrics{Running: 3, Run: 1234, Succeeded: 1200, Failed: 34, Working: time.Hour},
		Retention: report.RetentionMetrics{Deleted: 12, Clean: noon.Add(-time.Minute), Kept: 24 * time.Hour}}
	ofKind := report.KindStats{Kind: "send_invoice", Totals: report.Totals{Attempts: 200, Took: report.Durations{Count: 199, Fastest: time.Millisecond, Longest: 3 * time.Second, Total: 100 * time.Second}, LastAt: noon.Add(-time.Minute)},
		Outcomes: map[stint.Outcome]int64{stint.OutcomeCompleted: 180, stint.OutcomeFailed: 19, stint.OutcomeLost: 1}}
	ofTime := ofKind
	ofTime.Execution = &report.Percentiles{P50: time.Millisecond, P95: time.Second, P99: 2 * time.Second}
	declared := &stint.KindInfo{Name: "send_invoice", Queue: "mail", Retry: retry.Default(), Timeout: time.Minute, Limits: []string{"smtp", "tenant by /customer"}, Declared: noon.Add(-time.Hour)}
	ran := report.AttemptFigures{Ended: 60_000, PerSecond: 30_000, Execution: report.Percentiles{P50: 1500 * time.Microsecond, P95: time.Second, P99: 2 * time.Second}}
	slow := kindRow{KindStats: ofKind, Hour: []float64{1, 2, 60}, Ended: 60_000, Declared: declared, Trend: trend{
		Now: pastTimes{ran.Execution, 60_000}, Yesterday: pastTimes{report.Percentiles{P50: time.Millisecond, P95: 400 * time.Millisecond, P99: time.Second}, 50_000}}}
	mail, other := "mail", "<other>"
	finding := report.Finding{Severity: report.SeverityWarning, Code: "engine_dead", Subject: "engine two", Problem: "it does not beat", Remedy: "stint engines bury two", Page: "/engines/6"}
	lastHour := newHistory(noon.Add(-time.Hour), 20*time.Minute, 3)
	lastHour.Distributed = true
	lastHour.Steps[1] = sums{Ended: [4]int64{100, 7, 1, 0}, Ran: 107, Took: 107 * time.Second, Waited: time.Minute, TookBy: report.Histogram{0, 0, 107}, WaitedBy: report.Histogram{107}}
	lastHour.Before[2] = sums{Ended: [4]int64{50, 0, 0, 2}, Ran: 52, Took: 52 * time.Second, TookBy: report.Histogram{0, 52}, WaitedBy: report.Histogram{52}}
	lastDay := newHistory(noon.Add(-24*time.Hour), 12*time.Hour, 2)
	lastDay.Before, lastDay.Behind, lastDay.Steps[0] = nil, true, lastHour.Steps[1]
	linked := func(from, to time.Time) string {
		return "/jobs?finished_after=" + from.Format(time.RFC3339) + "&finished_before=" + to.Format(time.RFC3339)
	}
	zoomIn := func(path, from, to string) zoom { return zoom{Path: path, From: from, To: to} }
	return map[string]struct {
		here string
		data any
	}{
		"zoom": {"/kinds/send_invoice?from=2026-03-01T11:00:00Z&to=2026-03-01T12:00:00Z", zoomData{Heading: "Kind <send_invoice>", Zoom: zoomIn("/kinds/send_invoice", "2026-03-01T11:00:00Z", "2026-03-01T12:00:00Z"), history: lastHour,
			Kinds: []zoomKind{{kindRow{KindStats: ofTime}, 52}, {kindRow{KindStats: report.KindStats{Kind: "<lost>", Totals: report.Totals{Attempts: 1}, Outcomes: map[stint.Outcome]int64{stint.OutcomeLost: 1}}}, 0}}, now: noon.Add(5 * time.Minute), jobs: linked}},
		"zoom-day":   {"/?from=1d", zoomData{Heading: "Overview", Zoom: zoomIn("/", "1d", ""), history: lastDay, Kinds: []zoomKind{{kindRow{KindStats: ofTime}, 0}}, now: noon, jobs: linked}},
		"zoom-none":  {"/?from=1h", zoomData{Heading: "Overview", Zoom: zoomIn("/", "1h", ""), history: newHistory(noon.Add(-time.Hour), time.Minute, 1), now: noon, jobs: linked}},
		"zoom-wrong": {"/?from=x", zoomData{Heading: "Overview", Zoom: zoom{Path: "/", From: "x", Wrong: map[string]string{"from": "it is <wrong>"}}}},
		"overview": {"/", overviewPage{
			Waiting: old(seen(report.Analytics{Queued: 1234567, Postponed: 5})),
			Active:  seen(lately{report.Activity{Running: 3, Zombies: 1, AttemptFigures: report.AttemptFigures{Ended: 60, PerSecond: 1, Latency: report.Percentiles{P50: time.Millisecond, P99: time.Second}, Execution: report.Percentiles{P50: 1500 * time.Microsecond, P99: 2 * time.Second}}}, lookedAt{time.Minute}}),
			Backlog: seen([]report.DueGroup{{Value: &mail, Jobs: 1234567}, {Value: &other, Jobs: 1}}), Oldest: seen(report.Facts{Backlogs: []report.Backlog{{Queue: "mail", Oldest: noon.Add(-time.Hour)}}}),
			Findings: seen([]report.Finding{finding}), Engines: []engineRow{worker}, seldom: seldom{Asked: 3},
		}},
		"jobs-cut":         {"/jobs?kind=send_invoice", jobsPage{Filter: choice(url.Values{"kind": {"send_invoice"}}), Cut: true, Seen: 900_001, Behind: "before=900001&kind=send_invoice"}},
		"jobs-text":        {"/jobs?kind=send_invoice&text=x", stillJobs{jobsPage{Filter: choice(url.Values{"kind": {"send_invoice"}}), Text: "x", Looked: 7}}},
		"jobs-hurried":     {"/jobs?text=x", stillJobs{jobsPage{Text: "x", Looked: 6000, Cut: true, Seen: 900_001, Behind: "before=900001&text=x", All: "calm=true&text=x"}}},
		"jobs-none":        {"/jobs", jobsPage{}},
		"queues-unknown":   {"/queues", queuesPage{Rows: []queueRow{{Name: "mail", Engines: 1, Slots: 8}}}},
		"kind-unknown":     {"/kinds/send_invoice", kindPage{kindRow: kindRow{KindStats: report.KindStats{Kind: "send_invoice"}}}},
		"kinds-unknown":    {"/kinds", kindsPage{Rows: []kindRow{{KindStats: report.KindStats{Kind: "send_invoice"}, Declared: declared}}, Since: noon.Add(-24 * time.Hour)}},
		"database-unknown": {"/database", databasePage{}},
		"search":           {"/search?q=mail", searchPage{Text: "mail", Names: []hit{{"Queue", "mail", "/queues/mail"}, {"Kind", "send <mail>", "/kinds/send%20%3Cmail%3E"}}, Jobs: []foundJobs{{"With the tag mail", []stint.JobInfo{failed}, "tag=mail"}}, Filter: "text=x"}},
		"search-none":      {"/search?q=fox", searchPage{Text: "fox"}},
		"search-empty":     {"/search", searchPage{}},
		"queue": {"/queues/mail", queuePage{queueRow: queueRow{Name: "mail", Queued: new(int64(7)), Oldest: noon.Add(-time.Hour), Engines: 1, Slots: 8, Pause: &store.QueueInfo{Name: "mail", Paused: noon.Add(-time.Minute), By: "ann", Why: "a <leak>"}},
			partFigures: partFigures{Waiting: seen(report.Analytics{Queued: 7, Limited: 2}), Active: seen(lately{report.Activity{AttemptFigures: ran}, lookedAt{time.Minute}})}, Known: true, Kinds: []queueKind{{"send_invoice", 1234}, {"a <b>", 1}},
			Limit: &limits[0], LimitName: "queue=mail", AllEngines: []engineRow{worker}}},
		"queue-unknown": {"/queues/mail", queuePage{queueRow: queueRow{Name: "mail"}, LimitName: "queue=mail"}},
		"queues-none":   {"/queues", queuesPage{Backlog: seen([]report.DueGroup(nil))}},
		"changes-none":  {"/changes", changesPage{}},
		"overview-none": {"/", overviewPage{seldom: seldom{Empty: true}}},
		"jobs": {"/jobs?" + filter.query.Encode(), jobsPage{Filter: filter, Jobs: []stint.JobInfo{waiting, failed}, Kinds: []string{"send_invoice"}, Queues: []string{"mail"}, Next: filter.With("before", "42"),
			Query: string(filter.Encode()), Saved: []savedFilter{
				{SavedFilter: ops.SavedFilter{SavedFilter: store.SavedFilter{Name: "mail <b>/..", At: noon.Add(-time.Hour), By: "<ann>"}}, Link: "kind=a%3Cb&state=failed", Chosen: true},
				{SavedFilter: ops.SavedFilter{SavedFilter: store.SavedFilter{Name: "..", At: noon}, Problem: "colour: a saved filter has no <such> parameter"}, Link: "colour=red"},
			}}},
		"job": {"/jobs/42", jobPage{Job: view.Job{JobInfo: &failed, Steps: []view.Step{
			{Name: "charge <b>", Began: noon.Add(-49 * time.Minute), Ended: noon.Add(-48 * time.Minute), Result: json.RawMessage(`{"ref":"<7>"}`)},
			{Name: "report", Began: noon.Add(-48 * time.Minute), Ended: noon.Add(-48 * time.Minute), Bytes: 20_000},
			{Name: "hidden", Began: noon.Add(-48 * time.Minute), Ended: noon.Add(-48 * time.Minute)},
		}}, Earlier: 1234, History: historyOf(&failed), Related: []stint.JobInfo{waiting}, More: true}},
		"job-running": {"/jobs/44", jobPage{Job: view.Job{JobInfo: &running, Progress: []stint.Progress{{Run: 44, Attempt: 1, N: 3, At: noon.Add(-2 * time.Second), Fraction: 0.995, Text: "page <40>"}}, Log: []stint.LogLine{
			{Run: 44, Attempt: 1, N: 2, At: noon.Add(-4 * time.Second), Text: "page <b> is loaded"},
			{Run: 44, Attempt: 1, N: 1235, At: noon.Add(-3 * time.Second), Level: slog.LevelError, Text: "\x1b[31mno\x1b[0m"},
		}, RunsOn: &view.Runner{Token: 5, Instance: "one", Host: "h1", PID: 11, Beat: noon.Add(-time.Second), State: view.Silent, Started: noon.Add(-15 * time.Second)}}, Holder: &holder{view.Runner{Token: 5, Instance: "one"}, 7}}},
		"job-blocked": {"/jobs/47", jobPage{Job: view.Job{JobInfo: &blocked, Signals: []view.Signal{
			{SentSignal: stint.SentSignal{N: 7, Name: "paid <b>", Sent: noon.Add(-time.Hour), Step: "payment", Value: json.RawMessage(`{"by":"<ann>"}`)}},
			{SentSignal: stint.SentSignal{N: 9, Name: "scan", Sent: noon.Add(-time.Minute)}, Bytes: 20_000},
			{SentSignal: stint.SentSignal{N: 12, Name: "hidden", Sent: noon.Add(-time.Second)}},
		}}, SignalsBefore: 1234}},
		"job-asking": {"/jobs/49", jobPage{Job: view.Job{JobInfo: &asking, Steps: []view.Step{
			{Name: "thumbnail", Began: noon.Add(-2 * time.Hour), Ended: noon.Add(-time.Hour), Result: json.RawMessage(`{"job":57,"state":"completed"}`), Question: &stint.Question{Job: 57}},
			{Name: "budget", Began: noon.Add(-time.Hour), Ended: noon.Add(-time.Minute), Result: json.RawMessage(`{"at":"2026-03-01T11:59:00Z","by":"<bob>","choice":"yes"}`), Question: &stint.Question{Text: "Is there <a> budget?"}},
		}}, Questions: []question{{49, "approve <b>", pay, "/jobs/49"}, {49, "hidden", &stint.Question{Until: pay.Until}, "/jobs/49"}}}},
		"questions":      {"/questions", questionsPage{Questions: []store.OpenQuestion{{Job: 49, Kind: "order <b>", Queue: "default", Name: "approve <b>", Asked: noon.Add(-time.Hour), Question: *pay}}, Next: 49}},
		"questions-none": {"/questions", questionsPage{}},
		"job-needing":    {"/jobs/48", jobPage{Job: view.Job{JobInfo: &needing}}},
		"job-flow":       {"/jobs/12", jobPage{Job: view.Job{JobInfo: &flow}, Graph: graph, History: historyOf(&flow), Related: []stint.JobInfo{needing}}},
		"job-waiting":    {"/jobs/45", jobPage{Job: view.Job{JobInfo: &ready, Ahead: 1234}, Crew: view.Crew{Engines: []store.EngineInfo{worker.EngineInfo}}}},
		"job-limited":    {"/jobs/46", jobPage{Job: view.Job{JobInfo: &limited}, Crew: view.Crew{Engines: []store.EngineInfo{worker.EngineInfo}, Gates: []store.GateInfo{smtp, tenant}}, InUse: gatesOf([]store.GateInfo{smtp, tenant})}},
		"limits":         {"/limits", limitsPage{limits}},
		"limits-none":    {"/limits", limitsPage{}},
		"limit":          {"/limits/smtp", limitPage{limitRow: limits[0], Holders: &gatesOf([]store.GateInfo{smtp})[0]}},
		"limit-keys":     {"/limits/tenant", limitPage{limitRow: limits[1], Keys: gatesOf([]store.GateInfo{tenant}), More: 1233}},
		"limit-unknown":  {"/limits/fox", limitPage{limitRow: limitRow{store.LimitInfo{Name: "fox", Rule: "any"}}}},
		"bulk":           {"/jobs/bulk?verb=cancel", bulkPage{Verb: &bulkVerbs[0], Filter: filter, Matched: 10000, More: true, First: []stint.JobInfo{waiting}}},
		"edit":           {"/jobs/42/edit", offering(editOf(&failed, noon))},
		"edit-waiting":   {"/jobs/43/edit", offering(editOf(&waiting, noon))},
		"edit-new":       {"/jobs/new", offering(editPage{Form: url.Values{"args": {"{}"}}})},
		"queues":         {"/queues", queuesPage{Backlog: seen([]report.DueGroup(nil)), Rates: seen(ended{}), Rows: []queueRow{{Name: "mail", Queued: new(int64(12)), Oldest: noon.Add(-time.Hour), Ended: 500, Failed: 3, Hour: []float64{0, 1, 499, 0}, Engines: 1, Slots: 8}, {Name: "old", Pause: &store.QueueInfo{Name: "old", Paused: noon.Add(-2 * time.Hour), By: "ann", Why: "a <leak>"}}}}},
		"kinds":          {"/kinds", kindsPage{Sort: "p95", Known: seen([]report.Stats(nil)), Rates: seen(ended{Behind: true}), Trends: seen(trends{}), Since: noon.Add(-24 * time.Hour), Rows: []kindRow{slow, {KindStats: report.KindStats{Kind: "gone"}}}, Slow: []stint.JobInfo{failed}}},
		"kind":           {"/kinds/send_invoice", kindPage{kindRow: slow, partFigures: partFigures{Waiting: seen(report.Analytics{}), Active: seen(lately{report.Activity{AttemptFigures: ran}, lookedAt{2 * time.Second}})}, Failed: []stint.JobInfo{failed}}},
		"errors": {"/errors", errorsPage{Report: seen(report.ErrorReport{Attempts: 37, CutOff: true, Counts: report.ErrorCounts{Open: 1, Returned: 1, Resolved: 2, Muted: 1}, From: noon.Add(-time.Hour), Step: 150 * time.Second, Groups: []report.ErrorGroup{
			{Key: "fedcba9876543210", Class: "errors.errorString", Kind: "send_invoice", Pattern: "no order #", Attempts: 7, Jobs: 7, First: noon.Add(-time.Hour), Last: noon.Add(-time.Minute), Message: "no order <7>", Job: 41,
				Trend: []int{0, 3, 4}, State: report.ErrorsReturned, At: noon.Add(-2 * time.Hour), By: "ann", Why: "a <fix>"},
			{Key: "0123456789abcdef", Pattern: "index out of range", Trend: []int{29, 0, 1}, State: report.ErrorsOpen, Class: "panic", Place: "mail.send (mail.go:7)", Kind: "send_invoice", Attempts: 30, Jobs: 12, First: noon.Add(-time.Hour), Last: noon.Add(-time.Minute), Message: "index out of range", Job: 42}}})}},
		"errors-one": {"/errors?key=0123456789abcdef", errorsPage{Key: "0123456789abcdef", Jobs: []stint.JobInfo{failed}, Report: seen(report.ErrorReport{Attempts: 30, Counts: report.ErrorCounts{Muted: 1}, From: noon.Add(-time.Hour), Step: 150 * time.Second, Groups: []report.ErrorGroup{
			{Key: "0123456789abcdef", Pattern: "index out of range", Trend: []int{29, 0, 1}, State: report.ErrorsMuted, At: noon.Add(-2 * time.Hour), Class: "panic", Kind: "send_invoice", Attempts: 30, Jobs: 12, First: noon.Add(-time.Hour), Last: noon.Add(-time.Minute), Message: "index out of range", Job: 42}}})}},
		"errors-hidden": {"/errors", errorsPage{Report: seen(report.ErrorReport{Counts: report.ErrorCounts{Resolved: 1}})}},
		"schedules":     {"/schedules", schedulesPage{[]*store.ScheduleInfo{nightly}}},
		"schedule":      {"/schedules/nightly", schedulePage{Schedule: view.Schedule{Schedule: nightly, Upcoming: []time.Time{noon.Add(13 * time.Hour)}, Jobs: []stint.JobInfo{waiting}}}},
		"engines":       {"/engines", enginesPage{Engines: []engineRow{worker}, Former: []formerRow{killed, {stopped}}, Metrics: []report.Metrics{counted, {Instance: "two", Since: noon.Add(-time.Hour), At: noon}}, Served: true}},
		"engines-none":  {"/engines", enginesPage{}},
		"engine-gone": {"/engines/4", enginePage{engineRow: engineRow{killed.EngineInfo, killed.Condition()}, Ended: &killed, CanBury: true,
			Lost: []store.LostAttempt{{Job: 42, Attempt: 1, Kind: "send_invoice", Queue: "mail", State: stint.Failed}, {Job: 45, Attempt: 2, Kind: "send_invoice", Queue: "mail", State: stint.Available}}}},
		"engine-stopped": {"/engines/3", enginePage{engineRow: engineRow{stopped.EngineInfo, view.Left}, Ended: &formerRow{stopped}}},
		"engine":         {"/engines/5", enginePage{engineRow: worker, Holds: []view.HeldJob{{ID: 43, Kind: "send_invoice", Queue: "mail", Attempt: 3, Begun: true, Started: noon, Ready: noon.Add(-time.Second)}}, More: 2, Metrics: &counted, CanBury: true}},
		"database": {"/database", databasePage{Findings: seen([]report.Finding{finding}), Signs: seen(report.Facts{Sizes: []report.Size{{Name: "entries", Bytes: 3 << 30, Rows: 11_000_000}, {Name: "meta", Bytes: 8192}}}),
			Leases: []store.Lease{{Name: "retention", Engine: 5, Instance: "one", Acquired: noon.Add(-time.Hour), Expires: noon.Add(5 * time.Second)}}, Schema: store.SchemaInfo{Where: "stint", Installed: 1, Known: 1}}},
		"changes": {"/changes", changesPage{Filter: url.Values{}, Engines: map[string]string{"4": "killed <b>"}, Changes: []store.Change{
			{ID: 4, At: noon.Add(-time.Second), Result: store.ChangeDone, NewChange: store.NewChange{By: "ann", Way: store.WayCommand, Operation: "engines bury", Subject: "4"}}, {ID: 3, At: noon.Add(-time.Minute), Result: store.ChangeFailed, Problem: "it was away",
				NewChange: store.NewChange{By: "ann", Role: "operator", Way: store.WayAPI, Operation: "queues pause", Subject: "mail", Details: json.RawMessage(`{"why":"a leak"}`)}}}}},
		"opened":  {"/jobs/42/open", ops.OpenedJob{ID: 42, Kind: "send_invoice", Args: json.RawMessage(`{"iban":"CH93 <b>"}`), Result: json.RawMessage(`"sent"`), Steps: []ops.OpenedStep{{Name: "charge <b>", Result: json.RawMessage(`{"ok":true}`)}}}},
		"problem": {"/nowhere", trouble{404, "There is nothing here, or not any more."}},
	}
}

func offering(p editPage) editPage {
	p.Kinds = []string{"send_invoice"}
	return p
}

func TestPagesAreAsTheyWere(t *testing.T) {
	templates, err := parse("")
	if err != nil {
		t.Fatal(err)
	}
	b := &Dashboard{templates: templates, config: Config{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}}
	golden := goldenPages(t)
	for name := range templates {
		if _, ok := golden[name]; !ok { // others are variants: the name, a hyphen and what is different
			t.Errorf("the page %s has no golden file", name)
		}
	}
	for name, g := range golden {
		p := &problem
		of, _, _ := strings.Cut(name, "-")
		for _, other := range append(slices.Clone(pages), openedPage) {
			if other.name == of {
				p = &other
				break
			}
		}
		r := httptest.NewRequest("GET", g.here, nil)
		r = r.WithContext(guard.With(r.Context(), guard.Identity{Name: "ann", Role: guard.Admin}))
		w := httptest.NewRecorder()
		s := shown{page: p, Title: p.title, Data: g.data, Now: noon, Sent: noon}
		if titled, ok := g.data.(titled); ok {
			s.Title = titled.title()
		}
		b.render(w, r, 200, s)
		got := strings.ReplaceAll(w.Body.String(), assetsHash, "HASH")
		file := filepath.Join("testdata", name+".html")
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s is another page than %s; if it is to be so: go test ./dashboard -update (-want +got):\n%s", name, file, diff)
		}
	}
}

// Who looks without scripts has no other way to the exact instant.
func TestEveryTimeTellsTheExactInstant(t *testing.T) {
	files, err := filepath.Glob("testdata/*.html")
	if err != nil || len(files) < 15 {
		t.Fatalf("there are %d pages, %v", len(files), err)
	}
	var (
		element = regexp.MustCompile(`(?s)<time\b([^>]*)>.*?</time>`)
		full    = regexp.MustCompile(`^ datetime="([^"]+)" title="([^"]+)"`)
		bare    = regexp.MustCompile(`[^>]{0,20}\b(\d+\w* ago|in \d+(\.\d+)?[smhd]\w*|\d{4}-\d\d-\d\d[T ]\d\d:\d\d)\b`)
		aside   = regexp.MustCompile(`(?s)<svg.*?</svg>|<[^>]*>`) // charts say it when they are pointed at
	)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range element.FindAllStringSubmatch(string(raw), -1) {
			if m := full.FindStringSubmatch(found[1]); m == nil || m[1] != m[2] {
				t.Errorf("%s: %s", file, found[0])
			}
		}
		text := aside.ReplaceAllString(element.ReplaceAllString(string(raw), ""), "\n")
		for _, found := range bare.FindAllString(text, -1) {
			t.Errorf("%s: %q is no <time>", file, found)
		}
	}
}
