package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// permitTests are about what limits allow: what engines hold together, and what people set.
var permitTests = []test{
	{"Engines get what a rule has and no more, and keep it until they give it back", func(t *T) {
		t.rules(map[string]string{"x": "3"})
		a, b := t.join("k"), t.join("k")
		h := t.takes(a, "x", 0, 2, 2)
		expect(t, h.N == 1 && h.Rule.AtOnce == 3 && h.Asked == 0 && h.Fair == 3 && h.Starts == nil, "the first hold is %+v", h)
		h = t.takes(b, "x", 0, 2, 1)
		expect(t, h.N == 2 && h.Fair == 1, "the second engine's is %+v", h)
		t.gates("x", "x: 3+1")
		h = t.takes(a, "x", 2, 2, 2)
		expect(t, h.N == 2 && h.Asked == 1, "having enough, and another one waiting, its hold is %+v", h)
		t.returns(a, "x", 1, 1)
		t.gates("x", "x: 2+1")
		t.takes(b, "x", 1, 2, 2)
		t.returns(a, "x", 0, 0)
		t.returns(b, "x", 0, 0)
		t.gates("x")
	}},
	{"What changes nothing is not written, and is answered all the same", func(t *T) {
		t.rules(map[string]string{"x": "3"})
		w := t.join("k")
		h := t.returns(w, "x", 5, 0)
		equal(t, h.N, 0, "a gate that nobody used has the state %d, want %d")
		t.takes(w, "x", 0, 2, 2)
		h = t.returns(w, "x", 2, 2)
		equal(t, h.N, 1, "keeping what it has made the state %d, want %d")
		equal(t, len(t.permits(w, store.PermitRequest{})), 0, "asked about nothing it answers %d, want %d")
	}},
	{"A gate without a rule counts, and lets all pass", func(t *T) {
		as[store.Limiter](t)
		a, b := t.join("k"), t.join("k")
		h := t.takes(a, "x=1", 0, 1000, 1000)
		equal(t, h.Rule, stint.LimitRule{}, "the rule is %v, want %v")
		t.takes(b, "x=1", 0, 7, 7)
		l, _ := t.limit("x")
		want := store.LimitInfo{Name: "x", Rule: "any", Gates: 1, Held: 1007, Engines: 2}
		noDiff(t, cmp.Diff(want, l), "people see another limit (-want +got)")
	}},
	{"Looks say which queues have a limit or a pause", func(t *T) {
		l := as[store.Limiter](t)
		mark := t.since(store.Mark{}, true)
		t.enqueue(job("k", stint.Queue("a")), job("k", stint.Queue("b")))
		limited := func(want string) {
			t.Helper()
			heads, seen := must(t.Store.Look(t.ctx, store.LaneHints{}))(t), ""
			since := must(t.Store.LookSince(t.ctx, mark))(t).Heads
			for _, of := range [][]store.LaneHead{heads, since} {
				slices.SortFunc(of, func(a, b store.LaneHead) int { return strings.Compare(a.Queue, b.Queue) })
				for _, head := range of {
					if head.Limited {
						seen += head.Queue
					}
				}
				seen += " "
			}
			equal(t, seen, want+" "+want+" ", "looks, and looks since a mark, say that %q have a limit, want %q")
		}
		limited("")
		t.rules(map[string]string{"x": "1", "x=queue=a": "1", "queue-a": "1", "queue=b": "any"})
		limited("b")
		t.must(l.PauseLimit(t.ctx, "queue=a", store.Pause{For: time.Hour}))
		limited("ab")
		must(l.ResumeLimit(t.ctx, "queue=a"))(t)
		t.must(l.SetLimit(t.ctx, "queue=a", stint.LimitRule{AtOnce: 1}, "", ""))
		limited("ab")
		must(l.ResetLimit(t.ctx, "queue=a"))(t)
		limited("b")
		t.must(l.DeclareLimits(t.ctx, map[string]stint.LimitRule{"queue": {AtOnce: 1}}))
		limited("ab")
		for _, err := range []error{
			l.SetLimit(t.ctx, "queue=a", stint.LimitRule{AtOnce: 1, InOrder: true}, "", ""), l.DeclareLimits(t.ctx, map[string]stint.LimitRule{"queue": {AtOnce: 1, InOrder: true}}),
		} {
			fails(t, err, stint.ErrInvalid, "a queue that is to keep an order is answered with %v")
		}
		_, err := stint.NewClient(t.Store).Enqueue(t.ctx, job("k", stint.Limited("queue=a")))
		fails(t, err, stint.ErrInvalid, "a job that names the limit of a queue is answered with %v")
	}},
	{"Each key of a limit has what its rule says", func(t *T) {
		t.rules(map[string]string{"x": "1", "X": "2"})
		w := t.join("k")
		for _, gate := range []string{"x", "x=a", "x=A", "x=a b", "x=a=b", "x=%", "x='", "x=ä", "x==", "x=" + strings.Repeat("k", 255)} {
			t.takes(w, gate, 0, 3, 1)
		}
		t.takes(w, "X", 0, 3, 2)
		t.takes(w, "xx", 0, 3, 3)
		t.takes(w, "x-y", 0, 3, 3)
		t.gates("y")
		all := must(as[store.Limiter](t).Gates(t.ctx, "x", 100))(t)
		equal(t, len(all), 10, "people see %d gates of it, want %d")
		for _, g := range all {
			name, key, _ := strings.Cut(g.Gate, "=")
			expect(t, name == "x" && g.Key == key && g.Held == 1, "people see %+v", g)
		}
		equal(t, len(must(as[store.Limiter](t).Gates(t.ctx, "x", 4))(t)), 4, "asked for a few they see %d gates, want %d")
	}},
	{"Of several gates it gets what all of them allow, and nothing of one without the others", func(t *T) {
		t.rules(map[string]string{"x": "2", "y": "1", "z": "0"})
		a, b := t.join("k"), t.join("k")
		got := t.permits(a, taking(3, store.TakingGate{Gate: "x"}, store.TakingGate{Gate: "y"}))
		expect(t, got[0].Permits == 1 && got[1].Permits == 1, "of x and y it holds %d and %d, want one of each", got[0].Permits, got[1].Permits)
		got = t.permits(b, taking(1, store.TakingGate{Gate: "x"}, store.TakingGate{Gate: "y"}))
		expect(t, got[0].Permits == 0 && got[1].Permits == 0 && got[0].N == 1, "while y has none left another engine holds %+v", got)
		t.gates("x", "x: 1+0")
		t.gates("y", "y: 1+3") // one that a lacks of three is two
		got = t.permits(b, taking(1, store.TakingGate{Gate: "x"}, store.TakingGate{Gate: "z"}))
		expect(t, got[0].Permits == 0 && got[1].Permits == 0, "with a gate that lets nothing pass it holds %+v", got)
		got = t.permits(a, store.PermitRequest{
			Keep: []store.Keeping{{Gate: "y", Permits: 0}},
			Take: []store.Taking{{Gates: []store.TakingGate{{Gate: "x", Permits: 1}}, Want: 2}},
		})
		expect(t, got[0].Permits == 2 && got[1].Permits == 0, "given back the one and taken the other it holds %+v", got)
	}},
	{"Who waits gets permits in the order in which they asked, and who got some waits behind the others", func(t *T) {
		t.rules(map[string]string{"x": "1"})
		a, b, c := t.join("k"), t.join("k"), t.join("k")
		t.soonEnough(func() string {
			for _, w := range []*Worker{a, b, c} {
				t.permits(w, keeping("x", 0))
			}
			ask := func(w *Worker) int { return t.permits(w, taking(1, store.TakingGate{Gate: "x"}))[0].Permits }
			back := func(w *Worker) { t.permits(w, keeping("x", 0)) }
			if got := []int{ask(a), ask(b), ask(c)}; !slices.Equal(got, []int{1, 0, 0}) {
				return fmt.Sprintf("of three who ask they get %v", got)
			}
			back(a)
			if got := []int{ask(c), ask(a), ask(b)}; !slices.Equal(got, []int{0, 0, 1}) {
				return fmt.Sprintf("when it is free, the third, the first and the second who asked get %v, want the second only", got)
			}
			back(b)
			if got := []int{ask(b), ask(a), ask(c)}; !slices.Equal(got, []int{0, 0, 1}) {
				return fmt.Sprintf("when it is free again they get %v, want the third only", got)
			}
			return ""
		})
	}},
	{"Who waited and does not ask any more is not waited for", func(t *T) {
		t.rules(map[string]string{"x": "1"})
		a, b, c := t.join("k"), t.join("k"), t.join("k")
		t.takes(a, "x", 0, 1, 1)
		t.takes(b, "x", 0, 1, 0)
		t.returns(a, "x", 0, 0)
		t.until(func() bool { return len(must(as[store.Limiter](t).Gates(t.ctx, "x", 9))(t)) == 0 })
		t.until(func() bool { return t.permits(c, taking(1, store.TakingGate{Gate: "x"}))[0].Permits == 1 })
		t.gates("x", "x: 1+0")
	}},
	{"The permits of a buried engine are free, and it gets none", func(t *T) {
		t.rules(map[string]string{"x": "2"})
		for _, bury := range []func(*Worker){
			func(w *Worker) { w.Leave() },
			func(w *Worker) { t.must(errOf(Bury(t.ctx, t.again(), store.Burial{Engine: w.Info.Token}, Judge))) },
		} {
			a, b := t.join("k"), t.join("k")
			t.takes(a, "x", 0, 2, 2)
			t.takes(b, "x", 0, 1, 0)
			bury(a)
			t.gates("x", "x: 0+1")
			t.takes(b, "x", 0, 2, 2)
			for _, req := range []store.PermitRequest{taking(1, store.TakingGate{Gate: "x"}), taking(1, store.TakingGate{Gate: "new"}), keeping("x", 0), keeping("x", 9), {}} {
				fails(t, errOf(as[store.Limiter](t).Permits(t.ctx, a.Info.Token, req)), store.ErrBuried, "buried, it gets %v")
			}
			t.gates("new")
			t.gates("x", "x: 2+0")
			t.returns(b, "x", 0, 0)
		}
		fails(t, errOf(as[store.Limiter](t).Permits(t.ctx, NewWorker(t, t.Store).Info.Token, taking(1, store.TakingGate{Gate: "x"}))), store.ErrBuried, "one that never joined gets %v")
	}},
	{"A gate whose outcome is unknown is written again, so that an earlier call has none", func(t *T) {
		t.rules(map[string]string{"x": "2"})
		w := t.join("k")
		t.takes(w, "x", 0, 2, 2)
		for n := range 3 {
			got := t.permits(w, store.PermitRequest{Keep: []store.Keeping{{Gate: "x", Permits: 1, Doubted: true}}})
			expect(t, got[0].N == int64(2+n) && got[0].Permits == 1, "doubted it is %+v", got[0])
		}
		got := t.permits(w, store.PermitRequest{Keep: []store.Keeping{{Gate: "never used", Permits: 1, Doubted: true}}})
		expect(t, got[0].N == 1 && got[0].Permits == 0, "of a gate that nobody used it holds %+v", got[0])
	}},
	{"A call whose context has ended gives nothing", func(t *T) {
		t.rules(map[string]string{"x": "2"})
		w := t.join("k")
		expect(t, errOf(as[store.Limiter](t).Permits(t.over(), w.Info.Token, taking(1, store.TakingGate{Gate: "x"}))) != nil, "it succeeded")
		t.gates("x")
	}},
	{"What people see of a limit is who holds it and who waits, and since when", func(t *T) {
		t.rules(map[string]string{"x": "3", "unused": "10,100/1m,burst=5"})
		a, b := t.join("k"), t.join("k")
		t.soonEnough(func() string {
			for _, w := range []*Worker{a, b} {
				t.permits(w, keeping("x=1", 0))
				t.permits(w, keeping("x=2", 0))
			}
			t.takes(a, "x=1", 0, 2, 2)
			t.takes(b, "x=1", 0, 3, 1)
			t.takes(a, "x=2", 0, 1, 1)
			before := t.now().Add(-2 * time.Second)
			l, _ := t.limit("x")
			if want := (store.LimitInfo{Name: "x", Rule: "3", Declared: "3", Gates: 2, Held: 4, Asked: 2, Engines: 2}); l != want {
				return fmt.Sprintf("people see %+v, want %+v", l, want)
			}
			g := must(as[store.Limiter](t).Gates(t.ctx, "x", 9))(t)
			if len(g) != 2 || g[0].Gate != "x=1" || g[1].Gate != "x=2" || len(g[0].Holds) != 2 || len(g[1].Holds) != 1 {
				return fmt.Sprintf("people see the gates %+v, want x=1, of which most is asked for, and x=2", g)
			}
			for _, h := range g[0].Holds {
				w, held, asked := a, 2, 0
				if h.Engine == b.Info.Token {
					w, held, asked = b, 1, 2
				}
				if h.Engine != w.Info.Token || h.Instance != w.Info.Instance || h.Held != held || h.Asked != asked || h.Since.IsZero() != (asked == 0) || asked > 0 && h.Since.Before(before) {
					return fmt.Sprintf("people see %+v", h)
				}
			}
			return ""
		})
		l, _ := t.limit("unused")
		noDiff(t, cmp.Diff(store.LimitInfo{Name: "unused", Rule: "10,100/1m,burst=5", Declared: "10,100/1m,burst=5", Gates: l.Gates}, l), "people see another limit (-want +got)")
		var names []string
		for _, l := range must(as[store.Limiter](t).Limits(t.ctx))(t) {
			names = append(names, l.Name)
		}
		equalAll(t, names, []string{"unused", "x"}, "the limits are %q, want %q")
	}},

	{"People see when the next job can start under a rate, also when nobody uses it", func(t *T) {
		t.rules(map[string]string{"x": "1/1h", "burst": "10/1h,burst=2"})
		w := t.join("k")
		before := t.now()
		for _, gate := range []string{"x=1", "burst"} {
			need(t, len(t.permits(w, taking(1, store.TakingGate{Gate: gate}))[0].Starts) == 1, "no start of %s was given", gate)
		}
		next := func(limit, gate string) (time.Time, int64) {
			for _, g := range must(as[store.Limiter](t).Gates(t.ctx, limit, 9))(t) {
				if g.Gate == gate {
					return g.Next, g.Held
				}
			}
			return time.Time{}, -1
		}
		for _, held := range []int64{1, 0} {
			at, got := next("x", "x=1")
			expect(t, at.Sub(before) > 59*time.Minute && at.Sub(before) < 63*time.Minute && got == held, "with %d held, want %d, the next start is at %v", got, held, at)
			t.permits(w, keeping("x=1", 0))
		}
		if at, held := next("burst", "burst"); !at.IsZero() || held != 1 {
			t.Errorf("with a start of the burst left the next one is at %v, and %d are held", at, held)
		}
		t.permits(w, keeping("burst", 0))
		if at, held := next("burst", "burst"); held != -1 {
			t.Errorf("unused, with a start left, it is shown with %d held, and the next start at %v", held, at)
		}
		l, _ := t.limit("x")
		expect(t, l.Gates == 0 && l.Engines == 0, "nobody uses it, and people see %+v", l)
	}},

	{"What people set stands over what programs declare, until it is reset", func(t *T) {
		l, w := as[store.Limiter](t), t.join("k")
		rule := func(want string) {
			t.Helper()
			equal(t, t.permits(w, keeping("x=1", 0))[0].Rule.String(), want, "an engine is told the rule %s, want %s")
			info, there := t.limit("x")
			expect(t, there && info.Rule == want || !there && want == "any", "people see the rule %q, want %s", info.Rule, want)
		}
		rule("any")
		reset := func(want bool) {
			t.Helper()
			was, err := l.ResetLimit(t.ctx, "x")
			expect(t, err == nil && was == want, "resetting it gives %v, %v; want %v", was, err, want)
		}
		reset(false)
		before := t.now()
		t.must(l.SetLimit(t.ctx, "x", stint.LimitRule{AtOnce: 7}, "ann\x00", "they asked\xff"))
		rule("7")
		t.rules(map[string]string{"x": "3"})
		rule("7")
		info, _ := t.limit("x")
		expect(t, info.Declared == "3" && info.Set == "7" && between(info.SetAt, before, t.now()) && strings.HasPrefix(info.By, "ann") &&
			strings.HasPrefix(info.Why, "they asked"), "people see %+v", info)
		t.rules(map[string]string{"x": "100/1m,burst=5"})
		t.must(l.SetLimit(t.ctx, "x", stint.LimitRule{AtOnce: -1}, "", ""))
		rule("0")
		info, _ = t.limit("x")
		expect(t, info.By == "" && info.Why == "", "set by nobody it shows as %+v", info)
		reset(true)
		rule("100/1m,burst=5")
		info, _ = t.limit("x")
		noDiff(t, cmp.Diff(store.LimitInfo{Name: "x", Rule: "100/1m,burst=5", Declared: "100/1m,burst=5", Gates: info.Gates}, info), "reset it shows otherwise (-want +got)")
		reset(false)
		t.must(l.SetLimit(t.ctx, "only-people's", stint.LimitRule{AtOnce: 1}, "", ""))
	}},
	{"A limit of which nothing is declared is gone when it is reset", func(t *T) {
		l := as[store.Limiter](t)
		t.must(l.SetLimit(t.ctx, "x", stint.LimitRule{AtOnce: 1}, "", ""))
		t.must(errOf(l.ResetLimit(t.ctx, "x")))
		_, there := t.limit("x")
		expect(t, !there, "it is there")
		equal(t, t.takes(t.join("k"), "x", 0, 5, 5).Rule, stint.LimitRule{}, "its rule is %v, want %v")
	}},
	{"A rule of fewer takes nothing away, and lets nothing pass until enough have come back", func(t *T) {
		l := as[store.Limiter](t)
		t.rules(map[string]string{"x": "3"})
		a, b := t.join("k"), t.join("k")
		t.takes(a, "x", 0, 3, 3)
		t.must(l.SetLimit(t.ctx, "x", stint.LimitRule{AtOnce: 1}, "", ""))
		h := t.takes(a, "x", 3, 4, 3)
		equal(t, h.Rule.AtOnce, 1, "it is told that %d run at once, want %d")
		t.takes(b, "x", 0, 1, 0)
		t.returns(a, "x", 1, 1)
		t.takes(b, "x", 0, 1, 0)
		t.returns(a, "x", 0, 0)
		t.takes(b, "x", 0, 2, 1)
		t.must(l.SetLimit(t.ctx, "x", stint.LimitRule{AtOnce: -1}, "", ""))
		t.returns(b, "x", 0, 0)
		t.until(func() bool { return t.takes(a, "x", 0, 1, 0).Asked == 0 })
		t.must(l.SetLimit(t.ctx, "x", stint.LimitRule{}, "", ""))
		t.takes(a, "x", 0, 9, 9)
	}},
	{"Names and rules that can never be right are refused, and nothing is stored", func(t *T) {
		l := as[store.Limiter](t)
		for _, name := range []string{"", " a", "a b", "a=", "a=b\n", "=b", "a\nb", "a\x00", "\xff", strings.Repeat("l", 101)} {
			fails(t, l.SetLimit(t.ctx, name, stint.LimitRule{}, "", ""), stint.ErrInvalid, "setting %.20q gives %v", name)
			fails(t, errOf(l.ResetLimit(t.ctx, name)), stint.ErrInvalid, "resetting %.20q gives %v", name)
			fails(t, l.DeclareLimits(t.ctx, map[string]stint.LimitRule{"fine": {}, name: {}}), stint.ErrInvalid, "declaring %.20q gives %v", name)
		}
		for _, rule := range []stint.LimitRule{{AtOnce: -2}, {AtOnce: 1 << 30}, {Starts: 1}, {Per: time.Second}, {Starts: 2, Per: time.Second, Burst: 3}} {
			fails(t, l.SetLimit(t.ctx, "x", rule, "", ""), stint.ErrInvalid, "setting %+v gives %v", rule)
			fails(t, l.DeclareLimits(t.ctx, map[string]stint.LimitRule{"x": rule}), stint.ErrInvalid, "declaring %+v gives %v", rule)
		}
		expect(t, l.SetLimit(t.over(), "x", stint.LimitRule{}, "", "") != nil, "a call whose context has ended succeeds")
		all := must(l.Limits(t.ctx))(t)
		equal(t, len(all), 0, "there are %d limits, want %d")
	}},
	{"Many programs declare at once", func(t *T) {
		stores := []store.Limiter{as[store.Limiter](t), t.again().(store.Limiter)}
		t.must(errors.Join(atOnce(8, func(i int) error {
			rules := map[string]stint.LimitRule{}
			for n := range 20 {
				rules[fmt.Sprint("l", n)] = stint.LimitRule{AtOnce: 1 + i%2}
			}
			return stores[i%2].DeclareLimits(t.ctx, rules)
		})...))
		equal(t, len(must(stores[0].Limits(t.ctx))(t)), 20, "%d limits are declared, want %d")
	}},

	{"Starts are bought in advance, evenly spread over all engines, each for one job", func(t *T) {
		t.rules(map[string]string{"x": "10/1s"})
		a, b := t.join("k"), t.join("k")
		before := t.now()
		h := t.takes(a, "x", 0, 100, 3)
		need(t, len(h.Starts) == 3 && !h.Starts[0].Before(before) && h.Next.After(h.Starts[2]), "it bought the starts %v, more from %v on", h.Starts, h.Next)
		has := store.TakingGate{Gate: "x", Permits: 3, Starts: 3}
		h = t.permits(a, taking(3, has))[0]
		expect(t, h.N == 1 && h.Starts == nil && h.Permits == 3, "having enough it holds %+v", h)
		all := t.starts(a, "x")
		for began := time.Now(); time.Since(began) < 800*time.Millisecond; {
			all = append(all, append(t.starts(b, "x"), t.starts(a, "x")...)...)
		}
		slices.SortFunc(all, time.Time.Compare)
		for i := range all[1:] {
			expect(t, all[i+1].Sub(all[i]) >= 100*time.Millisecond, "two starts are %v apart", all[i+1].Sub(all[i]))
		}
		last := all[len(all)-1]
		expect(t, last.Before(t.now().Add(time.Second)), "a start was bought for %v", last)
	}},
	{"A start that costs more than one has those after it wait, also for other engines and after a while", func(t *T) {
		t.rules(map[string]string{"x": "10/1s", "y": "10/1s,burst=5"})
		a, b := t.join("k"), t.join("k")
		dear := func(gate string, cost int) store.Hold {
			return t.permits(a, taking(1, store.TakingGate{Gate: gate, Cost: cost}))[0]
		}
		h := dear("x", 30)
		need(t, len(h.Starts) == 1 && h.Cost == 30, "it bought %+v", h)
		for range 3 {
			next := t.permits(b, taking(1, store.TakingGate{Gate: "x"}))[0]
			gap := next.Next.Sub(h.Starts[0])
			expect(t, next.Starts == nil && gap > 3*time.Second && gap < 4*time.Second, "after a start of 30 of 10 a second the next one comes after %v", gap)
			time.Sleep(100 * time.Millisecond)
		}
		h = dear("y", 5)
		next := t.permits(b, taking(1, store.TakingGate{Gate: "y"}))[0]
		need(t, len(h.Starts) == 1 && next.Starts == nil, "of a burst of 5 it bought %v, and then %v", h.Starts, next.Starts)
		gap := next.Next.Sub(h.Starts[0])
		expect(t, gap > 500*time.Millisecond && gap < time.Second, "after a burst of 5 in one start the next one comes after %v", gap)
	}},
	{"After a pause so many starts come at once as its burst says", func(t *T) {
		t.rules(map[string]string{"x": "20/1s,burst=5"})
		h := t.permits(t.join("k"), taking(100, store.TakingGate{Gate: "x"}))[0]
		need(t, len(h.Starts) > 5, "it bought %v", h.Starts)
		for i, start := range h.Starts {
			expect(t, start.Equal(h.Starts[0]) == (i < 5), "start %d is at %v, the first at %v", i+1, start, h.Starts[0])
		}
	}},
	{"However many engines ask, in no time of the rate are there more starts than it has, and its burst", func(t *T) {
		t.rules(map[string]string{"x": "50/500ms,burst=10"})
		var mu sync.Mutex
		var all []time.Time
		stores := []Store{t.Store, t.again()}
		t.must(errors.Join(atOnce(4, func(i int) error {
			w := NewWorker(t, stores[i%2], "k")
			err := w.TryJoin(t.ctx)
			for began := time.Now(); err == nil && time.Since(began) < 1500*time.Millisecond; {
				var holds []store.Hold
				holds, err = w.Store.(store.Limiter).Permits(t.ctx, w.Info.Token, taking(7, store.TakingGate{Gate: "x"}))
				mu.Lock()
				for _, h := range holds {
					all = append(all, h.Starts...)
				}
				mu.Unlock()
			}
			return err
		})...))
		slices.SortFunc(all, time.Time.Compare)
		for i := range all {
			n := 0
			for _, start := range all[i:] {
				if start.Sub(all[i]) < 500*time.Millisecond {
					n++
				}
			}
			expect(t, n <= 60, "from %v on there are %d starts in half a second", all[i], n)
		}
		expect(t, len(all) >= 60, "there are %d starts, want 60 at least", len(all))
	}},

	{"Engines are woken: who holds permits when another one waits, who waits when there is room, and all when a rule changes", func(t *T) {
		l := as[store.Limiter](t)
		t.rules(map[string]string{"x": "1"})
		a, b := t.join("k"), t.join("k")
		news := t.hear(t.again())
		t.soonEnough(func() string {
			t.permits(a, keeping("x=a b", 0))
			t.permits(b, keeping("x=a b", 0))
			t.takes(a, "x=a b", 0, 1, 1)
			news.hears(store.News{Permits: "x=a b"}, func() { t.takes(b, "x=a b", 0, 1, 0) })
			began := time.Now()
			t.returns(a, "x=a b", 0, 0)
			if time.Since(began) < time.Second {
				news.hears(store.News{Permits: "x=a b", Engine: b.Info.Token}, func() {})
			}
			return ""
		})
		for what, change := range map[string]func() error{
			"set":      func() error { return l.SetLimit(t.ctx, "x", stint.LimitRule{AtOnce: 2}, "", "") },
			"reset":    func() error { return errOf(l.ResetLimit(t.ctx, "x")) },
			"declared": func() error { return l.DeclareLimits(t.ctx, map[string]stint.LimitRule{"x": {AtOnce: 3}}) },
		} {
			t.must(l.SetLimit(t.ctx, "x", stint.LimitRule{AtOnce: 9}, "", ""))
			if what == "declared" {
				t.must(errOf(l.ResetLimit(t.ctx, "x")))
			}
			news.hears(store.News{Permits: "x"}, func() { t.must(change()) })
		}
	}},

	{"Gates that nobody uses are forgotten, and what is held or was bought is not", func(t *T) {
		l := as[store.Limiter](t)
		t.rules(map[string]string{"x": "3", "rate": "1/1h"})
		a, b := t.join("k"), t.join("k")
		t.takes(a, "x", 0, 2, 2)
		t.takes(b, "x", 0, 2, 1)
		t.returns(b, "x", 0, 0)
		t.returns(a, "x", 1, 1)
		n := t.takes(a, "x", 1, 2, 2).N
		t.takes(b, "y", 0, 1, 1)
		t.returns(b, "y", 0, 0)
		equal(t, len(t.permits(b, taking(1, store.TakingGate{Gate: "rate"}))[0].Starts), 1, "%d starts were bought, want %d")
		t.returns(b, "rate", 0, 0)
		t.takes(b, "left behind", 0, 1, 1)
		t.must(l.SetLimit(t.ctx, "set", stint.LimitRule{AtOnce: 1}, "", ""))
		b.Leave()
		expect(t, must(l.TidyPermits(t.ctx))(t) > 0, "nothing was forgotten")
		equal(t, must(l.TidyPermits(t.ctx))(t), 0, "once more %d rows were forgotten, want %d")
		c := t.join("k")
		t.gates("x", "x: 2+0")
		h := t.takes(c, "x", 0, 1, 1)
		equal(t, h.N, n+1, "the state of a gate in use is %d, want %d")
		h = t.takes(c, "rate", 0, 1, 0)
		expect(t, h.Starts == nil && h.Next.After(t.now().Add(59*time.Minute)), "a rate that was used up gives %+v", h)
		t.takes(c, "set", 0, 2, 1)
		for _, gate := range []string{"y", "left behind"} {
			h := t.takes(c, gate, 0, 1, 1)
			equal(t, h.N, 1, "the gate %s that was forgotten has the state %d, want %d", gate)
		}
	}},
	{"Many engines that take and give back, and die, never hold more than there is, whoever tidies meanwhile", hammer},
}

