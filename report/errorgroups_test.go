package report_test

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
)

// stackOf is the stack of what f panics with.
func stackOf(f func()) (stack string) {
	defer func() {
		_ = recover()
		stack = string(debug.Stack())
	}()
	f()
	return ""
}

type boiler struct{ steam map[string]int }

func (b *boiler) explode(string)  { panic("boom") }
func (b *boiler) leak()           { b.steam["x"] = 1 }
func index(of []int, i int) int   { return of[i] }
func generic[T any](v []T, i int) { _ = v[i] }

func TestThePlaceOfAPanicIsTheFunctionThatPanicked(t *testing.T) {
	b := &boiler{}
	for want, f := range map[string]func(){
		"report_test.(*boiler).explode (errorgroups_test.go:30)": func() { b.explode("with, (odd) arguments") },
		"report_test.(*boiler).leak (errorgroups_test.go:31)":    b.leak,
		"report_test.index (errorgroups_test.go:32)":             func() { index(nil, 3) },
		"report_test.generic[...] (errorgroups_test.go:33)":      func() { generic([]int{}, 1) },
	} {
		stack := stackOf(f)
		if got := report.PlaceOf(stack); got != want {
			t.Errorf("the place is %q, want %q, of\n%s", got, want, stack)
		}
		if i := strings.Index(stack, "panic("); report.PlaceOf(stack[i:]) != want {
			t.Errorf("of a stack that begins with the panic it is %q", report.PlaceOf(stack[i:]))
		}
		for cut := range len(stack) { // wherever it was cut off
			if got := report.PlaceOf(stack[:cut]); got != "" && !strings.HasPrefix(want, strings.TrimSuffix(got, ")")) {
				t.Fatalf("cut off after %d bytes the place is %q", cut, got)
			}
		}
	}
	// As it is with GOTRACEBACK=system.
	if got := report.PlaceOf("panic({0x1, 0x2})\n\t/go/panic.go:860 +0x13a\nruntime.goPanicIndex(0x3, 0x0)\n\t/go/panic.go:115 +0x74\nmain.f(...)\n\t/a/b.go:2"); got != "main.f (b.go:2)" {
		t.Errorf("the place below the runtime's functions is %q", got)
	}
	for _, stack := range []string{"", "panic(", "panic(1)\n", "no stack", "exit status 1", "goroutine 1 [running]:\nmain.main()\n\t/x/main.go:3 +0x1"} {
		if got := report.PlaceOf(stack); got != "" {
			t.Errorf("the place of %q is %q", stack, got)
		}
	}
}

func FuzzPlaceOf(f *testing.F) {
	f.Add("panic(1)\n\tx.go:1\nmain.f()\n\t/a/b.go:2 +0x1")
	f.Add("panic(1)\n\tx.go:1\nruntime.x(...)\n\ty.go:1\nmain.(*T).f(0x1)\n\t/a b/c.go:2 +0x1")
	f.Fuzz(func(t *testing.T, stack string) {
		place := report.PlaceOf(stack)
		if place == "" {
			return
		}
		i := strings.LastIndex(place, " (")
		if i < 0 || strings.Contains(place, "\n") || !strings.Contains(place[i:], ".go:") || len(place) > len(stack) {
			t.Errorf("the place of %q is %q", stack, place)
		}
	})
}

