package storetest

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// flowEdgeTests are about ends that come about in unusual ways, about what is said of them, and about
// those who change a flow while it runs.
var flowEdgeTests = []test{
	{"The end of a job counts however it came about", func(t *T) {
		for _, c := range flowEnds {
			g := t.needed(c.opts...)
			c.end(g, g.ids["a"])
			g.plays()
			failure, flow := "completed", "failed"
			if c.how == "completed" {
				failure, flow = "skipped", "completed"
			}
			got := g.outcome(g.ids["a"]) + ", then " + g.outcome(g.ids["b"]) + " and " + g.outcome(g.ids["c"]) + ": " + g.outcome(g.id)
			want := c.how + ", then completed and " + failure + ": " + flow
			expect(t, got == want, "%s: the flow ended as %q, want %q", c.name, got, want)
		}
	}},
	{"A job that was not run says why, and one that was skipped counts as cancelled", func(t *T) {
		g := t.flow("a z b<a c!z")
		g.fails("a")
		g.plays()
		for name, cause := range map[string]string{"b": "a", "c": "z"} {
			why := t.info(g.ids[name]).Reason
			expect(t, strings.Contains(why, strconv.FormatInt(int64(g.ids[cause]), 10)), "%s ended because of %s, and says %q", name, cause, why)
		}
		expect(t, t.info(g.id).Reason != "", "the flow does not say why it failed")
		t.state(g.ids["c"], stint.Cancelled)
		t.cancels(map[stint.ID]stint.CancelStatus{g.ids["b"]: stint.CancelledNow, g.ids["c"]: stint.CancelledNow, g.ids["z"]: stint.CancelTooLate}, "")
	}},
	{"A job that needs others and is due later waits for both", func(t *T) {
		g := t.needed()
		f := stint.NewFlow("graph")
		a := g.kind.Add(f, "a", struct{}{})
		b := g.kind.Add(f, "b", struct{}{}, stint.Needs(a), stint.Delay(time.Hour))
		must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
		t.state(b.ID(), stint.Blocked)
		g.plays()
		t.state(a.ID(), stint.Completed)
		t.state(b.ID(), stint.Scheduled)
		j := t.info(b.ID())
		expect(t, j.Due.Sub(j.Created) == time.Hour && j.NeedsFirst == 0, "it waits: %+v", j)
	}},
	{"What is needed may be in another flow", func(t *T) {
		g := t.flow("a b")
		f := stint.NewFlow("graph")
		x := g.kind.Add(f, "x", struct{}{}, stint.Needs(stint.Existing(g.ids["a"]), stint.Existing(g.ids["b"])))
		id := must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
		g.promotes()
		g.w.Complete(g.claims("a"))
		g.promotes()
		t.states([]stint.ID{x.ID(), id}, stint.Blocked)
		g.plays()
		t.states([]stint.ID{x.ID(), id, g.id}, stint.Completed)
		f = stint.NewFlow("graph")
		x = g.kind.Add(f, "x", struct{}{}, stint.Needs(stint.Existing(g.ids["a"])))
		must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
		g.plays()
		t.state(x.ID(), stint.Completed)
	}},
	{"A flow may be needed by a job of another flow", func(t *T) {
		g := t.flow("a")
		f := stint.NewFlow("graph")
		y := g.kind.Add(f, "y", struct{}{}, stint.Needs(stint.Existing(g.id)))
		id := must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
		g.promotes()
		t.state(y.ID(), stint.Blocked)
		g.plays()
		t.states([]stint.ID{g.id, y.ID(), id}, stint.Completed)
	}},
	{"What is needed must be there, and in a flow", func(t *T) {
		plain := t.enqueue(job("k"))[0]
		before := len(t.ledger().Jobs)
		for _, id := range []stint.ID{plain, 1 << 40} {
			f := stint.NewFlow("graph")
			stint.NewKind[struct{}]("k").Add(f, "x", struct{}{}, stint.Needs(stint.Existing(id)))
			_, err := f.Enqueue(t.ctx, stint.NewClient(t.Store))
			fails(t, err, stint.ErrNotFound, "needing job %d gives %v", id)
		}
		equal(t, len(t.ledger().Jobs), before, "there are %d jobs, want %d")
	}},
	{"Flows are found, and the jobs of one", func(t *T) {
		g := t.flow("a b!a c<b")
		t.enqueue(job("k"))
		other := t.flow("a")
		finds := func(f store.Filter, want ...stint.ID) {
			t.Helper()
			slices.SortFunc(want, func(a, b stint.ID) int { return cmp.Compare(b, a) })
			noDiff(t, gocmp.Diff(want, must(as[store.Operator](t).Find(t.ctx, f))(t), cmpopts.EquateEmpty()), "the jobs (-want +got)")
			var shown []stint.ID
			for _, j := range must(t.Store.Jobs(t.ctx, f))(t) {
				shown = append(shown, j.ID)
			}
			noDiff(t, gocmp.Diff(want, shown, cmpopts.EquateEmpty()), "what is listed (-want +got)")
		}
		finds(store.Filter{Flows: true}, g.id, other.id)
		finds(store.Filter{Flows: true, States: []stint.State{stint.Blocked}}, g.id, other.id)
		finds(store.Filter{Flows: true, Before: other.id}, g.id)
		finds(store.Filter{Flow: g.id}, g.ids["a"], g.ids["b"], g.ids["c"])
		finds(store.Filter{Flow: g.id, States: []stint.State{stint.Blocked}}, g.ids["b"], g.ids["c"])
		finds(store.Filter{Flow: g.id, Flows: true})
		g.plays()
		finds(store.Filter{States: []stint.State{stint.Cancelled}}, g.ids["b"], g.ids["c"])
		finds(store.Filter{Flows: true, States: []stint.State{stint.Completed}, Kind: "graph"}, g.id, other.id)
	}},
	{"No job needs a flow that it is in", func(t *T) {
		g := t.needed()
		f := stint.NewFlow("outer")
		in := f.Flow("in", "inner")
		g.kind.Add(in, "a", struct{}{})
		outer := must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
		for _, e := range g.w.ClaimAll() {
			if e.Flow != in.Node().ID() {
				continue
			}
			for _, flow := range []stint.ID{outer, e.Flow} {
				f := stint.FlowFrom((&stint.Run{Job: &e.Job}).Context(t.ctx))
				g.kind.Add(f.Flow("more", "inner"), "b", struct{}{}, stint.Needs(stint.Existing(flow)))
				_, err := f.Enqueue(t.ctx, stint.NewClient(t.Store))
				fails(t, err, stint.ErrInvalid, "needing flow %d gives %v", flow)
			}
		}
	}},
	{"A job that was deleted has not completed for those that still need it", func(t *T) {
		g := t.flow("a")
		g.plays()
		f := stint.NewFlow("graph")
		x := g.kind.Add(f, "x", struct{}{})
		y := g.kind.Add(f, "y", struct{}{}, stint.Needs(x, stint.Existing(g.ids["a"])))
		id := must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
		t.deletes(map[stint.ID]store.DeleteStatus{g.ids["a"]: store.DeletedNow})
		g.plays()
		t.states([]stint.ID{x.ID(), y.ID(), id}, stint.Completed, stint.Cancelled, stint.Failed)
	}},
	{"A name is that of one job in each flow", func(t *T) {
		for range 2 {
			g := t.flow("a b")
			for name, id := range g.ids {
				equal(t, must(as[store.FlowReader](t).Node(t.ctx, g.id, name))(t), id, "the flow has the job %d of that name, want %d")
			}
		}
	}},
	{"A flow does not end while somebody adds to it", func(t *T) {
		t.skipIf(t.SingleWriter, "an open transaction holds up every writer")
		for _, commits := range []bool{true, false} {
			g := t.flow("a")
			tx, b := g.adds(g.w.One(), func(e store.Entry) { g.w.Complete(e) })
			for range 5 {
				must(t.Store.Promote(t.ctx, time.Time{}, 1000))(t)
			}
			t.state(g.id, stint.Blocked)
			if commits {
				t.must(tx.Commit())
				g.ids["b"] = b.ID()
				g.plays()
				g.ended("a completed, b completed: completed")
			} else {
				t.must(tx.Rollback())
				g.plays()
				g.ended("a completed: completed")
			}
		}
	}},
	{"What is added to a flow late is waited for, though newer jobs were looked at", func(t *T) {
		t.skipIf(t.SingleWriter, "an open transaction holds up every writer")
		g := t.flow("a")
		var c store.Entry
		tx, b := g.adds(g.w.One(), func(e store.Entry) {
			f := stint.FlowFrom((&stint.Run{Job: &e.Job}).Context(t.ctx))
			g.kind.Add(f, "c", struct{}{})
			must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
			c = g.w.One()
			g.w.Complete(e)
			g.promotes()
		})
		t.must(tx.Commit())
		g.ids["b"], g.ids["c"] = b.ID(), c.ID
		g.promotes()
		g.w.Complete(c)
		g.promotes()
		t.state(g.id, stint.Blocked)
		g.plays()
		g.ended("a completed, b completed, c completed: completed")
	}},
	{"What is added while a flow is cancelled is cancelled too", func(t *T) {
		t.skipIf(t.SingleWriter, "an open transaction holds up every writer")
		g := t.flow("a")
		e := g.w.One()
		tx, b := g.adds(e, func(store.Entry) {
			t.cancels(map[stint.ID]stint.CancelStatus{g.id: stint.CancelRequested}, "enough")
		})
		for range 5 {
			must(t.Store.Promote(t.ctx, time.Time{}, 1000))(t)
		}
		t.must(tx.Commit())
		g.promotes()
		g.ids["b"] = b.ID()
		t.state(b.ID(), stint.Cancelled)
		g.w.Finish(cancelled, e)
		g.promotes()
		g.ended("a cancelled, b cancelled: cancelled")
	}},
	{"Nothing is added to a flow that is cancelled", func(t *T) {
		g := t.flow("a")
		e := g.w.One()
		t.cancels(map[stint.ID]stint.CancelStatus{g.id: stint.CancelRequested}, "")
		f := stint.FlowFrom((&stint.Run{Job: &e.Job}).Context(t.ctx))
		g.kind.Add(f, "b", struct{}{})
		_, err := f.Enqueue(t.ctx, stint.NewClient(t.Store))
		fails(t, err, stint.ErrEnded, "adding to it gives %v")
		_, err = as[store.FlowReader](t).Node(t.ctx, g.id, "b")
		fails(t, err, stint.ErrNotFound, "looking for what was refused gives %v")
	}},
	{"What is in an open flow is kept, however old, and after that goes", func(t *T) {
		g := t.flow("a b<a")
		g.w.Complete(g.claims("a"))
		t.retain(atOnceKept)
		t.state(g.ids["a"], stint.Completed)
		g.plays()
		t.retain(atOnceKept)
		t.gone(g.id)
		t.states([]stint.ID{g.ids["a"], g.ids["b"]}, stint.Completed)
		t.retain(atOnceKept)
		t.gone(g.ids["a"], g.ids["b"])
	}},
	{"What a job needs is listed by id, with how it ended, a page at a time", func(t *T) {
		g := t.needed()
		f := stint.NewFlow("graph")
		p := g.kind.Each(f, make([]struct{}, 5))
		z := g.kind.Add(f, "z", struct{}{}, stint.Needs(p[3], p[0]), stint.NeedsEnd(p[4]), stint.NeedsFailure(p[1]))
		must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
		for _, e := range g.w.ClaimAll() {
			switch e.ID {
			case p[0].ID():
				g.w.Finish(store.Result{Outcome: stint.OutcomeCompleted, Result: json.RawMessage(`{"n":1}`)}, e)
			case p[1].ID():
				g.w.Finish(failedForGood, e)
			case p[3].ID():
				g.w.Finish(returned, e)
			}
		}
		var all []stint.NeededJob
		for after, sizes := stint.ID(0), []int{3, 1, 0}; len(sizes) > 0; sizes = sizes[1:] {
			page := must(as[store.FlowReader](t).Needed(t.ctx, z.ID(), after, 3))(t)
			need(t, len(page) == sizes[0], "after %d there are %d, want %d", after, len(page), sizes[0])
			if all = append(all, page...); len(page) > 0 {
				after = page[len(page)-1].ID
			}
		}
		for i, want := range []stint.NeededJob{
			{ID: p[0].ID(), Kind: "k", Wants: stint.WantsSuccess, Outcome: stint.OutcomeCompleted, Result: []byte(`{"n":1}`)},
			{ID: p[1].ID(), Kind: "k", Wants: stint.WantsFailure, Outcome: stint.OutcomeFailed},
			{ID: p[3].ID(), Kind: "k", Wants: stint.WantsSuccess},
			{ID: p[4].ID(), Kind: "k", Wants: stint.WantsEnd},
		} {
			got := all[i]
			same := sameJSON(got.Result, want.Result)
			got.Result, want.Result = nil, nil
			noDiff(t, gocmp.Diff(want, got), "the job that is needed (-want +got)")
			expect(t, same, "its result is %q", all[i].Result)
		}
	}},
}

