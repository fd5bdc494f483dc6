package storetest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// term is longer than any test takes, and short one that passes in it.
const (
	term  = time.Hour
	short = 20 * time.Millisecond
)

var leaseTests = []test{
	{"One engine gets it, the others are told who has it, and a renewal moves its end only", func(t *T) {
		a, b := t.join("k"), t.join("k")
		first := t.acquires(a, "x", term)
		expect(t, first.Instance == a.Info.Instance && first.Host == a.Info.Host && first.Expires.Sub(first.Renewed) == term &&
			first.Acquired.Equal(first.Renewed),
			"the lease is %+v", first)
		t.refused(b, "x", a)
		other := t.acquires(b, "y", term)
		again := t.acquires(a, "x", 2*term)
		expect(t, again.Acquired.Equal(first.Acquired) && again.Expires.Sub(again.Renewed) == 2*term &&
			!again.Renewed.Before(first.Renewed),
			"renewed it is %+v, after %+v", again, first)
		got := t.leaseOf("y")
		expect(t, got.Renewed.Equal(other.Renewed) && got.Expires.Equal(other.Expires),
			"another lease was %+v, and is %+v", other, got)
		t.leases(map[string]*Worker{"x": a, "y": b})
	}},
	{"Each name is a lease of its own, exactly as it is written", func(t *T) {
		a, b := t.join("k"), t.join("k")
		names := []string{"a", "A", "a b", "ä", "%", "x'y", strings.Repeat("l", valid.MaxName)}
		want := map[string]*Worker{}
		for i, name := range names {
			want[name] = []*Worker{a, b}[i%2]
			t.acquires(want[name], name, term)
		}
		t.leases(want)
	}},
	{"Bad names and times are refused", func(t *T) {
		l, w := as[store.Leaser](t), t.join("k")
		for _, name := range []string{"", "a\nb", " a", strings.Repeat("l", valid.MaxName+1), "a\x00b", "\xff"} {
			fails(t, errOf(l.Acquire(t.ctx, name, w.Info.Token, term)), stint.ErrInvalid, "acquiring %.20q gives %v", name)
			fails(t, errOf2(l.Revoke(t.ctx, name, "", "")), stint.ErrInvalid, "freeing %.20q gives %v", name)
		}
		for _, d := range []time.Duration{0, -1, time.Microsecond, 25 * time.Hour} {
			fails(t, errOf(l.Acquire(t.ctx, "x", w.Info.Token, d)), stint.ErrInvalid, "acquiring for %v gives %v", d)
		}
		t.leases(nil)
	}},
	{"When its time is over another one gets it, and who had it begins anew", func(t *T) {
		a, b := t.join("k"), t.join("k")
		var first store.Lease
		t.until(func() bool { first = t.acquire(a, "x", short); return first.Engine == a.Info.Token })
		t.until(func() bool { return t.acquire(b, "x", short).Engine == b.Info.Token })
		second := t.leaseOf("x")
		expect(t, !second.Acquired.Before(first.Expires) || second.Engine == 0,
			"it was acquired at %v, before %v", second.Acquired, first.Expires)
		t.until(func() bool { return t.acquire(a, "x", short).Engine == a.Info.Token })
		t.until(func() bool { return t.leaseOf("x").Engine == 0 })
		l := t.acquires(a, "x", term)
		expect(t, l.Acquired.After(first.Expires),
			"it holds the lease since %v, and was without it after %v", l.Acquired, first.Expires)
	}},
	{"Who resigns does it for himself, and another one gets the lease at once", func(t *T) {
		a, b := t.join("k"), t.join("k")
		t.acquires(a, "x", term)
		t.resigns(b, "x", false)
		t.resigns(a, "y", false)
		t.refused(b, "x", a)
		t.resigns(a, "x", true)
		t.leases(map[string]*Worker{"x": nil})
		t.resigns(a, "x", false)
		t.acquires(b, "x", term)
		t.resigns(a, "x", false)
		t.refused(a, "x", b)
	}},
	{"The buried hold nothing and get nothing, and neither does who never joined", func(t *T) {
		a, b, lives := t.join("k"), t.join("k"), t.join("k")
		t.acquires(lives, "y", term)
		for _, bury := range []func(*Worker){
			func(w *Worker) { w.Leave() },
			func(w *Worker) { t.must(errOf(Bury(t.ctx, t.again(), store.Burial{Engine: w.Info.Token}, Judge))) },
		} {
			t.acquires(a, "x", term)
			bury(a)
			t.leases(map[string]*Worker{"x": nil, "y": lives})
			t.buried(a, "x")
			t.acquires(b, "x", term)
			t.buried(a, "x")
			t.refused(b, "x", b)
			t.resigns(b, "x", true)
			a = t.join("k")
		}
		t.buried(NewWorker(t, t.Store), "never")
		t.leases(map[string]*Worker{"x": nil, "y": lives})
	}},
	{"Who is deposed waits as long as his lease was for, and everybody else may have it", func(t *T) {
		l, a, b, c := as[store.Leaser](t), t.join("k"), t.join("k"), t.join("k")
		t.acquires(c, "y", term)
		if _, had, err := l.Revoke(t.ctx, "x", "ann", "why"); had || err != nil {
			t.Errorf("freeing what nobody holds gives %v, %v", had, err)
		}
		was := t.acquires(a, "x", term)
		before := t.now()
		d, had, err := l.Revoke(t.ctx, "x", "ann\x00", "it hangs\xff")
		t.must(err)
		expect(t, had && d.Engine == a.Info.Token && d.Instance == a.Info.Instance && d.Host == a.Info.Host &&
			!d.At.Before(before) && d.Until.Sub(d.At) == was.Expires.Sub(was.Renewed) && strings.HasPrefix(d.By, "ann") &&
			strings.HasPrefix(d.Why, "it hangs"),
			"it says %v, %+v", had, d)
		t.leases(map[string]*Worker{"x": nil, "y": c})
		again := t.acquire(a, "x", term)
		expect(t, again.Engine == 0 && again.Deposed == d, "the deposed gets %+v", again)
		t.resigns(a, "x", false)
		again = t.acquires(b, "x", term)
		expect(t, again.Deposed == d, "it is not told who was deposed: %+v", again)
		t.refused(a, "x", b)
		if _, had, err = l.Revoke(t.ctx, "x", "", ""); !had || err != nil {
			t.Errorf("freeing it gives %v, %v", had, err)
		}
		t.until(func() bool { // somebody else was deposed since
			t.acquire(a, "x", short)
			d, had, err := l.Revoke(t.ctx, "x", "", "")
			t.must(err)
			return had && d.Engine == a.Info.Token
		})
		t.until(func() bool { return t.acquire(a, "x", short).Engine == a.Info.Token })
	}},
	{"Engines are rung when a lease is resigned and when somebody frees it", func(t *T) {
		l, w := as[store.Leaser](t), t.join("k")
		bell := t.listen(t.Store)
		t.acquires(w, "x", term)
		bell.rings("when it is resigned", func() { t.resigns(w, "x", true) })
		t.acquires(w, "x", term)
		bell.rings("when it is freed", func() { t.must(errOf2(l.Revoke(t.ctx, "x", "", ""))) })
	}},
	{"Of many who want it at once one gets it, however often it is free", func(t *T) {
		workers := []*Worker{t.join("k"), t.join("k"), t.join("k"), t.join("k")}
		other, _ := t.again().(store.Leaser)
		stores := []store.Leaser{as[store.Leaser](t), other}
		for range 10 {
			won := make(chan *Worker, 2*len(workers))
			errs := atOnce(2*len(workers), func(i int) error {
				w := workers[i/2]
				l, err := stores[i%2].Acquire(t.ctx, "x", w.Info.Token, term)
				if err == nil && l.Engine == w.Info.Token {
					won <- w
				}
				return err
			})
			t.must(errors.Join(errs...))
			close(won)
			first := <-won
			for w := range won {
				expect(t, w == first, "two have it at once")
			}
			if first == nil {
				t.Fatal("nobody has it")
			}
			t.resigns(first, "x", true)
		}
	}},
	{"The times of holders never overlap, whoever comes and goes", leaseStorm},
	{"A call whose context has ended takes nothing", func(t *T) {
		w := t.join("k")
		ended := t.over()
		expect(t, errOf(as[store.Leaser](t).Acquire(ended, "x", w.Info.Token, term)) != nil, "it succeeded")
		t.leases(nil)
	}},
}

