package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// Worker is an engine reduced to what it says to a store: it joins, claims,
// finishes and leaves when told to, and remembers which claim took what.
//
// The methods that return no error end the test at one, so they belong to the
// test's goroutine. A Worker is used by one goroutine at a time.
type Worker struct {
	Info  store.EngineInfo
	Store store.Store

	t      testing.TB
	serial int64
	taken  map[store.Position]store.ClaimRef
}

// Join enters a new engine for the kinds into the roster.
func Join(t testing.TB, s store.Store, kinds ...string) *Worker {
	t.Helper()
	w := NewWorker(t, s, kinds...)
	if err := w.TryJoin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// NewWorker makes an engine that has not joined yet.
func NewWorker(t testing.TB, s store.Store, kinds ...string) *Worker {
	token := store.EngineID(rand.Int64())
	return &Worker{
		Store: s, t: t, taken: map[store.Position]store.ClaimRef{},
		Info: store.EngineInfo{
			Token: token, Instance: fmt.Sprintf("worker-%x", uint64(token)), Host: "host.example",
			BootID: "boot", PID: 4711, PIDStarted: 815, Version: "v0.0.0-test",
			Queues: []string{"*"}, Kinds: kinds, Slots: 4, TimeToLive: 6 * time.Second,
		},
	}
}

// TryJoin enters the engine.
func (w *Worker) TryJoin(ctx context.Context) error {
	var kinds []stint.KindInfo
	for _, k := range w.Info.Kinds {
		kinds = append(kinds, stint.KindInfo{Name: k})
	}
	return w.Store.Join(ctx, w.Info, kinds)
}

// TryClaim claims, filling in who asks. Entries that were taken but not read
// are fetched.
func (w *Worker) TryClaim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	w.serial++
	req.Engine, req.Serial, req.Nonce = w.Info.Token, w.serial, store.Nonce(rand.Int64())
	c, err := w.Store.Claim(ctx, req)
	if err != nil && len(c.Positions) > 0 {
		c.Entries, err = w.Store.Fetch(ctx, c.Positions)
	}
	for _, pos := range c.Positions {
		w.taken[pos] = c.ClaimRef
	}
	if err == nil && len(c.Entries) != len(c.Positions) {
		err = fmt.Errorf("claim %d of lane %d has %d positions and %d entries", c.N, c.Lane, len(c.Positions), len(c.Entries))
	}
	return c, err
}

// TryClaimLanes claims from several lanes, filling in who asks. Entries that were
// taken but not read are fetched.
func (w *Worker) TryClaimLanes(ctx context.Context, limit int, lanes ...store.LaneID) ([]store.Claim, error) {
	heads := make([]store.LaneHead, len(lanes))
	for i, lane := range lanes {
		heads[i].Lane = lane
	}
	req := store.ClaimRequest{Engine: w.Info.Token, Serial: w.serial + 1, Nonce: store.Nonce(rand.Int64()), Max: limit}
	w.serial += int64(len(lanes))
	all, err := w.Store.ClaimLanes(ctx, req, heads)
	var at []store.Position
	for _, c := range all {
		at = append(at, c.Positions...)
		for _, pos := range c.Positions {
			w.taken[pos] = c.ClaimRef
		}
	}
	if err != nil && len(at) > 0 {
		var entries []store.Entry
		entries, err = w.Store.Fetch(ctx, at)
		store.DealEntries(all, entries)
	}
	for _, c := range all {
		if err == nil && len(c.Entries) != len(c.Positions) {
			err = fmt.Errorf("claim %d of lane %d has %d positions and %d entries", c.N, c.Lane, len(c.Positions), len(c.Entries))
		}
	}
	return all, err
}

// Claim takes up to limit entries of a lane.
func (w *Worker) Claim(lane store.LaneID, limit int) []store.Entry {
	w.t.Helper()
	c, err := w.TryClaim(w.t.Context(), store.ClaimRequest{Lane: lane, Max: limit, Wait: true})
	if err != nil {
		w.t.Fatalf("claim: %v", err)
	}
	return c.Entries
}

// ClaimAll looks and claims until there is nothing left to take.
func (w *Worker) ClaimAll() []store.Entry {
	w.t.Helper()
	all, err := w.TryClaimAll(w.t.Context(), 1000)
	if err != nil {
		w.t.Fatalf("claim everything: %v", err)
	}
	return all
}

// One claims everything there is, which must be one entry.
func (w *Worker) One() store.Entry {
	w.t.Helper()
	all := w.ClaimAll()
	if len(all) != 1 {
		w.t.Fatalf("%d entries were claimed, want one", len(all))
	}
	return all[0]
}

