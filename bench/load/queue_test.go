package load_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/bench/load"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

func open(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), t.TempDir()+"/load.db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func none() error { return nil }

// counted counts what single claims bring, and fails when it is told to.
type counted struct {
	*sqlite.Store
	most, claims atomic.Int64
	fails        int64 // the claim of this number
}

func (c *counted) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	if c.claims.Add(1) == c.fails {
		return store.Claim{}, context.DeadlineExceeded
	}
	claim, err := c.Store.Claim(ctx, req)
	if n := int64(len(claim.Positions)); n > c.most.Load() {
		c.most.Store(n)
	}
	return claim, err
}

func TestEachJobIsWorkedOnceHoweverItIsClaimed(t *testing.T) {
	for name, o := range map[string]load.Options{
		"engines":           {Engines: 2, Slots: 3},
		"plain":             {Engines: 2, Slots: 3, Plain: true},
		"one by one":        {Engines: 3, OneByOne: true},
		"plain, one by one": {Engines: 3, OneByOne: true, Plain: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &counted{Store: open(t)}
			var opened, closed atomic.Int64
			o.Open = func(context.Context) (store.Store, func(), error) {
				opened.Add(1)
				return s, func() { closed.Add(1) }, nil
			}
			q := load.New(s, o, none)
			err := contest.Recorded(t.Context(), q, 321, func() error {
				_, err := contest.Burn(t.Context(), q, 321, contest.Bulk{Batch: 50})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if n := s.most.Load(); o.OneByOne != (n == 1) {
				t.Errorf("a claim brought %d jobs", n)
			}
			if want := int64(o.Engines - 1); opened.Load() != want || closed.Load() != want {
				t.Errorf("of %d engines %d opened a store of their own and %d closed it", o.Engines, opened.Load(), closed.Load())
			}
			if engines, err := s.Engines(t.Context()); err != nil || len(engines) != 0 {
				t.Errorf("engines were left behind: %v, %v", engines, err)
			}
		})
	}
}

func TestTheHistoryOfABurnIsWhatCameInIt(t *testing.T) {
	s := open(t)
	q := load.New(s, load.Options{Plain: true}, none)
	if _, err := contest.Burn(t.Context(), q, 120, contest.Bulk{}); err != nil {
		t.Fatal(err)
	}
	if err := q.EnqueueWaiting(t.Context(), 7000); err != nil {
		t.Fatal(err)
	}
	err := contest.Recorded(t.Context(), q, 50, func() error {
		_, err := contest.Burn(t.Context(), q, 50, contest.Bulk{Batch: 20})
		return err
	})
	if err != nil {
		t.Error(err)
	}
	counts, err := s.Counts(t.Context())
	if err != nil || counts[stint.Completed] != 170 || counts[stint.Scheduled] != 7000 {
		t.Errorf("the store counts %v, %v", counts, err)
	}
	waiting, err := s.Jobs(t.Context(), store.Filter{States: []stint.State{stint.Scheduled}, Limit: 2})
	if err != nil || len(waiting) != 2 || !waiting[0].Due.After(time.Now().AddDate(0, 11, 0)) || waiting[0].Due.Equal(waiting[1].Due) {
		t.Errorf("what waits is %+v, %v", waiting, err)
	}
}

// Only jobs with numbers can be told apart.
func TestAJobOfSomebodyElseIsFound(t *testing.T) {
	q := load.New(open(t), load.Options{Engines: 2}, none)
	if err := q.Enqueue(t.Context(), 50, 1); err != nil {
		t.Fatal(err)
	}
	_, err := contest.Burn(t.Context(), q, 50, contest.Bulk{})
	if err == nil || !strings.Contains(err.Error(), "1 jobs ran twice, or were never enqueued") {
		t.Errorf("the error is %v", err)
	}
}

func TestAScheduledJobStartsWhenItIsDue(t *testing.T) {
	q := load.New(open(t), load.Options{}, none)
	times, err := contest.Idle(t.Context(), q, contest.Idly{Rate: 100, Duration: 200 * time.Millisecond, Scheduled: 0.5, Later: q.EnqueueAt})
	if err != nil {
		t.Fatal(err)
	}
	for _, late := range times.Late {
		if late < -time.Millisecond || late > 10*time.Second {
			t.Errorf("a job is %v late", late)
		}
	}
	if len(times.Late) != 10 || len(times.Start) != 10 {
		t.Errorf("of 20 jobs %d were scheduled and %d not", len(times.Late), len(times.Start))
	}
}

func TestAClaimThatFailsIsToldAndGivesBack(t *testing.T) {
	s := &counted{Store: open(t), fails: 5}
	q := load.New(s, load.Options{Plain: true, Engines: 1, OneByOne: true}, none)
	if err := q.Enqueue(t.Context(), 0, 50); err != nil {
		t.Fatal(err)
	}
	stop, err := q.Work(t.Context(), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if s.claims.Load() >= 5 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := stop(); err == nil {
		t.Error("a claim failed, and nothing was told")
	}
	counts, err := s.Counts(t.Context())
	if err != nil || counts[stint.Running] != 0 || counts[stint.Completed] != 4 || counts[stint.Available] != 46 {
		t.Errorf("the store counts %v, %v", counts, err)
	}
	if engines, err := s.Engines(t.Context()); err != nil || len(engines) != 0 {
		t.Errorf("engines were left behind: %v, %v", engines, err)
	}
}
