package admin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/stint-go/stint/admin/guard"
)

const (
	maxStreams  = 100              // live pages that are open at once; others do without
	leastPause  = 2 * time.Second  // between two looks at what a page shows
	aliveEvery  = 15 * time.Second // a sign of life, so that nobody between takes the stream for dead
	streamWrite = 10 * time.Second // for a client that does not read
)

// events tells a page when what it shows has changed: GET /events?page=/jobs%3F….
// It is a stream of server-sent events: change, whenever the page would look
// another way than before. It finds that out as the page does, at most every two
// seconds, and so seldom that it takes at most a hundredth of the time.
func (b *Board) events(w http.ResponseWriter, r *http.Request) {
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
	look, ok := b.looker(r, target)
	if !ok {
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
	var last [sha256.Size]byte
	for said := time.Now(); ; {
		began := time.Now()
		now, err := look(r.Context())
		switch {
		case r.Context().Err() != nil:
			return
		case err != nil:
			if !send("event: trouble\ndata: the page cannot be made just now\n\n") {
				return
			}
			said = time.Now()
		case now != last:
			if last != ([sha256.Size]byte{}) && !send("event: change\ndata: \n\n") {
				return
			}
			last, said = now, time.Now()
		case time.Since(said) > aliveEvery:
			if !send(": alive\n\n") {
				return
			}
			said = time.Now()
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(max(leastPause, 100*time.Since(began))):
		}
	}
}

// looker returns what finds out how a page looks now, as a hash.
func (b *Board) looker(r *http.Request, target *url.URL) (func(ctx context.Context) ([sha256.Size]byte, error), bool) {
	var f found
	b.finder.ServeHTTP(&answer{header: http.Header{}}, (&http.Request{Method: http.MethodGet, URL: target, Host: r.Host, Header: http.Header{}}).
		WithContext(context.WithValue(r.Context(), foundKey{}, &f)))
	if f.page == nil || f.page.needs > guard.Of(r.Context()).Role {
		return nil, false
	}
	return func(ctx context.Context) (sum [sha256.Size]byte, err error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		data, err := f.page.data(b, f.request.WithContext(ctx))
		if err != nil {
			return sum, err
		}
		text, err := json.Marshal(data)
		return sha256.Sum256(text), err
	}, true
}

// found is the page of an address, with a request for it.
type found struct {
	page    *page
	request *http.Request
}

type foundKey struct{}

// finder finds pages instead of serving them.
func finder() *http.ServeMux {
	mux := http.NewServeMux()
	for i := range pages {
		mux.HandleFunc("GET "+pages[i].path, func(_ http.ResponseWriter, r *http.Request) {
			if f, ok := r.Context().Value(foundKey{}).(*found); ok {
				f.page, f.request = &pages[i], r
			}
		})
	}
	return mux
}