func TestErrorsAreGroupedByKindClassPlaceAndNormalizedMessage(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC) }
	panicked := "panic(1)\n\tpanic.go:1\nmain.f()\n\t/a/b.go:2"
	all := []report.FailedAttempt{
		{Job: 9, Kind: "k", Class: "timeout", Message: "no answer in 9s", Ended: at(9)},
		{Job: 7, Kind: "k", Class: "timeout", Message: "no answer in 7s", Ended: at(3)},
		{Job: 7, Kind: "k", Class: "timeout", Message: "no answer in 8s", Ended: at(4)},
		{Job: 7, Kind: "k", Class: "timeout", Message: "no answer", Ended: at(2)},
		{Job: 8, Kind: "other", Class: "timeout", Message: "no answer in 7s", Ended: at(5)},
		{Job: 6, Kind: "k", Class: "panic", Message: "m", Stack: panicked, Ended: at(6)},
		{Job: 5, Kind: "k", Class: "panic", Message: "m", Ended: at(7)},
	}
	trend := func(steps ...int) []int {
		trend := make([]int, report.TrendSteps)
		for _, i := range steps {
			trend[i]++
		}
		return trend
	}
	want := report.ErrorReport{Attempts: 7, CutOff: true, Counts: report.ErrorCounts{Open: 5}, From: at(2), Step: 30 * time.Second, Groups: []report.ErrorGroup{
		{Key: "12f6211e2ed75222", Class: "timeout", Kind: "k", Pattern: "no answer in #", Attempts: 3, Jobs: 2, First: at(3), Last: at(9), Message: "no answer in 9s", Job: 9, IDs: []stint.ID{9, 7}, Trend: trend(2, 4, 14)},
		{Key: "120b8e8a3d83161d", Class: "panic", Kind: "k", Pattern: "m", Attempts: 1, Jobs: 1, First: at(7), Last: at(7), Message: "m", Job: 5, IDs: []stint.ID{5}, Trend: trend(10)},
		{Key: "39083839716d183f", Class: "panic", Place: "main.f (b.go:2)", Kind: "k", Pattern: "m", Attempts: 1, Jobs: 1, First: at(6), Last: at(6), Message: "m", Job: 6, IDs: []stint.ID{6}, Trend: trend(8)},
		{Key: "74bd623f6a258201", Class: "timeout", Kind: "other", Pattern: "no answer in #", Attempts: 1, Jobs: 1, First: at(5), Last: at(5), Message: "no answer in 7s", Job: 8, IDs: []stint.ID{8}, Trend: trend(6)},
		{Key: "394725ebc77dcd0c", Class: "timeout", Kind: "k", Pattern: "no answer", Attempts: 1, Jobs: 1, First: at(2), Last: at(2), Message: "no answer", Job: 7, IDs: []stint.ID{7}, Trend: trend(0)},
	}}
	for i := range want.Groups {
		want.Groups[i].State = report.ErrorsOpen
	}
	for range 2 {
		if diff := cmp.Diff(want, report.GroupErrors(report.ErrorsFound{Attempts: all, More: true, Now: at(14)}, report.ErrorFilter{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		slices.Reverse(all) // in any order
	}
	if got := report.GroupErrors(report.ErrorsFound{Now: at(1)}, report.ErrorFilter{}); got.Groups == nil || got.CutOff {
		t.Errorf("of nothing there is %+v", got)
	}
	var odd []report.FailedAttempt
	for i := range report.MaxErrorGroups + 5 {
		odd = append(odd, report.FailedAttempt{Class: fmt.Sprint(i), Ended: at(1)})
	}
	if got := report.GroupErrors(report.ErrorsFound{Attempts: odd, Now: at(1)}, report.ErrorFilter{}); len(got.Groups) != report.MaxErrorGroups || !got.CutOff || got.Attempts != len(odd) || got.Counts.Open != len(odd) {
		t.Errorf("%d groups of %d attempts are told, cut off: %v, and counted: %+v", len(got.Groups), got.Attempts, got.CutOff, got.Counts)
	}
}

func TestAGroupOfErrorsHasTheStateThatItsMarkAndItsLastErrorGiveIt(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	found := report.ErrorsFound{Attempts: []report.FailedAttempt{{Job: 1, Kind: "k", Message: "no", Ended: at}}, Now: at}
	key := report.GroupErrors(found, report.ErrorFilter{}).Groups[0].Key
	for _, c := range []struct {
		mark  report.ErrorState
		after time.Duration // the last error
		want  report.ErrorState
	}{
		{"", 0, report.ErrorsOpen},
		{report.ErrorsResolved, time.Hour, report.ErrorsResolved},
		{report.ErrorsResolved, 0, report.ErrorsResolved}, // it was seen
		{report.ErrorsResolved, -time.Microsecond, report.ErrorsReturned},
		{report.ErrorsMuted, time.Hour, report.ErrorsMuted},
		{report.ErrorsMuted, -time.Hour, report.ErrorsMuted},
	} {
		found.Marks = []report.ErrorMark{{Key: "0000000000000000", State: report.ErrorsMuted, At: at}}
		if c.mark != "" {
			found.Marks = append(found.Marks, report.ErrorMark{Key: key, State: c.mark, At: at.Add(c.after), By: "ann", Why: "so"})
		}
		for _, s := range append([]report.ErrorState{""}, report.ErrorStates...) {
			r := report.GroupErrors(found, report.ErrorFilter{State: s})
			shown := s == "" || s == c.want || s == report.ErrorsOpen && c.want == report.ErrorsReturned
			if r.Groups == nil || len(r.Groups) == 1 != shown || r.Attempts != len(r.Groups) {
				t.Errorf("marked as %q %v after its last error: of the state %q there are %+v", c.mark, c.after, s, r)
			}
			if shown && (r.Groups[0].State != c.want || (r.Groups[0].By == "ann") != (c.mark != "")) {
				t.Errorf("marked as %q %v after its last error it is %+v, want %s", c.mark, c.after, r.Groups[0], c.want)
			}
		}
	}
}

func TestTrendsAreOfBoundedStepsWhateverTheClocksSay(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	attempts := []report.FailedAttempt{{Ended: at}, {Ended: at.Add(-time.Hour)}, {Ended: at.Add(time.Hour)}}
	for _, c := range []struct {
		since, now time.Time
		from       time.Time
		step       time.Duration
		first, end int // attempts in the first and in the last step
	}{
		{time.Time{}, at.Add(time.Hour), at.Add(-time.Hour), 5 * time.Minute, 1, 1},
		{time.Time{}, at.Add(-2 * time.Hour), at.Add(-time.Hour), time.Second, 1, 2}, // a clock was put back
		{at.Add(-23 * time.Hour), at.Add(time.Hour), at.Add(-23 * time.Hour), time.Hour, 0, 2},
		{at.Add(-23*time.Hour + time.Second), at.Add(time.Hour), at.Add(-23*time.Hour + time.Second), time.Hour, 0, 1}, // rounded up
		{at.Add(-250 * 365 * 24 * time.Hour), at, at.Add(-250 * 365 * 24 * time.Hour), 250 * 365 * time.Hour, 0, 3},
	} {
		r := report.GroupErrors(report.ErrorsFound{Attempts: attempts, Now: c.now}, report.ErrorFilter{Since: c.since})
		trend := r.Groups[0].Trend
		if !r.From.Equal(c.from) || r.Step != c.step || len(trend) != report.TrendSteps || trend[0] != c.first || trend[len(trend)-1] != c.end {
			t.Errorf("since %v at %v they begin at %v in steps of %v: %v", c.since, c.now, r.From, r.Step, trend)
		}
	}
}

func TestOnlyKeysOfErrorsAreTaken(t *testing.T) {
	if err := report.CheckErrorKey("0123456789abcdef"); err != nil {
		t.Error(err)
	}
	for _, key := range []string{"", "0123456789abcde", "0123456789ABCDEF", "0123456789abcdef00", "0123456789abcde\n"} {
		if err := report.CheckErrorKey(key); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%q gives %v", key, err)
		}
	}
	if a, b := (report.ErrorFilter{}).Look(), (report.ErrorFilter{State: report.ErrorsOpen}).Look(); a != report.MaxErrors || b != a {
		t.Errorf("it is looked at %d attempts without a state, and at %d with one", a, b)
	}
	if got := (report.ErrorFilter{Key: "0123456789abcdef"}).Look(); got != 2*report.MaxErrors {
		t.Errorf("for one group it is looked at %d attempts", got)
	}
}
