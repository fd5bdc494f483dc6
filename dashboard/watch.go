package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/sample"
)

// watches are the pages that are open in browsers, each looked at once for all who
// look at the same. Together their looks take at most a hundredth of the time: the more
// pages are open, and the more each costs, the less often each is looked at.
type watches struct {
	mu  sync.Mutex // guards all
	all map[watched]*watch
}

// watched tells pages apart: by the address, and by the role, which decides what it shows.
type watched struct {
	address string
	role    guard.Role
}

func watchedBy(r *http.Request) watched {
	return watched{r.URL.RequestURI(), guard.Of(r.Context()).Role}
}

// watch is one of them.
type watch struct {
	readers int // under the mutex of the watches
	stop    context.CancelFunc

	mu   sync.Mutex // guards the rest
	last look
	next chan struct{} // closed when there is a newer one
}

// look is how a page looked.
type look struct {
	began time.Time // by this process' clock; zero before the first
	sum   [sha256.Size]byte
	data  any
	now   time.Time // by the store's clock
	err   error
}

// get returns the last look, and what is closed when there is another.
func (w *watch) get() (look, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.next
}

func (w *watch) put(l look) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = l
	close(w.next)
	w.next = make(chan struct{})
}

// join looks at a page for one more reader, until that one leaves.
func (s *watches) join(b *Dashboard, p *page, r *http.Request) (w *watch, leave func()) {
	key := watchedBy(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	w = s.all[key]
	if w == nil {
		// It looks again in two seconds, so it does not wait for samples.
		ctx, stop := context.WithCancel(sample.Hurried(context.WithoutCancel(r.Context())))
		w = &watch{stop: stop, next: make(chan struct{})}
		s.all[key] = w
		go s.keep(ctx, w, func(ctx context.Context) look { return b.look(p, r.WithContext(ctx)) })
	}
	w.readers++
	return w, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if w.readers--; w.readers == 0 {
			w.stop()
			delete(s.all, key)
		}
	}
}

// keep looks again and again until the context ends.
func (s *watches) keep(ctx context.Context, w *watch, take func(ctx context.Context) look) {
	for ctx.Err() == nil {
		began := time.Now()
		if l := take(ctx); ctx.Err() == nil {
			if l.err == nil {
				var text []byte
				text, l.err = json.Marshal(l.data)
				l.sum = sha256.Sum256(text)
			}
			w.put(l)
		}
		s.mu.Lock()
		sharers := len(s.all)
		s.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(sample.Pause(time.Since(began), sharers)):
		}
	}
}

// since returns how a page looked last, if a browser has it open and that was later
// than what the header of a request says.
func (s *watches) since(r *http.Request, made string) (look, bool) {
	instant, err := strconv.ParseInt(made, 10, 64)
	if err != nil {
		return look{}, false
	}
	s.mu.Lock()
	w := s.all[watchedBy(r)]
	s.mu.Unlock()
	if w == nil {
		return look{}, false
	}
	l, _ := w.get()
	return l, l.err == nil && l.began.UnixNano() > instant
}

// look finds out how a page looks. A panic is returned as an error: it must not end a
// program that runs jobs.
func (b *Dashboard) look(p *page, r *http.Request) (l look) {
	defer func() {
		if v := recover(); v != nil {
			l.err = fmt.Errorf("a panic: %v\n%s", v, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	l.began = time.Now()
	if l.data, l.err = p.data(b, r.WithContext(ctx)); l.err != nil {
		return l
	}
	l.now, l.err = view.Now(ctx, b.store)
	return l
}

const (
	maxStreams  = 100              // live pages that are open at once; others do without
	aliveEvery  = 15 * time.Second // a sign of life, so that no proxy closes the stream
	streamWrite = 10 * time.Second // for a client that does not read
)

// events tells a page when what it shows has changed: GET /events?page=/jobs%3F….
// It is a stream of server-sent events: change, when the page would look different; looked,
// with the time in milliseconds, when it would look the same then; and trouble, when that
// cannot be found out. See [watch].
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
		case now.err == nil:
			text = fmt.Sprintf("event: looked\ndata: %d\n\n", now.began.UnixMilli())
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

// find finds the page of an address, and makes a request for it on behalf of another
// request. The page is nil if there is none.
func (b *Dashboard) find(r *http.Request, target *url.URL) (*page, *http.Request) {
	to := (&http.Request{Method: http.MethodGet, URL: target, Host: r.Host, Header: http.Header{}}).WithContext(r.Context())
	b.finder.ServeHTTP(&answer{header: http.Header{}}, to)
	for i := range pages {
		if pages[i].path == to.PathValue(foundPath) {
			return &pages[i], to
		}
	}
	return nil, nil
}

// foundPath is the value of a request by which the finder says what it found.
const foundPath = "page.path"

// finder finds pages instead of serving them.
func finder() *http.ServeMux {
	mux := http.NewServeMux()
	for _, p := range pages {
		mux.HandleFunc("GET "+p.path, func(_ http.ResponseWriter, r *http.Request) { r.SetPathValue(foundPath, p.path) })
	}
	return mux
}
