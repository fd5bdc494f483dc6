package contest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint/bench/contest"
)

// told is an entrant whose turns bring what it was told.
func told(name string, turns *[]string, values ...float64) contest.Entrant {
	return contest.Entrant{Name: name, Turn: func(context.Context) (contest.Figures, error) {
		*turns = append(*turns, name)
		v := values[0]
		values = values[1:]
		return contest.Figures{"jobs/s": v, "ms": 100 / v}, nil
	}}
}

var figures = []contest.Figure{{Name: "jobs/s"}, {Name: "ms", LessIsMore: true}}

func TestEveryoneTakesTurnsAndWhoIsFirstMovesOn(t *testing.T) {
	var turns []string
	b := contest.Bout{Name: "burn", Figures: figures, Entrants: []contest.Entrant{
		told("a", &turns, 1, 1, 1), told("b", &turns, 1, 1, 1), told("c", &turns, 1, 1, 1),
	}}
	var announced []string
	if _, err := b.Hold(t.Context(), 3, func(_ int, name string) { announced = append(announced, name) }); err != nil {
		t.Fatal(err)
	}
	want := []string{"a", "b", "c", "b", "c", "a", "c", "a", "b"}
	if !slices.Equal(turns, want) || !slices.Equal(announced, want) {
		t.Errorf("turns were %v, announced as %v, want %v", turns, announced, want)
	}
}

