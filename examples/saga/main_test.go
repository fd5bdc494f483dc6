package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/stinttest"
)

// world is other systems that say what they were asked, and fail so often at first.
type world struct {
	asked []string
	fails map[string]int
}

func (w *world) ask(what string) error {
	w.asked = append(w.asked, what)
	if w.fails[what] == 0 {
		return nil
	}
	w.fails[what]--
	return errors.New("no answer")
}

func (w *world) agency() agency {
	return agency{
		book:   func(_ context.Context, b Booking) (string, error) { return b.Part + "-1", w.ask("book " + b.Part) },
		cancel: func(_ context.Context, b Booking) error { return w.ask("cancel " + b.Part) },
	}
}

func TestATripIsBookedOrUndone(t *testing.T) {
	const forever = 1 << 20
	for name, c := range map[string]struct {
		fails map[string]int
		asked []string
		Outcome
	}{
		"booked": {
			asked:   []string{"book flight", "book hotel", "book car"},
			Outcome: Outcome{Booked: []string{"flight-1", "hotel-1", "car-1"}},
		},
		"booked at the second try": {
			fails:   map[string]int{"book hotel": 1},
			asked:   []string{"book flight", "book hotel", "book hotel", "book car"},
			Outcome: Outcome{Booked: []string{"flight-1", "hotel-1", "car-1"}},
		},
		"undone, the last first, each once": {
			fails:   map[string]int{"book car": forever},
			asked:   slices.Concat([]string{"book flight", "book hotel"}, slices.Repeat([]string{"book car"}, 1+5), []string{"cancel car", "cancel hotel", "cancel flight"}),
			Outcome: Outcome{Failed: "no answer"},
		},
		"undone at the second try": {
			fails:   map[string]int{"book flight": forever, "cancel flight": 1},
			asked:   slices.Concat(slices.Repeat([]string{"book flight"}, 1+5), []string{"cancel flight", "cancel flight"}),
			Outcome: Outcome{Failed: "no answer"},
		},
		"not undone": {
			fails:   map[string]int{"book flight": forever, "cancel flight": forever},
			asked:   slices.Concat(slices.Repeat([]string{"book flight"}, 1+5), slices.Repeat([]string{"cancel flight"}, 1+100)),
			Outcome: Outcome{Failed: "no answer", Left: []string{"flight"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{fails: c.fails}
			worker := stinttest.New(t, w.agency().handlers())
			id, err := Travel.Enqueue(t.Context(), worker.Client(), Trip{"ada", []string{"flight", "hotel", "car"}})
			if err != nil {
				t.Fatal(err)
			}
			report := worker.Drain()
			job, err := worker.Client().Job(t.Context(), id)
			if err != nil || job.State != stint.Completed {
				t.Fatalf("the job is %v, %v\n%s", job.State, err, report)
			}
			outcome, err := Travel.Result(job)
			if err != nil || !slices.Equal(outcome.Booked, c.Booked) || (outcome.Failed == "") != (c.Failed == "") || !slices.Equal(outcome.Left, c.Left) {
				t.Errorf("the outcome is %+v, %v, want %+v", outcome, err, c.Outcome)
			}
			if !slices.Equal(w.asked, c.asked) {
				t.Errorf("the systems were asked to %q\nwant %q", w.asked, c.asked)
			}
		})
	}
}