// hammer has engines ask for permits at random, of which each notes before a call what it gives back and after it what
// it got: so all notes together are never more than what they hold.
func hammer(t *T) {
	limits := map[string]int{"x": 3, "y": 2}
	t.rules(map[string]string{"x": "3", "y": "2"})
	var (
		seed   = NewSeed(t)
		stores = []Store{t.Store, t.again()}
		mu     sync.Mutex
		notes  = map[string]int{}
		got    atomic.Int64
		ended  = make(chan struct{})
		others sync.WaitGroup
	)
	note := func(gate string, by int) {
		mu.Lock()
		defer mu.Unlock()
		notes[gate] += by
		expect(t, notes[gate] <= limits[gate], "engines hold %d of %s together, which has %d", notes[gate], gate, limits[gate])
	}
	meanwhile := func(do func()) {
		others.Go(func() {
			for {
				select {
				case <-ended:
					return
				case <-time.After(time.Millisecond):
					do()
				}
			}
		})
	}
	meanwhile(func() {
		if _, err := stores[1].(store.Limiter).TidyPermits(t.ctx); err != nil {
			t.Errorf("tidy: %v", err)
		}
	})
	meanwhile(func() {
		for gate, most := range limits {
			all, err := stores[0].(store.Limiter).Gates(t.ctx, gate, 9)
			expect(t, err == nil && (len(all) == 0 || all[0].Held <= int64(most)), "people see %+v, %v", all, err)
		}
	})
	errs := atOnce(4, func(i int) error {
		e := &asking{T: t, r: seed.Rand(fmt.Sprint("engine ", i)), note: note}
		err := e.join(stores[i%2])
		for n := 0; err == nil && (n < 120 || e.got <= 5 && n < 10_000); n++ { // more of them on a busy machine, where most are refused
			if e.r.IntN(40) == 0 {
				err = e.die(stores[i%2])
			} else {
				err = e.ask()
			}
		}
		for tries := 0; err == nil && e.holds["x"]+e.holds["y"] > 0 && tries < 10_000; tries++ {
			err = e.send(store.PermitRequest{Keep: []store.Keeping{{Gate: "x"}, {Gate: "y"}}})
		}
		got.Add(int64(e.got))
		return err
	})
	close(ended)
	others.Wait()
	t.must(errors.Join(errs...))
	t.Logf("%d permits were given", got.Load())
	expect(t, got.Load() > 20, "%d permits were given", got.Load())
	for gate := range limits {
		for _, g := range must(stores[0].(store.Limiter).Gates(t.ctx, gate, 9))(t) {
			equal(t, g.Held, 0, "of %s %d permits are held in the end, want %d", gate)
		}
	}
}

