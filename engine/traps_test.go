package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// These are ways in which engines like this one lost jobs, or stood still,
// while every call to the store did what it promises. Each is played by a store
// that does to the engine what a network or a database does, in fake time. The
// package internal/proof/mutate takes the mends out, and each must be missed here.

// bare is a store that cannot ring and that vouches for nobody: polls and
// beats decide.
type bare struct {
	store.Store
	sqlite *sqlite.Store
}

func (b bare) Join(ctx context.Context, e store.EngineInfo, kinds []stint.KindInfo) error {
	err := b.Store.Join(ctx, e, kinds)
	b.sqlite.Release(e.Token)
	return err
}

// passes lets time go by, and everything that happens meanwhile.
func passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// isNow checks the state of a job.
func isNow(t *testing.T, s *sqlite.Store, id stint.ID, want stint.State) *stint.JobInfo {
	t.Helper()
	job, err := s.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if job.State != want {
		t.Errorf("job %d is %s (%s) after %d executions, want %s", id, job.State, job.Reason, len(job.Attempts), want)
	}
	return job
}

// lateClaim is a store whose first claim reaches the server long after the
// engine gave up waiting for it.
type lateClaim struct {
	bare
	asked, made atomic.Bool
}

func (l *lateClaim) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	switch {
	case l.asked.CompareAndSwap(false, true):
		go func() {
			time.Sleep(20 * time.Second)
			if c, err := l.Store.Claim(context.WithoutCancel(ctx), req); err != nil || len(c.Positions) != 1 {
				panic("the late claim took nothing")
			}
			l.made.Store(true)
		}()
		return store.Claim{}, errLost
	case !l.made.Load():
		return store.Claim{}, store.ErrLaneBusy
	}
	return l.Store.Claim(ctx, req)
}

