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
		b.done <- l.Listen(ctx, func(store.News) {
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

// optionalTests are about the roles that a store may have beside those that
// every store has. Listening has a file of its own.
var optionalTests = []test{
	{"Its clock is the one that stamps jobs", func(t *T) {
		c, ok := t.Store.(store.Clock)
		t.skipIf(!ok, "the store has no clock of its own")
		before := t.now()
		now := must(c.Now(t.ctx))(t)
		after := t.now()
		expect(t, between(now, before, after), "it says %v between jobs stamped %v and %v", now, before, after)
	}},
	{"Who says that he sleeps is rung for every enqueue, whatever others believed before", func(t *T) {
		s := as[store.IdleNotifier](t)
		clients := []stint.Enqueuer{t.Store, t.again()}
		enqueue := func(c stint.Enqueuer) {
			t.must(errOf(stint.NewClient(c).Enqueue(t.ctx, job("k"))))
		}
		w := t.join("k")
		bell := t.listen(t.Store)
		for _, asleep := range []bool{false, true, true, false, true} {
			t.must(s.Asleep(t.ctx, w.Info.Token, asleep))
			for range 3 {
				for _, c := range clients {
					if asleep {
						bell.rings("for one who sleeps", func() { enqueue(c) })
					} else {
						enqueue(c)
					}
				}
			}
		}
	}},
	{"Only engines of the roster sleep", func(t *T) {
		s := as[store.IdleNotifier](t)
		w := t.join("k")
		w.Leave()
		for _, token := range []store.EngineID{w.Info.Token, NewWorker(t, t.Store).Info.Token} {
			fails(t, s.Asleep(t.ctx, token, true), store.ErrBuried, "the error is %v, want ErrBuried")
		}
	}},
	{"A burial in progress is not evicted, however long it takes", func(t *T) {
		v := as[store.SessionTerminator](t)
		ids := t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		w.ClaimAll()
		hangs, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			first := true
			_, err := t.Store.Bury(t.ctx, store.Burial{Engine: w.Info.Token}, func(e *store.Entry, begun bool) store.Completion {
				if first {
					first = false
					close(hangs)
					<-release
				}
				return Judge(e, begun)
			})
			ended <- err
		}()
		<-hangs
		n, err := v.Evict(t.ctx, w.Info.Token)
		close(release)
		expect(t, err == nil && n == 0, "%d sessions were ended, error %v, want none", n, err)
		err = <-ended
		expect(t, err == nil, "the burial failed: %v", err)
		equal(t, len(t.join("k").ClaimAll()), len(ids), "%d of %d entries came back")
	}},
	{"Evicting an engine that holds up nobody ends nothing", func(t *T) {
		v := as[store.SessionTerminator](t)
		t.enqueue(jobs(2, "k")...)
		w := t.join("k")
		entries := w.ClaimAll()
		for _, token := range []store.EngineID{w.Info.Token, NewWorker(t, t.Store).Info.Token} {
			n, err := v.Evict(t.ctx, token)
			expect(t, err == nil && n == 0, "%d sessions were ended, error %v", n, err)
		}
		w.Complete(entries...)
	}},
}
