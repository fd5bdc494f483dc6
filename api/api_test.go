package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/jobs/httpjob"
	"github.com/stint-go/stint/jobs/shelljob"
	"github.com/stint-go/stint/jobs/stepjob"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

var update = flag.Bool("update", false, "write the golden files")

// site is an API over a fresh store.
type site struct {
	*testing.T
	store   *sqlite.Store
	handler http.Handler
	server  *httptest.Server
	doc     *huma.OpenAPI
	who     guard.Identity // who asks

	buriedWhy string
	host      *engine.Engine // of workers; it does not run
}

func open(t *testing.T) *site { return openWith(t, func(s *sqlite.Store) api.Store { return s }) }

// openWith is open with something between the API and its store.
func openWith(t *testing.T, between func(*sqlite.Store) api.Store) *site {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	host, err := engine.New(db, stint.NewMux(), engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, store: db, host: host, who: guard.Identity{Name: "tester", Role: guard.Admin}}
	h := api.New(between(db), api.Config{
		Workers: gateway.New(db, gateway.Config{Host: s.host}),
		Version: "test", Restricted: []string{"sh"}, HideArgs: true,
		Bury: func(ctx context.Context, token store.EngineID, why string) (int, error) {
			s.buriedWhy = why
			return engine.Bury(ctx, db, token, why)
		},
		OnError: func(_ context.Context, operation string, err error) { t.Errorf("%s: %v", operation, err) },
	})
	s.serve(h)
	return s
}

// serve starts to serve an API.
func (s *site) serve(h *api.Handler) {
	s.handler, s.doc = h, h.OpenAPI()
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(guard.With(r.Context(), s.who)))
	}))
	s.Cleanup(s.server.Close)
}

// ask sends a request, and holds the answer to what the document says of it.
func (s *site) ask(method, path string, body any) (int, []byte) {
	s.Helper()
	var sent io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		sent = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			s.Fatal(err)
		}
		sent = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(s.Context(), method, s.server.URL+api.Prefix+path, sent)
	if err != nil {
		s.Fatal(err)
	}
	if sent != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := s.server.Client().Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	s.documented(method, path, res, text)
	return res.StatusCode, text
}

