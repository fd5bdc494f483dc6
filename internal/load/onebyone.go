package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
)

// workOneByOne works jobs off by claims of one job each. An engine with jobs
// that take no time would claim ahead, so these engines are made of the store's
// roles alone: each has one goroutine that claims, and one that records what
// was claimed, in batches of what gathered meanwhile.
func workOneByOne(ctx context.Context, store stint.Store, o BurnOptions, meter *Meter) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var left atomic.Int64 // jobs that nobody has claimed
	left.Store(int64(o.N))
	for i := range o.Engines {
		own := store
		if i > 0 && o.Open != nil {
			opened, closeStore, err := o.Open(ctx)
			if err != nil {
				cancel(err)
				break
			}
			defer closeStore()
			own = opened
		}
		wg.Go(func() {
			c := &claimant{store: own, token: stint.Token(rand.Int64()), left: &left, meter: meter}
			if err := c.run(ctx, i+1); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// claimant is an engine that takes one job at a time.
type claimant struct {
	store stint.Store
	token stint.Token
	left  *atomic.Int64
	meter *Meter
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
		Kinds: []string{noop.Name}, Slots: 1, TimeToLive: patientEngine,
	}
	if err := c.store.Join(ctx, info, []stint.Declaration{noop}); err != nil {
		return err
	}
	defer func() {
		_, left := c.store.Bury(context.WithoutCancel(ctx), stint.Burial{Engine: c.token, Why: "left"}, giveBack)
		err = errors.Join(err, left)
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan claimed, most)
	recorded := make(chan error, 1)
	go func() {
		recorded <- c.record(ctx, ended)
		cancel() // nobody takes what is claimed from here on
	}()
	claiming := c.claim(ctx, ended)
	close(ended)
	if recording := <-recorded; recording != nil {
		return recording
	}
	return claiming
}

// claim takes one job after the other, until none is left.
func (c *claimant) claim(ctx context.Context, ended chan<- claimed) error {
	lane := stint.LaneOf(stint.DefaultQueue, 0, stint.PartNormal, "").ID
	for serial := int64(1); c.left.Load() > 0; serial++ {
		got, err := c.store.Claim(ctx, stint.ClaimRequest{
			Engine: c.token, Serial: serial, Nonce: stint.Nonce(rand.Int64()), Lane: lane, Max: 1, Wait: true,
		})
		if err != nil {
			return err
		}
		for _, e := range got.Entries {
			c.left.Add(-1)
			c.meter.Started.Add(1)
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
