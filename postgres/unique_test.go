package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// SQL reads the texts that Go reads, and finds the same key.
func TestSQLAndGoReadUniquenessAlike(t *testing.T) {
	s := newStore(t)
	for _, text := range []string{
		"until-ended", "until-started", "until-started,by=/a,replace-keep-time", "within:1h", "within:1h30m", "slot:1d", "slot:1w2d", "within:1.5s", "within:250ms", "until-ended,by=/a", "until-ended,by=/b/0|/a,replace",
		"until-ended,by=/~1~0", "until-ended,across=x y", "until-ended,cancel-old", "within:1h,replace-keep-time,by=/a", "slot:1h,keep", "until-ended,by=none", "within:1h,replace,by=none",
		"until-started,debounce:1m30s", "until-ended,debounce:1ms,by=/a",
		"", "until-end", "until-ended:1h", "until-started:1h", "until-started,cancel-old", "until-startedx", "within", "within:", "within:0s", "within:5", "within:-1h", "within:1us", "slot:101y", "within:40000d", "until-ended,", "until-ended,by=",
		"until-ended,by=a", "until-ended,by=/~2", "until-ended,by=/nothing", "until-ended,by=/b/2", "until-ended,across=", "until-ended,replace,replace",
		"within:1h,cancel-old", "until-ended,by=/a,by=/a", "until-ended,by=none,by=none", "until-ended,by=none|/a", "until-ended,by=none,by=/a", "until-ended,keep,replace",
		"until-ended,debounce", "until-ended,debounce:", "until-ended,debounce:0s", "until-ended,debounce:1", "within:1h,debounce:1m", "until-ended,debounce:1m,replace", "until-ended,replace,debounce:1m", "until-ended,debounce:101y", "until-ended,debounce:1us",
	} {
		job := stint.NewJob{Kind: "k", Args: []byte(`{"a":1,"b":[null,{}],"/~":2}`), Unique: text}
		_, u, want := job.UniqueKey()
		var key, scope, mode string
		var period, latest *int64
		err := s.pool.QueryRow(t.Context(), `select key, scope, period, mode, latest from stint.unique_key($1, $2, $3)`, text, job.Kind, string(job.Args)).Scan(&key, &scope, &period, &mode, &latest)
		if (err == nil) != (want == nil) {
			t.Errorf("%q is refused by SQL with %v, and by Go with %v", text, err, want)
		}
		if err == nil && want == nil && (scope != string(u.Scope) || mode != string(u.OnConflict) || u.Period > 0 && *period != u.Period.Microseconds() ||
			u.Latest > 0 && *latest != u.Latest.Microseconds()) {
			t.Errorf("%q is %s, %v, %s, %v to SQL, and %+v to Go", text, scope, period, mode, latest, u)
		}
	}
}

