package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/stinttest"
)

// Three nights pass. In the second one a shop tells nothing. Its job is retried when it can, and what came after it.
func TestEachNightHasOneReportOfAllRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it begins with the year 2000
		var published []string
		dead := true
		c := chain{
			regions: []string{"north", "south", "sea"},
			shops:   map[string][]string{"north": {"Kiel", "Bremen"}, "south": {"Ulm"}},
			sales: func(_ context.Context, s ShopNight) (int, error) {
				if dead && s == (ShopNight{"Kiel", "2000-01-02"}) {
					return 0, errors.New("the line is dead")
				}
				return len(s.Shop), nil
			},
			publish: func(_ context.Context, night string, all []Sales) error {
				published = append(published, fmt.Sprint(night, all))
				return nil
			},
		}
		w := stinttest.New(t, c.handlers())
		report := w.Drain(stinttest.Within(72 * time.Hour))
		want := []string{
			"2000-01-01[{north 10 0} {sea 0 0} {south 3 0}]",
			"2000-01-02[{north 6 1} {sea 0 0} {south 3 0}]",
			"2000-01-03[{north 10 0} {sea 0 0} {south 3 0}]",
		}
		if !slices.Equal(published, want) {
			t.Errorf("the reports are %q\nwant %q", published, want)
		}
		dead = false
		var failed stint.ID
		for _, run := range report.Of("shop") {
			if run.Failed() {
				failed = run.Job.ID
			}
		}
		if _, err := w.Client().Retry(t.Context(), failed); err != nil {
			t.Fatal(err)
		}
		w.Drain(stinttest.Within(time.Minute))
		if last, want := published[len(published)-1], "2000-01-02[{north 10 0} {sea 0 0} {south 3 0}]"; len(published) != 4 || last != want {
			t.Errorf("after the retry there are %d reports, the last is %s, want %s", len(published), last, want)
		}
	})
}

// A job that runs again, as after a crash, finds the flow of its night.
func TestANightThatIsStartedTwiceHasOneReport(t *testing.T) {
	reports := 0
	c := chain{
		regions: []string{"north"},
		publish: func(context.Context, string, []Sales) error { reports++; return nil },
	}
	w := stinttest.New(t, c.handlers())
	for range 2 {
		if run := stinttest.Perform(w, Nightly, struct{}{}); run.Failed() {
			t.Fatal(run.Err())
		}
	}
	w.Drain()
	if reports != 1 {
		t.Errorf("there are %d reports", reports)
	}
}

// Two nights pass without an engine, and the one that starts after them makes up for the newest.
func TestANightThatWasMissedIsMadeUpForUnderItsOwnDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nights []string
		c := chain{
			regions: []string{"north"},
			publish: func(_ context.Context, night string, _ []Sales) error { nights = append(nights, night); return nil },
		}
		w := stinttest.New(t, c.handlers())
		w.Drain(stinttest.Within(time.Minute)) // declares the schedule
		time.Sleep(48*time.Hour + 30*time.Minute)
		w.Drain(stinttest.Within(time.Minute))
		if !slices.Equal(nights, []string{"2000-01-02"}) {
			t.Errorf("there are reports of %v", nights)
		}
	})
}