// The second was slower each time by another factor; its medians alone would
// tell a third one.
func TestRatiosCompareNeighboursInARound(t *testing.T) {
	var turns []string
	b := contest.Bout{Figures: figures, Entrants: []contest.Entrant{
		told("first", &turns, 100, 40, 20), told("second", &turns, 10, 20, 5),
	}}
	r, err := b.Hold(t.Context(), 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	second := r.Standings[1]
	if diff := cmp.Diff(contest.Figures{"jobs/s": 10, "ms": 10}, second.Medians); diff != "" {
		t.Errorf("medians (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(contest.Figures{"jobs/s": 4, "ms": 4}, second.Ratios); diff != "" {
		t.Errorf("ratios (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]contest.Spread{"jobs/s": {Least: 2, Greatest: 10}, "ms": {Least: 2, Greatest: 10}}, second.Spread); diff != "" {
		t.Errorf("spread (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(contest.Figures{"jobs/s": 1, "ms": 1}, r.Standings[0].Ratios); diff != "" {
		t.Errorf("ratios of the first to itself (-want +got):\n%s", diff)
	}
}

func TestATurnThatFailsEndsTheBoutAndIsNamed(t *testing.T) {
	broken := errors.New("no connection")
	b := contest.Bout{Name: "burn", Entrants: []contest.Entrant{{Name: "river", Turn: func(context.Context) (contest.Figures, error) { return nil, broken }}}}
	_, err := b.Hold(t.Context(), 2, nil)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "burn, round 1: river") {
		t.Errorf("the error is %v", err)
	}
}

func TestAResultIsPrintedWithMediansRatiosAndSettings(t *testing.T) {
	var turns []string
	first, second := told("stint", &turns, 123456), told("river", &turns, 1000)
	second.Settings = "2000 workers"
	b := contest.Bout{Name: "burn", About: "no-op jobs", Figures: figures, Entrants: []contest.Entrant{first, second}}
	r, err := b.Hold(t.Context(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	want := `burn: no-op jobs

            jobs/s            ms
   stint   123,456          0.00
   river     1,000   ×123   0.10   ×123

river: 2000 workers
1 round; ×n: stint was n times better
`
	got := regexp.MustCompile(` +\n`).ReplaceAllString(out.String(), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

// threeRounds is a result in which the second is 4 times slower in the median.
func threeRounds(t *testing.T) contest.Result {
	var turns []string
	b := contest.Bout{Name: "burn", About: "no-op jobs", Figures: figures[:1], Entrants: []contest.Entrant{
		told("stint", &turns, 1e6, 4e6, 2e6), told("River, tuned", &turns, 1e5, 2e6, 5e5),
	}}
	r, err := b.Hold(t.Context(), 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestARatioOfSeveralRoundsIsPrintedWithItsSpread(t *testing.T) {
	var out strings.Builder
	if err := threeRounds(t).Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"River, tuned     500,000   ×4.00 (2.00–10.0)\n",
		"medians of 3 rounds; ×n (a–b): stint was n times better in the median of the rounds, and a to b times in single ones\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed %s, want %s", out.String(), want)
		}
	}
}

func TestAFileForOtherProgramsHasARowForEachFigure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.csv")
	if err := contest.SaveCSV(path, []contest.Result{threeRounds(t)}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `bout,entrant,figure,rounds,median,ratio,least ratio,greatest ratio
burn,stint,jobs/s,3,2000000.0000,1.0000,1.0000,1.0000
burn,"River, tuned",jobs/s,3,500000.0000,4.0000,2.0000,10.0000
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

func TestTheFirstIsHeldAgainstThoseThatAreNamed(t *testing.T) {
	b := contest.Bout{Name: "burn", Entrants: []contest.Entrant{{Name: "stint"}, {Name: "River, tuned"}, {Name: "rows"}}}
	kept, err := b.Against(regexp.MustCompile("^rows"))
	if err != nil || len(kept.Entrants) != 2 || kept.Entrants[0].Name != "stint" || kept.Entrants[1].Name != "rows" {
		t.Errorf("kept %v, %v", kept.Entrants, err)
	}
	if len(b.Entrants) != 3 || b.Entrants[1].Name != "River, tuned" {
		t.Errorf("the bout itself has %v", b.Entrants)
	}
	if _, err := b.Against(regexp.MustCompile("stint")); err == nil || err.Error() != `burn: nobody is named like stint; there are "River, tuned", "rows"` {
		t.Errorf("the error is %v", err)
	}
}

// memory is a queue in memory that may lose, double or forget.
type memory struct {
	mu      sync.Mutex
	waiting []int
	done    int

	double, forget, hang, plain bool
}

func (m *memory) Enqueue(_ context.Context, first, n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range n {
		m.waiting = append(m.waiting, first+i)
	}
	return nil
}

func (m *memory) Work(_ context.Context, handle func(int)) (func() error, error) {
	for i, n := range m.waiting {
		if m.hang && i == 50 {
			break
		}
		if m.plain {
			n = contest.Unnumbered
		}
		if handle(n); m.double && i == 0 {
			handle(n)
		}
		if !m.forget || i > 0 {
			m.done++
		}
	}
	return func() error { return nil }, nil
}

func (m *memory) Completed(context.Context) (int, error) { return m.done, nil }
func (m *memory) Close() error                           { return nil }

func TestBurnEnqueuesAndWorksEveryJobOnce(t *testing.T) {
	m := &memory{}
	var waited []int // when it was to be made ready
	ready := func(context.Context) error {
		waited = append(waited, len(m.waiting), m.done)
		return nil
	}
	var f contest.Figures
	err := contest.Recorded(t.Context(), m, 12_345, func() (err error) {
		f, err = contest.Burn(t.Context(), m, 12_345, contest.Bulk{Batch: 1000, Producers: 3, Ready: ready})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{12_345, 0}; !slices.Equal(waited, want) {
		t.Errorf("made ready when there were %v, want %v once", waited, want)
	}
	slices.Sort(m.waiting)
	if len(m.waiting) != 12_345 || m.waiting[0] != 0 || m.waiting[12_344] != 12_344 || m.done != 12_345 {
		t.Errorf("%d jobs were enqueued, %d done", len(m.waiting), m.done)
	}
	if f["enqueue/s"] <= 0 || f["work/s"] <= 0 {
		t.Errorf("figures are %v", f)
	}
}

func TestBurnRefusesTheFiguresOfAQueueThatDoublesOrForgets(t *testing.T) {
	for _, c := range []struct {
		name string
		m    *memory
		want string
	}{
		{"doubles", &memory{double: true}, "1 jobs ran twice"},
		{"doubles what has no number", &memory{double: true, plain: true}, "1 jobs ran twice"},
		{"forgets", &memory{forget: true}, "of 100 jobs the history has 99"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := contest.Recorded(t.Context(), c.m, 100, func() error {
				_, err := contest.Burn(t.Context(), c.m, 100, contest.Bulk{})
				return err
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}

func TestBurnDoesNotWaitForeverForWorkersThatDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := contest.Burn(t.Context(), &memory{hang: true}, 100, contest.Bulk{})
		if err == nil || !strings.Contains(err.Error(), "no job ran for 30s, after 50 had") {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestOneMeasurementOfSeveralIsMadeOnceARoundWhoeverIsFirst(t *testing.T) {
	measured := 0.0
	turns := contest.Jointly(2, func(context.Context) ([]contest.Figures, error) {
		measured++
		return []contest.Figures{{"jobs/s": measured}, {"jobs/s": 10 * measured}}, nil
	})
	b := contest.Bout{Figures: figures, Entrants: []contest.Entrant{{Name: "a", Turn: turns[0]}, {Name: "b", Turn: turns[1]}}}
	r, err := b.Hold(t.Context(), 3, nil)
	if err != nil || measured != 3 {
		t.Fatalf("it was measured %v times, %v", measured, err)
	}
	if diff := cmp.Diff([]float64{10, 20, 30}, r.Standings[1].Rounds["jobs/s"]); diff != "" {
		t.Errorf("the second had (-want +got):\n%s", diff)
	}
}

func TestNothingIsComparedWithNothing(t *testing.T) {
	none := func(context.Context) (contest.Figures, error) { return contest.Figures{"jobs/s": 0, "ms": 0}, nil }
	r, err := contest.Bout{Figures: figures, Entrants: []contest.Entrant{{Name: "a", Turn: none}, {Name: "b", Turn: none}}}.Hold(t.Context(), 1, nil)
	if err != nil || r.Standings[1].Ratios["jobs/s"] != 0 || r.Standings[1].Ratios["ms"] != 0 {
		t.Errorf("the ratios of nothing are %v, %v", r.Standings[1].Ratios, err)
	}
}

func TestAFigureThatNobodyHasIsNotPrinted(t *testing.T) {
	var turns []string
	b := contest.Bout{Figures: append(figures[:1:1], contest.Figure{Name: "bytes"}), Entrants: []contest.Entrant{told("a", &turns, 1)}}
	r, err := b.Hold(t.Context(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := r.Print(&out); err != nil || strings.Contains(out.String(), "bytes") {
		t.Errorf("printed %s, %v", out.String(), err)
	}
}

func TestQuantilesAreMeasuredValues(t *testing.T) {
	var all []time.Duration
	for i := 100; i > 0; i-- {
		all = append(all, time.Duration(i)*time.Millisecond)
	}
	for n, want := range map[int]contest.Figures{
		100: {"p50 ms": 50, "p99 ms": 99, "max ms": 100},
		1:   {"p50 ms": 100, "p99 ms": 100, "max ms": 100},
		0:   {},
	} {
		if diff := cmp.Diff(want, contest.Quantiles(all[:n])); diff != "" {
			t.Errorf("of %d (-want +got):\n%s", n, diff)
		}
	}
}
