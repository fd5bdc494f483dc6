//go:build unix

package chaos_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/retry"
)

// enqueue logs and stores jobs made by args, numbered from a first one.
func (w *world) enqueue(name string, first, n int, args func(i int) chaos.Args, opts ...stint.Option) []stint.ID {
	w.t.Helper()
	var all []stint.ID
	for at := 0; at < n; {
		size := min(5000, n-at)
		jobs, intent := w.intend(name, first+at, size, args, opts...)
		ids, err := stint.NewClient(w.store).EnqueueMany(w.t.Context(), jobs)
		if err != nil {
			w.t.Fatal(err)
		}
		list := make([]int64, len(ids))
		for i, id := range ids {
			list[i] = int64(id)
		}
		intent.Committed(list...)
		all = append(all, ids...)
		at += size
	}
	return all
}

// keepFour keeps four workers alive, which are buried soon after they were killed.
func (w *world) keepFour(slots int) (keepers []*chaos.Keeper) {
	w.t.Helper()
	for i := range 4 {
		keepers = append(keepers, w.Keep(chaos.Worker{Name: fmt.Sprint("worker-", i), DB: w.url, Slots: slots, TimeToLive: pace.Of(2 * time.Second), MaxOutage: pace.Of(10 * time.Second)}))
	}
	w.until("they have joined", `select count(*) = 4 from stint.engines`)
	return keepers
}

// killUntilCompleted kills workers, one after the other, and ends sessions until all jobs have completed, and says how
// many it killed. After thirty for each hundred jobs it leaves them alone: on a slow machine a worker is killed
// before it has done much, and no job would ever come to its end.
func (w *world) killUntilCompleted(keepers []*chaos.Keeper) (kills int) {
	w.t.Helper()
	const open = `select count(*) from stint.jobs where state <> 'completed'`
	dice, left := w.dice(7), w.number(open)
	hundreds := max(1, left/100)
	last, within := time.Now(), 3*time.Minute*time.Duration(hundreds)
	for ; left > 0; left = w.number(open) {
		if time.Since(last) > pace.Of(within) {
			w.t.Fatalf("%d jobs have not completed after %d kills; %d are blocked", left, kills, w.number(`select count(*) from stint.jobs where state = 'blocked'`))
		}
		if kills == 30*hundreds {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		// Those that only just started would never get to do anything on a slow machine.
		if p := keepers[dice.IntN(len(keepers))].Process(); w.joins(p.Name) > 0 && !p.Gone() {
			p.Kill()
			last = time.Now()
			kills++
		}
		w.endSessions(500 * time.Millisecond)
	}
	return kills
}

// stopAll asks workers to stop, one after the other.
func stopAll(keepers []*chaos.Keeper) {
	for _, k := range keepers {
		k.Stop()
	}
}

func quick(int) chaos.Args { return chaos.Args{} }

// until waits for a condition that SQL tells. The server may be away meanwhile.
func (w *world) until(what, text string, args ...any) {
	w.t.Helper()
	for end := time.Now().Add(pace.Of(time.Minute)); ; time.Sleep(20 * time.Millisecond) {
		var ok bool
		err := w.pool.QueryRow(w.t.Context(), text, args...).Scan(&ok)
		if err == nil && ok {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("waited in vain until %s, %v", what, err)
		}
	}
}

// A process of its own machine the survivor may prove to be gone; one of
// another machine must have been silent for its time to live.
func TestAKilledWorkersJobsRunElsewhereFirstInLine(t *testing.T) {
	for where, moved := range few(1, maps.All(map[string]bool{"on the same machine": false, "on another machine": true})) {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			killOneOfTwo(t, moved)
		})
	}
}