func TestAClaimThatCommitsLongAfterItsAnswerWasLostIsHandedBack(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		id := enqueue(t, s, "work", `{}`)
		stop := start(t, &lateClaim{bare: bare{s, s}}, mux, engine.Config{})
		passes(25 * time.Second)
		if job := isNow(t, s, id, stint.Completed); len(job.Attempts) != 2 || job.Attempts[0].Outcome != stint.OutcomeReturned {
			t.Errorf("its executions are %+v", job.Attempts)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// slow is a store whose answers to claims take longer than it takes to the
// next beat.
type slow struct{ bare }

func (l *slow) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	c, err := l.Store.Claim(ctx, req)
	time.Sleep(2 * time.Second)
	return c, err
}

func TestAClaimWhoseAnswerIsOnItsWayIsNotHandedBack(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		id := enqueue(t, s, "work", `{}`)
		stop := start(t, &slow{bare{s, s}}, mux, engine.Config{TimeToLive: 5 * time.Second})
		passes(10 * time.Second)
		if job := isNow(t, s, id, stint.Completed); len(job.Attempts) != 1 {
			t.Errorf("its executions are %+v", job.Attempts)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// far is a store in which it takes long to join, and nothing else.
type far struct{ bare }

func (f *far) Join(ctx context.Context, e store.EngineInfo, kinds []stint.KindInfo) error {
	err := f.bare.Join(ctx, e, kinds)
	time.Sleep(e.TimeToLive * 5 / 8)
	return err
}

func TestAnEngineWhoseJoiningTookLongKeepsItsPlace(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		joined := 0
		stop := start(t, &far{bare{s, s}}, mux, engine.Config{OnEvent: func(ev event.Event) {
			if ev.Type == event.EventJoined {
				joined++
			}
		}})
		passes(time.Minute)
		if joined != 1 {
			t.Errorf("it joined %d times", joined)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// forgetful is a store that lost the claims of its first engine.
type forgetful struct {
	bare
	first atomic.Int64
}

func (f *forgetful) Finish(ctx context.Context, token store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	if f.first.CompareAndSwap(0, int64(token)); f.first.Load() == int64(token) {
		return 0, store.ErrClaimGone
	}
	return f.Store.Finish(ctx, token, claims, done)
}

func TestAnEngineWhoseClaimIsGoneJoinsAnew(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		id := enqueue(t, s, "work", `{}`)
		stop := start(t, &forgetful{bare: bare{s, s}}, mux, engine.Config{})
		passes(time.Minute)
		isNow(t, s, id, stint.Completed)
		if roster, err := s.Engines(t.Context()); err != nil || len(roster) != 1 {
			t.Errorf("the roster is %+v, error %v", roster, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// neighbour is a store whose roster has another engine, which beats as told.
// What comes of it is noted as time since the beginning.
type neighbour struct {
	bare
	began           time.Time
	beat            func(at time.Duration) (time.Duration, error) // when it beat last; or the roster cannot be read
	blocked         bool                                          // its burial, until it is evicted
	buried, evicted []time.Duration                               // belong to the watching goroutine while the engine runs
}

const (
	neighbourToken = 42
	neighbourLives = 6 * time.Second
)

func (n *neighbour) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	list, err := n.Store.Engines(ctx)
	if err != nil {
		return nil, err
	}
	beat, err := n.beat(time.Since(n.began))
	if len(n.buried) == 0 {
		list = append(list, store.EngineInfo{
			Token: neighbourToken, Instance: "neighbour", TimeToLive: neighbourLives, Beat: n.began.Add(beat),
		})
	}
	return list, err
}

func (n *neighbour) Bury(ctx context.Context, b store.Burial, judge func(e *store.Entry, begun bool) store.Completion) (int, error) {
	switch at := time.Since(n.began); {
	case b.Engine != neighbourToken:
		return n.Store.Bury(ctx, b, judge)
	case n.blocked && len(n.evicted) == 0:
		return 0, store.ErrBurialBlocked
	default:
		n.buried = append(n.buried, at)
		return 0, nil
	}
}

func (n *neighbour) Evict(context.Context, store.EngineID) (int, error) {
	n.evicted = append(n.evicted, time.Since(n.began))
	return 1, nil
}

// beating is a life of beats until the end.
func beating(end time.Duration) func(time.Duration) (time.Duration, error) {
	return func(at time.Duration) (time.Duration, error) {
		return min(at, end).Truncate(neighbourLives / 4), nil
	}
}

func TestAnEngineIsBuriedWhenItsBeatWasSeenUnchangedForATimeToLive(t *testing.T) {
	const never, end = 0, 12 * time.Second
	for _, c := range []struct {
		name            string
		beat            func(at time.Duration) (time.Duration, error)
		blocked         bool
		buried, evicted time.Duration // not before, and a few looks later at the latest
	}{
		{"and not while it beats", beating(time.Hour), false, never, never},
		{"so soon after it stopped", beating(end), false, end + neighbourLives, never},
		{"and not because its clock or ours was put forward", func(at time.Duration) (time.Duration, error) {
			beat, err := beating(time.Hour)(at)
			return beat - time.Hour, err
		}, false, never, never},
		{"and not because everybody was cut off for a while", func(at time.Duration) (time.Duration, error) {
			switch beat, err := beating(time.Hour)(at); {
			case at < 10*time.Second:
				return beat, err
			case at < 40*time.Second:
				return 0, errors.New("the database is away")
			case at < 43*time.Second:
				return 9 * time.Second, nil // it has not come back yet
			default:
				return beat, err
			}
		}, false, never, never},
		{"and what blocks the burial for another one is ended", beating(end), true, end + 2*neighbourLives, end + 2*neighbourLives},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
				n := &neighbour{bare: bare{s, s}, began: time.Now(), beat: c.beat, blocked: c.blocked}
				stop := start(t, n, stint.NewMux(), engine.Config{})
				passes(time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				for what, x := range map[string]struct {
					want time.Duration
					got  []time.Duration
				}{"buried": {c.buried, n.buried}, "evicted": {c.evicted, n.evicted}} {
					switch {
					case x.want == never && len(x.got) > 0:
						t.Errorf("it was %s after %v", what, x.got)
					case x.want != never && (len(x.got) != 1 || x.got[0] < x.want || x.got[0] > x.want+5*time.Second):
						t.Errorf("it was %s after %v, want once after %v", what, x.got, x.want)
					}
				}
			})
		})
	}
}

// doubtful is a store to which a handler's commit got lost on its way: that
// transaction stands open, and whoever records the same entry waits for it.
type doubtful struct {
	bare
	entry atomic.Int64
	ended chan struct{} // closed when the server gave the transaction up
}

func (d *doubtful) FinishTx(_ context.Context, _ stint.Tx, _ store.EngineID, _ store.ClaimRef, x store.Completion) error {
	d.entry.Store(int64(x.Pos))
	return stint.ErrCommitUnknown
}

func (d *doubtful) Finish(ctx context.Context, token store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	if slices.ContainsFunc(done, func(x store.Completion) bool { return int64(x.Pos) == d.entry.Load() }) {
		select {
		case <-d.ended:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return d.Store.Finish(ctx, token, claims, done)
}

func TestAnEntryWhoseCommitIsInDoubtHoldsUpNoOther(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "doubtful", func(ctx context.Context, _ *stint.Job) error { return engine.CompleteTx(ctx, stint.Tx{}, nil) })
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		d := &doubtful{bare: bare{s, s}, ended: make(chan struct{})}
		first := enqueue(t, s, "doubtful", `{}`)
		ids := []stint.ID{enqueue(t, s, "work", `{}`)}
		stop := start(t, d, mux, engine.Config{})
		passes(2 * time.Second)
		ids = append(ids, enqueue(t, s, "work", `{}`))
		passes(3 * time.Second)
		for _, id := range ids {
			isNow(t, s, id, stint.Completed)
		}
		isNow(t, s, first, stint.Running)
		close(d.ended)
		// What the handler returned counts then, and that was an error.
		passes(10 * time.Second)
		isNow(t, s, first, stint.Retrying)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// refusing is a store that refuses a value that nobody knew to be a poison,
// and takes its time for the first batch, so that the next one is large.
type refusing struct {
	bare
	batches atomic.Int32
}

func (r *refusing) Finish(ctx context.Context, token store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	if r.batches.Add(1) == 1 {
		time.Sleep(time.Second)
	}
	for _, x := range done {
		if string(x.Result) == `"poison"` {
			return 0, stint.ErrUnstorable
		}
	}
	return r.Store.Finish(ctx, token, claims, done)
}

func TestAnOutcomeThatTheDatabaseRefusesCountsWithoutItsWordsAndHoldsUpNoOther(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		mux.Add(stint.KindInfo{Name: "echo"}, func(_ context.Context, job *stint.Job) (json.RawMessage, error) {
			return json.RawMessage(job.Args), nil
		})
		ids := []stint.ID{enqueue(t, s, "echo", `"food"`)}
		stop := start(t, &refusing{bare: bare{s, s}}, mux, engine.Config{Slots: 20})
		passes(500 * time.Millisecond)
		for i := range 9 {
			args := `"food"`
			if i == 6 {
				args = `"poison"`
			}
			ids = append(ids, enqueue(t, s, "echo", args))
		}
		passes(10 * time.Second)
		for i, id := range ids {
			job := isNow(t, s, id, stint.Completed)
			if len(job.Attempts) != 1 {
				t.Fatalf("job %d has %d executions", id, len(job.Attempts))
			}
			x := job.Attempts[0]
			if poisoned := i == 7; poisoned && (x.Result != nil || x.Reason == "") || !poisoned && string(x.Result) != `"food"` {
				t.Errorf("job %d is kept with the result %s and the reason %q", id, x.Result, x.Reason)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// shaky is a store of which some batches do not arrive, and of others the
// answer does not.
type shaky struct {
	bare
	batches atomic.Int32
}

func (k *shaky) Finish(ctx context.Context, token store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	switch k.batches.Add(1) {
	case 1, 2:
		return 0, errLost
	case 3, 4:
		_, err := k.Store.Finish(ctx, token, claims, done)
		return 0, errors.Join(errLost, err)
	}
	return k.Store.Finish(ctx, token, claims, done)
}

func TestABatchOfUnknownFateIsRepeatedUntilItIsKnown(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return stint.Snooze(time.Hour) })
		id := enqueue(t, s, "work", `{}`)
		k := &shaky{bare: bare{s, s}}
		stop := start(t, k, mux, engine.Config{})
		passes(30 * time.Second)
		if job := isNow(t, s, id, stint.Scheduled); len(job.Attempts) != 1 {
			t.Errorf("it has %d executions", len(job.Attempts))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := k.batches.Load(); n != 5 {
			t.Errorf("the batch was sent %d times, want 5", n)
		}
	})
}

// between is a store in which something is enqueued when a look has seen that
// there is nothing, and the engine does not sleep yet.
type between struct {
	bare
	ring chan func(store.News)
	then atomic.Pointer[func()]
}

func (b *between) Listen(ctx context.Context, ring func(store.News)) error {
	ring(store.News{})
	b.ring <- ring
	<-ctx.Done()
	return nil
}

func (b *between) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	sights, err := b.Store.Look(ctx, known)
	if then := b.then.Swap(nil); then != nil {
		(*then)()
	}
	return sights, err
}

func TestARingBetweenALookAndTheSleepIsNotLost(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		b := &between{bare: bare{s, s}, ring: make(chan func(store.News), 1)}
		stop := start(t, b, mux, engine.Config{Poll: 30 * time.Minute})
		passes(5 * time.Second)
		ring := <-b.ring
		var id stint.ID
		b.then.Store(new(func() {
			id = enqueue(t, s, "work", `{}`)
			ring(store.News{})
		}))
		ring(store.News{})
		passes(time.Second)
		isNow(t, s, id, stint.Completed)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
