package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
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
		got, err := t.again().Engines(t.ctx)
		t.must(err)
		want := []stint.EngineInfo{first.Info, second.Info}
		stamps := cmpopts.IgnoreFields(stint.EngineInfo{}, "Joined", "Beat", "Held")
		if diff := cmp.Diff(want, got, stamps, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the roster (-want +got):\n%s", diff)
		}
		for _, e := range got {
			if e.Joined.Before(before) || e.Joined.After(after) || e.Beat.Before(before) || e.Beat.After(after) {
				t.Errorf("joined %v, beat %v: not between %v and %v", e.Joined, e.Beat, before, after)
			}
		}
	}},
	{"A token joins once", func(t *T) {
		w := t.join("k")
		if err := w.TryJoin(t.ctx); err == nil {
			t.Errorf("it joined twice")
		}
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
		w.Beat(p[0], p[2])
		e := t.engine(w)
		if !e.Beat.After(joined) || !slices.Equal(e.Running, []stint.Position{p[0], p[2]}) {
			t.Errorf("joined with beat %v; now beat %v, running %v", joined, e.Beat, e.Running)
		}
		w.Beat()
		if e := t.engine(w); len(e.Running) != 0 {
			t.Errorf("running %v after a beat without any", e.Running)
		}
	}},
	{"A beat that arrives behind a later one changes nothing of what that said", func(t *T) {
		t.enqueue(jobs(2, "k")...)
		w := t.join("k")
		p := positions(w.ClaimAll())
		for _, b := range []stint.Beat{{Number: 1}, {Number: 3, Running: p}, {Number: 2, Running: p[:1]}} {
			_, err := t.Store.Beat(t.ctx, w.Info.Token, b)
			t.must(err)
		}
		if e := t.engine(w); !slices.Equal(e.Running, p) {
			t.Errorf("running %v, want %v as the third beat said", e.Running, p)
		}
		_, err := t.Store.Beat(t.ctx, w.Info.Token, stint.Beat{Number: 4, Running: p[1:]})
		t.must(err)
		if e := t.engine(w); !slices.Equal(e.Running, p[1:]) {
			t.Errorf("running %v, want %v as the fourth beat said", e.Running, p[1:])
		}
	}},
	{"A beat brings nobody back", func(t *T) {
		never, w := NewWorker(t, t.Store), t.join("k")
		w.Leave()
		for _, who := range []*Worker{never, w} {
			if _, err := t.Store.Beat(t.ctx, who.Info.Token, stint.Beat{}); !errors.Is(err, stint.ErrBuried) {
				t.Errorf("the beat gives %v, want ErrBuried", err)
			}
		}
		all, err := t.Store.Engines(t.ctx)
		t.must(err)
		if len(all) != 0 {
			t.Errorf("the roster has %v", all)
		}
		t.enqueue(job("k"))
		if _, err := w.TryClaim(t.ctx, stint.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1}); !errors.Is(err, stint.ErrBuried) {
			t.Errorf("after the beat, a claim gives %v", err)
		}
	}},
	{"Held lists the claims with unfinished entries, and those entries only", func(t *T) {
		t.enqueue(jobs(9, "k")...)
		w, other := t.join("k"), t.join("k")
		a, b := w.Claim(lane(stint.DefaultQueue), 3), w.Claim(lane(stint.DefaultQueue), 3)
		other.Claim(lane(stint.DefaultQueue), 3)
		t.holds(w, 0, positions(a), positions(b))
		w.Complete(a[1])
		t.holds(w, 1, []stint.Position{a[0].Pos, a[2].Pos}, positions(b))
		w.Finish(stint.Ending{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, a[0])
		w.Finish(stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront}, a[2])
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
		t.holds(w, 0, []stint.Position{got[0].Pos, got[3].Pos})
		w.Complete(got[0], got[3])
		t.holds(w, 0)
	}},
	{"Announced lists what the last beat said is running and has no outcome", func(t *T) {
		t.enqueue(jobs(4, "k")...)
		w := t.join("k")
		all := w.Claim(lane(stint.DefaultQueue), 4)
		announced := func(want ...stint.Entry) {
			t.Helper()
			got, err := t.Store.Announced(t.ctx, w.Info.Token)
			t.must(err)
			if !slices.Equal(positions(got), positions(want)) {
				t.Errorf("announced are %v, want %v", positions(got), positions(want))
			}
			for _, e := range got {
				if e.Kind != "k" || e.ID == 0 {
					t.Errorf("an entry is read as %+v", e)
				}
			}
		}
		t.enqueue(job("k"))
		other := t.join("k")
		other.Beat(other.One().Pos)
		announced()
		_, err := t.Store.Beat(t.ctx, w.Info.Token, stint.Beat{Number: 1, Low: 1, Running: positions(all[:3])})
		t.must(err)
		announced(all[:3]...)
		w.Complete(all[1])
		announced(all[0], all[2])
		_, err = t.Store.Beat(t.ctx, w.Info.Token, stint.Beat{Number: 2, Low: 1, Running: positions(all[2:])})
		t.must(err)
		announced(all[2:]...)
		w.Complete(all[0], all[2], all[3])
		announced()
		if got, err := t.Store.Announced(t.ctx, 4711); err != nil || len(got) > 0 {
			t.Errorf("of an engine that there is not: %v, %v", got, err)
		}
	}},
	{"Held begins at the serial number asked for", func(t *T) {
		t.enqueue(jobs(4, "k")...)
		w := t.join("k")
		var p [][]stint.Position
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
		req := stint.ClaimRequest{Engine: w.Info.Token, Serial: 77, Nonce: 4711, Lane: lane(stint.DefaultQueue), Max: 2, Wait: true}
		c, err := t.Store.Claim(t.ctx, req)
		t.must(err)
		held, err := t.again().Held(t.ctx, w.Info.Token, 77)
		t.must(err)
		if len(held) != 1 || held[0].ClaimRef != c.ClaimRef || held[0].Nonce != 4711 || held[0].Serial != 77 ||
			!slices.Equal(held[0].Positions, c.Positions) {
			t.Errorf("held is %+v, claimed was %+v", held, c)
		}
	}},
	{"What a beat promises with Low is not needed any more, what is above it is", func(t *T) {
		t.enqueue(jobs(6, "k")...)
		w := t.join("k")
		var all []stint.Entry
		for range 6 {
			all = append(all, w.Claim(lane(stint.DefaultQueue), 1)...)
		}
		w.Complete(all[:3]...)
		_, err := t.Store.Beat(t.ctx, w.Info.Token, stint.Beat{Low: 4, Running: []stint.Position{all[4].Pos}})
		t.must(err)
		w.Complete(all[5])
		t.holds(w, 4, positions(all[3:4]), positions(all[4:5]))
		if n := w.Leave(); n != 2 {
			t.Errorf("burial concluded %d entries, want 2", n)
		}
	}},
	{"Kinds are listed as they were declared last, by name", func(t *T) {
		a := stint.Declaration{
			Name: "b", Queue: "q", Priority: -7, Retry: retry.Fixed(3, time.Second), Timeout: time.Minute, Tags: []string{"x", "y z"},
			MaxLosses: new(0), StartWithin: 90 * time.Second,
		}
		c := stint.Declaration{Name: "a"}
		w := NewWorker(t, t.Store)
		t.must(t.Store.Join(t.ctx, w.Info, []stint.Declaration{{Name: "b", Queue: "old"}, c}))
		before := t.now()
		w = NewWorker(t, t.Store)
		t.must(t.Store.Join(t.ctx, w.Info, []stint.Declaration{a, c}))
		got, err := t.again().Kinds(t.ctx)
		t.must(err)
		if diff := cmp.Diff([]string{"a", "b"}, names(got)); diff != "" {
			t.Fatalf("kinds (-want +got):\n%s", diff)
		}
		if at := got[1].Declared; at.Before(before) || at.After(t.now()) {
			t.Errorf("kind b was declared %v, before %v or after now", at, before)
		}
		if at := got[0].Declared; at.IsZero() || at.After(before) {
			t.Errorf("kind a was declared %v, though nothing about it was new after %v", at, before)
		}
		got[1].Declared = time.Time{}
		if diff := cmp.Diff(a, got[1], sameJob...); diff != "" {
			t.Errorf("kind b (-want +got):\n%s", diff)
		}
	}},
	{"An engine that is to drain learns of it with each beat, and others do not", func(t *T) {
		w, other := t.join("k"), t.join("k")
		drains := func(w *Worker) bool {
			orders, err := t.Store.Beat(t.ctx, w.Info.Token, stint.Beat{})
			t.must(err)
			if e := t.engine(w); e.Draining != orders.Drain {
				t.Errorf("its orders say drain: %v, and the roster says %v", orders.Drain, e.Draining)
			}
			return orders.Drain
		}
		if drains(w) {
			t.Errorf("it drains although nobody asked")
		}
		for range 2 {
			t.must(t.again().Drain(t.ctx, w.Info.Token))
			for range 2 {
				if !drains(w) {
					t.Errorf("it does not learn that it is to drain")
				}
			}
		}
		if drains(other) {
			t.Errorf("another engine drains")
		}
		id := t.enqueue(job("k"))[0]
		w.Complete(w.One()) // whether to claim is its own decision
		t.state(id, stint.Completed)
	}},
	{"Who is not in the roster cannot be asked to drain", func(t *T) {
		w := t.join("k")
		t.must(t.Store.Drain(t.ctx, w.Info.Token))
		w.Leave()
		for _, who := range []*Worker{w, NewWorker(t, t.Store)} {
			if err := t.Store.Drain(t.ctx, who.Info.Token); !errors.Is(err, stint.ErrBuried) {
				t.Errorf("it gives %v, want ErrBuried", err)
			}
		}
		if orders, err := t.Store.Beat(t.ctx, w.Info.Token, stint.Beat{}); !errors.Is(err, stint.ErrBuried) || orders.Drain {
			t.Errorf("the next beat gives %+v, error %v", orders, err)
		}
	}},
	{"Many engines join with the same kinds at once", func(t *T) {
		errs := atOnce(10, func(i int) error { return NewWorker(t, t.Store, "c", "a", "b").TryJoin(t.ctx) })
		t.must(errors.Join(errs...))
		all, err := t.Store.Engines(t.ctx)
		t.must(err)
		if len(all) != 10 {
			t.Errorf("%d engines stand in the roster, want 10", len(all))
		}
	}},
}

func names(kinds []stint.Declaration) []string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.Name)
	}
	return all
}

// engine finds a worker in the roster.
func (t *T) engine(w *Worker) stint.EngineInfo {
	t.Helper()
	all, err := t.Store.Engines(t.ctx)
	t.must(err)
	i := slices.IndexFunc(all, func(e stint.EngineInfo) bool { return e.Token == w.Info.Token })
	if i < 0 {
		t.Fatalf("the engine is not in the roster")
	}
	return all[i]
}

// holds checks the positions of each claim that an engine holds.
func (t *T) holds(w *Worker, from int64, want ...[]stint.Position) {
	t.Helper()
	got := [][]stint.Position{}
	for _, c := range t.held(w, from) {
		got = append(got, c.Positions)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("claims held from serial %d (-want +got):\n%s", from, diff)
	}
}
