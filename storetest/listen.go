package storetest

import (
	"context"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var listenTests = []test{
	{"It rings once when it has begun to listen, and ends with its context without an error", func(t *T) {
		bell := t.listen(t.Store)
		bell.stop()
	}},
	{"It rings after an enqueue, also one of another process", func(t *T) {
		bell := t.listen(t.Store)
		bell.rings("after an enqueue", func() { t.enqueue(job("k")) })
		other := stint.NewClient(t.again())
		bell.rings("after an enqueue elsewhere", func() {
			t.must(errOf(other.Enqueue(t.ctx, job("k"))))
		})
	}},
	{"It rings when a wait becomes shorter", func(t *T) {
		t.enqueue(job("k", stint.Delay(time.Hour)))
		bell := t.listen(t.Store)
		bell.rings("after an enqueue for earlier", func() { t.enqueue(job("k", stint.Delay(time.Minute))) })
	}},
	{"It rings after the commit of a caller's transaction", func(t *T) {
		bell := t.listen(t.Store)
		tx := t.begin()
		t.enqueueIn(tx, job("k"))
		bell.rings("after the commit", func() { t.must(tx.Commit()) })
	}},
	{"It rings for the successor of a finished attempt and after a promotion", func(t *T) {
		ids := t.enqueue(job("k"), job("k", stint.Delay(10*time.Millisecond)))
		w := t.join("k")
		e := w.ClaimAll()
		bell := t.listen(t.again())
		bell.rings("after a return", func() {
			w.Finish(returned, e...)
		})
		time.Sleep(20 * time.Millisecond)
		bell.rings("after a promotion", func() { t.promoteAll(1) })
		t.state(ids[1], stint.Available)
	}},
	{"It rings for what a burial hands on", func(t *T) {
		t.enqueue(job("k"))
		w := t.join("k")
		w.ClaimAll()
		bell := t.listen(t.Store)
		bell.rings("after a burial", func() { w.Leave() })
	}},
	{"Several listeners hear the same", func(t *T) {
		bells := []*bell{t.listen(t.Store), t.listen(t.Store), t.listen(t.again())}
		for _, b := range bells {
			b.drain()
		}
		t.enqueue(job("k"))
		for _, b := range bells {
			b.wait("after an enqueue")
		}
	}},
}

// bell is a listener that counts, roughly.
type bell struct {
	t    *T
	rung chan struct{}
	end  context.CancelFunc
	done chan error
}

// listen listens until the test ends, and returns when it does.
func (t *T) listen(s Store) *bell {
	t.Helper()
	l, ok := s.(store.Listener)
	t.skipIf(!ok, "the store has no listener")
	ctx, cancel := context.WithCancel(t.ctx)
	b := &bell{t: t, rung: make(chan struct{}, 1), end: cancel, done: make(chan error, 1)}
	go func() {
		b.done <- l.Listen(ctx, func() {
			select {
			case b.rung <- struct{}{}:
			default:
			}
		})
	}()
	t.Cleanup(b.stop)
	b.wait("when it began to listen")
	return b
}

// wait waits for a signal.
func (b *bell) wait(when string) {
	b.t.Helper()
	select {
	case <-b.rung:
	case err := <-b.done:
		b.t.Fatalf("it ended %s: %v", when, err)
	case <-time.After(patience()):
		b.t.Fatalf("it did not ring %s", when)
	}
}

// rings checks that something makes it ring. Signals without cause are
// allowed, so those of before are let pass first.
func (b *bell) rings(when string, do func()) {
	b.t.Helper()
	b.drain()
	do()
	b.wait(when)
}

// drain waits until it has been quiet for a while.
func (b *bell) drain() {
	for {
		select {
		case <-b.rung:
		case <-time.After(100 * time.Millisecond):
			return
		}
	}
}

// stop ends the listener and checks how it ended.
func (b *bell) stop() {
	if b.end == nil {
		return
	}
	b.end()
	b.end = nil
	select {
	case err := <-b.done:
		expect(b.t, err == nil, "listening ended with %v, want nil", err)
	case <-time.After(patience()):
		b.t.Errorf("it listens on after its context ended")
	}
}
