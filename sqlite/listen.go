package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint/store"
)

// dataVersionSQL answers another number when another connection has
// committed since this one asked last.
const dataVersionSQL = `pragma data_version`

// Listen implements [store.Listener]. What this store commits rings at once, and its news of permits
// say what they are about; for other processes, and for the caller's own transactions, it asks the
// file every [Config.Poll] whether anything changed.
func (s *Store) Listen(ctx context.Context, ring func(store.News)) error {
	if err := s.listen(); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer s.listening.Done()
	news := s.inboxes.open()
	defer s.inboxes.close(news)
	heard := s.changed.wait()
	var tick <-chan time.Time
	changed := func() (bool, error) { return false, nil }
	if s.config.Poll > 0 && s.readers != nil {
		c, err := s.connect(ctx, false)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		defer c.close()
		c.tell = nil // a line for each poll would hide all others
		changed = c.changes()
		ticker := time.NewTicker(s.config.Poll)
		defer ticker.Stop()
		tick = ticker.C
	}
	if _, err := changed(); err != nil {
		return fmt.Errorf("listen: %w", translate(err))
	}
	ring(store.News{})
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.closed:
			return fmt.Errorf("listen: %w", errClosed)
		case <-heard:
			heard = s.changed.wait()
			ring(store.News{})
		case <-news.some:
			for _, n := range news.take() {
				ring(n)
			}
		case <-tick:
			switch yes, err := changed(); {
			case err != nil && !errors.Is(err, sqlite3.BUSY):
				return fmt.Errorf("listen: %w", translate(err))
			case yes:
				ring(store.News{})
			}
		}
	}
}

// changes returns a function that reports whether others have committed since it
// was called last.
func (c *conn) changes() func() (bool, error) {
	last := int64(0)
	return func() (changed bool, err error) {
		err = c.query(dataVersionSQL, nil, func(q *stmt) error {
			version := q.ColumnInt64(0)
			changed, last = version != last, version
			return nil
		})
		return changed, err
	}
}

// inboxes are those of the listeners of this store, which are told more than that something changed.
// The zero value is ready.
type inboxes struct {
	mu  sync.Mutex
	all []*inbox
}

func (i *inboxes) open() *inbox {
	i.mu.Lock()
	defer i.mu.Unlock()
	b := &inbox{some: make(chan struct{}, 1)}
	i.all = append(i.all, b)
	return b
}

func (i *inboxes) close(b *inbox) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all = slices.DeleteFunc(i.all, func(o *inbox) bool { return o == b })
}

func (i *inboxes) put(news []store.News) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, b := range i.all {
		b.put(news)
	}
}

// inbox keeps news until its listener comes to them.
type inbox struct {
	some chan struct{} // holds one while there may be news

	mu   sync.Mutex
	news []store.News
}

// mostNews is after how many news a listener is told that anything may have changed, instead.
const mostNews = 1000

func (b *inbox) put(news []store.News) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.news = append(b.news, news...); len(b.news) > mostNews {
		b.news = []store.News{{}}
	}
	select {
	case b.some <- struct{}{}:
	default:
	}
}

func (b *inbox) take() []store.News {
	b.mu.Lock()
	defer b.mu.Unlock()
	news := b.news
	b.news = nil
	return news
}

// signal wakes all that wait for something to happen. The zero value is ready.
type signal struct {
	mu   sync.Mutex
	next chan struct{} // closed by the next ring; nil while nothing waits for it
}

// wait returns a channel that is closed by the next ring.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

func (s *signal) ring() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}
