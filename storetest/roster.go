package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

var rosterTests = []test{
	{"An engine is listed as it joined, oldest first", func(t *T) {
		before := t.now()
		first, second := NewWorker(t, t.Store, "a", "b"), NewWorker(t, t.Store)
		first.Info.Queues = []string{"mail", "a, queue", "{}"}
		t.must(first.TryJoin(t.ctx))
		time.Sleep(2 * time.Millisecond)
		t.must(second.TryJoin(t.ctx))
		after := t.now()
		got := must(t.again().Engines(t.ctx))(t)
		want := []store.EngineInfo{first.Info, second.Info}
		stamps := cmpopts.IgnoreFields(store.EngineInfo{}, "Joined", "Beat", "Held")
		diff := cmp.Diff(want, got, stamps, cmpopts.EquateEmpty())
		need(t, diff == "", "the roster (-want +got):\n%s", diff)
		for _, e := range got {
			expect(t, between(e.Joined, before, after) && between(e.Beat, before, after),
				"joined %v, beat %v: not between %v and %v", e.Joined, e.Beat, before, after)
		}
	}},
	{"A token joins once", func(t *T) {
		w := t.join("k")
		expect(t, w.TryJoin(t.ctx) != nil, "it joined twice")
		w.Leave()
	}},
	{"The same instance name may stand twice", func(t *T) {
		a, b := NewWorker(t, t.Store), NewWorker(t, t.Store)
		b.Info.Instance = a.Info.Instance
		t.must(a.TryJoin(t.ctx))
		t.must(b.TryJoin(t.ctx))
	}},
	{"A beat moves the time and announces what runs", func(t *T) {
		t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		p := positions(w.ClaimAll())
		joined := t.engine(w).Beat
		time.Sleep(5 * time.Millisecond)
		w.Heartbeat(p[0], p[2])
		e := t.engine(w)
		expect(t, e.Beat.After(joined) && slices.Equal(e.Running, []store.Position{p[0], p[2]}),
			"joined with beat %v; now beat %v, running %v", joined, e.Beat, e.Running)
		w.Heartbeat()
		e = t.engine(w)
		expect(t, len(e.Running) == 0, "running %v after a beat without any", e.Running)
	}},
	{"A beat that arrives behind a later one changes nothing of what that said", func(t *T) {
		t.enqueue(jobs(2, "k")...)
		w := t.join("k")
		p := positions(w.ClaimAll())
		for _, b := range []store.Heartbeat{{Number: 1}, {Number: 3, Running: p}, {Number: 2, Running: p[:1]}} {
			t.must(errOf(t.Store.Heartbeat(t.ctx, w.Info.Token, b)))
		}
		equalAll(t, t.engine(w).Running, p, "running %v, want %v as the third beat said")
		t.must(errOf(t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{Number: 4, Running: p[1:]})))
		equalAll(t, t.engine(w).Running, p[1:], "running %v, want %v as the fourth beat said")
	}},
	{"A beat says when attempts began, and what it does not say stands", func(t *T) {
		t.enqueue(jobs(4, "k")...)
		w := t.join("k")
		p := positions(w.ClaimAll())
		now := t.now()
		began := map[store.Position]time.Time{p[0]: time.Now().Add(-time.Hour), p[1]: time.Now().Add(-time.Minute), p[3]: time.Now()}
		beat := func(number int64, running []store.Position, began map[store.Position]time.Time) map[store.Position]time.Time {
			t.must(errOf(t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{Number: number, Running: running, Started: began})))
			return t.engine(w).Started
		}
		about := func(got time.Time, ago time.Duration) {
			t.Helper()
			// By the store's clock, and late by as long as the beat took.
			expect(t, got.Sub(now.Add(-ago)).Abs() < 10*time.Second, "an attempt that began %v ago shows as begun at %v, now is %v", ago, got, now)
		}
		got := beat(1, p[:3], began) // the last one does not run as far as this says
		expect(t, len(got) == 2, "of three that run, two of which are known, it shows %v", got)
		about(got[p[0]], time.Hour)
		about(got[p[1]], time.Minute)
		noDiff(t, cmp.Diff(got, beat(2, p, nil)), "after a beat without times (-before +after)")
		noDiff(t, cmp.Diff(got, beat(1, p, map[store.Position]time.Time{p[2]: time.Now()})), "after a beat that was held up (-before +after)")
		got = beat(3, p[1:], map[store.Position]time.Time{p[2]: time.Now().Add(time.Hour)})
		expect(t, len(got) == 2, "it shows %v of two", got)
		about(got[p[1]], time.Minute)
		about(got[p[2]], 0) // nothing began in the future
		got = beat(4, nil, nil)
		expect(t, len(got) == 0, "of nothing that runs it shows %v", got)
		got = beat(5, p[:2], nil)
		expect(t, len(got) == 0, "it shows %v of what an earlier beat said ended", got)
	}},
	{"A beat brings nobody back", func(t *T) {
		never, w := NewWorker(t, t.Store), t.join("k")
		w.Leave()
		for _, who := range []*Worker{never, w} {
			fails(t, errOf(t.Store.Heartbeat(t.ctx, who.Info.Token, store.Heartbeat{})), store.ErrBuried,
				"the beat gives %v, want ErrBuried")
		}
		all := must(t.Store.Engines(t.ctx))(t)
		expect(t, len(all) == 0, "the roster has %v", all)
		t.enqueue(job("k"))
		fails(t, errOf(w.TryClaim(t.ctx, store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1})), store.ErrBuried,
			"after the beat, a claim gives %v")
	}},
	{"Held lists the claims with unfinished entries, and those entries only", func(t *T) {
		t.enqueue(jobs(9, "k")...)
		w, other := t.join("k"), t.join("k")
		a, b := w.Claim(lane(stint.DefaultQueue), 3), w.Claim(lane(stint.DefaultQueue), 3)
		other.Claim(lane(stint.DefaultQueue), 3)
		t.holds(w, 0, positions(a), positions(b))
		w.Complete(a[1])
		t.holds(w, 1, []store.Position{a[0].Pos, a[2].Pos}, positions(b))
		w.Finish(store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, a[0])
		w.Finish(returned, a[2])
		t.holds(w, 1, positions(b))
		w.Complete(b...)
		t.holds(w, 1)
	}},
	{"Held knows what is unfinished also of entries that stand far apart", func(t *T) {
		for range 4 {
			t.enqueue(append(jobs(1, "k"), jobs(9, "k", stint.Queue("between"))...)...)
		}
		w := t.join("k")
		got := w.Claim(lane(stint.DefaultQueue), 4)
		w.Complete(got[1], got[2])
		t.holds(w, 0, []store.Position{got[0].Pos, got[3].Pos})
		w.Complete(got[0], got[3])
		t.holds(w, 0)
	}},
	{"Announced lists what the last beat said is running and has no outcome", func(t *T) {
		t.enqueue(jobs(4, "k")...)
		w := t.join("k")
		all := w.Claim(lane(stint.DefaultQueue), 4)
		announced := func(want ...store.Entry) {
			t.Helper()
			got := must(t.Store.Announced(t.ctx, w.Info.Token))(t)
			equalAll(t, positions(got), positions(want), "announced are %v, want %v")
			for _, e := range got {
				expect(t, e.Kind == "k" && e.ID != 0, "an entry is read as %+v", e)
			}
		}
		t.enqueue(job("k"))
		other := t.join("k")
		other.Heartbeat(other.One().Pos)
		announced()
		t.must(errOf(t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{Number: 1, Low: 1, Running: positions(all[:3])})))
		announced(all[:3]...)
		w.Complete(all[1])
		announced(all[0], all[2])
		t.must(errOf(t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{Number: 2, Low: 1, Running: positions(all[2:])})))
		announced(all[2:]...)
		w.Complete(all[0], all[2], all[3])
		announced()
		got, err := t.Store.Announced(t.ctx, 4711)
		expect(t, err == nil && len(got) <= 0, "of an engine that there is not: %v, %v", got, err)
	}},
	{"Held begins at the serial number asked for", func(t *T) {
		t.enqueue(jobs(4, "k")...)
		w := t.join("k")
		var p [][]store.Position
		for range 4 {
			p = append(p, positions(w.Claim(lane(stint.DefaultQueue), 1)))
		}
		for from := range int64(6) {
			t.holds(w, from, p[min(4, max(0, from-1)):]...)
		}
	}},
	{"Held knows a claim whose answer was lost, by its serial number and nonce", func(t *T) {
		t.enqueue(jobs(2, "k")...)
		w := t.join("k")
		req := store.ClaimRequest{Engine: w.Info.Token, Serial: 77, Nonce: 4711, Lane: lane(stint.DefaultQueue), Max: 2, Wait: true}
		c := must(t.Store.Claim(t.ctx, req))(t)
		held := must(t.again().Held(t.ctx, w.Info.Token, 77))(t)
		expect(t, len(held) == 1 && held[0].ClaimRef == c.ClaimRef && held[0].Nonce == 4711 && held[0].Serial == 77 &&
			slices.Equal(held[0].Positions, c.Positions),
			"held is %+v, claimed was %+v", held, c)
	}},
	{"What a beat promises with Low is not needed any more, what is above it is", func(t *T) {
		t.enqueue(jobs(6, "k")...)
		w := t.join("k")
		var all []store.Entry
		for range 6 {
			all = append(all, w.Claim(lane(stint.DefaultQueue), 1)...)
		}
		w.Complete(all[:3]...)
		t.must(errOf(t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{Low: 4, Running: []store.Position{all[4].Pos}})))
		w.Complete(all[5])
		t.holds(w, 4, positions(all[3:4]), positions(all[4:5]))
		equal(t, w.Leave(), 2, "burial concluded %d entries, want %d")
	}},
	{"Kinds are listed as they were declared last, by name", func(t *T) {
		a := stint.KindInfo{
			Name: "b", Queue: "q", Priority: -7, Retry: retry.Fixed(3, time.Second), Timeout: time.Minute, Tags: []string{"x", "y z"},
			MaxLosses: new(0), StartWithin: 90 * time.Second, Sealed: []string{"/iban", "/to/0"}, Redacted: []string{"/token", "/card/0"},
		}
		c := stint.KindInfo{Name: "a"}
		w := NewWorker(t, t.Store)
		t.must(t.Store.Join(t.ctx, w.Info, []stint.KindInfo{{Name: "b", Queue: "old"}, c}))
		before := t.now()
		w = NewWorker(t, t.Store)
		t.must(t.Store.Join(t.ctx, w.Info, []stint.KindInfo{a, c}))
		got := must(t.again().Kinds(t.ctx))(t)
		diff := cmp.Diff([]string{"a", "b"}, names(got))
		need(t, diff == "", "kinds (-want +got):\n%s", diff)
		at := got[1].Declared
		expect(t, between(at, before, t.now()), "kind b was declared %v, before %v or after now", at, before)
		at = got[0].Declared
		expect(t, !at.IsZero() && !at.After(before),
			"kind a was declared %v, though nothing about it was new after %v", at, before)
		got[1].Declared = time.Time{}
		noDiff(t, cmp.Diff(a, got[1], sameJob...), "kind b (-want +got)")
	}},
	{"An engine that is to drain learns of it with each beat, and others do not", func(t *T) {
		w, other := t.join("k"), t.join("k")
		drains := func(w *Worker) bool {
			orders := must(t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{}))(t)
			equal(t, t.engine(w).Draining, orders.Drain,
				"its orders say drain: %v, and the roster says %v, want %v", orders.Drain)
			return orders.Drain
		}
		expect(t, !drains(w), "it drains although nobody asked")
		for range 2 {
			t.must(t.again().Drain(t.ctx, w.Info.Token))
			for range 2 {
				expect(t, drains(w), "it does not learn that it is to drain")
			}
		}
		expect(t, !drains(other), "another engine drains")
		id := t.enqueue(job("k"))[0]
		w.Complete(w.One()) // whether to claim is its own decision
		t.state(id, stint.Completed)
	}},
	{"An engine that was asked to drain and joins again is asked again, and others are not", func(t *T) {
		joins := func(former *Worker) *Worker {
			w := NewWorker(t, t.again(), "k")
			w.Info.Former = former.Info.Token
			t.must(w.TryJoin(t.ctx))
			return w
		}
		drains := func(w *Worker) bool {
			return must(t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{}))(t).Drain
		}
		w, other := t.join("k"), t.join("k")
		t.must(t.Store.Drain(t.ctx, w.Info.Token))
		w.Leave() // before its next beat
		other.Leave()
		next := joins(w)
		next.Leave()
		expect(t, drains(joins(next)), "who joins again does not learn that it is to drain")
		expect(t, !drains(joins(other)), "who was not asked to drain joins again, and drains")
		expect(t, !drains(t.join("k")), "who joins for the first time drains")
	}},
	{"Who is not in the roster cannot be asked to drain", func(t *T) {
		w := t.join("k")
		t.must(t.Store.Drain(t.ctx, w.Info.Token))
		w.Leave()
		for _, who := range []*Worker{w, NewWorker(t, t.Store)} {
			fails(t, t.Store.Drain(t.ctx, who.Info.Token), store.ErrBuried, "it gives %v, want ErrBuried")
		}
		orders, err := t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{})
		expect(t, errors.Is(err, store.ErrBuried) && !orders.Drain, "the next beat gives %+v, error %v", orders, err)
	}},
	{"Many engines join with the same kinds at once", func(t *T) {
		errs := atOnce(10, func(i int) error { return NewWorker(t, t.Store, "c", "a", "b").TryJoin(t.ctx) })
		t.must(errors.Join(errs...))
		all := must(t.Store.Engines(t.ctx))(t)
		equal(t, len(all), 10, "%d engines stand in the roster, want %d")
	}},
}

func names(kinds []stint.KindInfo) []string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.Name)
	}
	return all
}

// engine finds a worker in the roster.
func (t *T) engine(w *Worker) store.EngineInfo {
	t.Helper()
	all := must(t.Store.Engines(t.ctx))(t)
	i := slices.IndexFunc(all, func(e store.EngineInfo) bool { return e.Token == w.Info.Token })
	need(t, i >= 0, "the engine is not in the roster")
	return all[i]
}

// holds checks the positions of each claim that an engine holds.
func (t *T) holds(w *Worker, from int64, want ...[]store.Position) {
	t.Helper()
	got, held := [][]store.Position{}, t.held(w, from)
	for i, c := range held {
		got = append(got, c.Positions)
		others := must(t.Store.Held(t.ctx, w.Info.Token, from, c.Serial))(t)
		noDiff(t, cmp.Diff(slices.Delete(slices.Clone(held), i, i+1), others, cmpopts.EquateEmpty()), "claims held, except number %d (-want +got)", c.Serial)
	}
	noDiff(t, cmp.Diff(want, got, cmpopts.EquateEmpty()), "claims held from serial %d (-want +got)", from)
}
