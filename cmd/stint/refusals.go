package main

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/stint-go/stint/admin/guard"
)

// refusals logs requests that the dashboard refused. However many come, the log
// has a few lines of a while, and says how many more there were.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex // guards the rest
	since  time.Time  // when the while began
	said   int
	unsaid int
}

const (
	refusalsFor  = 10 * time.Second
	refusalsMost = 10
	refusalsText = 200 // characters of what a client has written
)

// on is told of each request that did not pass.
func (l *refusals) on(r *http.Request, who guard.Identity, status int, why string) {
	if !l.due() {
		return
	}
	// Not the query, in which a secret may be.
	l.log.Warn("the dashboard refused a request", "status", status, "why", brief(why), "method", brief(r.Method),
		"path", brief(r.URL.Path), "from", r.RemoteAddr, "who", brief(who.Name))
}

// due reports whether one is to be said now. Those that are not are counted.
func (l *refusals) due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.since) >= refusalsFor {
		l.since, l.said = now, 0
	}
	if l.said < refusalsMost {
		l.said++
		return true
	}
	if l.unsaid++; l.unsaid == 1 {
		time.AfterFunc(refusalsFor-now.Sub(l.since), l.rest)
	}
	return false
}

// rest says how many were not said.
func (l *refusals) rest() {
	l.mu.Lock()
	n := l.unsaid
	l.unsaid = 0
	l.mu.Unlock()
	l.log.Warn("the dashboard refused more requests than are told of one by one", "count", n)
}

// brief is the beginning of a text that a client has written, in one line.
func brief(text string) string {
	if runes := []rune(text); len(runes) > refusalsText {
		text = string(runes[:refusalsText]) + "…"
	}
	return oneLine(text)
}
