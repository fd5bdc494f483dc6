package admin

import (
	"encoding/json"
	"flag"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/guard"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/retry"
)

var update = flag.Bool("update", false, "write the golden files")

// noon is when the golden pages are looked at.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func seen[T any](value T) sample.Seen[T] {
	return sample.Seen[T]{Value: value, At: noon.Add(-3 * time.Second)}
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
		Timeout: time.Minute, Created: noon.Add(-time.Hour), Due: noon.Add(-time.Hour), Started: noon.Add(-time.Minute), Finished: noon.Add(-58 * time.Second), MaxLosses: 3,
		Provenance: stint.Provenance{Recovered: 40},
		Executions: []stint.ExecutionInfo{
			{Attempt: 1, Outcome: stint.OutcomeLost, Started: noon.Add(-50 * time.Minute), Finished: noon.Add(-50 * time.Minute), Instance: "one", Host: "h1", PID: 11, Engine: 5, Slot: 2},
			{Attempt: 2, Outcome: stint.OutcomeFailed, Final: true, Reason: "retries exhausted", Started: noon.Add(-time.Minute), Finished: noon.Add(-58 * time.Second), Instance: "two", Host: "h2", PID: 12, Engine: 6, Slot: 1,
				Error: &stint.Failure{Class: "timeout", Classes: []string{"timeout", "net.OpError"}, Message: "no answer from <smtp>", Stack: "goroutine 1 [running]:\nmain.send()", Note: "odd"}, Recoverable: new(false)},
		},
	}
	waiting := stint.JobInfo{ID: 43, Kind: "send_invoice", State: stint.Retrying, Queue: "mail", Attempt: 3, Faulty: true, Created: noon.Add(-time.Minute), Due: noon.Add(90 * time.Second), Correlation: "43"}
	filter := choice(url.Values{"state": {"failed", "retrying"}, "kind": {"send_invoice"}})
	recurrence, err := cron.Parse("30 2 * * *")
	if err != nil {
		t.Fatal(err)
	}
	nightly := &stint.ScheduleInfo{
		Schedule: stint.Schedule{Name: "nightly", Recurrence: recurrence, Zone: "Europe/Berlin", Job: stint.NewJob{Kind: "report"}, Unique: true},
		Created:  noon.Add(-24 * time.Hour), Declared: noon.Add(-24 * time.Hour), By: "ann", Next: noon.Add(13 * time.Hour), Fired: 7, Skipped: 1, LastJob: 43,
		Stored: stint.ScheduleTexts{Recurrence: "30 2 * * *", Missed: "one", Job: json.RawMessage(`{"kind":"report"}`)},
	}
	worker := engineRow{stint.EngineInfo{
		Token: 5, Instance: "one", Host: "h1", PID: 11, Version: "v1.2.3", Queues: []string{"mail", "default"}, Kinds: []string{"send_invoice"}, Slots: 8, TimeToLive: 6 * time.Second,
		Joined: noon.Add(-time.Hour), Beat: noon.Add(-time.Second),
	}, view.Working}
	counted := stint.Metrics{Instance: "one", Engine: 5, Since: noon.Add(-time.Hour), At: noon.Add(-5 * time.Second), Workers: stint.WorkerMetrics{Running: 3, Run: 1234, Succeeded: 1200, Failed: 34, Working: time.Hour}}
	sums := stint.KindStats{Kind: "send_invoice", Sums: stint.Sums{Attempts: 200, Took: stint.Durations{Count: 199, Fastest: time.Millisecond, Longest: 3 * time.Second, Total: 100 * time.Second}, LastAt: noon.Add(-time.Minute)},
		Outcomes: map[stint.Outcome]int64{stint.OutcomeCompleted: 180, stint.OutcomeFailed: 19, stint.OutcomeLost: 1}}
	declared := &stint.Declaration{Name: "send_invoice", Queue: "mail", Retry: retry.Default(), Timeout: time.Minute, Declared: noon.Add(-time.Hour)}
	mail := "mail"
	finding := stint.Finding{Severity: stint.SeverityWarning, Code: "engine_dead", Subject: "engine two", Problem: "it does not beat", Remedy: "stint engines bury two"}
	return map[string]struct {
		here string
		data any
	}{
		"overview": {"/", overviewPage{
			Figures: seen(stint.Analytics{Queued: 1234567, Postponed: 5, Running: 3, Zombies: 1, Ended: 60, PerSecond: 1, Latency: stint.Spread{P50: time.Millisecond, P99: time.Second}, Execution: stint.Spread{P50: 1500 * time.Microsecond, P99: 2 * time.Second}}),
			Backlog: seen([]stint.DueGroup{{Value: &mail, Jobs: 1234567}}), Oldest: seen(stint.Signs{Backlogs: []stint.Backlog{{Queue: "mail", Oldest: noon.Add(-time.Hour)}}}),
			Findings: seen([]stint.Finding{finding}), Engines: []engineRow{worker},
		}},
		"jobs":   {"/jobs?" + filter.query.Encode(), jobsPage{Filter: filter, Jobs: []stint.JobInfo{waiting, failed}, Kinds: []string{"send_invoice"}, Queues: []string{"mail"}, Next: filter.With("before", "42")}},
		"job":    {"/jobs/42", jobPage{Job: view.Job{JobInfo: &failed}, Attempts: []attempt{{failed.Executions[1], view.Result{}}, {failed.Executions[0], view.Result{}}}, Related: []stint.JobInfo{waiting}}},
		"bulk":   {"/jobs/bulk?verb=cancel", bulkPage{Verb: &bulkVerbs[0], Filter: filter, Matched: 10000, More: true, First: []stint.JobInfo{waiting}}},
		"edit":   {"/jobs/42/edit", editPage{Like: &failed, Kind: "send_invoice", Args: "{\n  \"customer\": 9007199254740993\n}", Queue: "mail", Priority: -3, Tags: []string{"vip"}, Kinds: []string{"send_invoice"}}},
		"queues": {"/queues", queuesPage{Backlog: seen([]stint.DueGroup(nil)), Rows: []queueRow{{Name: "mail", Queued: 12, Oldest: noon.Add(-time.Hour), Ended: 500, Failed: 3, Engines: 1, Slots: 8}, {Name: "old", Paused: true}}}},
		"kinds":  {"/kinds", kindsPage{Known: seen([]stint.Stats(nil)), Since: noon.Add(-24 * time.Hour), Rows: []kindRow{{sums, declared}, {KindStats: stint.KindStats{Kind: "gone"}}}, Slow: []stint.JobInfo{failed}}},
		"kind":   {"/kinds/send_invoice", kindPage{kindRow: kindRow{sums, declared}, Figures: seen(stint.Analytics{Ended: 3}), Failed: []stint.JobInfo{failed}}},
		"errors": {"/errors", errorsPage{Report: seen(stint.ErrorReport{Attempts: 30, CutOff: true, Groups: []stint.ErrorGroup{
			{Class: "panic", Place: "mail.send (mail.go:7)", Kind: "send_invoice", Attempts: 30, Jobs: 12, First: noon.Add(-time.Hour), Last: noon.Add(-time.Minute), Message: "index out of range", Job: 42}}})}},
		"schedules": {"/schedules", schedulesPage{[]*stint.ScheduleInfo{nightly}}},
		"schedule":  {"/schedules/nightly", schedulePage{Schedule: view.Schedule{Schedule: nightly, Upcoming: []time.Time{noon.Add(13 * time.Hour)}, Jobs: []stint.JobInfo{waiting}}}},
		"engines":   {"/engines", enginesPage{[]engineRow{worker}, []stint.Metrics{counted}}},
		"engine":    {"/engines/5", enginePage{engineRow: worker, Holds: []view.HeldJob{{ID: 43, Kind: "send_invoice", Queue: "mail", Attempt: 3, Begun: true, Ready: noon.Add(-time.Second)}}, More: 2, Metrics: &counted, CanBury: true}},
		"database": {"/database", databasePage{Findings: seen([]stint.Finding{finding}), Signs: seen(stint.Signs{Sizes: []stint.Size{{Name: "entries", Bytes: 3 << 30, Rows: 11_000_000}, {Name: "meta", Bytes: 8192}}}),
			Leases: []stint.Lease{{Name: "retention", Engine: 5, Instance: "one", Acquired: noon.Add(-time.Hour), Expires: noon.Add(5 * time.Second)}}, Schema: stint.SchemaInfo{Where: "stint", Installed: 1, Known: 1}}},
		"metrics": {"/figures", metricsPage{[]stint.Metrics{counted}}},
		"changes": {"/changes", changesPage{Filter: url.Values{}, Changes: []stint.Change{{ID: 3, At: noon.Add(-time.Minute), Result: stint.ChangeFailed, Problem: "it was away",
			NewChange: stint.NewChange{By: "ann", Role: "operator", Way: stint.WayAPI, Operation: "pause-queue", Subject: "mail", Details: json.RawMessage(`{"why":"a leak"}`)}}}}},
		"problem": {"/nowhere", trouble{404, "There is nothing here, or not any more."}},
	}
}

func TestPagesAreAsTheyWere(t *testing.T) {
	templates, err := parse("")
	if err != nil {
		t.Fatal(err)
	}
	b := &Board{templates: templates, config: Config{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}}
	golden := goldenPages(t)
	for name := range templates {
		if _, ok := golden[name]; !ok {
			t.Errorf("the page %s has no golden file", name)
		}
	}
	for name, g := range golden {
		p := &problem
		for i := range pages {
			if pages[i].name == name {
				p = &pages[i]
				break
			}
		}
		r := httptest.NewRequest("GET", g.here, nil)
		r = r.WithContext(guard.With(r.Context(), guard.Identity{Name: "ann", Role: guard.Admin}))
		w := httptest.NewRecorder()
		s := shown{page: p, Title: p.title, Data: g.data, Now: noon}
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
			t.Errorf("%s is another page than %s; if it is to be so: go test ./admin -update (-want +got):\n%s", name, file, diff)
		}
	}
}
