package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// hanging is a store that answers nothing until the context ends, and then with an
// error of its own. It writes changes down, unless that hangs too.
type hanging struct {
	api.Store
	deaf bool // to changes, too
}

func hang[T any](ctx context.Context) (v T, err error) {
	<-ctx.Done()
	return v, errors.New("interrupted")
}

func hangs(ctx context.Context) error {
	_, err := hang[int](ctx)
	return err
}

func (h hanging) BeginChange(ctx context.Context, _ store.NewChange) (int64, error) {
	if h.deaf {
		return hang[int64](ctx)
	}
	return 1, nil
}
func (hanging) EndChange(context.Context, int64, string) error { return nil }
func (hanging) Job(ctx context.Context, _ stint.ID) (*stint.JobInfo, error) {
	return hang[*stint.JobInfo](ctx)
}
func (hanging) Steps(ctx context.Context, _ stint.ID) ([]stint.RecordedStep, error) {
	return hang[[]stint.RecordedStep](ctx)
}
func (hanging) Log(ctx context.Context, _ stint.ID, _ store.LogFilter) ([]stint.LogLine, error) {
	return hang[[]stint.LogLine](ctx)
}
func (hanging) Progress(ctx context.Context, _ stint.ID) ([]stint.Progress, error) {
	return hang[[]stint.Progress](ctx)
}
func (hanging) Signals(ctx context.Context, _ stint.ID) ([]stint.SentSignal, error) {
	return hang[[]stint.SentSignal](ctx)
}
func (hanging) Signal(ctx context.Context, _ stint.Tx, _ stint.ID, _ stint.Signal) error {
	return hangs(ctx)
}
func (hanging) FlowGraph(ctx context.Context, _ stint.ID, _, _ int) (store.FlowGraph, error) {
	return hang[store.FlowGraph](ctx)
}

func (hanging) Answer(ctx context.Context, _ stint.Tx, _ stint.ID, _ string, _ stint.Answer) error {
	return hangs(ctx)
}
func (hanging) Questions(ctx context.Context, _ store.QuestionFilter) ([]store.OpenQuestion, error) {
	return hang[[]store.OpenQuestion](ctx)
}
func (hanging) Jobs(ctx context.Context, _ store.Filter) ([]stint.JobInfo, error) {
	return hang[[]stint.JobInfo](ctx)
}
func (hanging) Find(ctx context.Context, _ store.Filter) ([]stint.ID, error) {
	return hang[[]stint.ID](ctx)
}
func (hanging) Counts(ctx context.Context) (map[stint.State]int64, error) {
	return hang[map[stint.State]int64](ctx)
}
func (hanging) Kinds(ctx context.Context) ([]stint.KindInfo, error) {
	return hang[[]stint.KindInfo](ctx)
}
func (hanging) Queues(ctx context.Context) ([]store.QueueInfo, error) {
	return hang[[]store.QueueInfo](ctx)
}
func (hanging) Paused(ctx context.Context) ([]string, error)      { return hang[[]string](ctx) }
func (hanging) Now(ctx context.Context) (time.Time, error)        { return hang[time.Time](ctx) }
func (hanging) Drain(ctx context.Context, _ store.EngineID) error { return hangs(ctx) }
func (hanging) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	return hang[[]store.EngineInfo](ctx)
}
func (hanging) FormerEngines(ctx context.Context, _ store.FormerFilter) ([]store.FormerEngine, error) {
	return hang[[]store.FormerEngine](ctx)
}
func (hanging) Limits(ctx context.Context) ([]store.LimitInfo, error) {
	return hang[[]store.LimitInfo](ctx)
}
func (hanging) Unblock(ctx context.Context, _ string) ([]stint.ID, error) {
	return hang[[]stint.ID](ctx)
}
func (hanging) Gates(ctx context.Context, _ string, _ int) ([]store.GateInfo, error) {
	return hang[[]store.GateInfo](ctx)
}
func (hanging) Leases(ctx context.Context) ([]store.Lease, error) { return hang[[]store.Lease](ctx) }
func (hanging) Schedules(ctx context.Context) ([]store.ScheduleInfo, error) {
	return hang[[]store.ScheduleInfo](ctx)
}
func (hanging) Schedule(ctx context.Context, _ string) (*store.ScheduleInfo, error) {
	return hang[*store.ScheduleInfo](ctx)
}
func (hanging) EngineMetrics(ctx context.Context) ([]report.Metrics, error) {
	return hang[[]report.Metrics](ctx)
}
func (hanging) Changes(ctx context.Context, _ store.ChangeFilter) ([]store.Change, error) {
	return hang[[]store.Change](ctx)
}
func (hanging) Analyze(ctx context.Context, _ report.AnalyticsFilter) (report.Analytics, error) {
	return hang[report.Analytics](ctx)
}
func (hanging) AnalyzeKinds(ctx context.Context, _ report.AnalyticsFilter) ([]report.KindAnalytics, error) {
	return hang[[]report.KindAnalytics](ctx)
}
func (hanging) DueBy(ctx context.Context, _ report.Field, _ report.AnalyticsFilter, _ int) ([]report.DueGroup, error) {
	return hang[[]report.DueGroup](ctx)
}
func (hanging) Errors(ctx context.Context, _ report.ErrorFilter) (report.ErrorReport, error) {
	return hang[report.ErrorReport](ctx)
}
func (hanging) ReopenErrors(ctx context.Context, _ string) (bool, error) { return hang[bool](ctx) }
func (hanging) Stats(ctx context.Context, _ report.StatsFilter) ([]report.Stats, error) {
	return hang[[]report.Stats](ctx)
}
func (hanging) Demand(ctx context.Context, _ []string, _ time.Duration) (report.Demand, error) {
	return hang[report.Demand](ctx)
}
func (hanging) Examine(ctx context.Context, _ report.Options) (report.Facts, error) {
	return hang[report.Facts](ctx)
}
func (hanging) Schema(ctx context.Context) (store.SchemaInfo, error) {
	return hang[store.SchemaInfo](ctx)
}
func (hanging) Cancel(ctx context.Context, _ []stint.ID, _ string) (map[stint.ID]stint.CancelStatus, error) {
	return hang[map[stint.ID]stint.CancelStatus](ctx)
}
func (hanging) Retry(ctx context.Context, _ []stint.ID, _ stint.RerunOptions) (map[stint.ID]stint.RerunResult, error) {
	return hang[map[stint.ID]stint.RerunResult](ctx)
}
func (hanging) Delete(ctx context.Context, _ []stint.ID) (map[stint.ID]store.DeleteStatus, error) {
	return hang[map[stint.ID]store.DeleteStatus](ctx)
}
func (hanging) Pause(ctx context.Context, _, _, _ string) (bool, error) { return hang[bool](ctx) }
func (hanging) Resume(ctx context.Context, _ string) (bool, error)      { return hang[bool](ctx) }
func (hanging) ResumeLimit(ctx context.Context, _ string) (bool, error) { return hang[bool](ctx) }
func (hanging) RemoveSchedule(ctx context.Context, _, _ string) ([]stint.ID, error) {
	return hang[[]stint.ID](ctx)
}
func (hanging) PauseSchedule(ctx context.Context, _, _, _ string) (bool, error) {
	return hang[bool](ctx)
}
func (hanging) ResumeSchedule(ctx context.Context, _ string) (bool, error) { return hang[bool](ctx) }
func (hanging) RunSchedule(ctx context.Context, _ string) (stint.ID, error) {
	return hang[stint.ID](ctx)
}
func (hanging) SavedFilters(ctx context.Context) ([]store.SavedFilter, error) {
	return hang[[]store.SavedFilter](ctx)
}
func (hanging) SaveFilter(ctx context.Context, _ store.SavedFilter) (store.SavedFilter, bool, error) {
	f, err := hang[store.SavedFilter](ctx)
	return f, false, err
}
func (hanging) RenameFilter(ctx context.Context, _, _ string) error {
	_, err := hang[bool](ctx)
	return err
}
func (hanging) DeleteFilter(ctx context.Context, _ string) (bool, error) { return hang[bool](ctx) }
func (hanging) Revoke(ctx context.Context, _, _, _ string) (store.Revocation, bool, error) {
	d, err := hang[store.Revocation](ctx)
	return d, false, err
}

