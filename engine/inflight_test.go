package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// stuck is a store that records nothing before it is let go.
type stuck struct {
	anyStore
	goOn chan struct{}
}

func (f stuck) Finish(ctx context.Context, token store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	select {
	case <-f.goOn:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return f.anyStore.Finish(ctx, token, claims, done)
}

// An attempt has begun for ever, though its slot is free again: what became
// of it must not be forgotten by a beat that comes before its outcome is
// recorded.
func TestWhatRunsAtMostOnceStaysAnnouncedUntilItIsRecorded(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		f := stuck{s, make(chan struct{})}
		mux := stint.NewMux()
		var runs atomic.Int32
		handle(mux, "once", func(context.Context, *stint.Job) error { runs.Add(1); return nil })
		id := enqueue(t, s, "once", `{}`, stint.MaxLosses(0))
		start(t, f, mux, engine.Config{Slots: 1, TimeToLive: time.Second})
		eventually(t, "it has run", func() bool { return runs.Load() == 1 })
		var last store.EngineInfo
		for beats := 0; beats < 3; {
			roster, err := s.Engines(t.Context())
			if err != nil || len(roster) != 1 {
				t.Fatal(roster, err)
			}
			if !roster[0].Beat.Equal(last.Beat) {
				beats++
			}
			last = roster[0]
			time.Sleep(10 * time.Millisecond)
		}
		if _, err := engine.Bury(t.Context(), s, last.Token, "it died"); err != nil {
			t.Fatal(err)
		}
		close(f.goOn)
		var job *stint.JobInfo
		eventually(t, "it has ended", func() bool {
			var err error
			job, err = s.Job(t.Context(), id)
			return err == nil && job.State.Final()
		})
		if job.State != stint.Failed || job.Reason != retry.ReasonLost || runs.Load() != 1 {
			t.Errorf("it is %s (%s) after %d runs", job.State, job.Reason, runs.Load())
		}
	})
}

// overtaken is a store that a beat reaches again behind the one that
// announces the first job, as when its request was held up on the way.
type overtaken struct {
	anyStore
	before atomic.Pointer[store.Heartbeat]
	done   atomic.Bool
}

func (f *overtaken) Heartbeat(ctx context.Context, token store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	orders, err := f.anyStore.Heartbeat(ctx, token, b)
	switch {
	case err != nil:
	case len(b.Running) == 0:
		f.before.Store(&b)
	case f.done.CompareAndSwap(false, true):
		_, err = f.anyStore.Heartbeat(ctx, token, *f.before.Load())
	}
	return orders, err
}

func TestABeatThatArrivesLateTakesNothingBack(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		f := &overtaken{anyStore: s}
		mux := stint.NewMux()
		announced := make(chan bool, 1)
		handle(mux, "once", func(ctx context.Context, _ *stint.Job) error {
			roster, err := s.Engines(ctx)
			announced <- err == nil && len(roster) == 1 && len(roster[0].Running) == 1
			return err
		})
		start(t, f, mux, engine.Config{TimeToLive: 4 * time.Second})
		eventually(t, "it has beaten", func() bool { return f.before.Load() != nil })
		enqueue(t, s, "once", `{}`, stint.MaxLosses(0))
		if !<-announced {
			t.Error("what runs at most once began, and is not announced")
		}
	})
}

// late is a store that tells what an engine holds when that is no longer so.
type late struct {
	anyStore
	asked    func() // when something is held
	recorded chan struct{}
	beats    *atomic.Int32
	told     *atomic.Int32 // how many claims it told
}

func (f late) Heartbeat(ctx context.Context, token store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	f.beats.Add(1)
	return f.anyStore.Heartbeat(ctx, token, b)
}

func (f late) Held(ctx context.Context, token store.EngineID, serial int64, known ...int64) ([]store.Claim, error) {
	claims, err := f.anyStore.Held(ctx, token, serial, known...)
	if f.told.Add(int32(len(claims))); len(known)+len(claims) > 0 {
		f.asked()
		select {
		case <-f.recorded:
		case <-ctx.Done():
		}
	}
	return claims, err
}

func TestWhatWasRecordedMeanwhileIsNotSaidToBeReturned(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		asked := make(chan struct{})
		f := late{s, sync.OnceFunc(func() { close(asked) }), make(chan struct{}), new(atomic.Int32), new(atomic.Int32)}
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { <-asked; return nil })
		var returned atomic.Int32
		enqueue(t, s, "work", `{}`)
		stop := start(t, f, mux, engine.Config{TimeToLive: 4 * time.Second, OnEvent: func(e event.Event) {
			switch e.Type {
			case event.EventEnded:
				close(f.recorded)
			case event.EventReturned:
				returned.Add(int32(e.Count))
			}
		}})
		<-f.recorded
		beats := f.beats.Load()
		eventually(t, "it beats again", func() bool { return f.beats.Load() > beats })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if n := returned.Load(); n > 0 {
			t.Errorf("it said that it returned %d jobs", n)
		}
		if n := f.told.Load(); n > 0 {
			t.Errorf("it was told of %d claims that it knows", n)
		}
	})
}
