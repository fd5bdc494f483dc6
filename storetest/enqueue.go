package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

var enqueueTests = []test{
	{"IDs come in the order of the jobs and rise", func(t *T) {
		first := t.enqueue(job("a"), job("b"), job("c"))
		second := t.enqueue(job("d"))
		all := slices.Concat(first, second)
		expect(t, slices.IsSorted(all) && all[0] > 0 && len(slices.Compact(all)) == 4,
			"the ids %v are not positive and rising", all)
		for i, kind := range []string{"a", "b", "c", "d"} {
			if got := t.info(all[i]).Kind; got != kind {
				t.Errorf("id %d is a job of kind %q, want %q", all[i], got, kind)
			}
		}
	}},
	{"Everything said of a job comes back exactly, in the claim and to people", everythingRoundTrips},
	{"Nothing said of a job means the defaults", func(t *T) {
		id := t.enqueue(stint.NewJob{Kind: "k"})[0]
		e := t.join("k").One()
		want := stint.Job{
			ID: id, Kind: "k", Args: json.RawMessage("{}"), Queue: stint.DefaultQueue, Attempt: 1,
			MaxLosses: stint.DefaultMaxLosses, Correlation: id.String(), Created: e.Created, Due: e.Created,
		}
		noDiff(t, cmp.Diff(want, e.Job, sameJob...), "claimed job (-want +got)")
		info := t.info(id)
		expect(t, string(info.Args) == "{}", "people see the arguments %q, want {}", info.Args)
	}},
	{"Whoever claims a job finds its policy, of whoever stored it and beside others", func(t *T) {
		want := map[stint.ID]retry.Policy{}
		producers := []Store{t.Store, t.again()} // each of which stores it
		for n := range 4 {
			policy := retry.Fixed(n+1, time.Second)
			for _, s := range producers {
				id := must(stint.NewClient(s).Enqueue(t.ctx, job("k", stint.Retry(policy))))(t)
				want[id] = policy
			}
		}
		// A batch names them in an order of its own.
		var batch []stint.NewJob
		for n := range 4 {
			batch = append(batch, job("k", stint.Retry(retry.Fixed(4-n, time.Second))))
		}
		for n, id := range t.enqueue(batch...) {
			want[id] = batch[n].Retry
		}
		for _, e := range Join(t, t.again(), "k").ClaimAll() {
			equal(t, e.Retry, want[e.ID], "job %d has the policy %v, want %v", e.ID)
		}
	}},
	{"Every shape of JSON arguments is kept", argumentsRoundTrip},
	{"Durable at once, and another process sees it", func(t *T) {
		id := t.enqueue(job("k"))[0]
		other := t.again()
		_, err := other.Job(t.ctx, id)
		expect(t, err == nil, "another process does not see job %d: %v", id, err)
		got := Join(t, other, "k").Claim(lane(stint.DefaultQueue), 10)
		expect(t, len(got) == 1 && got[0].ID == id, "another process claimed %v, want job %d", positions(got), id)
	}},
	{"A delay counts from the store's clock at the enqueue", func(t *T) {
		before := t.now()
		ids := t.enqueue(job("k", stint.Delay(time.Hour)), job("k", stint.Delay(time.Millisecond)))
		after := t.now()
		for i, d := range []time.Duration{time.Hour, time.Millisecond} {
			info := t.info(ids[i])
			equal(t, info.State, stint.Scheduled, "a job in %v is %s, want %s", d)
			due := info.Due.Add(-d)
			expect(t, between(due, before, after),
				"a job in %v, enqueued between %v and %v, is due at %v", d, before, after, info.Due)
		}
	}},
	{"A time in the past means at once", func(t *T) {
		ids := t.enqueue(
			job("k", stint.RunAt(time.Now().Add(-time.Hour))),
			job("k", stint.RunAt(time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC))),
			job("k"))
		t.states(ids, stint.Available)
		equalAll(t, jobIDs(t.join("k").Claim(lane(stint.DefaultQueue), 10)), ids, "claimed jobs %v, want %v")
	}},
	{"A time in the future is kept to the microsecond", func(t *T) {
		at := time.Now().Add(time.Hour).Truncate(time.Microsecond)
		id := t.enqueue(job("k", stint.RunAt(at)))[0]
		info := t.info(id)
		expect(t, info.Due.Equal(at) && info.State == stint.Scheduled,
			"a job at %v is %s and due at %v", at, info.State, info.Due)
		expect(t, len(t.join("k").ClaimAll()) == 0, "it was claimed an hour early")
	}},
	{"Jobs for now and for later go together", func(t *T) {
		ids := t.enqueue(job("k"), job("k", stint.Delay(time.Hour)), job("k"), job("k", stint.Delay(time.Minute)))
		expect(t, slices.IsSorted(ids), "ids %v do not rise", ids)
		for i, want := range []stint.State{stint.Available, stint.Scheduled, stint.Available, stint.Scheduled} {
			t.state(ids[i], want)
		}
	}},
	{"Twenty thousand jobs in one batch", func(t *T) {
		const n = 20_000
		batch := jobs(n, "k")
		for i := range batch {
			batch[i].Args = fmt.Appendf(nil, `{"n":%d}`, i)
		}
		ids := t.enqueue(batch...)
		entries := t.join("k").ClaimAll()
		need(t, slices.Equal(jobIDs(entries), ids), "%d jobs were claimed, not the %d enqueued in their order", len(entries), n)
		for i, e := range entries {
			if !sameJSON(e.Args, batch[i].Args) {
				t.Fatalf("job %d of the batch has the arguments %s, want %s", i, e.Args, batch[i].Args)
			}
		}
	}},
	{"No jobs are no error", func(t *T) {
		ids, err := t.Store.Enqueue(t.ctx, stint.Tx{}, nil)
		expect(t, err == nil && len(ids) == 0, "ids %v, error %v", ids, err)
	}},
	{"Many producers at once do not disturb each other", manyProducers},
	{"A transaction of another driver is refused", func(t *T) {
		for _, handle := range []any{struct{}{}, "tx", 42} {
			ids, err := t.Store.Enqueue(t.ctx, stint.Tx{Handle: handle}, jobs(1, "k"))
			expect(t, err != nil, "a handle of type %T was accepted: ids %v", handle, ids)
		}
		equal(t, len(t.ledger().Jobs), 0, "%d jobs were stored nevertheless, want %d")
	}},
}

