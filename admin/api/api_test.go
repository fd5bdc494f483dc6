package api

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-go/stint/sqlite"
)

func serve(t *testing.T) *httptest.Server {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	server := httptest.NewServer(New(s, Config{Version: "test", OnError: func(_ context.Context, op string, err error) { t.Errorf("%s: %v", op, err) }}))
	t.Cleanup(server.Close)
	return server
}

func ask(t *testing.T, server *httptest.Server, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestTry(t *testing.T) {
	s := serve(t)
	for _, r := range [][3]string{
		{"POST", "/api/v1/jobs", `{"jobs":[{"kind":"a","args":{"n":12345678901234567890},"tags":["x"],"in":"1h"},{"kind":"a"}],"force":true}`},
		{"POST", "/api/v1/jobs", `{"jobs":[{"kind":"a"},{"kind":"b","queue":" x","priority":500}]}`},
		{"POST", "/api/v1/jobs", `{"jobs":[{"kind":"a", "qeue":"x"}]}`},
		{"GET", "/api/v1/jobs?state=scheduled,available&limit=1", ""},
		{"GET", "/api/v1/jobs?state=nonsense&limit=0", ""},
		{"GET", "/api/v1/jobs/2", ""},
		{"GET", "/api/v1/jobs/200", ""},
		{"GET", "/api/v1/counts", ""},
		{"POST", "/api/v1/jobs/cancel", `{"filter":{"tag":"x"},"dry_run":true}`},
		{"POST", "/api/v1/jobs/cancel", `{"filter":{"tag":"x"},"why":"no"}`},
		{"POST", "/api/v1/jobs/retry", `{"ids":[1,2,3]}`},
		{"POST", "/api/v1/jobs/delete", `{}`},
		{"GET","/api/v1/queues",""},{"GET","/api/v1/kinds",""},{"PUT","/api/v1/schedules/x",`{"recurrence":"30 2 * * *","zone":"Europe/Berlin","job":{"kind":"a"},"force":true}`},{"GET","/api/v1/schedules",""},{"GET","/api/v1/schedules/x",""},{"POST","/api/v1/schedules/x/run",""},{"POST","/api/v1/schedules/x/pause",`{"why":"y"}`},{"DELETE","/api/v1/schedules/x",""},{"GET","/api/v1/engines",""},{"GET","/api/v1/leases",""},{"GET","/api/v1/analytics",""},{"GET","/api/v1/analytics/due?by=kind",""},{"GET","/api/v1/stats",""},{"GET","/api/v1/doctor",""},{"GET", "/api/v1/openapi.json", ""},
	} {
		code, text := ask(t, s, r[0], r[1], r[2])
		t.Logf("%v: %d %s", r, code, text)
	}
}
