package engine_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// endless is a store in which an engine has claimed more than anybody can read.
type endless struct {
	anyStore
	engine store.EngineID
}

func (f endless) Held(ctx context.Context, token store.EngineID, serial int64, known ...int64) ([]store.Claim, error) {
	if token == f.engine {
		return nil, errors.New("it takes too long")
	}
	return f.anyStore.Held(ctx, token, serial, known...)
}

func TestAnEngineIsBuriedHoweverMuchItHasClaimed(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		dead := storetest.Join(t, s, "work")
		dead.Release()
		id := enqueue(t, s, "work", `{}`)
		dead.One()
		start(t, endless{s, dead.Info.Token}, mux, engine.Config{TimeToLive: time.Second})
		until(t, s, id, stint.Completed)
	})
}

// questions is a store that notes from which serial number on engines ask what they
// hold.
type questions struct {
	anyStore
	lowest atomic.Int64 // of the beats
	from   atomic.Int64 // of the last question
}

func (f *questions) Heartbeat(ctx context.Context, token store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	f.lowest.Store(b.Low)
	return f.anyStore.Heartbeat(ctx, token, b)
}

func (f *questions) Held(ctx context.Context, token store.EngineID, serial int64, known ...int64) ([]store.Claim, error) {
	f.from.Store(serial)
	return f.anyStore.Held(ctx, token, serial, known...)
}

// Beside one long job any number of claims may be made.
func TestAClaimIsComparedWithTheStoreOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		f := &questions{anyStore: s}
		mux := stint.NewMux()
		goOn := make(chan struct{})
		handle(mux, "long", func(ctx context.Context, _ *stint.Job) error {
			select {
			case <-goOn:
				return nil
			case <-ctx.Done(): // on a busy machine the engine may have to join again
				return ctx.Err()
			}
		})
		handle(mux, "quick", func(context.Context, *stint.Job) error { return nil })
		long := enqueue(t, s, "long", `{}`)
		start(t, f, mux, engine.Config{Slots: 2, TimeToLive: 2 * time.Second})
		until(t, s, long, stint.Running)
		const n = 50
		for range n {
			until(t, s, enqueue(t, s, "quick", `{}`), stint.Completed)
		}
		eventually(t, "it asks about its newest claims only", func() bool {
			until(t, s, enqueue(t, s, "quick", `{}`), stint.Completed)
			return f.from.Load() > n
		})
		if low := f.lowest.Load(); low > n {
			t.Errorf("it promised that nothing below %d is open", low)
		}
		close(goOn)
	})
}

// unanswered is a store that does not answer the first claim, though it is made, and
// reads no entries for a while.
type unanswered struct {
	store.Store
	once  sync.Once
	until time.Time
}

func (f *unanswered) Claim(ctx context.Context, r store.ClaimRequest) (c store.Claim, err error) {
	c, err = f.Store.Claim(ctx, r)
	if len(c.Positions) > 0 {
		f.once.Do(func() { c, err = store.Claim{}, errors.New("no answer") })
	}
	return c, err
}

func (f *unanswered) Fetch(ctx context.Context, at []store.Position) ([]store.Entry, error) {
	if time.Now().Before(f.until) {
		return nil, errors.New("not now")
	}
	return f.Store.Fetch(ctx, at)
}

// Far longer than a claim without an answer is waited for.
func TestAClaimThatCannotBeHandedBackForLongIsNotForgotten(t *testing.T) {
	inBubble(t, 24*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		id := enqueue(t, s, "work", `{}`)
		stop := start(t, &unanswered{Store: s, until: time.Now().Add(10 * time.Minute)}, mux, engine.Config{})
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Completed {
			t.Errorf("it is %v, %v", job.State, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A claim of many is handed back in parts: their contents may be long.
func TestALargeClaimWithoutAnAnswerIsHandedBackWhole(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		var ids []stint.ID
		for range 35 {
			ids = append(ids, enqueue(t, s, "work", `{}`))
		}
		start(t, &unanswered{Store: s}, mux, engine.Config{Slots: 35, TimeToLive: 8 * time.Second})
		for _, id := range ids {
			until(t, s, id, stint.Completed)
		}
	})
}

func TestWhatAMiddlewareMakesOfAJobThatIsRunNowDoesNotLoseIt(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		client := stint.NewClient(s).Use(func(next stint.EnqueueFunc) stint.EnqueueFunc {
			return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
				receipts, err := next(ctx, tx, jobs)
				if jobs[0].URN == "odd" {
					return nil, valid.Invalid("another job", "it cannot be stored")
				}
				return receipts, err
			}
		})
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		e := newEngine(t, s, mux, engine.Config{Client: client, TimeToLive: 8 * time.Second})
		runs(t, e, s)
		if _, err := e.RunNow(t.Context(), newJob("work", `{}`, stint.URN("odd"))); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("the caller is told %v", err)
		}
		eventually(t, "the job has ended", func() bool {
			jobs, err := s.Jobs(t.Context(), store.Filter{Limit: 2})
			return err == nil && len(jobs) == 1 && jobs[0].State == stint.Completed
		})
	})
}