// rich is a job of which everything is said, with the kinds of text and
// numbers that go missing on the way through drivers.
func rich() stint.NewJob {
	return stint.NewJob{
		Kind:      "kind.with-ünïcode/✓",
		Args:      json.RawMessage(`{"id":9007199254740993,"pi":3.14159265358979323846264338327950288,"text":"a\"b\\c\n\u2028 'quoted' 😀 日本","nested":{"deep":[1,[2,[3]]],"none":null,"yes":true},"":"empty key"}`),
		Queue:     "a queue",
		Priority:  -100,
		Retry:     retry.Fixed(7, 1500*time.Millisecond).Jitter(0.25),
		Timeout:   1234 * time.Millisecond,
		MaxLosses: new(7),
		Tags:      []string{"customer:42", "zwei Wörter", "a,b", `"quoted"`, "{braces}", "NULL"},
		URN:       "urn:example:invoice:42",
		Source:    "cron@host, 'x'",
		Metadata:  json.RawMessage(`{"trace":"00-abc","big":18446744073709551617}`),
		StartBy:   time.Date(2345, 6, 7, 8, 9, 10, 987654000, time.FixedZone("there", 7200)),

		Correlation: "order 42, 'ünïcode'",
	}
}

// richJob is what is claimed of it.
func richJob(want stint.NewJob, e store.Entry) stint.Job {
	return stint.Job{
		ID: e.ID, Kind: want.Kind, Args: want.Args, Queue: want.Queue, Priority: want.Priority, Attempt: 1,
		MaxLosses: *want.MaxLosses, Retry: want.Retry, Timeout: want.Timeout, Tags: want.Tags, URN: want.URN, Source: want.Source,
		Metadata: want.Metadata, StartBy: want.StartBy, Correlation: want.Correlation, Created: e.Created, Due: e.Due,
	}
}

