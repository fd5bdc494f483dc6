package admin

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestASampleCostsAHundredthOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, worked := 0, time.Duration(0)
		s := sampled(func(context.Context) (int, error) {
			time.Sleep(400 * time.Millisecond)
			worked += 400 * time.Millisecond
			looks++
			return looks, nil
		})
		began := time.Now()
		if got := s.get(t.Context()); !got.At.IsZero() || time.Since(began) != firstLook {
			t.Errorf("a slow look answers %+v after %v", got, time.Since(began))
		}
		for time.Since(began) < time.Hour {
			time.Sleep(time.Second)
			s.get(t.Context())
		}
		if share := float64(worked) / float64(time.Hour); looks < 80 || share > 0.0105 {
			t.Errorf("%d looks took %.4f of the time", looks, share)
		}
	})
}

func TestASampleIsTakenWhileSomebodyWantsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		s := sampled(func(context.Context) (int, error) { looks++; return looks, nil })
		if got := s.get(t.Context()); got.Value != 1 {
			t.Errorf("the first look is %+v", got)
		}
		time.Sleep(time.Hour)
		if looks != 1 {
			t.Errorf("%d looks while nobody wanted any", looks)
		}
		s.get(t.Context())
		synctest.Wait()
		if got := s.get(t.Context()); got.Value != 2 {
			t.Errorf("behind an hour it is %+v", got)
		}
	})
}

func TestASampleThatFailsKeepsWhatWasKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err error
		s := sampled(func(context.Context) (int, error) { return 7, err })
		s.get(t.Context())
		err = errors.New("away")
		time.Sleep(time.Minute)
		s.get(t.Context())
		synctest.Wait()
		if got := s.get(t.Context()); got.Value != 7 || got.Err == nil {
			t.Errorf("it is %+v", got)
		}
	})
}