// needed is a flow of three jobs: b needs that a ends, and c that it fails.
func (t *T) needed(opts ...stint.Option) *graph {
	t.Helper()
	g := &graph{t: t, w: t.join("k"), kind: stint.NewKind[struct{}]("k"), ids: map[string]stint.ID{}, outcomes: map[string]stint.Outcome{}}
	f := stint.NewFlow("graph")
	a := g.kind.Add(f, "a", struct{}{}, opts...)
	b, c := g.kind.Add(f, "b", struct{}{}, stint.NeedsEnd(a)), g.kind.Add(f, "c", struct{}{}, stint.NeedsFailure(a))
	g.id = must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
	g.ids["a"], g.ids["b"], g.ids["c"] = a.ID(), b.ID(), c.ID()
	return g
}

// adds has a running job add a job b in a transaction that stays open, and something happen beside that.
func (g *graph) adds(e store.Entry, beside func(store.Entry)) (Tx, *stint.Node) {
	g.t.Helper()
	tx := g.t.begin()
	f := stint.FlowFrom((&stint.Run{Job: &e.Job}).Context(g.t.ctx))
	b := g.kind.Add(f, "b", struct{}{})
	must(f.Enqueue(g.t.ctx, stint.NewClient(g.t.Store).With(tx.Tx())))(g.t)
	beside(e)
	return tx, b
}