func everythingRoundTrips(t *T) {
	want := rich()
	id := t.enqueue(want)[0]
	l := store.LaneOf(want.Queue, want.Priority, store.PartNormal, "")
	entries := t.join(want.Kind).Claim(l.ID, 1)
	need(t, len(entries) == 1, "lane %+v has no entry", l)
	e := entries[0]
	diff := cmp.Diff(richJob(want, e), e.Job, sameJob...)
	expect(t, diff == "" && e.ID == id && e.Due.Equal(e.Created), "claimed job (-want +got):\n%s", diff)
	info := *t.info(id)
	shown := stint.JobInfo{
		ID: id, Kind: want.Kind, State: stint.Running, Queue: want.Queue, Priority: want.Priority, Args: want.Args,
		Attempt: 1, Tags: want.Tags, URN: want.URN, Source: want.Source, Metadata: want.Metadata,
		MaxLosses: 7, Retry: want.Retry.String(), Timeout: retry.Duration(want.Timeout), Created: e.Created, Due: e.Due,
		Correlation: want.Correlation, StartBy: want.StartBy,
	}
	noDiff(t, cmp.Diff(shown, info, sameJob...), "what people see (-want +got)")
}

func argumentsRoundTrip(t *T) {
	shapes := []string{
		`{}`, `[]`, `0`, `-1`, `true`, `false`, `"text"`, `""`, `[null]`, `{"a":{}}`, `1e1000`, `-12345678901234567890123`,
		`0.1`, `{"html":"<b>&amp;</b>"}`, `"\ud83d\ude00\t\u0001"`, `{"a":1,"b":{"c":[{"d":"e"}]}}`, deep(200),
	}
	batch := make([]stint.NewJob, len(shapes))
	for i, s := range shapes {
		batch[i] = job("k")
		batch[i].Args = json.RawMessage(s)
	}
	ids := t.enqueue(batch...)
	entries := t.join("k").Claim(lane(stint.DefaultQueue), len(shapes))
	need(t, len(entries) == len(shapes), "%d of %d entries were claimed", len(entries), len(shapes))
	for i, s := range shapes {
		expect(t, sameJSON(entries[i].Args, []byte(s)), "the arguments %.80s came back as %.80s", s, entries[i].Args)
		got := t.info(ids[i]).Args
		expect(t, sameJSON(got, []byte(s)), "people see the arguments %.80s as %.80s", s, got)
	}
}

func manyProducers(t *T) {
	const producers, batches, size = 16, 10, 20
	var (
		wg  sync.WaitGroup
		ids [producers][]stint.ID
	)
	for p := range producers {
		wg.Go(func() {
			c := stint.NewClient(t.Store)
			for range batches {
				got, err := c.EnqueueMany(t.ctx, jobs(size, "k", stint.Queue(fmt.Sprint("q", p%3))))
				if err != nil || !slices.IsSorted(got) {
					t.Errorf("producer %d: ids %v, error %v", p, got, err)
					return
				}
				ids[p] = append(ids[p], got...)
			}
		})
	}
	wg.Wait()
	all := slices.Concat(ids[:]...)
	got := jobIDs(t.join("k").ClaimAll())
	slices.Sort(all)
	slices.Sort(got)
	expect(t, slices.Equal(got, all), "%d jobs were enqueued and %d claimed", len(all), len(got))
}

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
				w.record(1, x)
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
		t.shows(store.Filter{Source: "cron"}, a[3], a[0])
		t.shows(store.Filter{Source: "web"}, a[1])
		t.shows(store.Filter{Source: "cro%"})
		t.shows(store.Filter{Source: "cron", States: []stint.State{stint.Scheduled}}, a[3])
		t.shows(store.Filter{Source: "web", States: []stint.State{stint.Scheduled}})
		t.shows(store.Filter{Source: "cron", Kind: "a"}, a[0])
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
	t.shows(store.Filter{Correlation: root}, later, soon, first[0])
	t.shows(store.Filter{Correlation: root, States: []stint.State{stint.Scheduled}}, later)
	t.shows(store.Filter{Correlation: root, States: []stint.State{stint.Available}}, soon, first[0])
	t.shows(store.Filter{Correlation: root, Limit: 1, Before: later}, soon)
	t.shows(store.Filter{Correlation: first[1].String()}, first[1])
	t.shows(store.Filter{Correlation: "order 7"}, named)
	t.shows(store.Filter{Correlation: "0" + root}, stranger)
	t.shows(store.Filter{Correlation: "order"})
	t.shows(store.Filter{Correlation: "0"})
	t.shows(store.Filter{Correlation: named.String()}) // it was given another
}
