//go:build unix

package chaos_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/report"
)

// A backlog makes nothing slower: claims take as long as with a small one, what is
// urgent or stands in another queue begins soon, and when all of it was done and has
// been deleted, its room is free. STINT_CHAOS_BACKLOG=10000000 is for an hour.
func TestABacklogSlowsNothingDownAndLeavesNothingBehind(t *testing.T) {
	atLength(t)
	t.Parallel()
	n, small := backlog(t, 10_000), 10_000
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_wal_size": "1GB"}})
	w := newWorld(t, server.New(t))
	empty := w.size()

	w.bulk(small)
	few := w.gauge("few", time.Minute)
	w.bulk(n)
	full := w.size()
	many := w.gauge("many", 10*time.Second)
	t.Logf("a claim takes %v of %d jobs and %v of %d, %.1f times as long", few, small, many, n, float64(many)/float64(few))

	ctx, cancel := context.WithCancel(t.Context())
	var urgent sync.WaitGroup
	var asked []stint.ID
	urgent.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			option := stint.Queue("other")
			if i%2 == 0 {
				option = stint.Priority(-5)
			}
			asked = append(asked, w.enqueue("urgent", i, 1, quick, option)...)
			w.rest(ctx, 200*time.Millisecond)
		}
	})
	l := &load{w: w}
	for i := range 2 {
		l.keepers = append(l.keepers, w.Keep(chaos.Worker{Name: fmt.Sprintf("worker-%d", i+1), DB: w.url, Slots: 20}))
	}
	began, dice := time.Now(), w.dice(10)
	for w.left() > 0 && time.Since(began) < time.Hour {
		w.rest(t.Context(), time.Second+time.Duration(dice.Int64N(int64(4*time.Second))))
		l.keepers[dice.IntN(len(l.keepers))].Process().Kill()
	}
	cancel()
	urgent.Wait()
	w.Drain(t.Context(), w.store, time.Minute)
	took := time.Since(began)
	lives := 0
	for _, k := range l.keepers {
		k.Stop()
		lives += k.Lives
	}
	w.Burials(t.Context(), w.ground)
	done := w.number(`select count(*) from stint.executions x where outcome = $1 and final
		and exists (select from stint.entries e where e.pos = coalesce(x.job, x.pos) and e.kind = 'bulk')`, stint.OutcomeCompleted)
	if done != small+n {
		t.Errorf("%d of %d jobs were completed", done, small+n)
	}
	w.count(small + n + len(asked))
	waits := w.waits(asked)
	t.Logf("all of it was done %v later, in %d lives of %d workers; of %d urgent jobs half began within %v, and the last within %v",
		took, lives, len(l.keepers), len(waits), waits[len(waits)/2], waits[len(waits)-1])

	began = time.Now()
	erased(t, w.store, small+n+len(asked), 5000)
	took = time.Since(began)
	if _, err := w.pool.Exec(t.Context(), `vacuum`); err != nil {
		t.Fatal(err)
	}
	left := w.size()
	t.Logf("deleted within %v; the tables have %d KiB when they are empty, %d with the backlog, %d behind it", took, empty>>10, full>>10, left>>10)
	if left > empty+full/4 {
		t.Error("what was deleted takes its room still")
	}
}

// backlog is how many jobs STINT_CHAOS_BACKLOG asks for.
func backlog(t *testing.T, otherwise int) int {
	t.Helper()
	text := os.Getenv("STINT_CHAOS_BACKLOG")
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// bulk enqueues n jobs that do nothing.
func (w *world) bulk(n int) {
	w.t.Helper()
	const size = 50_000
	for at := 0; at < n; at += size {
		w.batch(chaos.Bulk, at, min(size, n-at))
	}
}

// batch enqueues n jobs of a kind, whose arguments are the numbers from at.
func (w *world) batch(kind stint.Kind[int], at, n int, opts ...stint.Option) {
	w.t.Helper()
	batch := make([]stint.NewJob, n)
	for i := range batch {
		var err error
		if batch[i], err = kind.New(at+i, opts...); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := stint.NewClient(w.store).EnqueueMany(w.t.Context(), batch); err != nil {
		w.t.Fatal(err)
	}
}

// count keeps the account of so many jobs by what their histories say. A judge who
// holds what programs wrote down against ten million would want more memory than most
// machines have.
func (w *world) count(jobs int) {
	w.t.Helper()
	const ran = `select count(*) from stint.executions where (slot > 0 or outcome = $1)`
	a := chaos.Account{
		Jobs: jobs, Runs: w.number(ran, stint.OutcomeLost), Reruns: map[string]int{},
		Lost:    jobs - w.number(`select count(distinct coalesce(job, pos)) from stint.executions where final`),
		Doubled: w.number(`select count(*) - count(distinct coalesce(job, pos)) from stint.executions where final`),
	}
	for why, outcome := range map[string]stint.Outcome{check.ReasonCrash: stint.OutcomeLost, check.ReasonReturn: stint.OutcomeReturned} {
		if n := w.number(ran+` and outcome = $2`, stint.OutcomeLost, outcome); n > 0 {
			a.Reruns[why] = n
		}
	}
	if a.Broken = a.Lost + a.Doubled; a.Broken > 0 {
		w.t.Errorf("of %d jobs %d have not ended, and %d ended twice", jobs, a.Lost, a.Doubled)
	}
	w.Account(w.t.Context(), w.ground, a)
}

// gauge has one worker work for a while, or until all is done, and tells how long
// its claims took on average.
func (w *world) gauge(name string, most time.Duration) time.Duration {
	w.t.Helper()
	p := w.Start(chaos.Worker{Name: name, DB: w.url, Slots: 20})
	w.Await(name, event.EventJoined, 1, time.Minute)
	for until := time.Now().Add(most); w.left() > 0 && time.Now().Before(until); {
		w.rest(w.t.Context(), 50*time.Millisecond)
	}
	if err := p.Stop(); err != nil {
		w.t.Error(err)
	}
	all, err := w.store.EngineMetrics(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(m report.Metrics) bool { return m.Instance == name })
	if i < 0 || all[i].Claimer.Took.Count == 0 {
		w.t.Fatalf("%s left no figures", name)
	}
	return all[i].Claimer.Took.Mean()
}

// left is how much nobody has taken. To count much takes long: the pause behind it
// lets others come to their turn.
func (w *world) left() int {
	w.t.Helper()
	began := time.Now()
	n := w.number(unclaimed)
	w.rest(w.t.Context(), 10*time.Since(began))
	return n
}

// size is how much the tables take that grow with jobs, without their indexes.
func (w *world) size() int {
	w.t.Helper()
	return w.number(`select sum(pg_table_size(format('stint.%I', name)::regclass)) from unnest('{entries,executions,claims}'::text[]) as name`)
}

// waits are how long jobs waited for their start, in order.
func (w *world) waits(ids []stint.ID) (all []time.Duration) {
	w.t.Helper()
	for _, id := range ids {
		job, err := w.store.Job(w.t.Context(), id)
		if err != nil || job.State != stint.Completed {
			w.t.Fatalf("job %d is %+v, %v", id, job, err)
		}
		all = append(all, job.Attempts[0].Started.Sub(job.Created))
	}
	slices.Sort(all)
	return all
}

func (w *world) rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