// documented checks an answer against the document.
func (s *site) documented(method, path string, res *http.Response, text []byte) {
	s.Helper()
	op := s.operation(method, path)
	if op == nil {
		s.Fatalf("%s %s is not in the document", method, path)
	}
	response := op.Responses[fmt.Sprint(res.StatusCode)]
	if response == nil {
		response = op.Responses["default"]
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	if response == nil || response.Content[kind] == nil {
		s.Fatalf("%s %s: %d as %s is not in the document", method, path, res.StatusCode, kind)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		s.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
	var result huma.ValidateResult
	huma.Validate(s.doc.Components.Schemas, response.Content[kind].Schema, huma.NewPathBuffer([]byte{}, 0), huma.ModeReadFromServer, value, &result)
	for _, err := range result.Errors {
		s.Errorf("%s %s: %d is not as documented: %v in %s", method, path, res.StatusCode, err, text)
	}
}

// operation finds one by a path with values in it.
func (s *site) operation(method, path string) *huma.Operation {
	path, _, _ = strings.Cut(path, "?")
	if item := s.doc.Paths[api.Prefix+path]; item != nil && method == "GET" && item.Get != nil {
		return item.Get
	}
	for pattern, item := range s.doc.Paths {
		got, want := strings.Split(api.Prefix+path, "/"), strings.Split(pattern, "/")
		if len(got) != len(want) {
			continue
		}
		fits := true
		for i := range want {
			fits = fits && (want[i] == got[i] || strings.HasPrefix(want[i], "{"))
		}
		op := map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "DELETE": item.Delete}[method]
		if fits && op != nil {
			return op
		}
	}
	return nil
}

// get asks and decodes an answer of the status wanted.
func get[T any](s *site, want int, method, path string, body any) T {
	s.Helper()
	status, text := s.ask(method, path, body)
	if status != want {
		s.Fatalf("%s %s: %d %s, want %d", method, path, status, text, want)
	}
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		s.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
	return v
}

// items gets a list.
func items[T any](s *site, want int, method, path string, body any) []T {
	s.Helper()
	return get[ops.List[T]](s, want, method, path, body).Items
}

// enqueue stores n jobs of a kind that nobody performs.
func (s *site) enqueue(n int, job map[string]any) []stint.ID {
	s.Helper()
	if job["kind"] == nil {
		job["kind"] = "mail"
	}
	receipts := items[stint.Receipt](s, 201, "POST", "/jobs", map[string]any{"jobs": slices.Repeat([]any{job}, n), "force": true})
	var ids []stint.ID
	for _, r := range receipts {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestAJobIsStoredAsTheRequestSays(t *testing.T) {
	s := open(t)
	id := s.enqueue(1, map[string]any{
		"kind": "mail", "args": json.RawMessage(`{"n":12345678901234567890}`), "queue": "out", "priority": -3, "delay": "1h", "retry": "fixed:2:1s",
		"timeout": "30s", "start_within": "2d", "max_losses": 0, "tags": []string{"a", "b"}, "urn": "urn:x", "source": "web",
		"metadata": map[string]int{"v": 1}, "correlation": "c", "idempotency_key": "k",
	})[0]
	job := get[stint.JobInfo](s, 200, "GET", "/jobs/"+id.String(), nil)
	stored, err := s.store.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*stored, job); diff != "" {
		t.Errorf("the answer is not what is stored (-stored +told):\n%s", diff)
	}
	if string(job.Args) != `{"n":12345678901234567890}` || job.Queue != "out" || job.Priority != -3 || job.State != stint.Scheduled ||
		job.Retry != "fixed:2:1s" || job.Timeout.AsDuration().Seconds() != 30 || job.MaxLosses != 0 || job.StartBy.Sub(job.Due).Hours() != 48 ||
		job.Due.Sub(job.Created).Minutes() != 60 || job.URN != "urn:x" || job.Source != "web" || job.Correlation != "c" {
		t.Errorf("the job is %+v", job)
	}
	again := items[stint.Receipt](s, 201, "POST", "/jobs", `{"force":true,"jobs":[{"kind":"mail","args":{"n":12345678901234567890},"idempotency_key":"k"}]}`)
	if !again[0].Duplicate || again[0].ID != id {
		t.Errorf("the repetition is answered with %+v", again)
	}
}

func TestWhatAKindDeclaresHoldsForItsJobs(t *testing.T) {
	s := open(t)
	limit := 1
	decl := stint.KindInfo{Name: "report", Queue: "reports", Priority: 5, Tags: []string{"r"}, MaxLosses: &limit}
	if err := s.store.Join(t.Context(), store.EngineInfo{Token: 7, Instance: "e", Host: "h", Slots: 1, TimeToLive: 1e9, Kinds: []string{"report"}}, []stint.KindInfo{decl}); err != nil {
		t.Fatal(err)
	}
	receipts := items[stint.Receipt](s, 201, "POST", "/jobs", `{"jobs":[{"kind":"report"},{"kind":"report","queue":"own","priority":0}]}`)
	of := func(i int) stint.JobInfo {
		return get[stint.JobInfo](s, 200, "GET", "/jobs/"+receipts[i].ID.String(), nil)
	}
	if j := of(0); j.Queue != "reports" || j.Priority != 5 || j.MaxLosses != 1 || !slices.Equal(j.Tags, []string{"r"}) {
		t.Errorf("the declared defaults gave %+v", j)
	}
	if j := of(1); j.Queue != "own" || j.Priority != 0 {
		t.Errorf("what the request says gave %+v", j)
	}
}

func TestWhatIsWrongIsToldWithItsPlace(t *testing.T) {
	s := open(t)
	s.enqueue(1, map[string]any{"idempotency_key": "k"})
	for _, c := range []struct {
		method, path, body string
		status             int
		place              string // of the first error
	}{
		{"POST", "/jobs", `{"jobs":[{"kind":"a"},{"kind":"b"}]}`, 422, "body.jobs[0].kind"},
		{"POST", "/jobs", `{"force":true,"jobs":[{"kind":"a"},{"kind":"b","queue":" b"}]}`, 422, "body.jobs[1].queue"},
		{"POST", "/jobs", `{"force":true,"jobs":[{"kind":"a","priority":101}]}`, 422, "body.jobs[0].priority"},
		{"POST", "/jobs", `{"force":true,"jobs":[{"kind":"a","start_within":"soon"}]}`, 422, "body.jobs[0].start_within"},
		{"POST", "/jobs", `{"force":true,"jobs":[{"kind":"a","delay":"1h","run_at":"2030-01-01T00:00:00Z"}]}`, 422, "body.jobs[0].run_at"},
		{"POST", "/jobs", `{"force":true,"jobs":[{"kind":"a","retry":"often"}]}`, 422, "body.jobs[0].retry"},
		{"POST", "/jobs", `{"force":true,"jobs":[{"kind":"a","metadata":[1]}]}`, 422, "body.jobs[0].metadata"},
		{"POST", "/jobs", `{"force":true,"jobs":[{"kind":"a","qeue":"b"}]}`, 422, "body.jobs[0].qeue"},
		{"POST", "/jobs", `{"force":true,"jobs":[]}`, 422, "body.jobs"},
		{"POST", "/jobs", `{"force":true,"jobs":[{"kind":"other","idempotency_key":"k"}]}`, 409, ""},
		{"POST", "/jobs", `{`, 400, ""},
		{"GET", "/jobs?state=asleep", "", 422, "query.state[0]"},
		{"GET", "/jobs?limit=0", "", 422, "query.limit"},
		{"GET", "/jobs?before=x", "", 422, "query.before"},
		{"GET", "/jobs?longer=soon", "", 422, "query.longer"},
		{"GET", "/jobs?kind=%20x", "", 422, "query.kind"},
		{"GET", "/jobs?created_after=2026-01-02T00:00:00Z&created_before=2026-01-01T00:00:00Z", "", 422, "query.created_before"},
		{"GET", "/jobs/77", "", 404, ""},
		{"GET", "/jobs/0", "", 422, "path.id"},
		{"POST", "/jobs/cancel", `{}`, 422, "body.filter"},
		{"POST", "/jobs/cancel", `{"ids":[1],"filter":{}}`, 422, "body.ids"},
		{"POST", "/jobs/cancel", `{"filter":{"queue":" x"}}`, 422, "body.filter.queue"},
		{"POST", "/jobs/retry", `{"ids":[1],"delay":"-1s"}`, 422, "body.delay"},
		{"POST", "/jobs/retry", `{"ids":[1],"run_at":"soon"}`, 422, "body.run_at"},
		{"POST", "/queues/%2A/pause", `{}`, 422, "path.queue"},
		{"PUT", "/schedules/s", `{"recurrence":"61 * * * *","job":{"kind":"mail"},"force":true}`, 422, "body.recurrence"},
		{"PUT", "/schedules/s", `{"recurrence":"@daily","zone":"Nowhere","job":{"kind":"mail"},"force":true}`, 422, "body.zone"},
		{"PUT", "/schedules/s", `{"recurrence":"@daily","job":{"kind":"mail","queue":""},"missed":"x","force":true}`, 422, "body.missed"},
		{"PUT", "/schedules/s", `{"recurrence":"@daily","job":{"kind":"mail","priority":-500},"force":true}`, 422, "body.job.priority"},
		{"PUT", "/schedules/%20s", `{"recurrence":"@daily","job":{"kind":"mail"},"force":true}`, 422, "path.schedule"},
		{"GET", "/schedules/none", "", 404, ""},
		{"POST", "/schedules/none/run-now", "", 404, ""},
		{"GET", "/engines/5", "", 404, ""},
		{"POST", "/engines/5/bury", `{}`, 404, ""},
		{"GET", "/engines/gone?since=soon", "", 422, "query.since"},
		{"GET", "/engines/gone?engine=x", "", 422, "query.engine"},
		{"GET", "/engines/gone?limit=0", "", 422, "query.limit"},
		{"POST", "/leases/none/release", `{}`, 404, ""},
		{"GET", "/analytics/due?by=nothing", "", 422, "query.by"},
		{"GET", "/scale?target=soon", "", 422, "query.target"},
		{"GET", "/scale?target=1ms", "", 422, "query.target"},
		{"GET", "/scale?startup=2h", "", 422, "query.startup"},
		{"GET", "/scale?min=3&max=2", "", 422, "query.max"},
		{"GET", "/scale?queues=%20x", "", 422, "query.queues"},
		{"GET", "/stats?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "", 422, "query.until"},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		status, text := s.ask(c.method, c.path, body)
		var problem struct {
			Status int
			Detail string
			Errors []struct{ Location, Message string }
		}
		if err := json.Unmarshal(text, &problem); err != nil {
			t.Fatal(err)
		}
		switch {
		case status != c.status || problem.Status != c.status || problem.Detail == "":
			t.Errorf("%s %s %s: %d %s, want %d", c.method, c.path, c.body, status, text, c.status)
		case c.place != "" && (len(problem.Errors) == 0 || problem.Errors[0].Location != c.place || problem.Errors[0].Message == ""):
			t.Errorf("%s %s %s: %s does not name %s", c.method, c.path, c.body, text, c.place)
		}
	}
	if counts := get[map[stint.State]int64](s, 200, "GET", "/jobs/counts", nil); counts[stint.Available] != 1 {
		t.Errorf("what was refused left %v", counts)
	}
}

func TestABodyWithoutEndIsCutOff(t *testing.T) {
	s := open(t)
	body := io.MultiReader(strings.NewReader(`{"jobs":[{"kind":"mail","args":"`), io.LimitReader(letters{}, 64<<20), strings.NewReader(`"}]}`))
	r := httptest.NewRequest("POST", api.Prefix+"/jobs", body)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r.WithContext(guard.With(r.Context(), s.who)))
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("64 MiB are answered with %d", w.Code)
	}
}

func TestEveryParameterIsBounded(t *testing.T) {
	s := open(t)
	for path, item := range s.doc.Paths {
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "DELETE": item.Delete} {
			for _, p := range parameters(op) {
				if p.Schema.Type != "string" || p.Schema.Enum != nil || p.Schema.Format == "date-time" {
					continue
				}
				if p.Schema.MaxLength == nil {
					t.Errorf("%s %s: %s may be as long as it likes", method, path, p.Name)
					continue
				}
				long := strings.Repeat("x", *p.Schema.MaxLength+1)
				to := strings.TrimPrefix(strings.Replace(path, "{"+p.Name+"}", long, 1), api.Prefix)
				if p.In == "query" {
					to = inBraces.ReplaceAllString(to, "1") + "?" + p.Name + "=" + long
				}
				body := any(nil)
				if op.RequestBody != nil {
					body = "{}"
				}
				if status, text := s.ask(method, to, body); status != 422 || !strings.Contains(string(text), fmt.Sprintf(`"location":"%s.%s"`, p.In, p.Name)) {
					t.Errorf("%s %s: %s of %d characters: %d %s", method, path, p.Name, len(long), status, text)
				}
			}
		}
	}
}

// letters never end.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestPagesShowEachJobOnceWhateverIsEnqueuedMeanwhile(t *testing.T) {
	s := open(t)
	ids := s.enqueue(25, map[string]any{"tags": []string{"t"}})
	var seen []stint.ID
	for before := stint.ID(0); ; {
		path := "/jobs?tag=t&state=available,running&limit=10"
		if before > 0 {
			path += "&before=" + before.String()
		}
		page := get[ops.JobPage](s, 200, "GET", path, nil)
		for _, j := range page.Jobs {
			seen = append(seen, j.ID)
		}
		s.enqueue(3, map[string]any{"tags": []string{"t"}})
		if before = page.Next; before == 0 {
			break
		}
	}
	slices.Reverse(seen)
	if !slices.Equal(seen, ids) {
		t.Errorf("the pages show %v of %v", seen, ids)
	}
}

