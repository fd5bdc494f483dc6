// Package probes answers health probes over HTTP, for supervisors and load balancers.
//
//	GET /healthz   200 while the process is healthy, 503 when it should be restarted
//	GET /readyz    200 while the engine works, otherwise 503 and the condition that does not hold
//
// The answers are JSON, without names of servers and users:
//
//	{"status":"unready","condition":"database","problem":"it does not answer"}
//
// An engine whose database is away is alive but not ready: a restart would not help.
package probes

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/stint-go/stint/event"
)

// Engine is implemented by *engine.Engine.
type Engine interface {
	// Alive answers at once. An error says that the process should be restarted.
	Alive() error

	// Ready may ask the database. An error says which condition of a working engine does not hold.
	Ready(ctx context.Context) error
}

// Handler serves /healthz and /readyz for an engine. If many requests ask at once whether it is
// ready, one of them asks the database and the others share its answer.
func Handler(e Engine) http.Handler {
	a := &asker{engine: e, turn: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, "stuck", e.Alive())
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		answer(w, "unready", a.ready(r.Context()))
	})
	return mux
}

// asker asks one question at a time.
type asker struct {
	engine Engine
	turn   chan struct{} // holds one while the rest is read and written
	begun  time.Time     // when the last question was asked
	last   error
}

// ready shares an answer to a question that was asked since it was called.
func (a *asker) ready(ctx context.Context) error {
	called := time.Now()
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if a.begun.After(called) {
		return a.last
	}
	a.begun = time.Now()
	// Not ctx: this client may go away, and others share the answer.
	a.last = a.engine.Ready(context.WithoutCancel(ctx))
	return a.last
}

// reply is the body of an answer.
type reply struct {
	Status    string `json:"status"`
	Condition string `json:"condition,omitempty"`
	Problem   string `json:"problem,omitempty"`
}

// answer says how an engine is. It shows only errors that are meant for the public: others
// contain addresses, and may contain more.
func answer(w http.ResponseWriter, otherwise string, err error) {
	body, code := reply{Status: "ok"}, http.StatusOK
	if err != nil {
		body, code = reply{Status: otherwise}, http.StatusServiceUnavailable
		if u, ok := errors.AsType[*event.UnreadyError](err); ok {
			body.Condition, body.Problem = u.Condition, u.Problem
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
