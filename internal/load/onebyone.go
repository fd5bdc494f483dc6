package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stint-go/stint"
)

// workOneByOne works jobs off by claims of one job each. An engine with jobs
// that take no time would claim ahead, so these engines are made of the store's
// roles alone: each has one goroutine that claims, and one that records what
// was claimed, in batches of what gathered meanwhile.
func workOneByOne(ctx context.Context, store stint.Store, o BurnOptions, meter *Meter) error {
	var left atomic.Int64 // jobs that nobody has claimed
	left.Store(int64(o.N))
	more := func() bool { return left.Load() > 0 }
	work := func(*stint.Entry) error {
		left.Add(-1)
		meter.Started.Add(1)
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range o.Engines {
		own := store
		if i > 0 && o.Open != nil {
			opened, closeStore, err := o.Open(ctx)
			if err != nil {
				g.Go(func() error { return err }) // the others stop
				break
			}
			defer closeStore()
			own = opened
		}
		g.Go(func() error { return newClaimant(own, noop, more, work).run(ctx, i+1) })
	}
	return g.Wait()
}

// claimant is an engine that takes one job at a time.
type claimant struct {
	store stint.Store
	token stint.Token
	kind  stint.Declaration
	more  func() bool              // whether to claim another one
	work  func(*stint.Entry) error // does the job
}

func newClaimant(store stint.Store, kind stint.Declaration, more func() bool, work func(*stint.Entry) error) *claimant {
	return &claimant{store: store, token: stint.Token(rand.Int64()), kind: kind, more: more, work: work}
}

// claimed is one job that was taken and is done.
type claimed struct {
	claim stint.ClaimRef
	done  stint.Execution
}

// patientEngine is a time to live that spares an engine its beats: nobody else
// is there to bury it.
const patientEngine = time.Hour

// most is how many outcomes are recorded at once.
const most = 5000

func (c *claimant) run(ctx context.Context, number int) (err error) {
	info := stint.EngineInfo{
		Token: c.token, Instance: fmt.Sprintf("load-%d", number), Host: "load", PID: os.Getpid(),
		Kinds: []string{c.kind.Name}, Slots: 1, TimeToLive: patientEngine,
	}
	if err := c.store.Join(ctx, info, []stint.Declaration{c.kind}); err != nil {
		return err
	}
	defer func() {
		_, left := c.store.Bury(context.WithoutCancel(ctx), stint.Burial{Engine: c.token, Why: "left"}, giveBack)
		err = errors.Join(err, left)
	}()
	ended := make(chan claimed, most)
	g, claiming := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(ended)
		return c.claim(claiming, ended)
	})
	// A claim that fails does not keep what was done from being recorded.
	g.Go(func() error { return c.record(ctx, ended) })
	return g.Wait()
}

// claim takes one job after the other, as long as there is to be more.
func (c *claimant) claim(ctx context.Context, ended chan<- claimed) error {
	lane := stint.LaneOf(stint.DefaultQueue, 0, stint.PartNormal, "").ID
	for serial := int64(1); c.more(); serial++ {
		got, err := c.store.Claim(ctx, stint.ClaimRequest{
			Engine: c.token, Serial: serial, Nonce: stint.Nonce(rand.Int64()), Lane: lane, Max: 1, Wait: true,
		})
		if err != nil {
			return err
		}
		for _, e := range got.Entries {
			if err := c.work(&e); err != nil {
				return err
			}
			now := time.Now()
			x := stint.Execution{
				Pos: e.Pos, Job: e.ID, Nonce: got.Nonce, Attempt: e.Attempt, Slot: 1, Started: now, Ended: now,
				Outcome: stint.OutcomeCompleted, Final: true,
			}
			select {
			case ended <- claimed{got.ClaimRef, x}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// record records what ended while the batch before was being recorded.
func (c *claimant) record(ctx context.Context, ended <-chan claimed) error {
	for first := range ended {
		claims, done := []stint.ClaimRef{first.claim}, []stint.Execution{first.done}
		for range min(len(ended), most-1) {
			next := <-ended
			claims, done = append(claims, next.claim), append(done, next.done)
		}
		if _, err := c.store.Finish(ctx, c.token, claims, done); err != nil {
			return err
		}
	}
	return nil
}

// giveBack returns what an engine that failed had claimed.
func giveBack(e *stint.Entry, _ bool) stint.Execution {
	return stint.Conclude(e, stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront}, time.Now(), 0)
}