func TestSQLAndGoShareUniqueKeys(t *testing.T) {
	s := newStore(t)
	client := stint.NewClient(s)
	two := stint.NewJob{Kind: "two", Args: []byte(`{"id":1,"n":2}`)}
	stint.UniqueUntilEnded(stint.By("/id", "/n"))(&two)
	id := must1(client.Enqueue(t.Context(), two))(t)
	if got := value[stint.ID](t, s.pool, `select stint.enqueue('two', '{"n":2,"id":1}', uniqueness => 'until-ended,by=/n|/id|/n')`); got != id {
		t.Errorf("the order of what is selected makes job %d of job %d", got, id)
	}
	for _, text := range []string{"until-ended,by=/id", "within:1h,by=/id", "slot:20000d,by=/id"} {
		goes := stint.NewJob{Kind: "k", Args: []byte(`{"id":"é","n":1}`), Unique: text}
		r, err := client.EnqueueReceipt(t.Context(), goes)
		must(t, err)
		if id := value[stint.ID](t, s.pool, `select stint.enqueue('k', '{"n":2,"id":"\u00e9"}', uniqueness => $1)`, text); id != r.ID {
			t.Errorf("%s: SQL is answered with job %d, want %d", text, id, r.ID)
		}
	}
	// Each enqueue puts the job off again, but no further than the first of them allows.
	const debounced = `select stint.enqueue('k', '{"id":1}', uniqueness => 'until-ended,debounce:2h,across=later,by=/id', delay => interval '90 min')`
	put := value[stint.ID](t, s.pool, debounced)
	bound := value[time.Time](t, s.pool, `update stint.idempotency set until = clock_timestamp() + interval '1 h' where job = $1 returning until`, put)
	for id, want := range map[stint.ID]time.Time{put: time.Now().Add(90 * time.Minute), value[stint.ID](t, s.pool, debounced): bound} {
		if job, err := s.Job(t.Context(), id); err != nil || job.Due.Sub(want).Abs() > time.Minute || id == put != (job.State == stint.Cancelled) {
			t.Errorf("job %d is %s and due at %v, want %v (%v)", id, job.State, job.Due, want, err)
		}
	}
	// Until-started, what waits is kept, and what is ready is not: SQL is always in a caller's transaction.
	waits, ready := stint.UniqueUntilStarted(stint.By("/id")), stint.UniqueUntilStarted(stint.By("/id"), stint.Across("ready"))
	one := stint.NewJob{Kind: "k", Args: []byte(`{"id":1}`), Delay: time.Hour}
	waits(&one)
	sleeper, err := client.Enqueue(t.Context(), one)
	must(t, err)
	one.Delay = 0
	ready(&one)
	passed, err := client.Enqueue(t.Context(), one)
	must(t, err)
	if id := value[stint.ID](t, s.pool, `select stint.enqueue('k', '{"id":1}', uniqueness => 'until-started,by=/id')`); id != sleeper {
		t.Errorf("SQL is answered with job %d, want %d", id, sleeper)
	}
	if id := value[stint.ID](t, s.pool, `select stint.enqueue('k', '{"id":1}', uniqueness => 'until-started,by=/id,across=ready')`); id == passed {
		t.Errorf("SQL is answered with job %d, which is ready", id)
	}
	// What an engine declares holds for SQL, unless that says otherwise.
	w := storetest.NewWorker(t, s)
	must(t, s.Join(t.Context(), w.Info, []stint.KindInfo{stint.NewKind[any]("declared", stint.UniqueUntilEnded(stint.By("/id"), stint.OrReplace())).Declaration()}))
	const call = `select stint.enqueue('declared', '{"id":1}', delay => $1`
	first := value[stint.ID](t, s.pool, call+`)`, time.Hour)
	second := value[stint.ID](t, s.pool, call+`)`, time.Hour)
	if j, err := s.Job(t.Context(), first); err != nil || j.State != stint.Cancelled || second == first {
		t.Errorf("job %d and then job %d: %+v, %v", first, second, j, err)
	}
	kept := value[stint.ID](t, s.pool, call+`, uniqueness => 'until-ended,by=/id,keep')`, time.Hour)
	other := value[stint.ID](t, s.pool, call+`, uniqueness => 'none')`, time.Hour)
	if kept != second || other == second {
		t.Errorf("what is to keep job %d is answered with job %d, and what is not unique with job %d", second, kept, other)
	}
	later := value[stint.ID](t, s.pool, `select stint.enqueue('declared', '{"id":1}', uniqueness => 'until-ended,by=/id,replace-keep-time')`)
	if j, err := s.Job(t.Context(), later); err != nil || j.State != stint.Scheduled || time.Until(j.Due) < 50*time.Minute {
		t.Errorf("what keeps the time is %+v, %v", j, err)
	}
	kinds, err := s.Kinds(t.Context())
	if must(t, err); len(kinds) != 1 || kinds[0].Unique != "until-ended,by=/id,replace" {
		t.Errorf("the kinds are %+v", kinds)
	}
	_, err = s.pool.Exec(t.Context(), `select stint.enqueue('k', '{}', uniqueness => 'until-ended,by=/id')`)
	if err == nil || !strings.Contains(err.Error(), "nothing at /id") {
		t.Errorf("a pointer to nothing gives %v", err)
	}
}

