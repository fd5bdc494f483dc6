package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var correlationTests = []test{
	{"A job's correlation id is its own ID unless it was given one", func(t *T) {
		ids := t.enqueue(job("k"), job("k", stint.Correlation("order 7")), job("k", stint.Delay(10*time.Millisecond)),
			job("k", stint.Delay(10*time.Millisecond), stint.Correlation("order 7")))
		want := []string{ids[0].String(), "order 7", ids[2].String(), "order 7"}
		t.promoteAfter(20*time.Millisecond, 2)
		w := t.join("k")
		// Once when it is claimed for the first time, and once when it comes back.
		for range 2 {
			entries := w.ClaimAll()
			for i, id := range ids {
				at := slices.IndexFunc(entries, func(e store.Entry) bool { return e.ID == id })
				need(t, at >= 0, "job %d was not claimed", id)
				if got := entries[at].Correlation; got != want[i] {
					t.Errorf("attempt %d of job %d has the correlation id %q, want %q", entries[at].Attempt, id, got, want[i])
				}
				equal(t, t.info(id).Correlation, want[i], "job %d is shown with the correlation id %q, want %q", id)
			}
			for _, e := range entries {
				x := w.Conclude(e, failed)
				if x.Next != nil {
					x.Next.Delay = 0
				}
				t.must(errOf(w.TryFinish(t.ctx, x)))
			}
			t.promoteAll(len(entries))
		}
	}},
	{"What a context says holds for jobs that say nothing", func(t *T) {
		ctx := stint.WithCorrelation(t.ctx, "request 9")
		ids := must(stint.NewClient(t.Store).EnqueueMany(ctx, []stint.NewJob{job("k"), job("k", stint.Correlation("own")), job("k", stint.IdempotencyKey("a"))}))(t)
		for i, want := range []string{"request 9", "own", "request 9"} {
			if got := t.info(ids[i]).Correlation; got != want {
				t.Errorf("job %d has the correlation id %q, want %q", ids[i], got, want)
			}
		}
	}},
	{"Jobs that come from each other are found together, the first among them", correlated},
	{"A recovered job belongs with the one that it does again", func(t *T) {
		ids := t.enqueue(job("k"), job("k", stint.Correlation("order 7")))
		want := []string{ids[0].String(), "order 7"}
		w := t.join("k")
		w.Complete(w.ClaimAll()...)
		again := []stint.RerunOptions{{}, {Delay: 10 * time.Millisecond}}
		latest, all := slices.Clone(ids), [][]stint.ID{{ids[0]}, {ids[1]}}
		for round := range 2 {
			for i, id := range latest {
				latest[i] = t.recovers(id, again[(i+round)%2])
				all[i] = append([]stint.ID{latest[i]}, all[i]...)
			}
			t.promoteAfter(20*time.Millisecond, 1)
			for _, e := range w.ClaimAll() {
				i := slices.Index(latest, e.ID)
				expect(t, i >= 0 && e.Correlation == want[i],
					"job %d runs with the correlation id %q, of %v want %q", e.ID, e.Correlation, latest, want)
				w.Complete(e)
			}
		}
		for i := range ids {
			if got := t.list(store.Filter{Correlation: want[i]}); !slices.Equal(got, all[i]) {
				t.Errorf("%q shows %v, want %v", want[i], got, all[i])
			}
		}
	}},
	{"Jobs are found by their source", func(t *T) {
		a := t.enqueue(
			job("a", stint.Source("cron")), job("a", stint.Source("web")), job("a"),
			job("b", stint.Source("cron"), stint.Delay(time.Hour)))
		for _, c := range []struct {
			f    store.Filter
			want []stint.ID
		}{
			{store.Filter{Source: "cron"}, []stint.ID{a[3], a[0]}},
			{store.Filter{Source: "web"}, []stint.ID{a[1]}},
			{store.Filter{Source: "cro%"}, []stint.ID{}},
			{store.Filter{Source: "cron", States: []stint.State{stint.Scheduled}}, []stint.ID{a[3]}},
			{store.Filter{Source: "web", States: []stint.State{stint.Scheduled}}, []stint.ID{}},
			{store.Filter{Source: "cron", Kind: "a"}, []stint.ID{a[0]}},
		} {
			equalAll(t, t.list(c.f), c.want, "%+v shows %v, want %v", c.f)
		}
	}},
}

func correlated(t *T) {
	first := t.enqueue(job("k"), job("k"))
	root := first[0].String()
	child := func(ctx context.Context, opts ...stint.Option) stint.ID {
		return must(stint.NewClient(t.Store).Enqueue(ctx, job("k", opts...)))(t)
	}
	ctx := stint.WithCorrelation(t.ctx, root)
	soon, later := child(ctx), child(ctx, stint.Delay(time.Hour))
	named := child(t.ctx, stint.Correlation("order 7"))
	stranger := child(t.ctx, stint.Correlation("0"+root))
	w := t.join("k")
	w.Finish(returned, w.Claim(lane(stint.DefaultQueue), 3)...)
	for _, c := range []struct {
		f    store.Filter
		want []stint.ID
	}{
		{store.Filter{Correlation: root}, []stint.ID{later, soon, first[0]}},
		{store.Filter{Correlation: root, States: []stint.State{stint.Scheduled}}, []stint.ID{later}},
		{store.Filter{Correlation: root, States: []stint.State{stint.Available}}, []stint.ID{soon, first[0]}},
		{store.Filter{Correlation: root, Limit: 1, Before: later}, []stint.ID{soon}},
		{store.Filter{Correlation: first[1].String()}, []stint.ID{first[1]}},
		{store.Filter{Correlation: "order 7"}, []stint.ID{named}},
		{store.Filter{Correlation: "0" + root}, []stint.ID{stranger}},
		{store.Filter{Correlation: "order"}, []stint.ID{}},
		{store.Filter{Correlation: "0"}, []stint.ID{}},
		{store.Filter{Correlation: named.String()}, []stint.ID{}}, // it was given another
	} {
		equalAll(t, t.list(c.f), c.want, "%+v shows %v, want %v", c.f)
	}
}