// asking is an engine that asks for permits at random.
type asking struct {
	*T
	r     interface{ IntN(int) int }
	note  func(gate string, by int)
	w     *Worker
	holds map[string]int
	got   int
}

func (e *asking) join(s Store) error {
	e.w, e.holds = NewWorker(e.T, s, "k"), map[string]int{}
	return e.w.TryJoin(e.ctx)
}

// die buries the engine, and another one joins in its place.
func (e *asking) die(s Store) error {
	for gate, n := range e.holds {
		e.note(gate, -n)
	}
	_, err := Bury(e.ctx, s, store.Burial{Engine: e.w.Info.Token}, Judge)
	return errors.Join(err, e.join(s))
}

// ask sends a random request.
func (e *asking) ask() error {
	var req store.PermitRequest
	for _, gate := range []string{"y", "x"} {
		if e.r.IntN(2) == 0 {
			req.Keep = append(req.Keep, store.Keeping{Gate: gate, Permits: e.r.IntN(e.holds[gate] + 1), Doubted: e.r.IntN(10) == 0})
		}
	}
	for _, gates := range [][]string{{"x"}, {"y"}, {"x", "y"}} {
		if e.r.IntN(3) > 0 {
			continue
		}
		take := store.Taking{Want: 1 + e.r.IntN(3)}
		for _, gate := range gates {
			take.Gates = append(take.Gates, store.TakingGate{Gate: gate})
		}
		req.Take = append(req.Take, take)
	}
	return e.send(req)
}

