package retry_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/retry"
)

func TestTheZeroPolicyIsTheDefault(t *testing.T) {
	var zero retry.Policy
	for _, p := range []retry.Policy{retry.Default(), retry.Exponential(10, time.Minute), parse(t, "default")} {
		if p != zero {
			t.Errorf("%v is not the zero policy", p)
		}
	}
	if got, want := zero.String(), "exponential:10:1m"; got != want {
		t.Errorf("zero policy reads %q, want %q", got, want)
	}
}

func TestPoliciesBuiltAlikeAreEqual(t *testing.T) {
	build := func() retry.Policy {
		table := retry.Timetable(retry.Row{Younger: time.Hour, Wait: time.Minute}).Jitter(0.5)
		return retry.ByError(retry.On("a", table), retry.Otherwise(retry.Function("f"))).Except("b", "c")
	}
	if build() != build() {
		t.Error("two policies built alike differ")
	}
	if build() == build().Only("a") {
		t.Error("a filter makes no difference")
	}
	if retry.Fixed(1, 0).Only("b", "a", "b") != retry.Fixed(1, 0).Only("a", "b") {
		t.Error("the order of classes makes a difference")
	}
	if retry.Fixed(1, 0).Jitter(math.Copysign(0, -1)) != retry.Fixed(1, 0) {
		t.Error("no jitter makes a difference")
	}
}

func TestExponentialWithinFindsItsRetries(t *testing.T) {
	for _, tt := range []struct {
		total, first time.Duration
		n            int
	}{
		{1025 * time.Second, time.Second, 10},
		{1023 * time.Minute, time.Minute, 10},
		{2 * time.Second, time.Second, 1},
		{time.Hour, time.Second, 12}, // log2(3600) = 11.8
		{retry.MaxWait, 1, 61},
	} {
		if got, want := retry.ExponentialWithin(tt.total, tt.first), retry.Exponential(tt.n, tt.first); got != want {
			t.Errorf("exponential within %v from %v is %v, want %v", tt.total, tt.first, got, want)
		}
	}
}

func TestRetriesBoundsWhatErrorsLeadTo(t *testing.T) {
	for _, tt := range []struct {
		p       retry.Policy
		n       int
		bounded bool
	}{
		{retry.None(), 0, true},
		{retry.Fixed(3, 0), 3, true},
		{retry.Default().Only("a").Deadline(time.Hour), 10, true},
		{retry.Forever(1), 0, false},
		{retry.Timetable(), 0, false},
		{retry.Function("f"), 0, false},
		{retry.ByError(retry.On("a", retry.Fixed(3, 0)), retry.On("b", retry.Default())), 10, true},
		{retry.ByError(retry.On("a", retry.Fixed(3, 0)), retry.Otherwise(retry.Fixed(12, 0))), 12, true},
		{retry.ByError(retry.On("a", retry.Forever(1)), retry.On("b", retry.Default())), 0, false},
	} {
		if n, bounded := tt.p.Retries(); n != tt.n || bounded != tt.bounded {
			t.Errorf("%v has %d retries, bounded %t; want %d, %t", tt.p, n, bounded, tt.n, tt.bounded)
		}
	}
}

func TestMistakesAreCarriedUntilTheyAreAskedFor(t *testing.T) {
	row := func(younger, wait time.Duration) retry.Row { return retry.Row{Younger: younger, Wait: wait} }
	many := make([]string, 101)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	deep := retry.None()
	for range 5 {
		deep = retry.ByError(retry.On("a", deep))
	}
	for _, tt := range []struct {
		p    retry.Policy
		want string
	}{
		{retry.Fixed(-1, time.Second), "fixed: retries is -1; it must be between 0 and 2147483647"},
		{retry.Fixed(1, -time.Second), "fixed: wait is -1s; it must not be negative"},
		{retry.Fixed(1, math.MaxInt64), "the longest is 36500d"},
		{retry.Forever(0), "forever: wait is 0s; it must be longer"},
		{retry.Exponential(1, 0), "exponential: first is 0s; it must be longer"},
		{retry.ExponentialWithin(time.Second, time.Second), "exponential-within: total 1s leaves no room"},
		{retry.Timetable(row(time.Minute, time.Hour)), "timetable: rows[0]: wait 1h is longer than younger 1m"},
		{retry.Timetable(row(time.Hour, 1), row(time.Hour, 1)), "timetable: rows[1]: younger 1h is not above the 1h of the row before it"},
		{retry.Timetable(row(time.Hour, 0)), "timetable: rows[0]: wait is 0s"},
		{retry.Timetable(make([]retry.Row, 1)...), "timetable: rows[0]: younger is 0s"},
		{retry.None().Only(), "only: it names no class"},
		{retry.None().Except("a", ""), "except: classes[1] is empty"},
		{retry.None().Only("a\nb"), "control character"},
		{retry.None().Only("\xff"), "not valid UTF-8"},
		{retry.None().Only(strings.Repeat("x", 256)), "classes[0] has 256 bytes; the longest has 255"},
		{retry.None().Only(many...), "rows, cases and classes add up to 101; the most is 100"},
		{retry.ByError(), "by_error: it has no cases"},
		{retry.ByError(retry.On("", retry.None())), "by_error: cases[0]: class is empty"},
		{retry.ByError(retry.Otherwise(retry.None())), "by_error: otherwise stands after"},
		{retry.ByError(retry.Otherwise(retry.None()), retry.On("a", retry.None())), "by_error: otherwise stands after"},
		{retry.ByError(retry.On("a", retry.None()), retry.On("b", retry.Fixed(-1, 0))), "by_error: cases[1]: fixed: retries is -1"},
		{deep, "policies are nested 6 deep; the deepest is 5"},
		{retry.Function(""), "function: name is empty"},
		{retry.None().Jitter(1.1), "jitter is 1.1; it must be between 0 and 1"},
		{retry.None().Jitter(math.NaN()), "jitter is NaN"},
		{retry.None().MaxDelay(0), "max is 0s"},
		{retry.None().Deadline(-1), "deadline is -1ns"},
		{retry.Fixed(-1, 0).Deadline(-1).Only(), "fixed: retries is -1"}, // the first mistake
	} {
		err := tt.p.Validate()
		if !errors.Is(err, retry.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error is %q, want one that says %q", err, tt.want)
		}
		if _, err := tt.p.MarshalJSON(); err == nil {
			t.Errorf("a policy with a mistake was encoded: %v", tt.p)
		}
		if d := tt.p.Decide(retry.Failure{Charged: 2}); !d.Retry || d.Wait != 2*time.Minute || d.Note == "" {
			t.Errorf("a policy with a mistake decided %+v, want the default and a note", d)
		}
	}
}

func parse(t *testing.T, text string) retry.Policy {
	t.Helper()
	p, err := retry.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
