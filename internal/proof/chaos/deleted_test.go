//go:build unix

package chaos_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/report"
)

// Jobs are enqueued, now or for later, fail, are lost with their engines and completed, while those that have ended are
// deleted all the time: the statistics, which outlive them, account for each. STINT_CHAOS_BACKLOG says how many.
func TestJobsThatAreSoonDeletedAreAccountedFor(t *testing.T) {
	atLength(t)
	t.Parallel()
	n, keep := backlog(t, 20_000), 2*time.Second
	if n > 1_000_000 {
		keep = time.Minute
	}
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_wal_size": "1GB"}})
	w := newWorld(t, server.New(t))
	var workers []*chaos.Keeper
	for i := range 2 {
		workers = append(workers, w.Keep(chaos.Worker{Name: fmt.Sprintf("worker-%d", i+1), DB: w.url, Slots: 20, Keep: keep}))
	}
	began, dice := time.Now(), w.dice(11)
	const size, ahead = 5_000, 200_000
	kills := max(size, n/50)
	for at := 0; at < n; at += size {
		var later []stint.Option
		if at/size%10 == 1 {
			later = append(later, stint.Delay(time.Second))
		}
		w.batch(chaos.MixedBulk, at, min(size, n-at), later...)
		if at%kills == 0 {
			workers[dice.IntN(len(workers))].Process().Kill()
			for w.left() > ahead {
				w.rest(t.Context(), 200*time.Millisecond)
			}
		}
	}
	w.Drain(t.Context(), w.store, 5*time.Minute)
	took := time.Since(began)
	for kept := func() int { return w.number(`select count(*) from stint.entries`) }; kept() > n/2; {
		if time.Since(began) > took+5*time.Minute {
			t.Fatalf("%d of %d jobs are still there", kept(), n)
		}
		w.rest(t.Context(), time.Second)
	}
	lives := 0
	for _, k := range workers {
		k.Stop()
		lives += k.Lives
	}
	w.Burials(t.Context(), w.ground)
	t.Logf("%d jobs within %v, in %d lives of %d workers; %d are not deleted yet",
		n, took.Round(time.Second), lives, len(workers), w.number(`select count(*) from stint.entries`))
	w.account(n)
}

// account keeps the account of n jobs of chaos.MixedBulk by what the statistics say of them.
func (w *world) account(n int) {
	w.t.Helper()
	for more := true; more; {
		var err error
		if more, err = w.store.SumUp(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	stats, err := w.store.Stats(w.t.Context(), report.StatsFilter{Kind: chaos.MixedBulk.Declaration().Name})
	if err != nil {
		w.t.Fatal(err)
	}
	all := report.StatsByKind(stats)
	if len(all) != 1 {
		w.t.Fatalf("the statistics are %+v", all)
	}
	of := func(o stint.Outcome) int { return int(all[0].Outcomes[o]) }
	completed := of(stint.OutcomeCompleted)
	a := chaos.Account{
		Jobs: n, Runs: int(all[0].Attempts), Lost: max(0, n-completed), Doubled: max(0, completed-n),
		Reruns: map[string]int{check.ReasonCrash: of(stint.OutcomeLost), check.ReasonRetry: of(stint.OutcomeFailed)},
	}
	if a.Broken = a.Lost + a.Doubled; a.Broken > 0 {
		w.t.Errorf("of %d jobs %d were completed", n, completed)
	}
	if told := n / chaos.MixedEvery; of(stint.OutcomeFailed) != told {
		w.t.Errorf("%d attempts failed; %d jobs do so, once each", of(stint.OutcomeFailed), told)
	}
	w.Account(w.t.Context(), w.ground, a)
}