func TestAFilterChangesAllThatFitsInBoundedRequests(t *testing.T) {
	s := open(t)
	s.enqueue(1250, map[string]any{"queue": "a", "delay": "1h"})
	s.enqueue(3, map[string]any{"queue": "b"})
	dry := get[ops.Done[stint.CancelStatus]](s, 200, "POST", "/jobs/cancel", `{"filter":{"queue":"a"},"dry_run":true}`)
	if dry.Matched != 1250 || len(dry.First) != 10 || dry.Next != 0 {
		t.Errorf("the dry run says %d, shows %d, goes on at %d", dry.Matched, len(dry.First), dry.Next)
	}
	requests, cancelled := 0, 0
	for before := stint.ID(0); ; requests++ {
		request := map[string]any{"filter": map[string]any{"queue": "a"}, "limit": 600, "why": "no more"}
		if before > 0 {
			request["before"] = before
		}
		done := get[ops.Done[stint.CancelStatus]](s, 200, "POST", "/jobs/cancel", request)
		cancelled += done.Counts["cancelled"]
		if before = done.Next; before == 0 {
			break
		}
	}
	if requests != 2 || cancelled != 1250 {
		t.Errorf("%d requests after the first cancelled %d jobs", requests, cancelled)
	}
	counts := get[map[stint.State]int64](s, 200, "GET", "/jobs/counts", nil)
	if counts[stint.Cancelled] != 1250 || counts[stint.Available] != 3 {
		t.Errorf("left are %v", counts)
	}
	if again := get[ops.Done[stint.RerunResult]](s, 200, "POST", "/jobs/retry", `{"filter":{}}`); len(again.Counts) != 0 {
		t.Errorf("a filter without states retried %v", again.Counts)
	}
	few := get[ops.Done[stint.CancelStatus]](s, 200, "POST", "/jobs/cancel", `{"filter":{"state":["cancelled"]},"dry_run":true,"before":11}`)
	if few.Matched != 10 || few.First[0].ID != 10 {
		t.Errorf("below id 11 it finds %d from %d on", few.Matched, few.First[0].ID)
	}
	deleted := get[ops.Done[store.DeleteStatus]](s, 200, "POST", "/jobs/delete", `{"filter":{}}`)
	if deleted.Counts["deleted"] != 1250 {
		t.Errorf("deleted %v", deleted.Counts)
	}
}

// failing is a store whose nth cancellation fails.
type failing struct {
	*sqlite.Store
	calls, nth int
	err        error
}

func (f *failing) Cancel(ctx context.Context, ids []stint.ID, why string) (map[stint.ID]stint.CancelStatus, error) {
	if f.calls++; f.calls == f.nth {
		return nil, f.err
	}
	return f.Store.Cancel(ctx, ids, why)
}

func TestWhatFailsOnTheWayCanBeGoneOnWith(t *testing.T) {
	var f *failing
	s := openWith(t, func(s *sqlite.Store) api.Store {
		f = &failing{Store: s, nth: 2, err: fmt.Errorf("cancel: %w: %w", stint.ErrCommitUnknown, context.DeadlineExceeded)}
		return f
	})
	s.enqueue(1250, map[string]any{"delay": "1h"})
	done := get[ops.Done[stint.CancelStatus]](s, 200, "POST", "/jobs/cancel", `{"filter":{}}`)
	if done.Counts["cancelled"] != 500 || done.Next == 0 {
		t.Fatalf("of what was done before the failure it says %+v", done)
	}
	rest := get[ops.Done[stint.CancelStatus]](s, 200, "POST", "/jobs/cancel", map[string]any{"filter": map[string]any{}, "before": done.Next})
	if rest.Counts["cancelled"] != 750 || rest.Next != 0 {
		t.Errorf("going on from there came to %+v", rest)
	}
	f.calls = 1
	if status, text := s.ask("POST", "/jobs/cancel", `{"ids":[1]}`); status != 503 || !strings.Contains(string(text), "nobody knows") {
		t.Errorf("a commit of unknown fate is answered with %d %s", status, text)
	}
	ids := make([]int, 501)
	for i := range ids {
		ids[i] = i + 1
	}
	if status, _ := s.ask("POST", "/jobs/cancel", map[string]any{"ids": ids}); status != 422 {
		t.Errorf("more names than a transaction takes are answered with %d", status)
	}
}

func TestWhatComesOfChosenJobsIsToldOfEachOnRequest(t *testing.T) {
	s := open(t)
	ids := s.enqueue(3, map[string]any{"delay": "1h"})
	if quiet := get[ops.Done[stint.CancelStatus]](s, 200, "POST", "/jobs/cancel", map[string]any{"filter": map[string]any{}, "limit": 1}); quiet.Answers != nil {
		t.Errorf("told of each are %v", quiet.Answers)
	}
	each := get[ops.Done[stint.CancelStatus]](s, 200, "POST", "/jobs/cancel", `{"filter":{},"each":true}`)
	want := map[stint.ID]stint.CancelStatus{ids[0]: stint.CancelledNow, ids[1]: stint.CancelledNow}
	if diff := cmp.Diff(want, each.Answers); diff != "" {
		t.Errorf("told of each (-want +got):\n%s", diff)
	}
}

func TestIDsAreListedByTheMany(t *testing.T) {
	s := open(t)
	ids := s.enqueue(1200, map[string]any{"queue": "a"})
	s.enqueue(1, map[string]any{"queue": "b"})
	slices.Reverse(ids)
	first := get[ops.IDPage](s, 200, "GET", "/jobs/ids?queue=a", nil)
	rest := get[ops.IDPage](s, 200, "GET", "/jobs/ids?queue=a&limit=10000&before="+first.Next.String(), nil)
	if len(first.IDs) != 1000 || rest.Next != 0 || !slices.Equal(append(first.IDs, rest.IDs...), ids) {
		t.Errorf("%d and %d ids are listed, then %d", len(first.IDs), len(rest.IDs), rest.Next)
	}
}

func TestExactJobsGetNothingOfADeclaration(t *testing.T) {
	s := open(t)
	decl := stint.KindInfo{Name: "report", Queue: "reports", Priority: 5, Tags: []string{"r"}, Timeout: time.Minute}
	if err := s.store.Join(t.Context(), store.EngineInfo{Token: 7, Instance: "e", Host: "h", Slots: 1, TimeToLive: 1e9, Kinds: []string{"report"}}, []stint.KindInfo{decl}); err != nil {
		t.Fatal(err)
	}
	id := items[stint.Receipt](s, 201, "POST", "/jobs", `{"exact":true,"jobs":[{"kind":"report"}]}`)[0].ID
	if j := get[stint.JobInfo](s, 200, "GET", "/jobs/"+id.String(), nil); j.Queue != "default" || j.Priority != 0 || j.Tags != nil || j.Timeout != 0 {
		t.Errorf("it is %+v", j)
	}
	if status, text := s.ask("POST", "/jobs", `{"exact":true,"jobs":[{"kind":"other"}]}`); status != 422 {
		t.Errorf("a kind that nobody declared is answered with %d %s", status, text)
	}
}

