package report_test

import (
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
		"report_test.(*boiler).explode (errorgroups_test.go:29)": func() { b.explode("with, (odd) arguments") },
		"report_test.(*boiler).leak (errorgroups_test.go:30)":    b.leak,
		"report_test.index (errorgroups_test.go:31)":             func() { index(nil, 3) },
		"report_test.generic[...] (errorgroups_test.go:32)":      func() { generic([]int{}, 1) },
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

func TestErrorsAreGroupedByClassPlaceAndKind(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC) }
	panicked := "panic(1)\n\tpanic.go:1\nmain.f()\n\t/a/b.go:2"
	all := []report.FailedAttempt{
		{Job: 9, Kind: "k", Class: "timeout", Message: "newest", Ended: at(9)},
		{Job: 7, Kind: "k", Class: "timeout", Message: "first of 7", Ended: at(3)},
		{Job: 7, Kind: "k", Class: "timeout", Message: "second of 7", Ended: at(4)},
		{Job: 8, Kind: "other", Class: "timeout", Message: "m", Ended: at(5)},
		{Job: 6, Kind: "k", Class: "panic", Message: "m", Stack: panicked, Ended: at(6)},
		{Job: 5, Kind: "k", Class: "panic", Message: "m", Ended: at(7)},
	}
	want := report.ErrorReport{Attempts: 6, CutOff: true, Groups: []report.ErrorGroup{
		{Class: "timeout", Kind: "k", Attempts: 3, Jobs: 2, First: at(3), Last: at(9), Message: "newest", Job: 9, IDs: []stint.ID{9, 7}},
		{Class: "panic", Kind: "k", Attempts: 1, Jobs: 1, First: at(7), Last: at(7), Message: "m", Job: 5, IDs: []stint.ID{5}},
		{Class: "panic", Place: "main.f (b.go:2)", Kind: "k", Attempts: 1, Jobs: 1, First: at(6), Last: at(6), Message: "m", Job: 6, IDs: []stint.ID{6}},
		{Class: "timeout", Kind: "other", Attempts: 1, Jobs: 1, First: at(5), Last: at(5), Message: "m", Job: 8, IDs: []stint.ID{8}},
	}}
	for range 2 {
		if diff := cmp.Diff(want, report.GroupErrors(all, true)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		slices.Reverse(all) // in any order
	}
	if got := report.GroupErrors(nil, false); got.Groups == nil || got.CutOff {
		t.Errorf("of nothing there is %+v", got)
	}
	var odd []report.FailedAttempt
	for i := range report.MaxErrorGroups + 5 {
		odd = append(odd, report.FailedAttempt{Class: fmt.Sprint(i), Ended: at(1)})
	}
	if got := report.GroupErrors(odd, false); len(got.Groups) != report.MaxErrorGroups || !got.CutOff || got.Attempts != len(odd) {
		t.Errorf("%d groups of %d attempts are told, cut off: %v", len(got.Groups), got.Attempts, got.CutOff)
	}
}
