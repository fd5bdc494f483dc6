package await_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint/internal/await"
)

// world is what ends when, and how it was looked at.
type world struct {
	mu    sync.Mutex
	ended map[int]string
	err   error
	looks [][]int
	at    []time.Duration
	began time.Time
	takes time.Duration
}

func newWorld() (*world, *await.Hub[int, string]) {
	w := &world{ended: map[int]string{}, began: time.Now()}
	return w, await.New(w.look)
}

func (w *world) look(_ context.Context, keys []int) (map[int]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks, w.at = append(w.looks, slices.Clone(keys)), append(w.at, time.Since(w.began))
	if w.takes > 0 {
		w.mu.Unlock()
		time.Sleep(w.takes)
		w.mu.Lock()
	}
	found := map[int]string{}
	for _, k := range keys {
		if v, ok := w.ended[k]; ok {
			found[k] = v
		}
	}
	return found, w.err
}

func (w *world) set(err error, ended map[int]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	maps.Copy(w.ended, ended)
}

func TestTenThousandWaitsShareTheirLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newWorld()
		var all sync.WaitGroup
		for i := range 10_000 {
			all.Go(func() {
				if v, err := h.Wait(t.Context(), i); v != "done" || err != nil {
					t.Errorf("%d: %q, %v", i, v, err)
				}
			})
		}
		time.Sleep(time.Minute)
		before := len(w.looks)
		if most := 2 * 60; before > most {
			t.Errorf("they were looked at %d times within a minute, want at most %d", before, most)
		}
		ended := map[int]string{}
		for i := range 10_000 {
			ended[i] = "done"
		}
		w.set(nil, ended)
		all.Wait()
		if looks := len(w.looks) - before; looks > 30 {
			t.Errorf("it took %d looks to tell them all", looks)
		}
		if h.Any() {
			t.Error("somebody still waits")
		}
	})
}

func TestAnEndIsKnownAfterAnEighthOfTheWaitAndASecondAtMost(t *testing.T) {
	for _, after := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 4 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w, h := newWorld()
			time.AfterFunc(after, func() { w.set(nil, map[int]string{1: "x"}) })
			if _, err := h.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			late, most := time.Since(w.began)-after, min(await.Longest, max(await.Shortest, after/8))
			if late > most {
				t.Errorf("an end after %v was known %v later, want at most %v", after, late, most)
			}
			if n := len(w.looks); after <= time.Minute && n > 40 {
				t.Errorf("to wait for %v took %d looks", after, n)
			}
		})
	}
}

func TestWhatIsKnownToHaveEndedIsLookedAtAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newWorld()
		for _, k := range []int{1, 2} {
			go func() { _, _ = h.Wait(t.Context(), k) }()
		}
		time.Sleep(time.Minute + 300*time.Millisecond)
		synctest.Wait()
		before := len(w.looks)
		w.set(nil, map[int]string{1: "x"})
		h.Nudge(1)
		h.Nudge(9) // which nobody waits for
		synctest.Wait()
		if got := w.looks[before:]; len(got) != 1 || !slices.Equal(got[0], []int{1}) {
			t.Errorf("after the nudge it looked at %v, want at 1 alone", got)
		}
		h.Close()
	})
}

func TestLooksTakeATenthOfTheTimeAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newWorld()
		w.takes = 500 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		_, _ = h.Wait(ctx, 1)
		if n := len(w.looks); n < 15 || n > 21 {
			t.Errorf("%d looks of half a second within 100 s, want 20", n)
		}
		h.Close()
	})
}

func TestAFirstLookThatFailsIsAnErrorAndALaterOneIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newWorld()
		away := errors.New("away")
		w.set(away, nil)
		if _, err := h.Wait(t.Context(), 1); !errors.Is(err, away) {
			t.Errorf("the error is %v", err)
		}
		w.set(nil, nil)
		time.AfterFunc(time.Minute, func() { w.set(away, nil) })
		time.AfterFunc(2*time.Minute, func() { w.set(nil, map[int]string{1: "x"}) })
		if v, err := h.Wait(t.Context(), 1); v != "x" || err != nil {
			t.Errorf("it came to %q, %v", v, err)
		}
		time.AfterFunc(time.Minute, func() { w.set(away, nil) })
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if _, err := h.Wait(ctx, 2); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, away) {
			t.Errorf("the error is %v, want the deadline and what the looks failed with", err)
		}
	})
}

func TestClosingEndsEveryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h := newWorld()
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if _, err := h.Wait(t.Context(), i%3); !errors.Is(err, await.ErrClosed) {
					t.Errorf("the error is %v", err)
				}
			})
		}
		time.Sleep(time.Second)
		h.Close()
		all.Wait()
		if _, err := h.Wait(t.Context(), 1); !errors.Is(err, await.ErrClosed) {
			t.Errorf("after it the error is %v", err)
		}
	})
}

func TestNobodyWaitsAfterAContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if the loop goes on
		_, h := newWorld()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := h.Wait(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		if h.Any() {
			t.Error("somebody still waits")
		}
	})
}