func TestProblemsSayWhichErrorTheyAre(t *testing.T) {
	s := open(t)
	id := s.enqueue(1, map[string]any{"idempotency_key": "k"})[0]
	get[ops.Schedule](s, 200, "PUT", "/schedules/one", `{"recurrence":"@daily","unique":true,"job":{"kind":"mail"},"force":true}`)
	run := get[stint.Receipt](s, 201, "POST", "/schedules/one/run-now", nil).ID
	for _, c := range []struct {
		method, path, body string
		status             int
		want               error
	}{
		{"GET", "/jobs/99", "", 404, stint.ErrNotFound},
		{"GET", "/schedules/x", "", 404, stint.ErrNoSchedule},
		{"GET", "/engines/5", "", 404, store.ErrBuried},
		{"POST", "/jobs", `{"force":true,"jobs":[{"kind":"other","idempotency_key":"k"}]}`, 409, &stint.KeyConflictError{Key: "k", ID: id}},
		{"POST", "/schedules/one/run-now", "", 409, &store.ScheduleBusyError{Schedule: "one", Job: run}},
		{"POST", "/jobs", `{"force":true,"jobs":[{"kind":"a"},{"kind":"b","start_within":"1us"}]}`, 422, &stint.InvalidError{Field: "start within", Problem: "1µs is shorter than a millisecond"}},
		{"POST", "/errors/0123456789abcdef/mute", "{}", 404, ops.ErrNoErrors},
		{"GET", "/jobs?limit=0", "", 422, &stint.InvalidError{Field: "query.limit", Problem: "expected number >= 1"}},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		p := get[api.Problem](s, c.status, c.method, c.path, body)
		if got := p.Unwrap(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s: %+v stands for %#v, want %#v", c.method, c.path, p, p.Unwrap(), c.want)
		}
	}
	if p := get[api.Problem](s, 404, "POST", "/leases/l/release", `{}`); !errors.Is(&p, ops.ErrFreeLease) {
		t.Errorf("a lease that is free is %+v", p)
	}
	if p := get[api.Problem](s, 422, "GET", "/jobs?kind=%20x", nil); errors.Is(&p, ops.ErrFreeLease) || !errors.Is(&p, stint.ErrInvalid) {
		t.Errorf("a bad name is %+v", p)
	}
}

