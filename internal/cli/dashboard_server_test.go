package cli

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/sqlite"
)

// A dashboard of a program that never heard of them restricts the kinds that this
// program performs.
func TestTheBuiltInKindsAreForAdminsUnlessSomebodyLiftsThat(t *testing.T) {
	store, err := sqlite.Open(t.Context(), sqlite.Memory, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	h := api.New(store, api.Config{})
	for _, kind := range builtin.names() {
		r := httptest.NewRequest("POST", api.Prefix+"/jobs", strings.NewReader(`{"jobs":[{"kind":"`+kind+`"}],"force":true}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(guard.With(r.Context(), guard.Identity{Name: "x", Role: guard.Operator})))
		if w.Code != http.StatusForbidden {
			t.Errorf("an operator enqueues %s: %d %s", kind, w.Code, w.Body)
		}
	}
}

func TestWhoNeverEndsTheirHeadersIsCutOff(t *testing.T) {
	t.Parallel()
	a := &app{env: func(string) string { return "" }}
	d, err := a.listenDashboard(&dashboardFlags{address: "127.0.0.1:0"}, newVitals(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", d.address.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(dashboardHeaders + 10*time.Second))
		return c
	}
	slow, begin := dial(), time.Now()
	if _, err := io.WriteString(slow, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: "); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(slow); err != nil || strings.HasPrefix(string(text), "HTTP/1.1 200") {
		t.Errorf("who sends nothing more gets %q, %v behind %v", text, err, time.Since(begin))
	}
	large := dial()
	go func() {
		_, _ = io.WriteString(large, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: "+strings.Repeat("x", 64<<10)+"\r\n\r\n")
	}()
	res, err := http.ReadResponse(bufio.NewReader(large), nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("64 KiB of headers are answered with %d", res.StatusCode)
	}
}