// uniqueTraps are what goes wrong where keys are taken over without care.
var uniqueTraps = []trap{
	{"Who takes a unique key over is waited for, and then nobody else takes it", func(b *bench) error {
		b.endedUnique("until-ended")
		tx := begin(b, b.s)
		r := must1(stint.NewClient(b.s).With(Tx(tx)).EnqueueReceipt(b.Context(), uniqueJob))(b)
		if r.Duplicate {
			return fmt.Errorf("the key of a job that has ended is not taken over: %+v", r)
		}
		answer := b.enqueueUnique(stint.Tx{}, uniqueJob)
		if err := b.blocked(); err != nil {
			return err
		}
		b.must(tx.Commit(b.Context()))
		if got := <-answer; got.err != nil || got.list[0].ID != r.ID || !got.list[0].Duplicate {
			return fmt.Errorf("after the commit it is answered with %+v, want a duplicate of job %d", got, r.ID)
		}
		return nil
	}},
	{"Of two that wait to take a unique key over one does", func(b *bench) error {
		b.endedUnique("until-ended")
		// Another transaction looks at the row, so both have seen who holds the key.
		gate := begin(b, b.s)
		exec1(b, gate, `select from stint.idempotency for update`)
		one, two := b.enqueueUnique(stint.Tx{}, uniqueJob), b.enqueueUnique(stint.Tx{}, uniqueJob)
		if err := b.blockedMany(2); err != nil {
			return err
		}
		b.must(gate.Rollback(b.Context()))
		r, q := <-one, <-two
		if r.err != nil || q.err != nil || r.list[0].Duplicate == q.list[0].Duplicate || r.list[0].ID != q.list[0].ID {
			return fmt.Errorf("they are answered with %+v and %+v", r, q)
		}
		return nil
	}},
	{"Nobody waits for a transaction that found a unique key held", func(b *bench) error {
		client := stint.NewClient(b.s)
		must1(client.Enqueue(b.Context(), uniqueJob))(b)
		tx := begin(b, b.s)
		must1(client.With(Tx(tx)).Enqueue(b.Context(), uniqueJob))(b)
		must1(client.With(Tx(tx)).EnqueueMany(b.Context(), []stint.NewJob{uniqueJob, uniqueJob}))(b)
		w := storetest.Join(b, b.s, "k")
		w.Complete(w.ClaimAll()...)
		short, cancel := context.WithTimeout(b.Context(), 5*time.Second)
		defer cancel()
		r, err := client.EnqueueReceipt(short, uniqueJob)
		b.must(tx.Rollback(b.Context()))
		if err != nil || r.Duplicate {
			return fmt.Errorf("it is answered with %+v, %v", r, err)
		}
		return nil
	}},
	{"What is promoted while it is to be replaced in a transaction is kept, and not cancelled", func(b *bench) error {
		a := uniqueJob
		a.Unique, a.Delay = "until-ended,replace", time.Hour
		id := must1(stint.NewClient(b.s).Enqueue(b.Context(), a))(b)
		// A promotion that has the row, and commits while it is waited for.
		promotion, tx := begin(b, b.s), begin(b, b.s)
		exec1(b, promotion, `
			with gone as (delete from stint.waiting returning *)
			insert into stint.entries (lane, job, body, attempt, priority, queue, kind)
			select stint.lane(queue, priority, 'normal'), job, body, attempt, priority, queue, kind from gone`)
		answer := b.enqueueUnique(Tx(tx), a)
		if err := b.blocked(); err != nil {
			return err
		}
		b.must(promotion.Commit(b.Context()))
		if r := <-answer; r.err != nil || r.list[0] != (stint.Receipt{ID: id, Duplicate: true, State: stint.Available}) {
			return fmt.Errorf("it is answered with %+v, want a duplicate of job %d, which is available", r, id)
		}
		b.must(tx.Commit(b.Context()))
		if e := storetest.Join(b, b.s, "k").ClaimAll(); len(e) != 1 || e[0].ID != id {
			return fmt.Errorf("claimed %v, want job %d", e, id)
		}
		if n := value[int](b, b.s.pool, `select count(*)::int from stint.cancellations`); n != 0 {
			return fmt.Errorf("%d markers are left", n)
		}
		return nil
	}},
	{"A holder that begins while the lane is waited for is kept, one that ends is not said to be replaced", func(b *bench) error {
		for _, ends := range []bool{false, true} {
			a := uniqueJob
			a.Unique, a.Args = "until-ended,replace", fmt.Appendf(nil, `%t`, ends)
			id := must1(stint.NewClient(b.s).Enqueue(b.Context(), a))(b)
			lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID
			gate := begin(b, b.s)
			exec1(b, gate, `select pg_advisory_xact_lock($1 # ('stint.entries'::regclass::oid::bigint << 24))`, int64(lane))
			answer := b.enqueueUnique(stint.Tx{}, a)
			if err := b.blocked(); err != nil {
				return err
			}
			// A claim, by who has the lock.
			w := storetest.Join(b, b.s, "k")
			exec1(b, gate, `insert into stint.claims (lane, n, nonce, engine, serial, xid, pos, positions)
				select $1, f.n + 1, 7, $2, 1, e.xid, e.pos, array[e.pos] from stint.entries e, stint.frontier($1) f where e.pos = $3`, int64(lane), int64(w.Info.Token), int64(id))
			if ends {
				exec1(b, gate, `insert into stint.executions (pos, nonce, engine, started, finished, attempt, slot, outcome, final)
					values ($1, 7, $2, now(), now(), 1, 1, 1, true)`, int64(id), int64(w.Info.Token))
			}
			b.must(gate.Commit(b.Context()))
			r := <-answer
			switch {
			case r.err != nil:
				return r.err
			case ends && (r.list[0].Duplicate || r.list[0].Replaced != 0):
				return fmt.Errorf("when the holder has ended it is answered with %+v", r.list[0])
			case !ends && r.list[0] != (stint.Receipt{ID: id, Duplicate: true, State: stint.Running}):
				return fmt.Errorf("when the holder has begun it is answered with %+v", r.list[0])
			}
			if n := value[int](b, b.s.pool, `select count(*)::int from stint.cancellations`); n != 0 {
				return fmt.Errorf("%d markers are left", n)
			}
		}
		return nil
	}},
	{"What is kept until-started in a transaction is not promoted before the commit", func(b *bench) error {
		a := uniqueJob
		a.Unique, a.Delay = "until-started", 3*time.Second
		id := must1(stint.NewClient(b.s).Enqueue(b.Context(), a))(b)
		tx := begin(b, b.s)
		if r := must1(stint.NewClient(b.s).With(Tx(tx)).EnqueueReceipt(b.Context(), a))(b); r.ID != id || !r.Duplicate {
			return fmt.Errorf("it is answered with %+v, want a duplicate of job %d", r, id)
		}
		time.Sleep(a.Delay)
		during := must1(b.s.Promote(b.Context(), time.Time{}, 10))(b)
		b.must(tx.Commit(b.Context()))
		after := must1(b.s.Promote(b.Context(), time.Time{}, 10))(b)
		if during.Moved != 0 || after.Moved != 1 {
			return fmt.Errorf("%d are promoted before the commit, and %d after it", during.Moved, after.Moved)
		}
		return nil
	}},
	{"What is promoted or cancelled while it is to be kept until-started is not kept", func(b *bench) error {
		for _, end := range []string{
			`insert into stint.entries (lane, job, body, attempt, priority, queue, kind)
				select stint.lane(queue, priority, 'normal'), job, body, attempt, priority, queue, kind from gone`,
			`insert into stint.executions (pos, nonce, engine, started, finished, attempt, slot, outcome, final)
				select job, 0, 0, now(), now(), 1, 0, 6, true from gone`,
		} {
			a := uniqueJob
			a.Unique, a.Delay, a.Args = "until-started", time.Hour, fmt.Appendf(nil, `%d`, len(end))
			id := must1(stint.NewClient(b.s).Enqueue(b.Context(), a))(b)
			gate, tx := begin(b, b.s), begin(b, b.s)
			exec1(b, gate, `with gone as (delete from stint.waiting returning *) `+end)
			answer := b.enqueueUnique(Tx(tx), a)
			if err := b.blocked(); err != nil {
				return err
			}
			b.must(gate.Commit(b.Context()))
			if r := <-answer; r.err != nil || r.list[0].Duplicate || r.list[0].Replaced != 0 || r.list[0].ID == id {
				return fmt.Errorf("it is answered with %+v", r)
			}
			b.must(tx.Commit(b.Context()))
			b.must(errOf(b.s.pool.Exec(b.Context(), `delete from stint.waiting`))) // not for the next round
		}
		return nil
	}},
	{"A holder until-started that begins while the lane is waited for is not kept", func(b *bench) error {
		for _, text := range []string{"until-started", "until-started,replace"} {
			a := uniqueJob
			a.Unique, a.Queue = text, strings.ReplaceAll(text, ",", " ") // a lane each
			id := must1(stint.NewClient(b.s).Enqueue(b.Context(), a))(b)
			lane := store.LaneOf(a.Queue, 0, store.PartNormal, "").ID
			gate := begin(b, b.s)
			exec1(b, gate, `select pg_advisory_xact_lock($1 # ('stint.entries'::regclass::oid::bigint << 24))`, int64(lane))
			answer := b.enqueueUnique(stint.Tx{}, a)
			if err := b.blocked(); err != nil {
				return err
			}
			w := storetest.Join(b, b.s, "k")
			exec1(b, gate, `insert into stint.claims (lane, n, nonce, engine, serial, xid, pos, positions)
				select $1, f.n + 1, 7, $2, 1, e.xid, e.pos, array[e.pos] from stint.entries e, stint.frontier($1) f where e.pos = $3`, int64(lane), int64(w.Info.Token), int64(id))
			b.must(gate.Commit(b.Context()))
			r := <-answer
			if r.err != nil || r.list[0].Duplicate || r.list[0].Replaced != 0 || r.list[0].ID == id {
				return fmt.Errorf("%s: beside one that has begun it is answered with %+v", text, r)
			}
			next := must1(stint.NewClient(b.s).EnqueueReceipt(b.Context(), a))(b)
			if text == "until-started" && (next.ID != r.list[0].ID || !next.Duplicate) || text != "until-started" && next.Replaced != r.list[0].ID {
				return fmt.Errorf("%s: the next is answered with %+v, and %+v has the key", text, next, r.list[0])
			}
		}
		return nil
	}},
}

