package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// An engine with jobs that take no time would claim ahead. So what claims one job
// at a time is made of the store's roles alone: one goroutine claims, and one
// records what was claimed, in batches of what gathered meanwhile.

// claimant is an engine that takes one job at a time.
type claimant struct {
	store store.Store
	token store.EngineID
	kind  stint.KindInfo
	more  func() bool              // whether to claim another one
	work  func(*store.Entry) error // does the job
}

func newClaimant(db store.Store, kind stint.KindInfo, more func() bool, work func(*store.Entry) error) *claimant {
	return &claimant{store: db, token: store.EngineID(rand.Int64()), kind: kind, more: more, work: work}
}

// claimed is one job that was taken and is done.
type claimed struct {
	claim store.ClaimRef
	done  store.Completion
}

// patientEngine is a time to live that spares an engine its beats: nobody else
// is there to bury it.
const patientEngine = time.Hour

// most is how many outcomes are recorded at once.
const most = 5000

func (c *claimant) run(ctx context.Context, number int) (err error) {
	info := store.EngineInfo{
		Token: c.token, Instance: fmt.Sprintf("load-%d", number), Host: "load", PID: os.Getpid(),
		Kinds: []string{c.kind.Name}, Slots: 1, TimeToLive: patientEngine,
	}
	if err := c.store.Join(ctx, info, []stint.KindInfo{c.kind}); err != nil {
		return err
	}
	defer func() {
		_, left := c.store.Bury(context.WithoutCancel(ctx), store.Burial{Engine: c.token, Why: "left"}, giveBack)
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
	lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID
	for serial := int64(1); c.more(); serial++ {
		got, err := c.store.Claim(ctx, store.ClaimRequest{
			Engine: c.token, Serial: serial, Nonce: store.Nonce(rand.Int64()), Lane: lane, Max: 1, Wait: true,
		})
		if err != nil {
			return err
		}
		for _, e := range got.Entries {
			if err := c.work(&e); err != nil {
				return err
			}
			now := time.Now()
			x := store.Completion{
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
		claims, done := []store.ClaimRef{first.claim}, []store.Completion{first.done}
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
func giveBack(e *store.Entry, _ bool) store.Completion {
	return store.Conclude(e, store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront}, time.Now(), 0)
}