// flowEnds are ways in which a job ends.
var flowEnds = []struct {
	name, how string
	opts      []stint.Option
	end       func(g *graph, a stint.ID)
}{
	{name: "cancelled while it is ready", how: "cancelled", end: func(g *graph, a stint.ID) { g.t.cancel("", a) }},
	{name: "cancelled while it waits", how: "cancelled", opts: []stint.Option{stint.Delay(time.Hour)}, end: func(g *graph, a stint.ID) { g.t.cancel("", a) }},
	{name: "cancelled while it runs", how: "cancelled", end: func(g *graph, a stint.ID) {
		e := g.w.One()
		g.t.cancel("", a)
		g.w.Finish(cancelled, e)
	}},
	{name: "expired", how: "expired", end: func(g *graph, _ stint.ID) { g.w.Finish(expired, g.w.One()) }},
	{name: "at a later attempt", how: "completed", end: func(g *graph, _ stint.ID) {
		g.w.Finish(returned, g.w.One())
		e := g.w.One()
		expect(g.t, e.Flow == g.id, "a later attempt is one of flow %d, want %d", e.Flow, g.id)
		g.w.Complete(e)
	}},
	{name: "lost", how: "lost", opts: []stint.Option{stint.MaxLosses(0)}, end: func(g *graph, _ stint.ID) {
		g.w.Heartbeat(g.w.One().Pos)
		g.w.Leave()
		g.w = g.t.join("k")
	}},
	{name: "in the handler's transaction", how: "completed", end: func(g *graph, _ stint.ID) {
		e := g.w.One()
		c := completion{t: g.t, w: g.w, e: e, x: g.w.Conclude(e, completed)}
		g.t.must(c.finish(g.t.beginToFinish()))
	}},
	{name: "by a retry function", how: "failed", opts: []stint.Option{stint.Retry(retry.Function("f"))}, end: func(g *graph, _ stint.ID) {
		g.w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("broken")}, g.w.One())
		g.t.decided(g.w, 1, g.t.decisions(retry.Final("enough"))...)
	}},
}
