package httpjob

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// perform runs one attempt the way an engine does.
func perform(t *testing.T, ctx context.Context, h stint.Handler, args Args) (Result, error) {
	t.Helper()
	job, err := Kind.New(args)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := h(ctx, &stint.Job{ID: 42, Kind: "http", Attempt: 3, Queue: "default", Args: job.Args})
	var r Result
	if raw != nil {
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
	}
	return r, err
}

func isFinal(err error) bool {
	end := store.Result{Outcome: stint.OutcomeFailed, Err: err}
	e := &store.Entry{Job: stint.Job{Attempt: 1}}
	return store.Conclude(e, end, e.Due, 0).Final
}

// serve starts a server, and a handler that may reach it.
func serve(t *testing.T, c Config, f http.HandlerFunc) (*httptest.Server, stint.Handler) {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	c.AllowPrivate = true
	mux := stint.NewMux()
	Register(mux, c)
	return server, mux.Handler("http")
}

func TestTheRequestIsSentAsTheArgumentsSay(t *testing.T) {
	var got []string
	server, h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method, r.URL.String(), r.Host, string(body))
		for _, name := range []string{"X-Key", "Content-Type", "User-Agent", "Stint-Job", "Stint-Attempt"} {
			got = append(got, r.Header.Get(name))
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-Other", "not kept")
		fmt.Fprint(w, "thanks")
	})
	result, err := perform(t, t.Context(), h, Args{
		Method: "PUT", URL: server.URL + "/a?b=c",
		Headers: map[string]string{"x-key": "k", "Host": "example.com"},
		JSON:    json.RawMessage(`{"n":12345678901234567890}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"PUT", "/a?b=c", "example.com", `{"n":12345678901234567890}`, "k", "application/json", "stint", "42", "3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
	if result.Duration <= 0 {
		t.Errorf("it took %v", result.Duration)
	}
	result.Duration = 0
	if diff := cmp.Diff(Result{Status: 200, Headers: map[string]string{"Content-Type": "text/plain"}, Body: "thanks"}, result); diff != "" {
		t.Errorf("the result (-want +got):\n%s", diff)
	}
}

func TestAStatusThatIsNotExpectedIsAFailureThatShowsTheBody(t *testing.T) {
	server, h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "back at noon\n", strings.Repeat("x", 5000))
	})
	result, err := perform(t, t.Context(), h, Args{URL: server.URL})
	if err == nil || !strings.HasPrefix(err.Error(), "status 503 Service Unavailable: back at noon\nxxx") || len(err.Error()) > 1100 {
		t.Errorf("got %v", err)
	}
	if result.Status != 503 || len(result.Body) != 5013 || result.Headers["Retry-After"] != "120" {
		t.Errorf("the result is not kept: %+v", result)
	}
	if class := retry.ErrorClasses(err)[0]; class != "httpjob.StatusError" {
		t.Errorf("policies see it as a %s", class)
	}
}

func TestOnlyARequestThatIsItselfWrongFailsForGood(t *testing.T) {
	server, h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		var status int
		fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.WriteHeader(status)
	})
	for _, tt := range []struct {
		status    int
		expect    []int
		ok, final bool
	}{
		{200, nil, true, false}, {204, nil, true, false},
		{404, []int{200, 404}, true, false}, {400, []int{400}, true, false}, {302, []int{302}, true, false},
		{200, []int{201}, false, false}, {304, nil, false, false},
		{400, nil, false, true}, {410, nil, false, true}, {422, nil, false, true},
		{401, nil, false, false}, {403, nil, false, false}, {404, nil, false, false}, {408, nil, false, false},
		{409, nil, false, false}, {425, nil, false, false}, {429, nil, false, false}, {500, nil, false, false},
	} {
		_, err := perform(t, t.Context(), h, Args{URL: fmt.Sprintf("%s/%d", server.URL, tt.status), Expect: tt.expect})
		if (err == nil) != tt.ok {
			t.Errorf("%d where %v is expected: got %v", tt.status, tt.expect, err)
		}
		if err != nil && isFinal(err) != tt.final {
			t.Errorf("%d: final is %t", tt.status, !tt.final)
		}
	}
}

func TestALongBodyIsKeptToALimitAndNotReadOn(t *testing.T) {
	taken := make(chan int, 1)
	server, h := serve(t, Config{ResponseLimit: 1000}, func(w http.ResponseWriter, r *http.Request) {
		for total := 0; ; {
			n, err := fmt.Fprint(w, strings.Repeat("€", 1000))
			if total += n; err != nil {
				taken <- total
				return
			}
		}
	})
	result, err := perform(t, t.Context(), h, Args{URL: server.URL})
	if err != nil || result.Body != strings.Repeat("€", 333) || !result.Truncated {
		t.Errorf("got %d bytes, truncated %t, %v", len(result.Body), result.Truncated, err)
	}
	select {
	case n := <-taken:
		if n > 32<<20 { // what the system's buffers hold, and plenty
			t.Errorf("%d bytes of the endless answer were taken", n)
		}
	case <-time.After(20 * time.Second):
		t.Error("the endless answer is still read")
	}
}

func TestACompressedBodyCountsByWhatItUnpacksTo(t *testing.T) {
	server, h := serve(t, Config{ResponseLimit: 100}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprint(z, strings.Repeat("a", 1<<20))
		z.Close()
	})
	result, err := perform(t, t.Context(), h, Args{URL: server.URL})
	if err != nil || result.Body != strings.Repeat("a", 100) || !result.Truncated {
		t.Errorf("got %d bytes, truncated %t, %v", len(result.Body), result.Truncated, err)
	}
}

func TestABinaryBodyIsMadeStorable(t *testing.T) {
	server, h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("a\x00\xffb")) })
	if result, err := perform(t, t.Context(), h, Args{URL: server.URL}); err != nil || result.Body != "a\uFFFDb" && result.Body != "a\uFFFD\uFFFDb" {
		t.Errorf("got %q, %v", result.Body, err)
	}
}

func TestAnAnswerThatTakesTooLongIsGivenUp(t *testing.T) {
	for _, says := range []string{"", "so far", "so far and on and on"} {
		server, h := serve(t, Config{Timeout: time.Minute}, func(w http.ResponseWriter, r *http.Request) {
			for ; says != "" && r.Context().Err() == nil; time.Sleep(10 * time.Millisecond) {
				fmt.Fprint(w, "so far")
				if _ = http.NewResponseController(w).Flush(); says == "so far" {
					break
				}
			}
			<-r.Context().Done()
		})
		result, err := perform(t, t.Context(), h, Args{URL: server.URL, Timeout: Duration(500 * time.Millisecond)})
		if !errors.Is(err, errSlow) || isFinal(err) {
			t.Errorf("%q: got %v", says, err)
		}
		if says != "" && !strings.HasPrefix(result.Body, "so far") {
			t.Errorf("what came is not kept: %+v", result)
		}
	}
}

func TestCancelEndsTheRequestAndSaysWhy(t *testing.T) {
	arrived, left := make(chan struct{}), make(chan struct{})
	server, h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(left)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-arrived
		cancel(stint.ErrStopping)
	}()
	if _, err := perform(t, ctx, h, Args{URL: server.URL}); !errors.Is(err, stint.ErrStopping) {
		t.Errorf("got %v", err)
	}
	<-left
}

func TestInvalidArgumentsFailForGood(t *testing.T) {
	_, err := perform(t, t.Context(), Handler(Config{}), Args{URL: "ftp://example.com"})
	if !errors.Is(err, stint.ErrInvalid) || !isFinal(err) {
		t.Errorf("got %v", err)
	}
}

func TestAServerThatIsDownIsWorthARetry(t *testing.T) {
	server, h := serve(t, Config{}, nil)
	server.Close()
	if _, err := perform(t, t.Context(), h, Args{URL: server.URL}); err == nil || isFinal(err) {
		t.Errorf("got %v", err)
	}
}