func killOneOfTwo(t *testing.T, moved bool) {
	const (
		long    = 20
		slots   = 40
		waiting = 200    // so many jobs, or more, it has claimed and not begun
		line    = 30_000 // and so many wait behind these
		limit   = 10 * time.Second
	)
	w := newWorld(t, pgtest.New(t))
	running := w.enqueue("long", 0, long, func(int) chaos.Args { return chaos.Args{Hang: "doomed", Work: 500, Lock: true} })
	// What must not be lost is announced before it begins, and with it all that
	// runs: so nobody need wait for a beat while the backlog melts away.
	var heralds []stint.ID
	for i := range 5 {
		heralds = append(heralds, w.enqueue("herald", i, 1, quick, stint.MaxLosses(0))...)
		w.enqueue("first", 200*i, 200, quick)
	}
	w.enqueue("quick", 0, jobs(t, 60_000), quick)
	doomed := w.Start(chaos.Worker{Name: "doomed", DB: w.url, Slots: slots})
	w.until("the long jobs run and were announced, by heralds that are gone", `
		select exists (select from stint.beats where running @> $1)
		   and (select count(*) = cardinality($2::bigint[]) from stint.executions where pos = any ($2))`, running, heralds)
	if moved {
		if _, err := w.pool.Exec(t.Context(), `update stint.engines set boot_id = 'another'`); err != nil {
			t.Fatal(err)
		}
	}
	// The survivor takes its time, so that in the end there is still a line
	// to be first in.
	survivor := w.Start(chaos.Worker{Name: "survivor", DB: w.url, Slots: slots, Drag: 20 * time.Millisecond})
	w.Await("survivor", event.EventJoined, 1, time.Minute)
	w.catch(doomed, waiting, line)
	behind := w.number(unclaimed)
	doomed.Kill()
	killed, at := check.Now(), time.Now()

	// What it held is what others have concluded for it.
	burial := w.Await("survivor", event.EventBurial, 1, 2*limit)
	token := w.Await("doomed", event.EventJoined, 1, 0).Engine
	held := w.jobsOf(`
		select coalesce(x.job, x.pos) from stint.claims c, unnest(c.positions) as p(pos), stint.executions x
		where c.engine = $1 and x.pos = p.pos and x.outcome in ($2, $3) and x.finished > $4`,
		token, stint.OutcomeReturned, stint.OutcomeLost, at)
	begun, unbegun := w.split(held, "doomed")
	if len(unbegun) < waiting {
		t.Errorf("it held %d jobs that it had not begun", len(unbegun))
	}
	w.until("all that it held is done", `
		select count(*) = cardinality($1::bigint[]) from stint.executions where outcome = $2 and (pos = any ($1) or job = any ($1))`,
		held, stint.OutcomeCompleted)
	left := w.number(unclaimed)
	if err := survivor.Stop(); err != nil {
		t.Error(err)
	}

	// All of it ran again in time, and nothing behind it did before.
	runs := w.history().runsOn("survivor")
	buried := killed.Add(burial.At.Sub(at))
	var starts []check.Instant
	for _, id := range held {
		if runs[id].Start < killed {
			t.Fatalf("job %d did not run again", id)
		}
		starts = append(starts, runs[id].Start)
		delete(runs, id)
	}
	slices.Sort(starts)
	last, overtook := starts[len(starts)-1], 0
	for _, r := range runs {
		if r.Start > buried && r.Start < last {
			overtook++
		}
	}
	w.Recovered(last.Sub(killed))
	if took := last.Sub(killed); took > pace.Of(limit) {
		t.Errorf("the last of its jobs began again %v after the kill", took)
	}
	if left < line/10 || overtook > 10*slots {
		t.Errorf("%d jobs of the backlog began between the burial and the last of these; %d were left in the end", overtook, left)
	}

	// Only what had begun and was announced is charged.
	w.ended(running, "doomed lost at attempt 1, survivor completed at attempt 2")
	if n := w.number(`
		select count(*) from unnest($1::bigint[]) as j(id)
		where exists (select from stint.executions x where (x.pos = j.id or x.job = j.id) and x.engine = $2 and x.outcome = $3)
		  and exists (select from stint.executions x where (x.pos = j.id or x.job = j.id) and x.outcome = $4 and x.attempt = 1)`,
		unbegun, token, stint.OutcomeReturned, stint.OutcomeCompleted); n != len(unbegun) {
		t.Errorf("%d of %d jobs that had not begun went back and were completed at their first attempt", n, len(unbegun))
	}
	charged := w.number(`select count(distinct job) from stint.entries where attempt > 1 or losses > 0`)
	if charged < long || charged > len(begun) {
		t.Errorf("%d jobs were charged, %d had begun", charged, len(begun))
	}

	// The survivor says what it took over.
	if burial.Other != token || burial.Count != len(held) || burial.Begun != charged {
		t.Errorf("it says %+v, but engine %d held %d jobs, of which %d were charged", burial, token, len(held), charged)
	}
	t.Logf("killed with %d jobs in hand, %d of them not begun, and %d behind; buried after %v, the first ran again after %v, half of them after %v, all but ten after %v, the last after %v; "+
		"%d were charged, %d of the backlog came between, %d were left in the end",
		len(held), len(unbegun), behind, buried.Sub(killed), starts[0].Sub(killed), starts[len(starts)/2].Sub(killed), starts[max(0, len(starts)-11)].Sub(killed), last.Sub(killed), charged, overtook, left)
	if n := w.Burials(t.Context(), w.ground); n != 1 {
		t.Errorf("%d engines were buried", n)
	}
	report := w.JudgeAmid(t.Context(), w.ground)
	if len(report.Overlaps) > 0 {
		t.Errorf("pairs of runs overlapped: %v", report.Overlaps)
	}
	t.Log(report)
}

