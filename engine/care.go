package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Hold is what an engine holds of a job that it runs: the entry, and the number drawn for its claim. Who does not
// know the number cannot make it up.
type Hold struct {
	Pos   store.Position
	Nonce store.Nonce
}

// HoldOf returns what the engine of a running handler holds. It reports false for a context that is not a
// handler's.
func HoldOf(ctx context.Context) (Hold, bool) {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return Hold{}, false
	}
	return Hold{a.task.entry.Pos, a.task.claim.ref.Nonce}, true
}

// Caretaker goes on for an engine whose own process does not any more, while those who did its work live
// and can say what became of it: see [Config.Beside]. It claims nothing. The database fences what it does as
// it fences an engine: after a burial its calls fail with [store.ErrBuried].
type Caretaker struct {
	Store  store.Store
	Engine store.EngineID
}

// Ended is how a run that somebody held ended: as a handler that returned this.
type Ended struct {
	Hold
	Began  time.Time // by this process's clock; zero if that is unknown
	Result json.RawMessage
	Err    error
}

// Beat sends a heartbeat that announces what runs, and returns the entries of it that the engine holds. What
// it holds beyond that is returned, uncharged, if rest is true: nobody may begin any of it then, which is
// certain once the engine has not beaten by itself for its time to live.
func (c Caretaker) Beat(ctx context.Context, running []Hold, rest bool) ([]store.Entry, error) {
	held, err := c.held(ctx)
	if err != nil {
		return nil, err
	}
	var runs []store.Position
	for _, h := range running {
		if claim, ok := held[h.Pos]; ok && claim.Nonce == h.Nonce {
			runs = append(runs, h.Pos)
			delete(held, h.Pos)
		}
	}
	// Later than any beat that the engine itself counted.
	if _, err := c.Store.Heartbeat(ctx, c.Engine, store.Heartbeat{Number: time.Now().UnixMilli(), Running: runs}); err != nil {
		return nil, err
	}
	if rest {
		for pos, claim := range held {
			if _, err := c.finish(ctx, claim, pos, func(e *store.Entry, now time.Time) store.Completion {
				return store.Conclude(e, returnedUnstarted, now, 0)
			}); err != nil {
				return nil, err
			}
		}
	}
	return c.Store.Fetch(ctx, runs)
}

// Finish records how a run ended, durably, and reports whether it did: not if the engine does not hold the
// entry any more, or if it was recorded before.
func (c Caretaker) Finish(ctx context.Context, x Ended) (bool, error) {
	held, err := c.held(ctx)
	if err != nil {
		return false, err
	}
	claim, ok := held[x.Pos]
	if !ok || claim.Nonce != x.Nonce {
		return false, nil
	}
	return c.finish(ctx, claim, x.Pos, func(e *store.Entry, now time.Time) store.Completion {
		end := classify(ctx, x.Result, x.Err)
		dropBadResult(&end)
		end.Took = time.Since(x.Began)
		if x.Began.IsZero() {
			end.Took = 0
		}
		done := store.Conclude(e, end, now, random01())
		done.Slot, done.Started = 1, x.Began
		return done
	})
}

func (c Caretaker) finish(ctx context.Context, claim store.ClaimRef, pos store.Position, judge func(*store.Entry, time.Time) store.Completion) (bool, error) {
	entries, err := c.Store.Fetch(ctx, []store.Position{pos})
	if err != nil || len(entries) == 0 {
		return false, err
	}
	var k clock
	k.sample(ctx, c.Store)
	now := time.Now()
	done := judge(&entries[0], k.at(now))
	done.Nonce, done.Ended = claim.Nonce, now
	if done.Started.IsZero() && done.Slot > 0 {
		done.Started = now
	}
	cleanTexts(&done)
	claims := []store.ClaimRef{claim}
	n, err := c.Store.Finish(ctx, c.Engine, claims, []store.Completion{done})
	if errors.Is(err, stint.ErrUnstorable) {
		stripTexts(&done)
		n, err = c.Store.Finish(ctx, c.Engine, claims, []store.Completion{done})
	}
	return n > 0, err
}

// Leave takes the engine out of the roster. What it still holds returns to the front of its lane, uncharged.
func (c Caretaker) Leave(ctx context.Context) error {
	_, err := c.Store.Bury(ctx, store.Burial{Engine: c.Engine, Why: store.WhyLeft}, func(e *store.Entry, _ bool) store.Completion {
		return store.Conclude(e, returnedUnstarted, time.Now(), 0)
	})
	return err
}

// held returns the open entries of the engine, with their claims.
func (c Caretaker) held(ctx context.Context) (map[store.Position]store.ClaimRef, error) {
	claims, err := c.Store.Held(ctx, c.Engine, 0)
	if err != nil {
		return nil, err
	}
	held := map[store.Position]store.ClaimRef{}
	for _, claim := range claims {
		for _, pos := range claim.Positions {
			held[pos] = claim.ClaimRef
		}
	}
	return held, nil
}

// RecordedSteps returns what earlier runs of a running handler's job recorded of its steps, by their names. It
// reads the store only if there was an earlier run, or the job waited before it.
func RecordedSteps(ctx context.Context) (map[string]json.RawMessage, error) {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return nil, ErrNoAttempt
	}
	if int64(a.task.entry.Pos) == int64(a.job.ID) {
		return nil, nil // the entry that the job was enqueued with
	}
	recorded, err := a.Steps.Recorded(ctx)
	if err != nil || len(recorded) == 0 {
		return nil, err
	}
	steps := map[string]json.RawMessage{}
	for _, r := range recorded {
		if r.Result != nil {
			steps[r.Name] = r.Result
		}
	}
	return steps, nil
}
