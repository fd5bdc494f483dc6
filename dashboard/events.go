package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/stint-go/stint/dashboard/guard"
)

const (
	maxStreams  = 100              // live pages that are open at once; others do without
	aliveEvery  = 15 * time.Second // a sign of life, so that nobody between takes the stream for dead
	streamWrite = 10 * time.Second // for a client that does not read
)

// events tells a page when what it shows has changed: GET /events?page=/jobs%3F….
// It is a stream of server-sent events: change, whenever the page would look
// another way than before, and trouble, when nobody can tell. See [watch].
func (b *Dashboard) events(w http.ResponseWriter, r *http.Request) {
	target, err := url.Parse(r.URL.Query().Get("page"))
	if err != nil || target.Scheme != "" || target.Host != "" || !isLocal(target.Path) {
		http.Error(w, "the page is none of this server", http.StatusBadRequest)
		return
	}
	select {
	case b.streams <- struct{}{}:
		defer func() { <-b.streams }()
	default:
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many live pages are open", http.StatusServiceUnavailable)
		return
	}
	p, page := b.find(r, target)
	if p == nil || p.needs > guard.Of(r.Context()).Role {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	out := http.NewResponseController(w)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would keep events to itself
	send := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(streamWrite)) // where the server has deadlines
		if _, err := fmt.Fprint(w, text); err != nil || out.Flush() != nil {
			return false
		}
		_ = out.SetWriteDeadline(time.Time{}) // nothing is written for a while
		return true
	}
	if !send("retry: 5000\n\n") {
		return
	}
	seen, leave := b.watches.join(b, p, page)
	defer leave()
	var last look
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		now, next := seen.get()
		text := ""
		switch {
		case now.began.IsZero():
		case now.err != nil && last.err == nil:
			text = "event: trouble\ndata: the page cannot be made just now\n\n"
		case now.err == nil && (last.err != nil || !last.began.IsZero() && now.sum != last.sum):
			text = "event: change\ndata: \n\n"
		}
		last = now
		if text != "" && !send(text) {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-next:
		case <-alive.C:
			if !send(": alive\n\n") {
				return
			}
		}
	}
}
