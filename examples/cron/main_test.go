package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/stinttest"
	"github.com/stint-go/stint/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// output is what the program has said so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// A winter and a spring pass in a moment, with a night in which Berlin's clock
// jumps from two to three.
func TestEachOccurrenceIsReportedOnceThroughAChangeOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it begins with the year 2000
		var out output
		w := stinttest.New(t, program(&out))
		w.Drain(stinttest.Within(7*time.Second), stinttest.FailOnError())
		if n := strings.Count(out.String(), "the pulse, for"); n != 3 {
			t.Errorf("in 7 seconds it pulsed %d times:\n%s", n, out.String())
		}
		if _, err := w.Store().(store.ScheduleKeeper).PauseSchedule(t.Context(), "pulse", "the test", "it fires millions of times"); err != nil {
			t.Fatal(err)
		}
		w.Drain(stinttest.Within(100*24*time.Hour), stinttest.FailOnError())
		text := out.String()
		for want, times := range map[string]int{
			"the night's report, for":                      100,
			"the night's report, for 2000-03-25T01:30:00Z": 1, // winter
			"the night's report, for 2000-03-26T01:00:00Z": 1, // there was no half past two: it was three
			"the night's report, for 2000-03-27T00:30:00Z": 1, // summer
			"the month's books, for":                       3,
			"the month's books, for 2000-01-31T23:00:00Z":  1,
			"the month's books, for 2000-02-29T23:00:00Z":  1,
			"the month's books, for 2000-03-31T23:00:00Z":  1,
		} {
			if n := strings.Count(text, want); n != times {
				t.Errorf("%q was said %d times, want %d", want, n, times)
			}
		}
	})
}

func TestTheProgramSaysWhatComesAndFiresIt(t *testing.T) {
	for name, db := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "cron.db") },
		"postgres": func(t *testing.T) string { return pgtest.New(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out output
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- run(ctx, db(t), &out) }()
			for ctx.Err() == nil && !strings.Contains(out.String(), "the pulse, for") {
				time.Sleep(20 * time.Millisecond)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			text := out.String()
			for _, name := range []string{"nightly", "pulse", "month-end"} {
				if strings.Count(text, name+" ") != 3 {
					t.Errorf("it does not say thrice when %s comes:\n%s", name, text)
				}
			}
			if !strings.Contains(text, "the pulse, for") {
				t.Errorf("nothing fired:\n%s", text)
			}
		})
	}
}
