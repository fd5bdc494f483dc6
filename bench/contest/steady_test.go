package contest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint/bench/contest"
)

// paced is a queue in memory with one worker, who takes a while for each job,
// and longer for each from a moment on.
type paced struct {
	mu      sync.Mutex
	waiting []int
	most    int // that waited at once

	begin  time.Time
	takes  time.Duration
	slower time.Duration // after so long it takes twice as long
	full   int           // how many jobs it can store; 0: any number
	stored int
	done   int
	forget int // how many jobs the history lacks
}

func (p *paced) Enqueue(_ context.Context, first, n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stored += n; p.full > 0 && p.stored > p.full {
		return errFull
	}
	for i := range n {
		p.waiting = append(p.waiting, first+i)
	}
	p.most = max(p.most, len(p.waiting))
	return nil
}

var errFull = errors.New("the disk is full")

func (p *paced) Work(ctx context.Context, handle func(int)) (func() error, error) {
	p.begin = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(p.wait())
			p.mu.Lock()
			var next []int
			if len(p.waiting) > 0 {
				next, p.waiting = p.waiting[:1], p.waiting[1:]
			}
			p.mu.Unlock()
			for _, n := range next {
				handle(n)
				p.done++
			}
		}
	})
	return func() error {
		cancel()
		wg.Wait()
		return nil
	}, nil
}

func (p *paced) wait() time.Duration {
	if p.slower > 0 && time.Since(p.begin) >= p.slower {
		return 2 * p.takes
	}
	return p.takes
}

func (p *paced) Completed(context.Context) (int, error) { return max(0, p.done-p.forget), nil }
func (p *paced) Close() error                           { return nil }

func TestSteadyTellsOfEachSliceHowMuchWasWorkedAndKeepsTheBacklogUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paced{takes: 10 * time.Millisecond, slower: 10 * time.Second}
		series, err := contest.Steady(t.Context(), p, contest.Steadily{
			Duration: 20 * time.Second, Slice: 5 * time.Second, Backlog: 500, Bulk: contest.Bulk{Batch: 100, Producers: 2},
		})
		if err != nil {
			t.Fatal(err)
		}
		rounded := make([]float64, len(series))
		for i, v := range series {
			rounded[i] = float64(int(v+5) / 10 * 10)
		}
		if want := []float64{100, 100, 50, 50}; !slices.Equal(rounded, want) {
			t.Errorf("worked per second: %v, want %v", series, want)
		}
		if p.most > 500+2*100 || len(p.waiting) < 400 {
			t.Errorf("%d jobs waited at once, and %d at the end, want about 500", p.most, len(p.waiting))
		}
	})
}

func TestSteadyEndsWhenNoMoreCanBeEnqueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paced{takes: 10 * time.Millisecond, full: 1000}
		_, err := contest.Steady(t.Context(), p, contest.Steadily{
			Duration: time.Hour, Slice: 5 * time.Second, Backlog: 500, Bulk: contest.Bulk{Batch: 100, Producers: 2},
		})
		if !errors.Is(err, errFull) {
			t.Errorf("the error is %v", err)
		}
		if worked := time.Since(p.begin); worked > time.Minute {
			t.Errorf("it went on for %v", worked)
		}
	})
}

func TestSteadyRefusesTheFiguresOfAQueueThatForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paced{takes: 10 * time.Millisecond, forget: 2}
		_, err := contest.Steady(t.Context(), p, contest.Steadily{Duration: 10 * time.Second, Slice: 5 * time.Second, Backlog: 500})
		if err == nil || !strings.Contains(err.Error(), "jobs that began the history has") {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestIdleMeasuresFromTheCallOfAnEnqueueToTheStartOfItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paced{takes: 4 * time.Millisecond} // who looks every 4 ms finds a job 2 ms old, on average
		begin := time.Now()
		times, err := contest.Idle(t.Context(), p, contest.Idly{Rate: 50, Duration: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		f := contest.Quantiles(times.Start)
		if f["p50 ms"] < 1 || f["p50 ms"] > 3 || f["p99 ms"] < 3.5 || f["p99 ms"] > 4 {
			t.Errorf("figures are %v, want 2 and 4", f)
		}
		if took := time.Since(begin); took < 19*time.Second || took > 22*time.Second {
			t.Errorf("it took %v, want 20 s and a little", took)
		}
	})
}

func TestIdleDoesNotWaitForeverForAJobThatNeverBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paced{takes: time.Hour}
		if _, err := contest.Idle(t.Context(), p, contest.Idly{Rate: 50, Duration: time.Second}); err == nil || err.Error() != "not all of 70 jobs began within 30s" {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestIdleMeasuresTheFloorAndScheduledJobsBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paced{takes: time.Millisecond}
		rounds := 0
		times, err := contest.Idle(t.Context(), p, contest.Idly{
			Rate: 50, Duration: 2 * time.Second, Scheduled: 0.25,
			Floor: func(context.Context) error { rounds++; time.Sleep(2 * time.Millisecond); return nil },
			Later: func(ctx context.Context, job int, due time.Time) error {
				if d := time.Until(due); d < 50*time.Millisecond || d > 2*time.Second {
					t.Errorf("job %d is due in %v", job, d)
				}
				time.AfterFunc(time.Until(due)+5*time.Millisecond, func() { _ = p.Enqueue(ctx, job, 1) })
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		// The first 20 jobs and rounds are not measured.
		if len(times.Start) != 75 || len(times.Return) != 75 || len(times.Call) != 75 || len(times.Late) != 25 || len(times.Floor) != 100 || rounds != 120 {
			t.Errorf("of 100 jobs there are %d and %d scheduled, with %d of %d rounds", len(times.Start), len(times.Late), len(times.Floor), rounds)
		}
		if f := contest.Quantiles(times.Floor); f["p50 ms"] != 2 {
			t.Errorf("the floor is %v, want 2 ms", f)
		}
		if f := contest.Quantiles(times.Late); f["p50 ms"] < 5 || f["max ms"] > 7 {
			t.Errorf("scheduled jobs are late by %v, want 5 ms and up to one more", f)
		}
	})
}

func TestAFloorThatFailsEndsTheMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		_, err := contest.Idle(t.Context(), &paced{takes: time.Millisecond}, contest.Idly{Rate: 100, Duration: time.Hour, Floor: func(context.Context) error { return broken }})
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "the floor") {
			t.Errorf("the error is %v", err)
		}
	})
}