var uniqueJob = stint.NewJob{Kind: "k", Args: []byte("{}"), Queue: stint.DefaultQueue, Unique: "until-ended"}

// endedUnique has a unique job that has ended.
func (b *bench) endedUnique(text string) {
	j := uniqueJob
	j.Unique = text
	must1(stint.NewClient(b.s).Enqueue(b.Context(), j))(b)
	w := storetest.Join(b, b.s, "k")
	w.Complete(w.ClaimAll()...)
}

// enqueueUnique enqueues a job beside the test.
func (b *bench) enqueueUnique(tx stint.Tx, j stint.NewJob) chan said {
	answer := make(chan said, 1)
	go func() {
		list, err := stint.NewClient(b.s).With(tx).EnqueueReceipts(b.Context(), []stint.NewJob{j})
		answer <- said{list, err}
	}()
	return answer
}

func must1[V any](v V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		must(t, err)
		return v
	}
}

func exec1(t testing.TB, tx pgx.Tx, text string, args ...any) {
	_, err := tx.Exec(t.Context(), text, args...)
	must(t, err)
}

// What SQL has cancelled keeps its place among those that wait until an engine ends it. A flow keeps it for longer, and
// holds its key.
func TestWhatSQLHasCancelledHoldsNoKeyBesideOpenFlows(t *testing.T) {
	s := newStore(t)
	client, job := stint.NewClient(s), uniqueJob
	job.Delay = time.Hour
	opens := func() stint.Receipt {
		flow := stint.NewFlow("f", stint.UniqueUntilEnded())
		stint.NewKind[struct{}]("k").Add(flow, "one", struct{}{})
		return must1(flow.EnqueueReceipt(t.Context(), client))(t)
	}
	opened := opens()
	id := must1(client.Enqueue(t.Context(), job))(t)
	for _, cancelled := range []stint.ID{id, opened.ID} {
		value[string](t, s.pool, `select stint.cancel($1)`, cancelled)
	}
	if j, err := s.Job(t.Context(), id); err != nil || j.State != stint.Cancelled {
		t.Errorf("the job is %+v, %v", j, err)
	}
	if r := must1(client.EnqueueReceipt(t.Context(), job))(t); r.Duplicate {
		t.Errorf("beside what was cancelled it is answered with %+v", r)
	}
	if r := opens(); !r.Duplicate {
		t.Errorf("beside a flow whose jobs have not ended it is answered with %+v", r)
	}
}

