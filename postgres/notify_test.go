package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

func TestManyEnqueuesAtOnceRingFewTimesAndAlwaysBehindTheLast(t *testing.T) {
	s := newStore(t)
	ctx, stop := context.WithCancel(t.Context())
	var rings atomic.Int32
	var last atomic.Int64
	listening := make(chan struct{})
	var once sync.Once
	var listener sync.WaitGroup
	listener.Go(func() {
		err := s.Listen(ctx, func() {
			once.Do(func() { close(listening) })
			rings.Add(1)
			last.Store(time.Now().UnixNano())
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-listening
	const producers, each = 8, 100
	var all sync.WaitGroup
	var ended atomic.Int64
	for range producers {
		all.Go(func() {
			for range each {
				if _, err := stint.NewClient(s).Enqueue(ctx, stint.NewJob{Kind: "k"}); err != nil {
					t.Error(err)
				}
				ended.Store(time.Now().UnixNano())
			}
		})
	}
	all.Wait()
	s.notifier.wait()
	for until := time.Now().Add(5 * time.Second); last.Load() < ended.Load()-int64(100*time.Millisecond) && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if last.Load() < ended.Load()-int64(100*time.Millisecond) {
		t.Error("nothing rang behind the last enqueue")
	}
	if n := rings.Load(); n > producers*each*3/4 {
		t.Errorf("%d rings for %d enqueues", n, producers*each)
	}
	stop()
	listener.Wait()
}

func TestAnEnqueueThatIsFollowedByNothingHasRungWhenTheStoreIsClosed(t *testing.T) {
	var sent atomic.Int32
	n := notifier{send: func(context.Context) error {
		time.Sleep(10 * time.Millisecond)
		sent.Add(1)
		return nil
	}}
	if !n.begin() || n.begin() {
		t.Fatal("only the first is alone")
	}
	n.end(true)
	n.end(false)
	n.wait()
	if sent.Load() != 1 || n.under.Load() != 0 {
		t.Errorf("%d rings, %d under way", sent.Load(), n.under.Load())
	}
}