func (e *asking) send(req store.PermitRequest) error {
	for _, k := range req.Keep {
		e.change(k.Gate, min(k.Permits, e.holds[k.Gate]))
	}
	holds, err := e.w.Store.(store.Limiter).Permits(e.ctx, e.w.Info.Token, req)
	for _, h := range holds {
		e.got += max(0, h.Permits-e.holds[h.Gate])
		e.change(h.Gate, h.Permits)
	}
	return err
}

func (e *asking) change(gate string, n int) {
	e.note(gate, n-e.holds[gate])
	e.holds[gate] = n
}

// newsBell is a listener that keeps what it is told.
type newsBell struct {
	t    *T
	news chan store.News
}

// hear listens until the test ends.
func (t *T) hear(s Store) *newsBell {
	t.Helper()
	l, ok := s.(store.Listener)
	t.skipIf(!ok, "the store has no listener")
	b := &newsBell{t, make(chan store.News, 1000)}
	ctx, done := t.listening()
	go func() {
		defer close(done)
		if err := l.Listen(ctx, func(n store.News) {
			select {
			case b.news <- n:
			default:
			}
		}); err != nil {
			t.Errorf("listening ended: %v", err)
		}
	}()
	b.waits(store.News{})
	return b
}

// hears checks that something tells a piece of news; news about anything is about this as well.
func (b *newsBell) hears(want store.News, do func()) {
	b.t.Helper()
	do()
	b.waits(want)
}