func TestAFrozenWorkerIsBuriedAndRecordsNothing(t *testing.T) {
	atLength(t)
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	frozen := w.Start(chaos.Worker{Name: "frozen", DB: w.url, Slots: 4, TimeToLive: pace.Of(2 * time.Second)})
	ids := w.enqueue("long", 0, 4, func(int) chaos.Args { return chaos.Args{Work: 3000} })
	w.until("they run and were announced", `select count(*) = 4 from stint.jobs where begun`)
	frozen.Freeze()
	other := w.Start(chaos.Worker{Name: "other", DB: w.url, Slots: 4, TimeToLive: pace.Of(2 * time.Second)})
	w.until("they run elsewhere", `select count(*) = 4 from stint.jobs where begun and attempt = 2`)
	frozen.Thaw()
	w.Drain(t.Context(), w.store, time.Minute)
	w.until("the frozen one joined anew", `select count(*) = 2 from stint.engines`)
	for _, id := range ids {
		job, err := w.store.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		last := job.Attempts[len(job.Attempts)-1]
		if len(job.Attempts) != 2 || last.Instance != "other" || last.Outcome != stint.OutcomeCompleted {
			t.Errorf("job %d: %+v", id, job.Attempts)
		}
	}
	for _, p := range []*chaos.Process{frozen, other} {
		if err := p.Stop(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	t.Log(w.Judge(t.Context(), w.ground))
}

func TestAJobThatKillsItsProcessEndsAfterItsBudgetAndNoBystanderIsChargedTwice(t *testing.T) {
	for _, c := range few(1, slices.All([]struct {
		policy retry.Policy
		runs   int
		reason string
	}{
		{retry.Default(), stint.DefaultMaxLosses, retry.ReasonLost},
		{retry.None(), stint.DefaultMaxLosses, retry.ReasonLost},
		{retry.Fixed(1, time.Hour), 2, retry.ReasonExhausted},
	})) {
		t.Run(c.policy.String(), func(t *testing.T) {
			t.Parallel()
			killItsProcess(t, c.policy, c.runs, c.reason)
		})
	}
}

// killItsProcess has a job of the policy end its process each time, and sees
// that it has run that often and that those beside it pay little for it.
func killItsProcess(t *testing.T, policy retry.Policy, runs int, reason string) {
	w := newWorld(t, pgtest.New(t))
	killer := w.enqueue("killer", 0, 1, func(int) chaos.Args { return chaos.Args{Exit: true} }, stint.Retry(policy))[0]
	bystanders := w.enqueue("bystander", 0, 30, func(int) chaos.Args { return chaos.Args{Work: 400} })
	keeper := w.Keep(chaos.Worker{Name: "victim", DB: w.url, Slots: 40, TimeToLive: pace.Of(2 * time.Second)})
	w.Drain(t.Context(), w.store, 2*time.Minute)
	keeper.Stop()
	job, err := w.store.Job(t.Context(), killer)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, x := range job.Attempts {
		if x.Outcome == stint.OutcomeLost {
			lost++
		}
	}
	if job.State != stint.Failed || job.Reason != reason || lost != runs {
		t.Errorf("the killer is %s (%s) after %d runs, want %d (%s)", job.State, job.Reason, lost, runs, reason)
	}
	for _, id := range bystanders {
		job, err := w.store.Job(t.Context(), id)
		if err != nil || job.State != stint.Completed || job.Attempt > 2 {
			t.Errorf("bystander %d is %s at attempt %d, %v", id, job.State, job.Attempt, err)
		}
	}
	t.Log(w.Judge(t.Context(), w.ground))
}
