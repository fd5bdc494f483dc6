package sample

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counter is something that is dear to find out: each look takes so long. What it
// returns beside tells how many looks have ended, those that end at this very moment
// included: which of two that wake at once goes on first is not known.
func counter(takes time.Duration) (*Sample[int], func() int) {
	looks := 0
	return New(func(context.Context) (int, error) {
			time.Sleep(takes)
			looks++
			return looks, nil
		}), func() int {
			synctest.Wait()
			return looks
		}
}

func TestLookingTakesHalfAHundredthOfTheTimeHoweverOftenOneAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, looks := counter(time.Second)
		for range 10_000 { // 1000 seconds
			s.Get(t.Context())
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		if n := looks(); n < 4 || n > 6 {
			t.Errorf("in 1000 seconds it was looked at %d times, for a second each", n)
		}
	})
}

func TestWhatIsSoonFoundOutIsNeverOldForWhoAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := counter(100 * time.Millisecond)
		for _, c := range []struct {
			pause, wait time.Duration
			look        int // that it is told of
		}{
			{0, 100 * time.Millisecond, 1},
			{leastAge - time.Millisecond, 0, 1},
			{time.Millisecond, 100 * time.Millisecond, 2},
			{time.Hour, 100 * time.Millisecond, 3},
		} {
			time.Sleep(c.pause)
			asked := time.Now()
			if got := s.Get(t.Context()); got.Value != c.look || time.Since(asked) != c.wait {
				t.Errorf("behind %v it was told %+v after %v, want look %d after %v", c.pause, got, time.Since(asked), c.look, c.wait)
			}
		}
	})
}

func TestNobodyWaitsForWhatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, looks := counter(patience)
		s.Get(t.Context())
		for range 30 { // seconds, a look of which takes half a hundredth
			if n := looks(); n != 1 {
				t.Errorf("it was looked at %d times", n)
			}
			time.Sleep(time.Second)
			asked := time.Now()
			if got := s.Get(t.Context()); got.Value != 1 || time.Since(asked) > 0 {
				t.Errorf("after %v it was told %+v", time.Since(asked), got)
			}
		}
		time.Sleep(patience)
		if n := looks(); n != 2 {
			t.Errorf("it was looked at %d times, want another behind 30 seconds", n)
		}
	})
}

func TestTheFirstLookIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := counter(10 * time.Second)
		asked := time.Now()
		if got := s.Get(t.Context()); got.Known() || time.Since(asked) != patience {
			t.Errorf("after %v it was told %+v", time.Since(asked), got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
	})
}

func TestWhoIsInAHurryWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, looks := counter(time.Second)
		asked := time.Now()
		if got := s.Get(Hurried(t.Context())); got.Known() || time.Since(asked) > 0 {
			t.Errorf("after %v it was told %+v", time.Since(asked), got)
		}
		time.Sleep(2 * time.Second)
		if got := s.Get(Hurried(t.Context())); got.Value != 1 || looks() != 1 {
			t.Errorf("it was told %+v of %d looks", got, looks())
		}
	})
}

func TestWhoAsksAgainAndAgainCostsHalfAHundredthOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, looks := counter(100 * time.Millisecond)
		for range 2000 { // 200 seconds
			s.Get(Hurried(t.Context()))
			time.Sleep(100 * time.Millisecond)
		}
		if n := looks(); n < 8 || n > 10 {
			t.Errorf("in 200 seconds it was looked at %d times, for a tenth of a second each", n)
		}
	})
}

func TestALookThatPanicsIsOneThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(func(context.Context) (int, error) { panic("odd") })
		if got := s.Get(t.Context()); got.Known() || got.Err == nil || !strings.Contains(got.Err.Error(), "a panic: odd") {
			t.Errorf("it was told %+v", got)
		}
	})
}

func TestAValueIsNoOlderThanItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := false
		s := New(func(context.Context) (time.Time, error) {
			at := time.Now()
			time.Sleep(100 * time.Millisecond)
			if broken {
				return at, errors.New("down")
			}
			return at, nil
		})
		for range 3 {
			got := s.Get(t.Context())
			if at, _ := got.Told(); !at.Equal(got.Value) {
				t.Errorf("what was found at %v says %v", got.Value, at)
			}
			time.Sleep(time.Minute)
			broken = true
		}
	})
}

func TestALookThatWasGivenUpIsSoonRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		s := New(func(ctx context.Context) (int, error) {
			if looks++; looks == 1 {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return looks, nil
		})
		for range 13 {
			s.Get(Hurried(t.Context()))
			time.Sleep(10 * time.Second)
		}
		if got := s.Get(Hurried(t.Context())); !got.Known() {
			t.Errorf("two minutes after a look began that never ended it was told %+v", got)
		}
	})
}

func TestWhatIsFreshIsSoonReadAgainHoweverLongThatTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var takes atomic.Int64
		s := NewFresh(func(context.Context) (time.Time, error) {
			at := time.Now()
			time.Sleep(time.Duration(takes.Load()))
			return at, nil
		})
		for took := 2 * time.Second; took > 0; took -= time.Second {
			if takes.Store(int64(took)); took == 2*time.Second {
				s.Get(Hurried(t.Context()))
				time.Sleep(took + time.Second)
			}
			for range 60 {
				if age := time.Since(s.Get(Hurried(t.Context())).Value); age > 2*2*time.Second+freshPause+leastAge {
					t.Errorf("what takes %v to find out is %v old", took, age)
				}
				time.Sleep(leastAge)
			}
		}
	})
}

func TestWhatWasKnownStaysWhenALookFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		s := New(func(context.Context) (int, error) {
			if looks++; looks == 2 {
				return 0, errors.New("down")
			}
			return looks, nil
		})
		s.Get(t.Context())
		for _, want := range []struct {
			value int
			known bool
		}{{1, false}, {3, true}} {
			time.Sleep(time.Minute)
			s.Get(t.Context())
			synctest.Wait()
			if got := s.Get(t.Context()); got.Value != want.value || got.Known() != want.known {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	})
}

func TestWhatIsForgottenIsLookedAtAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 100 * time.Millisecond
		var truth atomic.Value
		truth.Store("before")
		s := New(func(context.Context) (string, error) {
			seen := truth.Load().(string)
			time.Sleep(takes)
			return seen, nil
		})
		get := func(want string) {
			t.Helper()
			if got := s.Get(t.Context()); got.Value != want {
				t.Errorf("it is %q, want %q", got.Value, want)
			}
		}
		get("before")
		truth.Store("after")
		get("before") // it is not old yet
		s.Forget()
		get("after")

		time.Sleep(time.Hour)
		go s.Get(t.Context())
		time.Sleep(takes / 2) // a look is under way
		truth.Store("later")
		s.Forget()
		go s.Get(t.Context())
		time.Sleep(takes * 6 / 10) // that look has ended, and the next one has not
		get("later")
	})
}
