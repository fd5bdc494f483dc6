package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
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

func init() { lookAgain, settled = 50*time.Millisecond, 20*time.Millisecond }

func TestWhoMayUseADashboardIsReadAgainWhenTheFileChanges(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "stint.toml")
	secrets := map[string]string{"ci": newSecret(), "ops": newSecret()}
	write := func(text string, names ...string) {
		t.Helper()
		for _, name := range names {
			text += fmt.Sprintf("[[dashboard.token]]\nname = %q\nrole = \"operator\"\nsha256 = %q\n", name, guard.NewToken(name, guard.Viewer, secrets[name]).Hash)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("", "ci", "ops")
	store, err := sqlite.Open(t.Context(), sqlite.Memory, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	read, err := readFile(file)
	if err != nil {
		t.Fatal(err)
	}
	journal, err := os.Create(file + ".log")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = journal.Close() })
	logged := func() string {
		text, _ := os.ReadFile(journal.Name())
		return string(text)
	}
	a := &app{env: func(string) string { return "" }, config: file, admission: read.admission}
	d, err := a.listenDashboard(&dashboardFlags{address: "127.0.0.1:0"}, newVitals(), slog.New(slog.NewTextHandler(journal, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	if err := d.open(store, nil, nil); err != nil {
		t.Fatal(err)
	}
	limit, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	ask := func(path, name string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(limit, "GET", d.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if name != "" {
			r.Header.Set("Authorization", "Bearer "+cmp.Or(secrets[name], name))
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	becomes := func(when, name string, want int) {
		t.Helper()
		got := 0
		for until := time.Now().Add(10 * time.Second); got != want && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			if got = ask("api/v1/queues", name).StatusCode; got == http.StatusTooManyRequests {
				got = http.StatusUnauthorized // wrong as often as the test looks
			}
		}
		if got != want {
			t.Fatalf("%s, %q gets %d, want %d; the log:\n%s", when, name, got, want, logged())
		}
	}
	says := func(want string) {
		t.Helper()
		for until := time.Now().Add(10 * time.Second); !strings.Contains(logged(), want); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("the log does not say %q:\n%s", want, logged())
			}
		}
	}
	becomes("at first", "ci", http.StatusOK)
	open := ask("events?page="+url.QueryEscape("/queues"), "ops")
	if open.StatusCode != http.StatusOK {
		t.Fatalf("a live page is answered with %d", open.StatusCode)
	}

	write("", "ci")
	becomes("when its token is gone", "ops", http.StatusUnauthorized)
	becomes("when another token is gone", "ci", http.StatusOK)
	if _, err := io.Copy(io.Discard, open.Body); err != nil {
		t.Errorf("the live page of a token that is gone ends with %v", err)
	}

	write("[dashboard]\nsecret = \"half", "ops")
	says("cannot be read")
	becomes("while the file is wrong", "ci", http.StatusOK)
	becomes("while the file is wrong", "ops", http.StatusUnauthorized)

	write("[dashboard]\nsecret = \"0123456789abcdefghijklmnop\"\n", "ops")
	becomes("when the file is right", "ops", http.StatusOK)
	becomes("when it is not in the file", "ci", http.StatusUnauthorized)
	becomes("with a secret of the file", "0123456789abcdefghijklmnop", http.StatusOK)
	becomes("with the secret before", d.fresh, http.StatusUnauthorized)
	becomes("when there is a secret", "", http.StatusUnauthorized)

	write("")
	becomes("when nobody is named", "", http.StatusOK)
	becomes("with the secret of the link", d.fresh, http.StatusOK)
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
