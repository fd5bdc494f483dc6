package coalesce

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLongWaitsEndAtTheSameMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, began := range []time.Duration{0, 10 * time.Millisecond, 249 * time.Millisecond} {
			time.Sleep(began)
			for _, d := range []time.Duration{time.Second, 1100 * time.Millisecond, 15 * time.Second, time.Hour} {
				got := Wait(d)
				if got > d || d-got >= apart {
					t.Errorf("%v is shortened to %v", d, got)
				}
				if end := time.Since(origin) + got; end%apart != 0 {
					t.Errorf("a wait of %v ends %v after a common moment", d, end%apart)
				}
			}
		}
		for _, d := range []time.Duration{-time.Second, 0, 999 * time.Millisecond} {
			if got := Wait(d); got != d {
				t.Errorf("%v is changed to %v", d, got)
			}
		}
	})
}