// leaseStorm has engines take a lease for moments, join and be buried. What
// each was granted, from when to when, must not overlap with what another one
// was.
func leaseStorm(t *T) {
	type tenure struct {
		engine store.EngineID
		from   time.Time
	}
	var (
		l  = as[store.Leaser](t)
		mu sync.Mutex
		to = map[tenure]time.Time{} // by when it ended at the latest
	)
	held := func(l store.Lease, end time.Time) {
		mu.Lock()
		defer mu.Unlock()
		to[tenure{l.Engine, l.Acquired}] = end
	}
	errs := atOnce(4, func(i int) error {
		for range 4 {
			w := NewWorker(t, t.Store, "k")
			if err := w.TryJoin(t.ctx); err != nil {
				return err
			}
			for n := range 10 {
				got, err := l.Acquire(t.ctx, "x", w.Info.Token, 3*time.Millisecond)
				if err != nil {
					return err
				}
				if got.Engine != w.Info.Token {
					time.Sleep(time.Millisecond)
					continue
				}
				held(got, got.Expires)
				if n%3 == i%3 {
					if _, err := l.ReleaseLease(t.ctx, "x", w.Info.Token); err != nil {
						return err
					}
					held(got, got.Renewed) // some time later, in truth
				}
			}
			if _, err := Bury(t.ctx, t.Store, store.Burial{Engine: w.Info.Token}, Judge); err != nil {
				return err
			}
		}
		return nil
	})
	t.must(errors.Join(errs...))
	need(t, len(to) >= 8, "the lease was held %d times only", len(to))
	buried := t.ledger().Buried
	for a, end := range to {
		if at := buried[a.engine]; at.Before(end) {
			end = at
		}
		for b := range to {
			expect(t, a.engine == b.engine || b.from.Before(a.from) || !b.from.Before(end),
				"one engine held it from %v to %v, and another from %v on", a.from, end, b.from)
		}
	}
}