// TryClaimAll looks and claims up to batch at a time until there is nothing
// left to take. A lane that stays in sight although nothing comes of it is an
// error.
func (w *Worker) TryClaimAll(ctx context.Context, batch int) ([]store.Entry, error) {
	var all []store.Entry
	for barren := 0; barren < 10; barren++ {
		sights, err := w.Store.Look(ctx, store.LaneHints{})
		if err != nil {
			return all, err
		}
		work := 0
		for _, sight := range sights {
			c, err := w.TryClaim(ctx, store.ClaimRequest{Lane: sight.Lane, Max: batch, Wait: true, Settle: sight.Settle})
			if err != nil {
				return all, err
			}
			if len(c.Entries) > 0 {
				barren = 0
			}
			if len(c.Entries) > 0 || !sight.Settle {
				work++
			}
			all = append(all, c.Entries...)
		}
		if work == 0 {
			return all, nil
		}
	}
	return all, errors.New("a lane stays in sight, and nothing comes of claiming it")
}

// Conclude makes the execution of an entry that this worker claimed and that
// ended just now.
func (w *Worker) Conclude(e store.Entry, end store.Result) store.Completion {
	now := time.Now()
	x := store.Conclude(&e, end, now, 0.5)
	x.Nonce, x.Slot, x.Started, x.Ended = w.taken[e.Pos].Nonce, 1, now, now
	return x
}

// concludeAll is the same for entries that ended alike.
func (w *Worker) concludeAll(end store.Result, entries ...store.Entry) []store.Completion {
	done := make([]store.Completion, len(entries))
	for i, e := range entries {
		done[i] = w.Conclude(e, end)
	}
	return done
}

// ClaimOf is the claim by which it took an entry.
func (w *Worker) ClaimOf(pos store.Position) store.ClaimRef { return w.taken[pos] }

// TryFinish records executions under the claims that took their entries.
func (w *Worker) TryFinish(ctx context.Context, done ...store.Completion) (int, error) {
	var refs []store.ClaimRef
	seen := map[store.Nonce]bool{}
	for _, x := range done {
		if ref := w.taken[x.Pos]; !seen[ref.Nonce] {
			seen[ref.Nonce] = true
			refs = append(refs, ref)
		}
	}
	return w.Store.Finish(ctx, w.Info.Token, refs, done)
}

// Finish concludes entries with one ending and records them.
func (w *Worker) Finish(end store.Result, entries ...store.Entry) {
	w.t.Helper()
	n, err := w.TryFinish(w.t.Context(), w.concludeAll(end, entries...)...)
	if err != nil {
		w.t.Fatalf("finish %d entries: %v", len(entries), err)
	}
	if n != len(entries) {
		w.t.Fatalf("finishing %d entries recorded %d", len(entries), n)
	}
}

// Complete records entries as completed.
func (w *Worker) Complete(entries ...store.Entry) {
	w.t.Helper()
	w.Finish(store.Result{Outcome: stint.OutcomeCompleted}, entries...)
}

// Heartbeat announces what is running.
func (w *Worker) Heartbeat(running ...store.Position) {
	w.t.Helper()
	if _, err := w.Store.Heartbeat(w.t.Context(), w.Info.Token, store.Heartbeat{Running: running}); err != nil {
		w.t.Fatalf("beat: %v", err)
	}
}

// Release leaves it to the beats whether the engine lives, as the end of its
// process would not: where the store holds its place, nobody could bury it.
func (w *Worker) Release() {
	if h, ok := w.Store.(store.LivenessLocker); ok {
		h.Release(w.Info.Token)
	}
}

// Leave takes the engine out of the roster and hands back what it holds.
func (w *Worker) Leave() int {
	w.t.Helper()
	n, err := Bury(w.t.Context(), w.Store, store.Burial{Engine: w.Info.Token, Why: "left"}, Judge)
	if err != nil {
		w.t.Fatalf("leave: %v", err)
	}
	return n
}

// Bury buries an engine, and tries again while the burial is blocked by a
// write of the engine or by another burier.
func Bury(ctx context.Context, r store.Roster, b store.Burial, judge func(*store.Entry, bool) store.Completion) (int, error) {
	for {
		n, err := r.Bury(ctx, b, judge)
		if !errors.Is(err, store.ErrBurialBlocked) || ctx.Err() != nil {
			return n, err
		}
		time.Sleep(time.Millisecond)
	}
}

// Judge concludes the unfinished entries of a dead engine as engines do: lost
// when it had begun, returned with a suspicion otherwise; both to the front.
func Judge(e *store.Entry, begun bool) store.Completion {
	end := store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront, Suspect: e.Suspect + 1}
	if begun {
		end = store.Result{Outcome: stint.OutcomeLost, Err: retry.ErrLost}
	}
	now := time.Now()
	x := store.Conclude(e, end, now, 0.5)
	x.Started, x.Ended = now, now
	return x
}

// soon lets the next attempt begin at once.
func soon(x *store.Completion) {
	if x.Next != nil {
		x.Next.Delay = 0
	}
}

// record records executions, and checks how many of them were new.
func (w *Worker) record(want int, done ...store.Completion) {
	w.t.Helper()
	n, err := w.TryFinish(w.t.Context(), done...)
	expect(w.t, err == nil && n == want, "of %d executions %d were recorded, error %v; want %d", len(done), n, err, want)
}
