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
	"github.com/stint-go/stint/admin/api"
	"github.com/stint-go/stint/admin/guard"
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

func (h hanging) BeginChange(ctx context.Context, _ stint.NewChange) (int64, error) {
	if h.deaf {
		return hang[int64](ctx)
	}
	return 1, nil
}
func (hanging) EndChange(context.Context, int64, string) error { return nil }
func (hanging) Job(ctx context.Context, _ stint.ID) (*stint.JobInfo, error) {
	return hang[*stint.JobInfo](ctx)
}
func (hanging) Jobs(ctx context.Context, _ stint.Filter) ([]stint.JobInfo, error) {
	return hang[[]stint.JobInfo](ctx)
}
func (hanging) Find(ctx context.Context, _ stint.Filter) ([]stint.ID, error) {
	return hang[[]stint.ID](ctx)
}
func (hanging) Counts(ctx context.Context) (map[stint.State]int64, error) {
	return hang[map[stint.State]int64](ctx)
}
func (hanging) Kinds(ctx context.Context) ([]stint.Declaration, error) {
	return hang[[]stint.Declaration](ctx)
}
func (hanging) Queues(ctx context.Context) ([]stint.QueueInfo, error) {
	return hang[[]stint.QueueInfo](ctx)
}
func (hanging) Paused(ctx context.Context) ([]string, error)   { return hang[[]string](ctx) }
func (hanging) Now(ctx context.Context) (time.Time, error)     { return hang[time.Time](ctx) }
func (hanging) Drain(ctx context.Context, _ stint.Token) error { return hangs(ctx) }
func (hanging) Engines(ctx context.Context) ([]stint.EngineInfo, error) {
	return hang[[]stint.EngineInfo](ctx)
}
func (hanging) Leases(ctx context.Context) ([]stint.Lease, error) { return hang[[]stint.Lease](ctx) }
func (hanging) Schedules(ctx context.Context) ([]stint.ScheduleInfo, error) {
	return hang[[]stint.ScheduleInfo](ctx)
}
func (hanging) Schedule(ctx context.Context, _ string) (*stint.ScheduleInfo, error) {
	return hang[*stint.ScheduleInfo](ctx)
}
func (hanging) EngineMetrics(ctx context.Context) ([]stint.Metrics, error) {
	return hang[[]stint.Metrics](ctx)
}
func (hanging) Changes(ctx context.Context, _ stint.ChangeFilter) ([]stint.Change, error) {
	return hang[[]stint.Change](ctx)
}
func (hanging) Analyze(ctx context.Context, _ stint.AnalyticsFilter) (stint.Analytics, error) {
	return hang[stint.Analytics](ctx)
}
func (hanging) AnalyzeKinds(ctx context.Context, _ stint.AnalyticsFilter) ([]stint.KindAnalytics, error) {
	return hang[[]stint.KindAnalytics](ctx)
}
func (hanging) DueBy(ctx context.Context, _ stint.Field, _ stint.AnalyticsFilter, _ int) ([]stint.DueGroup, error) {
	return hang[[]stint.DueGroup](ctx)
}
func (hanging) Errors(ctx context.Context, _ stint.ErrorFilter) (stint.ErrorReport, error) {
	return hang[stint.ErrorReport](ctx)
}
func (hanging) Stats(ctx context.Context, _ stint.StatsFilter) ([]stint.Stats, error) {
	return hang[[]stint.Stats](ctx)
}
func (hanging) Examine(ctx context.Context, _ stint.Examination) (stint.Signs, error) {
	return hang[stint.Signs](ctx)
}
func (hanging) Schema(ctx context.Context) (stint.SchemaInfo, error) {
	return hang[stint.SchemaInfo](ctx)
}
func (hanging) Cancel(ctx context.Context, _ []stint.ID, _ string) (map[stint.ID]stint.Cancellation, error) {
	return hang[map[stint.ID]stint.Cancellation](ctx)
}
func (hanging) Retry(ctx context.Context, _ []stint.ID, _ stint.Again) (map[stint.ID]stint.Retried, error) {
	return hang[map[stint.ID]stint.Retried](ctx)
}
func (hanging) Delete(ctx context.Context, _ []stint.ID) (map[stint.ID]stint.Deletion, error) {
	return hang[map[stint.ID]stint.Deletion](ctx)
}
func (hanging) Pause(ctx context.Context, _, _, _ string) (bool, error) { return hang[bool](ctx) }
func (hanging) Resume(ctx context.Context, _ string) (bool, error)      { return hang[bool](ctx) }
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
func (hanging) Depose(ctx context.Context, _, _, _ string) (stint.Deposition, bool, error) {
	d, err := hang[stint.Deposition](ctx)
	return d, false, err
}

func TestNobodyWaitsForEverForTheDatabase(t *testing.T) {
	bodies := map[string]string{
		"enqueue-jobs": `{"jobs":[{"kind":"mail"}],"force":true}`, "cancel-jobs": `{"ids":[1]}`, "retry-jobs": `{"ids":[1]}`, "delete-jobs": `{"filter":{}}`,
		"declare-schedule": `{"recurrence":"@daily","job":{"kind":"mail"},"force":true}`,
	}
	counting := []string{"list-queues", "count-jobs", "due-by", "doctor"}
	for _, deaf := range []bool{false, true} {
		h := api.New(hanging{deaf: deaf}, api.Config{Bury: func(ctx context.Context, _ stint.Token, _ string) (int, error) { return hang[int](ctx) }})
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
				r := httptest.NewRequest(method, inBraces.ReplaceAllString(path, "1")+"?by=queue", strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w, begin := httptest.NewRecorder(), time.Now()
				h.ServeHTTP(w, r.WithContext(guard.With(r.Context(), guard.Identity{Role: guard.Admin})))
				var told api.Problem
				if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil || w.Header().Get("Content-Type") != "application/problem+json" {
					t.Errorf("%s: %v, %s", op.OperationID, err, w.Body)
				}
				status, detail := http.StatusGatewayTimeout, "the database did not answer in time"
				if deaf && method != "GET" && op.OperationID != "enqueue-jobs" {
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