// acquire asks for a lease.
func (t *T) acquire(w *Worker, name string, term time.Duration) store.Lease {
	t.Helper()
	return must(as[store.Leaser](t).Acquire(t.ctx, name, w.Info.Token, term))(t)
}

// acquires checks that an engine gets a lease.
func (t *T) acquires(w *Worker, name string, term time.Duration) store.Lease {
	t.Helper()
	l := t.acquire(w, name, term)
	need(t, l.Engine == w.Info.Token && l.Name == name,
		"of the lease %q it says %+v, want it to be held by %s", name, l, w.Info.Instance)
	return l
}

// refused checks that who asks for a lease is told that another one has it.
func (t *T) refused(asks *Worker, name string, has *Worker) {
	t.Helper()
	l := t.acquire(asks, name, term)
	expect(t, l.Engine == has.Info.Token && l.Instance == has.Info.Instance && !l.Acquired.IsZero(),
		"of the lease %q it says %+v, want it to be held by %s", name, l, has.Info.Instance)
}

// buried checks that an engine is told that it is in no roster.
func (t *T) buried(w *Worker, name string) {
	t.Helper()
	fails(t, errOf(as[store.Leaser](t).Acquire(t.ctx, name, w.Info.Token, term)), store.ErrBuried,
		"acquiring %q gives %v, want ErrBuried", name)
}

func (t *T) resigns(w *Worker, name string, want bool) {
	t.Helper()
	had := must(as[store.Leaser](t).ReleaseLease(t.ctx, name, w.Info.Token))(t)
	equal(t, had, want, "resigning %q gives %v, want %v", name)
}

// leaseOf shows one lease.
func (t *T) leaseOf(name string) store.Lease {
	t.Helper()
	all := must(as[store.Leaser](t).Leases(t.ctx))(t)
	i := slices.IndexFunc(all, func(l store.Lease) bool { return l.Name == name })
	need(t, i >= 0, "there is no lease %q among %+v", name, all)
	return all[i]
}

// leases checks who has which; nil for a free one.
func (t *T) leases(want map[string]*Worker) {
	t.Helper()
	all := must(as[store.Leaser](t).Leases(t.ctx))(t)
	var names []string
	for _, l := range all {
		names = append(names, l.Name)
		var token store.EngineID
		instance := ""
		if w := want[l.Name]; w != nil {
			token, instance = w.Info.Token, w.Info.Instance
		}
		_, known := want[l.Name]
		expect(t, known && l.Engine == token && l.Instance == instance && (token == 0) == l.Expires.IsZero(),
			"of a lease people see %+v, want it to be held by %q", l, instance)
	}
	expect(t, len(names) == len(want) && slices.IsSorted(names),
		"people see the leases %q, want %d sorted by name", names, len(want))
}