// A transaction that commits after the lane was read beyond it is claimed from by itself, as far as it was taken.
func TestWhatWasClaimedOfALateTransactionHasStarted(t *testing.T) {
	s := newStore(t)
	client, job := stint.NewClient(s), uniqueJob
	job.Unique = "until-started,by=/id"
	late := begin(t, s)
	ids := map[int]stint.ID{}
	for i := range 2 {
		job.Args = fmt.Appendf(nil, `{"id":%d}`, i)
		ids[i] = must1(client.With(Tx(late)).Enqueue(t.Context(), job))(t)
	}
	job.Args = []byte(`{"id":"other"}`)
	must1(client.Enqueue(t.Context(), job))(t)
	w := storetest.Join(t, s, "k")
	lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID
	if got := w.Claim(lane, 10); len(got) != 1 {
		t.Fatalf("claimed are %d jobs, want the one that is committed", len(got))
	}
	if r := must1(client.EnqueueReceipt(t.Context(), job))(t); r.Duplicate {
		t.Errorf("beside a job that has started while another transaction was open it is answered with %+v", r)
	}
	w.Claim(lane, 10)
	must(t, late.Commit(t.Context()))
	if got := w.Claim(lane, 1); len(got) != 1 || got[0].ID != ids[0] {
		t.Fatalf("claimed is %+v, want job %d", got, ids[0])
	}
	for i, id := range ids {
		job.Args = fmt.Appendf(nil, `{"id":%d}`, i)
		if r := must1(client.EnqueueReceipt(t.Context(), job))(t); r.Duplicate != (i == 1) {
			t.Errorf("job %d of two, of which the first has started: another one is answered with %+v", id, r)
		}
	}
}

