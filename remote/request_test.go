package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/remote"
)

const secret = "a-secret-that-nobody-sees"

// serve opens what a handler says as a store.
func serve(t *testing.T, h http.HandlerFunc) (*remote.Store, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	s, err := remote.Open(server.URL, remote.Config{Token: secret})
	if err != nil {
		t.Fatal(err)
	}
	return s, server
}

func TestAddressesAndTokensThatCanNeverBeRight(t *testing.T) {
	for name, c := range map[string]struct {
		address string
		config  remote.Config
	}{
		"nothing":                      {"", remote.Config{}},
		"a path":                       {"jobs.db", remote.Config{}},
		"a host alone":                 {"localhost:8080", remote.Config{}},
		"another scheme":               {"ftp://h", remote.Config{}},
		"no host":                      {"http://", remote.Config{}},
		"a port alone":                 {"http://:80", remote.Config{}},
		"a password":                   {"https://u:" + secret + "@h", remote.Config{}},
		"a link with its token":        {"http://127.0.0.1:8080/?token=" + secret, remote.Config{}},
		"a malformed link":             {"http://h:x/" + secret, remote.Config{}},
		"a token with its line":        {"https://h", remote.Config{Token: secret + "\n"}},
		"two tokens":                   {"https://h", remote.Config{Token: secret + " " + secret}},
		"a token that is another word": {"https://h", remote.Config{Token: "é"}},
	} {
		if _, err := remote.Open(c.address, c.config); !errors.Is(err, stint.ErrInvalid) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, address := range []string{"http://jobs.example.com", "http://192.168.1.7:80", "http://localhost.example.com"} {
		if _, err := remote.Open(address, remote.Config{Token: secret}); !errors.Is(err, remote.ErrInClear) {
			t.Errorf("%s with a token: %v", address, err)
		}
		if _, err := remote.Open(address, remote.Config{Token: secret, TokenInClear: true}); err != nil {
			t.Errorf("%s with consent: %v", address, err)
		}
		if _, err := remote.Open(address, remote.Config{}); err != nil {
			t.Errorf("%s without a token: %v", address, err)
		}
	}
	for _, address := range []string{"http://localhost:1", "http://127.0.0.1:1/", "http://[::1]:1", "https://jobs.example.com/stint"} {
		if _, err := remote.Open(address, remote.Config{Token: secret}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestTheTokenGoesNowhereElse(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("somebody else was asked for %s with %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		s, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+secret {
				t.Errorf("the server is told %q", r.Header.Get("Authorization"))
			}
			http.Redirect(w, r, elsewhere.URL+"/x?token=leak", status)
		})
		_, err := s.Counts(t.Context())
		e, ok := errors.AsType[*remote.Error](err)
		if !ok || e.Location != elsewhere.URL+"/x" || strings.Contains(err.Error(), "leak") {
			t.Errorf("%d: %v", status, err)
		}
		server.Close()
	}
	s, server := serve(t, func(http.ResponseWriter, *http.Request) {})
	server.Close()
	if _, err := s.Counts(t.Context()); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("without a server: %v", err)
	}
}

func TestOnlyWhatDoesNoHarmTwiceIsSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		reads  int32 // how often what only reads is sent
	}{
		"a connection that breaks": {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 3},
		"a proxy without a server": {func(w http.ResponseWriter) { w.WriteHeader(502) }, 3},
		"a server that is busy":    {func(w http.ResponseWriter) { w.WriteHeader(503) }, 3},
		"a server that failed":     {func(w http.ResponseWriter) { w.WriteHeader(500) }, 1},
		"a refusal":                {func(w http.ResponseWriter) { w.WriteHeader(403) }, 1},
		"nonsense":                 {func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int32
			s, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				sent.Add(1)
				c.answer(w)
			})
			if _, err := s.Counts(t.Context()); err == nil || sent.Swap(0) != c.reads {
				t.Errorf("it was not sent %d times: %v", c.reads, err)
			}
			if _, err := s.Enqueue(t.Context(), stint.Tx{}, []stint.NewJob{{Kind: "a"}}); err == nil || sent.Swap(0) != 1 {
				t.Errorf("an enqueue was not sent once: %v", err)
			}
			if _, err := s.RemoveSchedule(t.Context(), "s", ""); err == nil || sent.Swap(0) != 1 {
				t.Errorf("a removal was not sent once: %v", err)
			}
		})
	}
}

func TestASecondTryMayGoWell(t *testing.T) {
	var sent atomic.Int32
	s, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if sent.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"available":3}`)
	})
	if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Available] != 3 || sent.Load() != 2 {
		t.Errorf("after %d tries it came to %v, %v", sent.Load(), counts, err)
	}
}

func TestNobodyWaitsLongerThanTheContext(t *testing.T) {
	s, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := s.Counts(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 10*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestAnAnswerWithoutEndIsCutOff(t *testing.T) {
	s, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		line := []byte(strings.Repeat(" ", 1<<20))
		for {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	if _, err := s.Counts(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 4 MiB") {
		t.Errorf("it ends with %v", err)
	}
}

func TestWhatIsNoStintIsSaidToBeNone(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		kind, body string
		want       string
	}{
		"a page":           {200, "text/html", "<html>", "does not answer as stint does"},
		"no JSON":          {200, "application/json", "<html>", "does not answer as stint does"},
		"a page not found": {404, "text/html", "<html>secret page</html>", "the server answers 404 Not Found"},
		"a plain refusal":  {429, "text/plain; charset=utf-8", "too many tries\n", "too many tries"},
		"a long refusal":   {400, "text/plain", strings.Repeat("x", 1000), "the server answers 400 Bad Request"},
	} {
		s, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		})
		if _, err := s.Counts(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret page") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
