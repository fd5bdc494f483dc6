package load

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

func TestBurnMeetsHistoryAndWhatWaits(t *testing.T) {
	s := open(t)
	if err := History(t.Context(), s, 120, nil); err != nil {
		t.Fatal(err)
	}
	if err := Waiting(t.Context(), s, 70, nil); err != nil {
		t.Fatal(err)
	}
	around := 0
	r, err := Burn(t.Context(), s, BurnOptions{N: 50, Batch: 20, Around: func(ctx context.Context, run func(context.Context) error) error {
		before, _ := s.Counts(ctx)
		err := run(ctx)
		after, _ := s.Counts(ctx)
		around = int(after[stint.Completed] - before[stint.Completed])
		return err
	}})
	if err != nil || !r.Verified {
		t.Fatalf("got %+v, %v", r, err)
	}
	if around != 50 {
		t.Errorf("%d jobs were enqueued and worked in what is measured, want 50", around)
	}
	counts, err := s.Counts(t.Context())
	if err != nil || counts[stint.Completed] != 170 || counts[stint.Scheduled] != 70 {
		t.Errorf("the store counts %v, %v", counts, err)
	}
	waiting, err := s.Jobs(t.Context(), stint.Filter{States: []stint.State{stint.Scheduled}, Limit: 2})
	if err != nil || len(waiting) != 2 || !waiting[0].Due.After(time.Now().AddDate(0, 11, 0)) || waiting[0].Due.Equal(waiting[1].Due) {
		t.Errorf("what waits is %+v, %v", waiting, err)
	}
}

func TestBurnsAreVerifiedAtTheirEnd(t *testing.T) {
	s := open(t)
	m := &Meter{}
	all, err := Burns(t.Context(), s, BurnOptions{N: 20, Meter: m}, BurnOptions{N: 10, Meter: m, OneByOne: true}, BurnOptions{N: 5, Meter: m})
	if err != nil || m.Started.Load() != 35 || !all[0].Verified || !all[1].Verified || all[0].N != 20 || all[1].N != 10 || !all[1].OneByOne {
		t.Errorf("got %+v, %v", all, err)
	}
	stranger := func(ctx context.Context, run func(context.Context) error) error {
		_, err := stint.NewClient(s).Enqueue(ctx, noop.Job(nil))
		return errors.Join(run(ctx), err)
	}
	all, err = Burns(t.Context(), s, BurnOptions{N: 5}, BurnOptions{N: 5, Around: stranger}, BurnOptions{N: 5})
	if err == nil || all[0].Verified || all[2].Verified || all[2].WorkSeconds == 0 {
		t.Errorf("with a job of somebody else got %+v, %v", all, err)
	}
}

func TestSlotsAreInUseWhileTheyHaveAJob(t *testing.T) {
	r, err := Burn(t.Context(), open(t), BurnOptions{N: 40, Slots: 4, Work: 5 * time.Millisecond})
	if err != nil || r.Utilization <= 0 || r.Utilization > 1 || r.WorkSeconds < 0.05 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// counted counts what single claims bring.
type counted struct {
	stint.Store
	stint.Inspector
	most atomic.Int64
}

func (c *counted) Claim(ctx context.Context, req stint.ClaimRequest) (stint.Claim, error) {
	claim, err := c.Store.Claim(ctx, req)
	raise(&c.most, int64(len(claim.Positions)))
	return claim, err
}

func TestOneByOneClaimsBringOneJobEach(t *testing.T) {
	s := open(t)
	c := &counted{Store: s, Inspector: s}
	var m Meter
	opened, closed := 0, 0
	r, err := Burn(t.Context(), c, BurnOptions{N: 100, Engines: 3, OneByOne: true, Meter: &m, Open: func(context.Context) (stint.Store, func(), error) {
		opened++
		return c, func() { closed++ }, nil
	}})
	if err != nil || !r.Verified || !r.OneByOne || m.Started.Load() != 100 {
		t.Fatalf("got %+v, %v", r, err)
	}
	if c.most.Load() != 1 {
		t.Errorf("a claim brought %d jobs", c.most.Load())
	}
	if opened != 2 || closed != 2 {
		t.Errorf("of three engines %d opened a store of their own and %d closed it, want 2", opened, closed)
	}
	if engines, err := s.Engines(t.Context()); err != nil || len(engines) != 0 {
		t.Errorf("engines were left behind: %v, %v", engines, err)
	}
}

func TestOneByOneEndsWithItsContextAndGivesBack(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	var m Meter
	stop := &stopping{Store: s, stop: cancel}
	if _, err := Burn(ctx, stop, BurnOptions{N: 50, Engines: 2, OneByOne: true, Meter: &m}); err == nil || !strings.Contains(err.Error(), "work") {
		t.Errorf("got %v", err)
	}
	if engines, err := s.Engines(t.Context()); err != nil || len(engines) != 0 {
		t.Errorf("engines were left behind: %v, %v", engines, err)
	}
	counts, err := s.Counts(t.Context())
	if err != nil || counts[stint.Running] != 0 || counts[stint.Available]+counts[stint.Completed] != 50 {
		t.Errorf("the store counts %v, %v", counts, err)
	}
}

// stopping ends everything with the fifth claim.
type stopping struct {
	stint.Store
	claims atomic.Int64
	stop   func()
}

func (s *stopping) Claim(ctx context.Context, req stint.ClaimRequest) (stint.Claim, error) {
	if s.claims.Add(1) == 5 {
		defer s.stop()
	}
	return s.Store.Claim(ctx, req)
}