func TestGroupsOfErrorsAreResolvedMutedAndReopened(t *testing.T) {
	s := open(t)
	mux := stint.NewMux()
	stint.Handle(mux, stint.NewKind[struct{}]("print"), func(_ context.Context, job *stint.Job, _ struct{}) error {
		return stint.NoRetry(fmt.Errorf("no paper in tray %d", job.ID))
	})
	e, err := engine.New(s.store, mux, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	fail := func() {
		s.enqueue(1, map[string]any{"kind": "print"})
		if n, err := e.RunReady(t.Context(), nil); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	shown := func(query string, want ...report.ErrorState) report.ErrorGroup {
		t.Helper()
		r := get[report.ErrorReport](s, 200, "GET", "/errors"+query, nil)
		var states []report.ErrorState
		for _, g := range r.Groups {
			states = append(states, g.State)
		}
		if !slices.Equal(states, want) {
			t.Fatalf("%q shows %+v, want %v", query, r, want)
		}
		if len(r.Groups) == 0 {
			return report.ErrorGroup{}
		}
		return r.Groups[0]
	}
	fail()
	key := shown("", report.ErrorsOpen).Key
	of := "?key=" + key
	s.who.Name = "ann"
	if m := get[report.ErrorMark](s, 200, "POST", "/errors/"+key+"/resolve", `{"why":"filled up","kind":"print"}`); m.State != report.ErrorsResolved || m.Key != key || m.By != "ann" || m.Why != "filled up" || m.At.IsZero() {
		t.Errorf("it is marked as %+v", m)
	}
	shown("")
	shown("?state=muted")
	shown("?state=all", report.ErrorsResolved)
	shown("?state=resolved", report.ErrorsResolved)
	if g := shown(of, report.ErrorsResolved); g.By != "ann" || g.Why != "filled up" || g.Pattern != "no paper in tray #" {
		t.Errorf("it is %+v", g)
	}
	time.Sleep(2 * time.Millisecond)
	fail()
	shown("", report.ErrorsReturned)
	shown("?state=returned", report.ErrorsReturned)
	shown(of + "&state=resolved")
	get[report.ErrorMark](s, 200, "POST", "/errors/"+key+"/mute", `{}`)
	fail()
	shown("")
	if g := shown("?state=muted", report.ErrorsMuted); g.Attempts != 3 {
		t.Errorf("it is %+v", g)
	}
	for _, want := range []bool{true, false} {
		if c := get[ops.Changed](s, 200, "POST", "/errors/"+key+"/reopen", nil); c.Changed != want {
			t.Errorf("reopening it says %v, want %v", c.Changed, want)
		}
	}
	shown("", report.ErrorsOpen)
	get[api.Problem](s, 404, "POST", "/errors/"+key+"/mute", `{"kind":"other"}`)
	for _, bad := range []string{"/errors?key=1", "/errors?key=0123456789ABCDEF", "/errors?state=odd", "/errors?kind=%20x"} {
		get[api.Problem](s, 422, "GET", bad, nil)
	}
	get[api.Problem](s, 422, "POST", "/errors/0123456789ABCDEF/mute", `{}`)
	get[api.Problem](s, 422, "POST", "/errors/"+key+"/mute", `{"kind":" x"}`)
	done := get[ops.ChangePage](s, 200, "GET", "/changes?subject="+key, nil)
	if len(done.Changes) != 6 || done.Changes[5].Operation != "errors resolve" || done.Changes[5].By != "ann" || string(done.Changes[5].Details) != `{"kind":"print","why":"filled up"}` {
		t.Errorf("it is written down as %+v", done.Changes)
	}
}

// What is read of a job, a kind or a schedule can be written as it is: the values of a
// job's options have one form.
func TestWhatIsReadCanBeWrittenBack(t *testing.T) {
	s := open(t)
	said := map[string]any{
		"kind": "mail", "queue": "post", "priority": -3, "retry": "fixed:2:1s", "timeout": "1h30m", "max_losses": 0, "tags": []string{"vip"}, "urn": "order:7", "source": "crm",
		"args": map[string]any{"to": "ann"}, "metadata": map[string]any{"trace": "x"}, "correlation": "c7", "start_by": "2999-01-01T00:00:00Z", "unique": "until-ended", "limits": []string{"smtp"},
	}
	schema := s.doc.Components.Schemas.Map()["NewJob"].Properties
	first := s.enqueue(1, said)[0]
	read := get[map[string]any](s, 200, "GET", "/jobs/"+first.String(), nil)
	again := map[string]any{}
	for name, value := range read {
		if schema[name] != nil {
			again[name] = value
		}
	}
	if len(again) < len(said) {
		t.Errorf("of %v this is read: %v", said, again)
	}
	if answer := get[map[string]any](s, 200, "POST", "/jobs/"+first.String()+"/cancel", nil); answer["answer"] != "cancelled" {
		t.Error(answer)
	}
	second := s.enqueue(1, again)[0]
	written := get[map[string]any](s, 200, "GET", "/jobs/"+second.String(), nil)
	for name := range again {
		if diff := cmp.Diff(read[name], written[name]); diff != "" {
			t.Errorf("%s is written as it was read, and is another (-read +written): %s", name, diff)
		}
	}

	declared := map[string]any{
		"recurrence": "30 2 * * *", "zone": "Europe/Berlin", "missed": "all:5", "unique": true, "not_before": "2026-03-01T00:00:00Z", "force": true,
		"job": map[string]any{"kind": "report", "timeout": "90s", "retry": "none"},
	}
	get[map[string]any](s, 200, "PUT", "/schedules/nightly", declared)
	shown := get[struct{ Schedule map[string]any }](s, 200, "GET", "/schedules/nightly", nil).Schedule
	shown["force"] = true
	back := get[map[string]any](s, 200, "PUT", "/schedules/nightly", shown)
	for _, name := range []string{"recurrence", "zone", "missed", "unique", "not_before", "job", "state", "created"} {
		if diff := cmp.Diff(shown[name], back[name]); diff != "" || shown[name] == nil {
			t.Errorf("the schedule is declared as it was read, and its %s is another (-read +declared): %s", name, diff)
		}
	}
	shown["recurence"] = "@daily"
	if status, text := s.ask("PUT", "/schedules/nightly", shown); status != 422 {
		t.Errorf("a name that is mistyped: %d %s", status, text)
	}

	kind := stint.KindInfo{Name: "fetch", Queue: "net", Retry: retry.Fixed(2, time.Second), Timeout: time.Minute, StartWithin: time.Hour}
	if err := s.store.Join(t.Context(), store.EngineInfo{Token: 5, Instance: "one", Slots: 1, TimeToLive: time.Minute}, []stint.KindInfo{kind}); err != nil {
		t.Fatal(err)
	}
	for _, k := range items[map[string]any](s, 200, "GET", "/kinds", nil) {
		if k["timeout"] != "1m" || k["start_within"] != "1h" || k["retry"] != "fixed:2:1s" {
			t.Errorf("the kind is %v", k)
		}
		id := s.enqueue(1, map[string]any{"kind": k["name"], "retry": k["retry"], "timeout": k["timeout"], "start_within": k["start_within"]})[0]
		if j := get[map[string]any](s, 200, "GET", "/jobs/"+id.String(), nil); j["timeout"] != "1m" || j["retry"] != "fixed:2:1s" {
			t.Errorf("a job with what its kind says is %v", j)
		}
	}
}

func TestOneJobIsCancelledRetriedAndDeleted(t *testing.T) {
	s := open(t)
	id := s.enqueue(1, map[string]any{"delay": "1h"})[0]
	at := "/jobs/" + id.String()
	refused := func(want int, problem, method, path string) {
		t.Helper()
		if p := get[api.Problem](s, want, method, path, nil); p.Type != "urn:stint:problem:"+problem {
			t.Errorf("%s %s is the problem %q", method, path, p.Type)
		}
	}
	said := func(method, path string, body any, want string) stint.RerunResult {
		t.Helper()
		got := get[stint.RerunResult](s, 200, method, path, body)
		if string(got.Answer) != want {
			t.Errorf("%s %s answers %q, want %q", method, path, got.Answer, want)
		}
		return got
	}
	refused(409, "not-ended", "DELETE", at)
	said("POST", at+"/retry", map[string]any{"run_at": "+2h"}, "scheduled")
	if j := get[stint.JobInfo](s, 200, "GET", at, nil); time.Until(j.Due).Round(time.Minute) != 2*time.Hour {
		t.Errorf("it is due in %v", time.Until(j.Due))
	}
	said("POST", at+"/retry", nil, "ready")
	said("POST", at+"/cancel", map[string]any{"why": "a mistake"}, "cancelled")
	if j := get[stint.JobInfo](s, 200, "GET", at, nil); j.Reason != "a mistake" {
		t.Errorf("it was cancelled, since %q", j.Reason)
	}
	made := said("POST", at+"/retry", nil, "recovered")
	if j := get[stint.JobInfo](s, 200, "GET", "/jobs/"+made.ID.String(), nil); j.Origin.Recovered != id {
		t.Errorf("job %d repeats job %d", made.ID, j.Origin.Recovered)
	}
	said("DELETE", at, nil, "deleted")
	for _, c := range [][2]string{{"DELETE", at}, {"POST", at + "/cancel"}, {"POST", at + "/retry"}, {"GET", at}} {
		refused(404, "no-such-job", c[0], c[1])
	}
	changes := get[ops.ChangePage](s, 200, "GET", "/changes?subject="+id.String()+"&limit=3", nil).Changes
	for i, operation := range []string{"jobs retry", "jobs cancel", "jobs delete"} {
		if changes[i].Operation != operation || changes[i].By != "tester" {
			t.Errorf("the log of changes has %+v in the place of %s", changes[i], operation)
		}
	}

	if err := s.store.Join(t.Context(), store.EngineInfo{Token: 5, Instance: "one", Slots: 1, TimeToLive: time.Minute}, nil); err != nil {
		t.Fatal(err)
	}
	s.who.Role = guard.Viewer
	for _, c := range [][2]string{{"DELETE", "/jobs/1"}, {"POST", "/jobs/1/cancel"}, {"POST", "/jobs/1/retry"}} {
		if status, text := s.ask(c[0], c[1], nil); status != 403 {
			t.Errorf("a viewer's %s %s: %d %s", c[0], c[1], status, text)
		}
	}
}

func TestAQueueIsShownByItself(t *testing.T) {
	s := open(t)
	s.enqueue(3, map[string]any{"queue": "mail"})
	get[ops.QueuePaused](s, 200, "POST", "/queues/mail/pause", map[string]any{"why": "a leak"})
	q := get[map[string]any](s, 200, "GET", "/queues/mail", nil)
	if counts, _ := q["counts"].(map[string]any); q["name"] != "mail" || q["paused_why"] != "a leak" || q["paused_by"] != "tester" || counts["available"] != 3.0 {
		t.Errorf("the queue is %v", q)
	}
	if q := get[store.QueueInfo](s, 200, "GET", "/queues/default", nil); q.Name != "default" || len(q.Counts) != 0 {
		t.Errorf("a queue without jobs is %v", q)
	}
	if p := get[api.Problem](s, 404, "GET", "/queues/mial", nil); p.Type != "urn:stint:problem:no-such-queue" {
		t.Errorf("a queue that there is not: %+v", p)
	}
}

// A duration counts back from now, or with a plus ahead, as flags of the command do.
func TestTimesCanBeSaidByTheirDistance(t *testing.T) {
	s := open(t)
	s.enqueue(1, map[string]any{"delay": "2h"})
	for query, want := range map[string]int{
		"created_after=1h": 1, "created_before=1h": 0, "due_after=%2B1h": 1, "due_after=%2B3h": 0, "due_before=%2B3h": 1,
		"due_after=%2B1h&due_before=%2B3h": 1, "created_after=" + url.QueryEscape(time.Now().Add(-time.Minute).Format(time.RFC3339)): 1,
	} {
		if jobs := get[ops.JobPage](s, 200, "GET", "/jobs?"+query, nil).Jobs; len(jobs) != want {
			t.Errorf("%s finds %d jobs, want %d", query, len(jobs), want)
		}
	}
	for _, path := range []string{"/jobs?created_after=-1h", "/jobs?created_after=1h&created_before=2h", "/errors?since=soon", "/stats?since=yesterday", "/stats?since=1h&until=2h", "/analytics?at=1", "/changes?since=+1h+"} {
		if p := get[api.Problem](s, 422, "GET", path, nil); len(p.Errors) != 1 || !strings.HasPrefix(p.Errors[0].Location, "query.") {
			t.Errorf("%s: %+v", path, p)
		}
	}
	for _, path := range []string{"/errors?since=1h", "/stats?since=2d&until=%2B1h", "/analytics?at=1m", "/changes?since=1h&until=%2B1m"} {
		get[map[string]any](s, 200, "GET", path, nil)
	}
	id := s.enqueue(1, map[string]any{})[0]
	if p := get[api.Problem](s, 422, "POST", "/jobs/"+id.String()+"/retry", map[string]any{"run_at": "15m"}); len(p.Errors) != 1 || p.Errors[0].Location != "body.run_at" {
		t.Errorf("a retry that was to be 15m ago: %+v", p)
	}
}

func TestUnknownPathsAndMethodsAreProblems(t *testing.T) {
	s := open(t)
	for _, c := range []struct {
		method, path string
		status       int
		detail       string
	}{
		{"GET", "/nothing", 404, "the API has no /api/v1/nothing: /api/v1/openapi.json lists what there is"},
		{"GET", "/jobs/7/nothing", 404, "the API has no /api/v1/jobs/7/nothing: /api/v1/openapi.json lists what there is"},
		{"PUT", "/jobs", 405, "PUT is not for this path, which takes GET, HEAD, POST"},
		{"DELETE", "/queues/mail/pause", 405, "DELETE is not for this path, which takes POST"},
	} {
		r := httptest.NewRequest(c.method, api.Prefix+c.path, nil)
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r.WithContext(guard.With(r.Context(), s.who)))
		var p api.Problem
		err := json.Unmarshal(w.Body.Bytes(), &p)
		if kind := w.Header().Get("Content-Type"); err != nil || kind != "application/problem+json" || w.Code != c.status || p.Status != c.status || p.Title != http.StatusText(c.status) || p.Detail != c.detail {
			t.Errorf("%s %s answers %d %s %s, %v", c.method, c.path, w.Code, kind, w.Body, err)
		}
		if allow := w.Header().Get("Allow"); (allow != "") != (c.status == 405) {
			t.Errorf("%s %s allows %q", c.method, c.path, allow)
		}
	}
}

func TestADeepLookIsForOperators(t *testing.T) {
	s := open(t)
	for role, status := range map[guard.Role]int{guard.Viewer: 403, guard.Operator: 200} {
		s.who.Role = role
		if got, text := s.ask("GET", "/doctor?deep=true", nil); got != status {
			t.Errorf("a %v is answered with %d %s", role, got, text)
		}
	}
}

func TestTheClockThatDecidesIsTold(t *testing.T) {
	s := open(t)
	if now := get[ops.Clock](s, 200, "GET", "/clock", nil).Now; time.Since(now).Abs() > time.Minute {
		t.Errorf("it is %v", now)
	}
}

func TestWhatComesOfNamedJobsIsToldOfEach(t *testing.T) {
	s := open(t)
	ids := s.enqueue(2, map[string]any{"delay": "1h"})
	cancel := get[ops.Done[stint.CancelStatus]](s, 200, "POST", "/jobs/cancel", map[string]any{"ids": []stint.ID{ids[0], 99}, "why": "left"})
	if cancel.Answers[ids[0]] != stint.CancelledNow || cancel.Answers[99] != stint.CancelNotFound {
		t.Errorf("cancelled: %v", cancel.Answers)
	}
	if j := get[stint.JobInfo](s, 200, "GET", "/jobs/"+ids[0].String(), nil); j.Reason != "left" {
		t.Errorf("the reason is %q", j.Reason)
	}
	retry := get[ops.Done[stint.RerunResult]](s, 200, "POST", "/jobs/retry", map[string]any{"ids": ids})
	if retry.Answers[ids[0]].Answer != stint.RerunRecovered || retry.Answers[ids[1]].Answer != stint.RerunReady {
		t.Errorf("retried: %v", retry.Answers)
	}
	once := get[ops.Done[stint.RerunResult]](s, 200, "POST", "/jobs/retry", map[string]any{"ids": ids[:1]})
	if once.Answers[ids[0]] != (stint.RerunResult{Answer: stint.RerunRecoveredBefore, ID: retry.Answers[ids[0]].ID}) {
		t.Errorf("once again: %v", once.Answers)
	}
	if j := get[stint.JobInfo](s, 200, "GET", "/jobs/"+ids[0].String(), nil); j.RetriedAs != retry.Answers[ids[0]].ID {
		t.Errorf("it says that it was retried as %d, want %d", j.RetriedAs, retry.Answers[ids[0]].ID)
	}
	forced := get[ops.Done[stint.RerunResult]](s, 200, "POST", "/jobs/retry", map[string]any{"ids": ids[:1], "force": true})
	if f := forced.Answers[ids[0]]; f.Answer != stint.RerunRecovered || f.ID == retry.Answers[ids[0]].ID {
		t.Errorf("by force: %v", forced.Answers)
	}
	again := get[ops.Done[stint.RerunResult]](s, 200, "POST", "/jobs/retry", `{"filter":{"state":["cancelled"]}}`)
	if again.Counts[string(stint.RerunRecoveredBefore)] != 1 {
		t.Errorf("by filter what was recovered came to %v", again.Counts)
	}
	drop := get[ops.Done[store.DeleteStatus]](s, 200, "POST", "/jobs/delete", map[string]any{"ids": ids})
	if drop.Answers[ids[0]] != store.DeletedNow || drop.Answers[ids[1]] != store.DeleteNotFinal {
		t.Errorf("deleted: %v", drop.Answers)
	}
}

func TestQueuesArePausedByWhoeverAsks(t *testing.T) {
	s := open(t)
	name := url.PathEscape("a/b é")
	for i, want := range []bool{true, false} {
		if c := get[ops.Changed](s, 200, "POST", "/queues/"+name+"/pause", `{"why":"printer is away"}`); c.Changed != want {
			t.Errorf("pause %d changed: %v", i, c.Changed)
		}
	}
	if names := items[string](s, 200, "GET", "/paused-queues", nil); !slices.Equal(names, []string{"a/b é"}) {
		t.Errorf("paused are %v", names)
	}
	queues := items[store.QueueInfo](s, 200, "GET", "/queues", nil)
	if len(queues) != 1 || queues[0].Name != "a/b é" || queues[0].By != "tester" || queues[0].Why != "printer is away" {
		t.Errorf("the queues are %+v", queues)
	}
	if c := get[ops.Changed](s, 200, "POST", "/queues/"+name+"/resume", nil); !c.Changed {
		t.Error("the queue was not resumed")
	}
}

func TestABodyThatMayBeEmptyMayBeLeftOut(t *testing.T) {
	s := open(t)
	asked := map[string]int{}
	for path, item := range s.doc.Paths {
		for method, op := range map[string]*huma.Operation{"POST": item.Post, "PUT": item.Put, "DELETE": item.Delete} {
			if op == nil || op.RequestBody == nil {
				continue
			}
			to := strings.TrimPrefix(inBraces.ReplaceAllString(strings.Replace(path, "{key}", "0123456789abcdef", 1), "1"), api.Prefix)
			without, said := s.ask(method, to, nil)
			withEmpty, saidOfEmpty := s.ask(method, to, "{}")
			if op.RequestBody.Required {
				if without != 400 || withEmpty != 422 {
					t.Errorf("%s: without a body %d %s, of an empty one %d %s", op.OperationID, without, said, withEmpty, saidOfEmpty)
				}
				continue
			}
			if asked[op.OperationID] = without; without != withEmpty || without == 400 {
				t.Errorf("%s: without a body %d %s, of an empty one %d %s", op.OperationID, without, said, withEmpty, saidOfEmpty)
			}
		}
	}
	want := map[string]int{ // 422 because they choose no jobs, 404 because there is no such thing
		"queues-pause": 200, "schedules-pause": 404, "leases-release": 404, "engines-drain": 404, "engines-bury": 404, "errors-resolve": 404, "errors-mute": 404,
		"jobs-cancel": 422, "jobs-retry": 422, "jobs-delete": 422, "jobs-cancel-one": 404, "jobs-retry-one": 404,
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASchedulesLife(t *testing.T) {
	s := open(t)
	declared := get[ops.Schedule](s, 200, "PUT", "/schedules/nightly",
		`{"recurrence":"30 2 * * *","zone":"Europe/Berlin","unique":true,"missed":"all:3","job":{"kind":"report","args":{"to":"ops"},"tags":["n"]},"force":true}`)
	if declared.Words != "at 02:30 every day" || declared.Missed != "all:3" || !declared.Unique || declared.By != "tester@api" || declared.State != "active" {
		t.Errorf("declared is %+v", declared)
	}
	if all := items[ops.Schedule](s, 200, "GET", "/schedules", nil); len(all) != 1 || all[0].Name != "nightly" {
		t.Errorf("the schedules are %+v", all)
	}
	id := get[stint.Receipt](s, 201, "POST", "/schedules/nightly/run-now", nil).ID
	if status, _ := s.ask("POST", "/schedules/nightly/run-now", nil); status != 409 {
		t.Errorf("a unique schedule whose job waits was run: %d", status)
	}
	if c := get[ops.Changed](s, 200, "POST", "/schedules/nightly/pause", `{"why":"holiday"}`); !c.Changed {
		t.Error("it was not paused")
	}
	shown := get[struct {
		Schedule ops.Schedule
		Upcoming []string
		Jobs     []stint.JobInfo
	}](s, 200, "GET", "/schedules/nightly", nil)
	if shown.Schedule.State != "paused" || shown.Schedule.PausedBy != "tester" || len(shown.Upcoming) != 10 ||
		!strings.Contains(shown.Upcoming[0], "T02:30:00+0") || len(shown.Jobs) != 1 || shown.Jobs[0].ID != id {
		t.Errorf("shown is %+v", shown)
	}
	get[ops.Changed](s, 200, "POST", "/schedules/nightly/resume", nil)
	if info, err := s.store.Schedule(t.Context(), "nightly"); err != nil || info.Next.IsZero() {
		t.Errorf("resumed, it fires next at %v, %v", info.Next, err)
	}
	if ids := get[ops.CancelledJobs](s, 200, "DELETE", "/schedules/nightly?why=old", nil).Cancelled; !slices.Equal(ids, []stint.ID{id}) {
		t.Errorf("removing it cancelled %v, not %v", ids, id)
	}
}

func TestEnginesAreSeenDrainedAndBuried(t *testing.T) {
	s := open(t)
	const token = 1<<63 - 5 // which no JSON number holds
	info := store.EngineInfo{Token: token, Instance: "e1", Host: "h", Slots: 2, TimeToLive: 3600e9, Kinds: []string{"mail"}}
	if err := s.store.Join(t.Context(), info, []stint.KindInfo{{Name: "mail"}}); err != nil {
		t.Fatal(err)
	}
	id := s.enqueue(1, map[string]any{})[0]
	claim, err := s.store.Claim(t.Context(), store.ClaimRequest{Engine: token, Serial: 1, Nonce: 1, Lane: store.LaneOf("default", 0, store.PartNormal, "").ID, Max: 1})
	if err != nil || len(claim.Entries) != 1 {
		t.Fatal(claim, err)
	}
	path := "/engines/9223372036854775803"
	engines := items[ops.Engine](s, 200, "GET", "/engines", nil)
	if len(engines) != 1 || engines[0].Token != token || engines[0].State != "working" {
		t.Fatalf("the roster is %+v", engines)
	}
	shown := get[ops.ShownEngine](s, 200, "GET", path, nil)
	if len(shown.Holds) != 1 || shown.Holds[0].ID != id || shown.Holds[0].Begun {
		t.Errorf("it holds %+v", shown.Holds)
	}
	if e := get[ops.Engine](s, 202, "POST", path+"/drain", `{"why":"a new version"}`); e.State != "draining" {
		t.Errorf("drained, it is %s", e.State)
	}
	if b := get[ops.Buried](s, 200, "POST", path+"/bury", `{"why":"it hangs"}`); b.Freed != 1 {
		t.Errorf("burying it freed %d", b.Freed)
	}
	if s.buriedWhy != "buried by hand by tester: it hangs" {
		t.Errorf("the reason is %q", s.buriedWhy)
	}
	if engines := items[ops.Engine](s, 200, "GET", "/engines", nil); len(engines) != 0 {
		t.Errorf("buried, it is still there: %+v", engines)
	}
	for _, query := range []string{"", "?engine=5,9223372036854775803&since=1h", "?instance=e1&limit=1"} {
		gone := items[ops.Engine](s, 200, "GET", "/engines/gone"+query, nil)
		if len(gone) != 1 || gone[0].Token != token || gone[0].State != "buried" || gone[0].Ended == nil || gone[0].Ended.Why != s.buriedWhy || gone[0].Ended.Freed != 1 {
			t.Errorf("%q: gone is %+v", query, gone)
		}
	}
	for _, query := range []string{"?engine=5", "?since=%2B1h", "?instance=e2"} {
		if gone := items[ops.Engine](s, 200, "GET", "/engines/gone"+query, nil); len(gone) != 0 {
			t.Errorf("%q: gone is %+v", query, gone)
		}
	}
	if shown := get[ops.ShownEngine](s, 200, "GET", path, nil); shown.State != "buried" || shown.Instance != "e1" || shown.Ended == nil || len(shown.Holds) != 0 || len(shown.Lost) != 0 {
		t.Errorf("buried, it is shown as %+v", shown)
	}
	if j := get[stint.JobInfo](s, 200, "GET", "/jobs/"+id.String(), nil); j.State != stint.Available {
		t.Errorf("its job is %s", j.State)
	}
}

func TestARoleReachesForWhatItIsFor(t *testing.T) {
	s := open(t)
	s.enqueue(1, map[string]any{})
	for _, c := range []struct {
		role               guard.Role
		method, path, body string
		status             int
	}{
		{guard.Nobody, "GET", "/jobs", "", 403},
		{guard.Viewer, "GET", "/jobs", "", 200},
		{guard.Viewer, "POST", "/jobs", `{"jobs":[{"kind":"mail"}],"force":true}`, 403},
		{guard.Viewer, "POST", "/jobs/cancel", `{"ids":[1]}`, 403},
		{guard.Viewer, "POST", "/jobs/retry", `{"ids":[1]}`, 403},
		{guard.Viewer, "POST", "/jobs/delete", `{"ids":[1]}`, 403},
		{guard.Operator, "POST", "/jobs/1/open", "", 403},
		{guard.Admin, "POST", "/jobs/1/open", "", 409},
		{guard.Viewer, "POST", "/queues/default/pause", `{}`, 403},
		{guard.Viewer, "POST", "/errors/0123456789abcdef/resolve", `{}`, 403},
		{guard.Viewer, "POST", "/errors/0123456789abcdef/mute", `{}`, 403},
		{guard.Viewer, "POST", "/errors/0123456789abcdef/reopen", "", 403},
		{guard.Viewer, "GET", "/filters", "", 200},
		{guard.Viewer, "PUT", "/filters/f", `{"query":"kind=k"}`, 403},
		{guard.Viewer, "POST", "/filters/f/rename", `{"to":"g"}`, 403},
		{guard.Viewer, "DELETE", "/filters/f", "", 403},
		{guard.Viewer, "PUT", "/schedules/s", `{"recurrence":"@daily","job":{"kind":"mail"},"force":true}`, 403},
		{guard.Viewer, "DELETE", "/schedules/s", "", 403},
		{guard.Operator, "POST", "/jobs", `{"jobs":[{"kind":"mail"}],"force":true}`, 201},
		{guard.Operator, "POST", "/jobs", `{"jobs":[{"kind":"mail"},{"kind":"sh","args":{"argv":["id"]}}],"force":true}`, 403},
		{guard.Operator, "PUT", "/schedules/s", `{"recurrence":"@daily","job":{"kind":"sh"},"force":true}`, 403},
		{guard.Operator, "PUT", "/filters/f", `{"query":"kind=k"}`, 200},
		{guard.Operator, "DELETE", "/filters/f", "", 200},
		{guard.Operator, "POST", "/engines/1/bury", `{}`, 403},
		{guard.Operator, "POST", "/leases/l/release", `{}`, 403},
		{guard.Admin, "POST", "/jobs", `{"jobs":[{"kind":"sh","args":{"argv":["id"]}}],"force":true}`, 201},
	} {
		s.who = guard.Identity{Name: "x", Role: c.role}
		var body any
		if c.body != "" {
			body = c.body
		}
		if status, text := s.ask(c.method, c.path, body); status != c.status {
			t.Errorf("%v: %s %s %s: %d %s, want %d", c.role, c.method, c.path, c.body, status, text, c.status)
		}
	}
	if counts, err := s.store.Counts(t.Context()); err != nil || counts[stint.Available] != 3 || counts[stint.Cancelled] != 0 {
		t.Errorf("left are %v, %v", counts, err)
	}
}

func TestArgumentsAreHiddenFromViewers(t *testing.T) {
	s := open(t)
	const secret = "4111-1111"
	s.enqueue(1, map[string]any{"args": map[string]string{"card": secret}, "metadata": map[string]string{"note": secret}})
	get[ops.Schedule](s, 200, "PUT", "/schedules/s", `{"recurrence":"@daily","job":{"kind":"mail","args":{"card":"`+secret+`"}},"force":true}`)
	get[stint.Receipt](s, 201, "POST", "/schedules/s/run-now", nil)
	printed := s.enqueue(1, map[string]any{"kind": "print"})[0]
	mux := stint.NewMux()
	stint.HandleResult(mux, stint.NewResultKind[struct{}, string]("print"), func(context.Context, *stint.Job, struct{}) (string, error) { return secret, nil })
	spilled := s.enqueue(1, map[string]any{"kind": "spill"})[0]
	stint.Handle(mux, stint.NewKind[struct{}]("spill"), func(context.Context, *stint.Job, struct{}) error {
		return stint.NoRetry(errors.New("bad card " + secret))
	})
	e, err := engine.New(s.store, mux, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := e.RunReady(t.Context(), nil); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	failed := get[report.ErrorReport](s, 200, "GET", "/errors?kind=spill&queue=default", nil)
	if len(failed.Groups) != 1 || failed.Groups[0].Attempts != 1 || failed.CutOff {
		t.Errorf("the errors are %+v", failed)
	}
	pages := []string{"/jobs", "/jobs/1", "/jobs/" + printed.String(), "/jobs/" + spilled.String(), "/errors", "/schedules", "/schedules/s"}
	for _, path := range pages {
		if _, text := s.ask("GET", path, nil); !strings.Contains(string(text), secret) {
			t.Errorf("an admin does not see the arguments at %s", path)
		}
	}
	s.who.Role = guard.Viewer
	for _, path := range pages {
		if _, text := s.ask("GET", path, nil); strings.Contains(string(text), secret) {
			t.Errorf("a viewer sees the arguments at %s: %s", path, text)
		}
	}
	hidden := get[report.ErrorReport](s, 200, "GET", "/errors?kind=spill", nil)
	if len(hidden.Groups) != 1 || hidden.Groups[0].Pattern != "" || hidden.Groups[0].Key != "" || failed.Groups[0].Pattern != "bad card #" || failed.Groups[0].Key == "" {
		t.Errorf("a viewer is told of errors %+v, and others %+v", hidden, failed)
	}
	s.findsOutNothing("4111")
}

// visible are the parameters that take any text, and compare it with nothing or with what every viewer
// sees. Whoever adds one that does not belong here finds that a viewer may guess with
// it what is hidden.
var visible = []string{"target", "startup", "kind", "queue", "tag", "urn", "source", "correlation", "schedule", "error_class", "longer", "span", "wait", "instance"}

// findsOutNothing tries every operation of the document: who asks may choose by no text
// that could be compared with what is hidden, not even to count what fits.
func (s *site) findsOutNothing(guess string) {
	s.Helper()
	tried := 0
	for path, item := range s.doc.Paths {
		path = strings.TrimPrefix(inBraces.ReplaceAllString(path, "1"), api.Prefix)
		for _, p := range parameters(item.Get) {
			if p.In != "query" || p.Schema.Type != "string" || p.Schema.Enum != nil || p.Schema.Format == "date-time" || slices.Contains(visible, p.Name) {
				continue
			}
			for _, value := range []string{guess, "args.card", "metadata.note"} {
				tried++
				if status, text := s.ask("GET", path+"?"+url.Values{p.Name: {value}}.Encode(), nil); status != 403 && !((p.Name == "by" || p.Schema.Format == "instant-or-duration") && status == 422) {
					s.Errorf("GET %s by %s=%s: %d %s, want 403", path, p.Name, value, status, text)
				}
			}
		}
		if item.Post == nil || !strings.Contains(path, "/jobs/") || strings.Contains(path, "/jobs/1/") {
			continue // it does nothing to jobs, or something to one that it names
		}
		tried++
		if status, text := s.ask("POST", path, map[string]any{"filter": map[string]string{"error": guess}, "dry_run": true}); status != 403 {
			s.Errorf("POST %s by what errors say: %d %s, want 403", path, status, text)
		}
	}
	if tried < 15 {
		s.Errorf("only %d ways were tried", tried)
	}
}

var inBraces = regexp.MustCompile(`{[^}]*}`)

// parameters are those of an operation, if there is one.
func parameters(op *huma.Operation) []*huma.Param {
	if op == nil {
		return nil
	}
	return op.Parameters
}

func TestKindsThatDoWhateverTheySayAreForAdminsUnlessSomebodyLiftsThat(t *testing.T) {
	s := open(t)
	s.who.Role = guard.Operator
	for _, kind := range []string{shelljob.Kind.Declaration().Name, httpjob.Kind.Declaration().Name, stepjob.Kind.Declaration().Name} {
		for _, c := range []struct {
			restricted []string
			status     int
		}{{nil, 403}, {[]string{}, 201}, {[]string{"other"}, 201}, {[]string{kind}, 403}} {
			s.serve(api.New(s.store, api.Config{Restricted: c.restricted}))
			if status, text := s.ask("POST", "/jobs", `{"jobs":[{"kind":"`+kind+`"}],"force":true}`); status != c.status {
				t.Errorf("%s where %#v are restricted: %d %s, want %d", kind, c.restricted, status, text, c.status)
			}
		}
	}
}

func TestFiguresAreThoseOfTheStore(t *testing.T) {
	s := open(t)
	s.enqueue(3, map[string]any{"tags": []string{"x"}})
	if a := get[report.Analytics](s, 200, "GET", "/analytics?tag=x", nil); a.Queued != 3 {
		t.Errorf("analytics say %+v", a)
	}
	groups := items[report.DueGroup](s, 200, "GET", "/analytics/due?by=tag&limit=1", nil)
	if len(groups) != 1 || *groups[0].Value != "x" || groups[0].Jobs != 3 {
		t.Errorf("the groups are %+v", groups)
	}
	for _, path := range []string{"/stats", "/stats?every=hour", "/stats?every=minute", "/kinds", "/leases", "/engines/metrics"} {
		s.ask("GET", path, nil)
	}
	wanted := get[report.Scaling](s, 200, "GET", "/scale?slots_per_engine=2&startup=1m&min=3", nil)
	if wanted.Engines != 3 || wanted.Backlog+wanted.Blocked != 3 || wanted.PerEngine != 2 || wanted.Target != report.ScaleTarget {
		t.Errorf("engines are wanted as %+v", wanted)
	}
	if none := get[report.Scaling](s, 200, "GET", "/scale?queues=a,b&target=1m", nil); none.Backlog+none.Blocked != 0 || none.Target != time.Minute {
		t.Errorf("engines of other queues are wanted as %+v", none)
	}
	found := items[report.Finding](s, 200, "GET", "/doctor", nil)
	if !slices.ContainsFunc(found, func(f report.Finding) bool { return f.Code == "no_engine" }) {
		t.Errorf("the doctor says %+v", found)
	}
}

func TestTheDocumentIsWhatIsServed(t *testing.T) {
	s := open(t)
	res, err := s.server.Client().Get(s.server.URL + api.Prefix + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var doc any
	if err := json.NewDecoder(res.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	golden := filepath.Join("testdata", "openapi.json")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the document changed; look at it, and run go test ./api -update (-was +is):\n%s", diff)
	}
}
