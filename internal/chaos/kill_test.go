//go:build unix

package chaos_test

import (
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/chaos"
	"github.com/stint-go/stint/internal/pgtest"
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

func quick(int) chaos.Args { return chaos.Args{} }

// until waits for a condition that SQL tells. The server may be away meanwhile.
func (w *world) until(what, text string, args ...any) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
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

func TestAKilledWorkersJobsRunElsewhereFirstInLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	n := jobs(t, 10_000)
	long := w.enqueue("long", 0, 20, func(int) chaos.Args { return chaos.Args{Work: 3500} }, stint.Priority(-1))
	w.enqueue("quick", 0, n, quick)
	doomed := w.Start(chaos.Worker{Name: "doomed", DB: w.url, Slots: 20})
	w.until("the long jobs run and were announced", `select count(*) = 20 from stint.jobs where begun and priority = -1`)
	doomed.Kill()
	killed := time.Now()
	survivor := w.Start(chaos.Worker{Name: "survivor", DB: w.url, Slots: 40})
	w.until("the long jobs run again", `
		select count(*) = 20 from stint.jobs where priority = -1 and begun and attempt = 2`)
	if took := time.Since(killed); took > 10*time.Second {
		t.Errorf("they ran again after %v, more than 10s", took)
	} else {
		t.Logf("they ran again after %v", took)
	}
	for _, id := range long {
		job, err := w.store.Job(t.Context(), id)
		if err != nil || job.Losses != 1 || job.Executions[0].Outcome != stint.OutcomeLost {
			t.Fatalf("job %d: %+v, %v", id, job, err)
		}
	}
	w.Drain(t.Context(), w.store, 2*time.Minute)
	if err := survivor.Stop(); err != nil {
		t.Error(err)
	}
	t.Log(w.Judge(t.Context(), w.store, w.pool))
}

func TestAFrozenWorkerIsBuriedAndRecordsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	frozen := w.Start(chaos.Worker{Name: "frozen", DB: w.url, Slots: 4, TimeToLive: 2 * time.Second})
	ids := w.enqueue("long", 0, 4, func(int) chaos.Args { return chaos.Args{Work: 3000} })
	w.until("they run and were announced", `select count(*) = 4 from stint.jobs where begun`)
	frozen.Freeze()
	other := w.Start(chaos.Worker{Name: "other", DB: w.url, Slots: 4, TimeToLive: 2 * time.Second})
	w.until("they run elsewhere", `select count(*) = 4 from stint.jobs where begun and attempt = 2`)
	frozen.Thaw()
	w.Drain(t.Context(), w.store, time.Minute)
	w.until("the frozen one joined anew", `select count(*) = 2 from stint.engines`)
	for _, id := range ids {
		job, err := w.store.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		last := job.Executions[len(job.Executions)-1]
		if len(job.Executions) != 2 || last.Instance != "other" || last.Outcome != stint.OutcomeCompleted {
			t.Errorf("job %d: %+v", id, job.Executions)
		}
	}
	for _, p := range []*chaos.Process{frozen, other} {
		if err := p.Stop(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	t.Log(w.Judge(t.Context(), w.store, w.pool))
}

func TestAJobThatKillsItsProcessEndsAfterItsBudgetAndNoBystanderIsChargedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	killer := w.enqueue("killer", 0, 1, func(int) chaos.Args { return chaos.Args{Exit: true} })[0]
	bystanders := w.enqueue("bystander", 0, 30, func(int) chaos.Args { return chaos.Args{Work: 400} })
	keeper := w.Keep(chaos.Worker{Name: "victim", DB: w.url, Slots: 40, TimeToLive: 2 * time.Second})
	w.Drain(t.Context(), w.store, 2*time.Minute)
	keeper.Stop()
	job, err := w.store.Job(t.Context(), killer)
	if err != nil {
		t.Fatal(err)
	}
	if job.State != stint.Failed || job.Reason != stint.ReasonLost || job.Attempt != stint.DefaultMaxLosses {
		t.Errorf("the killer is %s (%s) at attempt %d", job.State, job.Reason, job.Attempt)
	}
	for _, id := range bystanders {
		job, err := w.store.Job(t.Context(), id)
		if err != nil || job.State != stint.Completed || job.Attempt > 2 {
			t.Errorf("bystander %d is %s at attempt %d, %v", id, job.State, job.Attempt, err)
		}
	}
	t.Log(w.Judge(t.Context(), w.store, w.pool))
}
