package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/sample"
)

// watches are the pages that somebody has open, each looked at once for all who
// look at the same. Together their looks take at most a hundredth of the time, so
// the more is open, and the dearer it is, the less often each is looked at.
type watches struct {
	mu  sync.Mutex // guards all
	all map[watched]*watch
}

// watched tells pages apart: by the address, and by what decides how it looks for
// somebody.
type watched struct {
	address string
	role    guard.Role
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

// hash makes looks comparable.
func (l *look) hash() {
	if l.err == nil {
		var text []byte
		text, l.err = json.Marshal(l.data)
		l.sum = sha256.Sum256(text)
	}
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

// join looks at a page for one more, until that one leaves.
func (s *watches) join(b *Dashboard, p *page, r *http.Request) (w *watch, leave func()) {
	key := watched{r.URL.RequestURI(), guard.Of(r.Context()).Role}
	s.mu.Lock()
	defer s.mu.Unlock()
	w = s.all[key]
	if w == nil {
		// It looks again in two seconds, and waits for nothing that others find out.
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

// len is how many there are.
func (s *watches) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// keep looks again and again until the context ends.
func (s *watches) keep(ctx context.Context, w *watch, take func(ctx context.Context) look) {
	for ctx.Err() == nil {
		began := time.Now()
		if l := take(ctx); ctx.Err() == nil {
			l.hash()
			w.put(l)
		}
		select {
		case <-ctx.Done():
		case <-time.After(sample.Pause(time.Since(began), s.len())):
		}
	}
}

// since returns how a page looked last, if somebody has it open and that was later
// than what the header of a request says.
func (s *watches) since(r *http.Request, made string) (look, bool) {
	instant, err := strconv.ParseInt(made, 10, 64)
	if err != nil {
		return look{}, false
	}
	s.mu.Lock()
	w := s.all[watched{r.URL.RequestURI(), guard.Of(r.Context()).Role}]
	s.mu.Unlock()
	if w == nil {
		return look{}, false
	}
	l, _ := w.get()
	return l, l.err == nil && l.began.UnixNano() > instant
}

// look finds out how a page looks. A panic is an error like any other: it must not
// end a program that has jobs in hand.
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
