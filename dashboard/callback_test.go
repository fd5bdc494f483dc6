package dashboard_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/link"
	"github.com/stint-go/stint/jobs/httpjob"
	"github.com/stint-go/stint/retry"
)

// receiver accepts requests, and keeps where it is to call back.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	urls []string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.urls = append(r.urls, q.Header.Get("Stint-Callback"))
		if q.URL.Path == "/later" {
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// url is where the nth request is to be called back.
func (r *receiver) url(t *testing.T, n int) string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		r.mu.Lock()
		all := r.urls
		r.mu.Unlock()
		if len(all) >= n {
			return all[n-1]
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d requests came, want %d", len(all), n)
		}
	}
}

// callBack posts a body, and returns the status with what the answer says.
func callBack(t *testing.T, url, body string) string {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	var said struct{ Detail string }
	_ = json.Unmarshal(text, &said)
	return strings.TrimSpace(fmt.Sprint(res.StatusCode, " ", said.Detail))
}

// sends runs an engine that sends requests, and returns what enqueues one.
func (s *site) sends() func(args httpjob.Args, opts ...stint.Option) stint.ID {
	s.Helper()
	key, err := link.NewKey(linkSecret)
	if err != nil {
		s.Fatal(err)
	}
	back, err := key.Callbacks(s.server.URL + s.path)
	if err != nil {
		s.Fatal(err)
	}
	mux := stint.NewMux()
	httpjob.Register(mux, httpjob.Config{AllowPrivate: true, Callback: back})
	s.Cleanup(s.works(mux))
	return func(args httpjob.Args, opts ...stint.Option) stint.ID {
		s.Helper()
		id, err := httpjob.Kind.Enqueue(s.Context(), stint.NewClient(s.store), args, opts...)
		if err != nil {
			s.Fatal(err)
		}
		return id
	}
}

func TestAReceiverSaysLaterWhatCameOfARequest(t *testing.T) {
	for _, mounted := range []string{"", "/stint"} {
		s, r := openAt(t, mounted), newReceiver(t)
		enqueue := s.sends()
		id := enqueue(httpjob.Args{URL: r.URL + "/later", Callback: httpjob.Duration(time.Hour), Expect: []int{200}})
		url := r.url(t, 1)
		s.becomes(id, stint.Blocked) // and the only slot is free
		at := enqueue(httpjob.Args{URL: r.URL + "/now", Callback: httpjob.Duration(time.Hour)})
		if j := s.becomes(at, stint.Completed); strings.Contains(string(resultOf(j)), "callback") {
			t.Errorf("what was done at once has the result %s", resultOf(j))
		}

		// Mistakes change nothing, and can be mended.
		for body, want := range map[string]string{
			`{"results": 1}`:              `422 Body: unknown field "results".`,
			`{"error": 1}`:                `422 Body.error: got a JSON number, want string.`,
			`[1]`:                         `422 Body: got a JSON array, want an object.`,
			`{"final": true}`:             `422 Final: it is for an error.`,
			strings.Repeat(" ", 1<<21):    `422 Body: it cannot be read, or is longer than 1 MiB.`,
			`{"result": 1} {"result": 2}`: `422 Body: more than one JSON value.`,
		} {
			if got := callBack(t, url, body); got != want {
				t.Errorf("%.40s is answered with %q, want %q", body, got, want)
			}
		}
		question := s.at(link.Link{Job: id, Question: "q", By: "ann", Expires: time.Now().Add(time.Hour)})
		for _, changed := range []string{
			url + "x", url[:len(url)-1], url[:len(url)-80],
			s.server.URL + s.path + link.CallbackPath + strings.TrimPrefix(question, link.Path),
		} {
			if got := callBack(t, changed, ""); got != "403 the URL is not valid: it may be incomplete" {
				t.Errorf("%s is answered with %q", changed, got)
			}
		}
		if status, _ := s.get(strings.TrimPrefix(url, s.server.URL+s.path)); status == http.StatusNoContent {
			t.Errorf("to look at the URL is answered with %d", status)
		}
		s.becomes(id, stint.Blocked)

		for range 2 { // the answer to the first may have been lost
			if got := callBack(t, url, `{"result": {"paid": [1.50]}}`); got != "204" {
				t.Fatalf("the callback is answered with %q", got)
			}
		}
		j := s.becomes(id, stint.Completed)
		var result httpjob.Result
		if err := json.Unmarshal(resultOf(j), &result); err != nil || result.Status != http.StatusAccepted || string(result.Callback) != `{"paid":[1.50]}` {
			t.Errorf("the result is %s, %v", resultOf(j), err)
		}
		if got := callBack(t, url, `{"error": "no"}`); got != "204" || len(r.urls) != 2 {
			t.Errorf("a callback after the end is answered with %q; %d requests were sent", got, len(r.urls))
		}
	}
}

func TestACallbackThatFailsOrDoesNotComeIsAFailure(t *testing.T) {
	s, r := open(t), newReceiver(t)
	enqueue := s.sends()
	args := httpjob.Args{URL: r.URL + "/later", Callback: httpjob.Duration(time.Hour)}
	again := stint.Retry(retry.Fixed(2, time.Millisecond))
	id := enqueue(args, again)
	first := r.url(t, 1)
	if got := callBack(t, first, `{"error": "the printer is out of paper"}`); got != "204" {
		t.Fatal(got)
	}
	second := r.url(t, 2) // it is sent again, with a URL of its own
	if got := callBack(t, first, `{"result": "too late"}`); first == second || got != "204" {
		t.Errorf("the attempts have the URLs %s and %s; %s", first, second, got)
	}
	s.becomes(id, stint.Blocked)
	if got := callBack(t, second, `{"error": "there is no such printer", "final": true}`); got != "204" {
		t.Fatal(got)
	}
	j := s.becomes(id, stint.Failed)
	if e := j.Attempts[len(j.Attempts)-1].Error; len(r.urls) != 2 || e == nil || e.Message != "the receiver called back: there is no such printer" {
		t.Errorf("%d requests were sent; the job failed with %+v", len(r.urls), e)
	}

	args.Callback = httpjob.Duration(30 * time.Millisecond)
	id = enqueue(args, stint.Retry(retry.None()))
	j = s.becomes(id, stint.Failed)
	if e := j.Attempts[len(j.Attempts)-1].Error; e == nil || e.Message != "no callback in 30ms after status 202" {
		t.Errorf("without a callback the job failed with %+v", e)
	}
	late := r.url(t, 3)
	said := callBack(t, late, "")
	for began := time.Now(); strings.HasPrefix(said, "409 ") && time.Since(began) < 20*time.Second; time.Sleep(50 * time.Millisecond) {
		said = callBack(t, late, "") // a URL is good until the end of the second
	}
	if said != "410 it comes too late: the job no longer waits for it" {
		t.Errorf("a callback after the time is answered with %q", said)
	}
}

// resultOf is what a job left.
func resultOf(j *stint.JobInfo) json.RawMessage { return j.Attempts[len(j.Attempts)-1].Result }