func TestNobodyWaitsForEverForTheDatabase(t *testing.T) {
	bodies := map[string]string{
		"jobs-enqueue": `{"jobs":[{"kind":"mail"}],"force":true}`, "flows-enqueue": `{"flow":{"kind":"import","jobs":[{"kind":"mail"}]},"force":true}`, "flows-add": `{"jobs":[{"kind":"mail"}],"force":true}`, "jobs-cancel": `{"ids":[1]}`, "jobs-retry": `{"ids":[1]}`, "jobs-delete": `{"filter":{}}`, "jobs-signal": `{"name":"go"}`, "jobs-answer": `{"question":"q","choice":"yes"}`,
		"limits-set": `{"rule":"10"}`, "limits-pause": `{"for":"10m"}`, "filters-save": `{"query":"kind=k"}`, "filters-rename": `{"to":"f"}`, "schedules-add": `{"recurrence":"@daily","job":{"kind":"mail"},"force":true}`,
	}
	counting := []string{"queues-list", "queues-show", "jobs-count", "analytics-due", "doctor"}
	for _, deaf := range []bool{false, true} {
		h := api.New(hanging{deaf: deaf}, api.Config{Bury: func(ctx context.Context, _ store.EngineID, _ string) (int, error) { return hang[int](ctx) }})
		ask := func(method, path string, op *huma.Operation) {
			body := ""
			if op.RequestBody != nil {
				if body = bodies[op.OperationID]; body == "" {
					body = "{}"
				}
			}
			want := time.Minute
			if method == "GET" && !slices.Contains(counting, op.OperationID) {
				want = 10 * time.Second
			}
			synctest.Test(t, func(t *testing.T) {
				r := httptest.NewRequest(method, inBraces.ReplaceAllString(strings.Replace(path, "{key}", "0123456789abcdef", 1), "1")+"?by=queue", strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w, begin := httptest.NewRecorder(), time.Now()
				h.ServeHTTP(w, r.WithContext(guard.With(r.Context(), guard.Identity{Role: guard.Admin})))
				var told api.Problem
				if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil || w.Header().Get("Content-Type") != "application/problem+json" {
					t.Errorf("%s: %v, %s", op.OperationID, err, w.Body)
				}
				status, detail := http.StatusGatewayTimeout, "the database did not answer in time"
				if deaf && method != "GET" && !slices.Contains([]string{"jobs-enqueue", "flows-enqueue", "flows-add"}, op.OperationID) {
					status, detail = http.StatusServiceUnavailable, "nothing was changed, since it could not be written down who changes what"
				}
				if took := time.Since(begin); took != want || w.Code != status || told.Status != status || told.Detail != detail {
					t.Errorf("%s: behind %v it answers %d %s, want behind %v %d", op.OperationID, took, w.Code, w.Body, want, status)
				}
			})
		}
		for path, item := range h.OpenAPI().Paths {
			for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "DELETE": item.Delete} {
				if op != nil {
					ask(method, path, op)
				}
			}
		}
	}
}
