package probes_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/observe/probes"
)

// patient is an engine that answers as it is told to.
type patient struct {
	alive, ready error
	asked        atomic.Int32
	takes        time.Duration
}

func (p *patient) Alive() error { return p.alive }

func (p *patient) Ready(ctx context.Context) error {
	p.asked.Add(1)
	time.Sleep(p.takes)
	return errors.Join(p.ready, ctx.Err())
}

func ask(h http.Handler, method, path string) (code int, body string) {
	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest(method, path, nil))
	return r.Code, strings.TrimSpace(r.Body.String())
}

func TestAnswersSayWhatDoesNotHoldAndNameNobody(t *testing.T) {
	p := &patient{}
	h := probes.Handler(p)
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := ask(h, "GET", path); code != 200 || body != `{"status":"ok"}` {
			t.Errorf("%s answers %d %s", path, code, body)
		}
		if code, _ := ask(h, "POST", path); code != 405 {
			t.Errorf("%s answers a POST with %d", path, code)
		}
	}
	p.ready = &event.UnreadyError{Condition: event.ConditionDatabase, Problem: "it does not answer", Err: errors.New("user=admin host=10.0.0.1")}
	p.alive = &event.UnreadyError{Condition: event.ConditionRunning, Problem: "its beat has been stuck for 1m0s"}
	if code, body := ask(h, "GET", "/readyz"); code != 503 || body != `{"status":"unready","condition":"database","problem":"it does not answer"}` {
		t.Errorf("unready it answers %d %s", code, body)
	}
	if code, body := ask(h, "GET", "/healthz"); code != 503 || body != `{"status":"stuck","condition":"running","problem":"its beat has been stuck for 1m0s"}` {
		t.Errorf("stuck it answers %d %s", code, body)
	}
	p.ready = errors.New("password=secret")
	if code, body := ask(h, "GET", "/readyz"); code != 503 || body != `{"status":"unready"}` {
		t.Errorf("for a reason that is not meant for everybody it answers %d %s", code, body)
	}
}

func TestManyWhoAskAtOnceShareAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &patient{takes: time.Second}
		h := probes.Handler(p)
		begin := time.Now()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if code, _ := ask(h, "GET", "/readyz"); code != 200 {
					t.Errorf("one got %d", code)
				}
			})
		}
		all.Wait()
		// The first question was asked before most came, so they need a second one.
		if n, took := p.asked.Load(), time.Since(begin); n > 2 || took > 2*time.Second {
			t.Errorf("the database was asked %d times, which took %v", n, took)
		}
		p.ready = errors.New("down")
		if code, _ := ask(h, "GET", "/readyz"); code != 503 {
			t.Errorf("and later an old answer is given: %d", code)
		}
	})
}
