package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// frozen is the store of a process that freezes in the middle of its first
// claim that brings something: the answers are there when it wakes up, and
// the beat is the last to get going.
type frozen struct {
	store.Store // and no Holder: nobody vouches for the process
	sqlite      *sqlite.Store
	since       atomic.Bool
	thaw        chan struct{}
}

func (f *frozen) Join(ctx context.Context, e store.EngineInfo, kinds []stint.KindInfo) error {
	err := f.Store.Join(ctx, e, kinds)
	f.sqlite.Release(e.Token)
	return err
}

func (f *frozen) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	c, err := f.Store.Claim(ctx, req)
	if len(c.Positions) > 0 && f.since.CompareAndSwap(false, true) {
		<-f.thaw
	}
	return c, err
}

func (f *frozen) Heartbeat(ctx context.Context, token store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	if f.since.Load() {
		<-f.thaw
		time.Sleep(10 * time.Millisecond)
	}
	return f.Store.Heartbeat(ctx, token, b)
}

func TestAnEngineThatWakesUpTooLateBeginsNothing(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		runs := func(n *atomic.Int32) *stint.Mux {
			mux := stint.NewMux()
			handle(mux, "once", func(context.Context, *stint.Job) error { n.Add(1); return nil })
			return mux
		}
		var late, other atomic.Int32
		f := &frozen{Store: s, sqlite: s, thaw: make(chan struct{})}
		stopLate := start(t, f, runs(&late), engine.Config{})
		id := enqueue(t, s, "once", `{}`)
		time.Sleep(time.Second)
		stopOther := start(t, s, runs(&other), engine.Config{})
		time.Sleep(19 * time.Second)
		synctest.Wait()
		if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Completed || other.Load() != 1 {
			t.Fatalf("the job is %+v, %v, after %d runs elsewhere", job, err, other.Load())
		}
		close(f.thaw)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := late.Load(); n != 0 {
			t.Errorf("the engine that was buried meanwhile ran the job %d times more", n)
		}
		for _, stop := range []func() error{stopLate, stopOther} {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
}