// Many producers whose sessions end at any moment, and one that ends: never are two jobs of
// a key unfinished, and what was answered is so.
func TestUniqueJobsSurviveTheEndsOfTheirProducers(t *testing.T) {
	s := newStore(t)
	keys, last := 1000, time.Minute
	if testing.Short() {
		keys, last = 40, 3*time.Second
	}
	const producers = 16
	ctx, cancel := context.WithTimeout(t.Context(), last)
	defer cancel()
	var wg sync.WaitGroup
	var stored, kept, made, lost atomic.Int64
	wg.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
			_, _ = s.pool.Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
				and (query like '%as wanted%' or query like '%store_job%') and pid <> pg_backend_pid() order by random() limit 1`)
		}
	})
	w := storetest.Join(t, s, "k")
	wg.Go(func() {
		for ctx.Err() == nil {
			page, err := s.Jobs(t.Context(), store.Filter{Limit: 1000, States: []stint.State{stint.Scheduled, stint.Retrying, stint.Available, stint.Running}})
			if err != nil {
				continue // its session may be one that ends
			}
			seen := map[string]stint.ID{}
			for _, j := range page {
				if seen[j.URN] != 0 {
					t.Errorf("of key %s both job %d and job %d are unfinished", j.URN, seen[j.URN], j.ID)
				}
				seen[j.URN] = j.ID
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			w.Complete(w.ClaimAll()...)
			time.Sleep(50 * time.Millisecond)
		}
	})
	for p := range producers {
		r := rand.New(rand.NewPCG(uint64(p), 7))
		wg.Go(func() {
			client := stint.NewClient(s)
			for ctx.Err() == nil {
				var batch []stint.NewJob
				for k := range 1 + r.IntN(5) {
					text := "until-ended,by=/id" + []string{"", "", ",replace"}[r.IntN(3)]
					id := (r.IntN(keys/5))*5 + k
					batch = append(batch, stint.NewJob{Kind: "k", Args: fmt.Appendf(nil, `{"id":%d}`, id), Unique: text, URN: fmt.Sprint(id), Delay: time.Duration(r.IntN(2)) * 5 * time.Millisecond})
				}
				var receipts []stint.Receipt
				var err error
				if r.IntN(4) > 0 {
					receipts, err = client.EnqueueReceipts(ctx, batch)
				} else {
					err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
						receipts, err = client.With(Tx(tx)).EnqueueReceipts(ctx, batch)
						time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
						return err
					})
				}
				if err != nil {
					lost.Add(1)
					continue
				}
				for _, r := range receipts {
					switch {
					case r.Duplicate:
						kept.Add(1)
					case r.Replaced != 0:
						made.Add(1)
					default:
						stored.Add(1)
					}
				}
			}
		})
	}
	for ctx.Err() == nil {
		_, _ = s.Promote(t.Context(), time.Time{}, 100)
		time.Sleep(3 * time.Millisecond)
	}
	wg.Wait()
	t.Logf("%d stored, %d duplicates, %d replaced, %d calls cut off", stored.Load(), kept.Load(), made.Load(), lost.Load())
	if stored.Load() == 0 || kept.Load() == 0 || made.Load() == 0 || lost.Load() <= producers { // so many are cut off by the end
		t.Error("something of this did not happen")
	}
}