func (b *newsBell) waits(want store.News) {
	b.t.Helper()
	for {
		select {
		case n := <-b.news:
			if n == want || n == (store.News{}) {
				return
			}
		case <-time.After(patience()):
			b.t.Fatalf("%+v was not told", want)
		}
	}
}

// listening is a context for a listener, which ends with the test: after it the listener closes done.
func (t *T) listening() (ctx context.Context, done chan struct{}) {
	ctx, cancel := context.WithCancel(t.ctx)
	done = make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	return ctx, done
}

// starts buys some starts of a gate.
func (t *T) starts(w *Worker, gate string) []time.Time {
	t.Helper()
	return t.permits(w, taking(2, store.TakingGate{Gate: gate}))[0].Starts
}

// rules sets what limits allow.
func (t *T) rules(rules map[string]string) {
	t.Helper()
	declared := map[string]stint.LimitRule{}
	for name, text := range rules {
		declared[name] = must(stint.ParseLimitRule(text))(t)
	}
	t.must(as[store.Limiter](t).DeclareLimits(t.ctx, declared))
}

// permits asks for an engine.
func (t *T) permits(w *Worker, req store.PermitRequest) []store.Hold {
	t.Helper()
	holds := must(w.Store.(store.Limiter).Permits(t.ctx, w.Info.Token, req))(t)
	var names []string
	for _, h := range holds {
		names = append(names, h.Gate)
		expect(t, !h.Busy, "nobody else changes %q, and it is busy", h.Gate)
	}
	equalAll(t, names, req.Gates(), "the answer is about %q, want %q")
	return holds
}

