package storetest

import (
	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

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