// takes asks for permits of one gate, of which the engine has so many, and checks how many it holds then.
func (t *T) takes(w *Worker, gate string, have, want, holds int) store.Hold {
	t.Helper()
	h := t.permits(w, taking(want, store.TakingGate{Gate: gate, Permits: have}))[0]
	equal(t, h.Permits, holds, "asked for %d of %q with %d, it holds %d, want %d", want, gate, have)
	return h
}

// returns gives back what is more, and checks how many permits the engine holds then.
func (t *T) returns(w *Worker, gate string, n, holds int) store.Hold {
	t.Helper()
	h := t.permits(w, keeping(gate, n))[0]
	equal(t, h.Permits, holds, "keeping %d of %q, it holds %d, want %d", n, gate)
	return h
}

func taking(want int, gates ...store.TakingGate) store.PermitRequest {
	return store.PermitRequest{Take: []store.Taking{{Gates: gates, Want: want}}}
}

func keeping(gate string, n int) store.PermitRequest {
	return store.PermitRequest{Keep: []store.Keeping{{Gate: gate, Permits: n}}}
}

// gates checks what is held of a limit and asked for: "x: 3+0" for each gate.
func (t *T) gates(limit string, want ...string) {
	t.Helper()
	var got []string
	for _, g := range must(as[store.Limiter](t).Gates(t.ctx, limit, 100))(t) {
		got = append(got, fmt.Sprintf("%s: %d+%d", g.Gate, g.Held, g.Asked))
	}
	equalAll(t, got, want, "of %s are held and asked for %q, want %q", limit)
}

// limit is one as people see it.
func (t *T) limit(name string) (store.LimitInfo, bool) {
	t.Helper()
	all := must(as[store.Limiter](t).Limits(t.ctx))(t)
	i := slices.IndexFunc(all, func(l store.LimitInfo) bool { return l.Name == name })
	if i < 0 {
		return store.LimitInfo{}, false
	}
	return all[i], true
}

// soonEnough runs what has to be done before engines are believed to have stopped waiting, and once more if
// this machine was too slow for it.
func (t *T) soonEnough(try func() (problem string)) {
	t.Helper()
	for range 20 {
		began := time.Now()
		problem := try()
		if problem == "" {
			return
		}
		if time.Since(began) < 2*time.Second {
			t.Fatal(problem)
		}
	}
	t.Fatal("this machine is too slow for it")
}
