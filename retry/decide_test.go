package retry_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint/retry"
)

var due = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// live runs a job that always fails, with no time spent but waiting, and
// returns its waits and why it ended. It gives up after 100 failures.
func live(p retry.Policy) (waits []time.Duration, end string) {
	f := retry.Failure{Due: due, Now: due}
	for f.Charged = 1; f.Charged <= 100; f.Charged++ {
		d := p.Decide(f)
		if !d.Retry {
			return waits, d.Reason
		}
		waits = append(waits, d.Wait)
		f.Now = f.Now.Add(d.Wait)
	}
	return waits, ""
}

func sum(waits []time.Duration) (total time.Duration) {
	for _, w := range waits {
		total += w
	}
	return total
}

func TestExponentialDoublesItsWait(t *testing.T) {
	waits, end := live(retry.Default())
	var want []time.Duration
	for _, m := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512} {
		want = append(want, time.Duration(m)*time.Minute)
	}
	if !slices.Equal(waits, want) || end != "retries exhausted" {
		t.Errorf("the default policy waits %v and ends with %q", waits, end)
	}
	if got := sum(waits); got != 1023*time.Minute {
		t.Errorf("the default policy waits %v in all, want 1023m", got)
	}
}

func TestExponentialStopsGrowingInsteadOfOverflowing(t *testing.T) {
	p := retry.Exponential(retry.MaxRetries, time.Second)
	last := time.Duration(0)
	for n := 1; n <= 200; n++ {
		d := p.Decide(retry.Failure{Charged: n})
		if !d.Retry || d.Wait < last || d.Wait > retry.MaxWait {
			t.Fatalf("failure %d after a wait of %v: %+v", n, last, d)
		}
		last = d.Wait
	}
	for _, n := range []int{1 << 20, retry.MaxRetries} {
		if d := p.Decide(retry.Failure{Charged: n}); d.Wait != retry.MaxWait {
			t.Errorf("failure %d waits %v, want %v", n, d.Wait, retry.MaxWait)
		}
	}
	if d := retry.Exponential(100, retry.MaxWait).Decide(retry.Failure{Charged: 2}); d.Wait != retry.MaxWait {
		t.Errorf("twice the longest wait is %v", d.Wait)
	}
}

func TestFixedRunsOnceMoreThanItRetries(t *testing.T) {
	for n := range 5 {
		waits, end := live(retry.Fixed(n, 7*time.Second))
		if runs := len(waits) + 1; runs != n+1 || end != "retries exhausted" || sum(waits) != time.Duration(n)*7*time.Second {
			t.Errorf("fixed(%d) ran %d times, waited %v, ended with %q", n, runs, waits, end)
		}
	}
}

func TestNoneRunsOnce(t *testing.T) {
	if waits, end := live(retry.None()); len(waits) != 0 || end != "no retries" {
		t.Errorf("none waited %v and ended with %q", waits, end)
	}
}

func TestForeverNeverEnds(t *testing.T) {
	for _, n := range []int{1, 100, 1e9, math.MaxInt} {
		f := retry.Failure{Charged: n, Due: due, Now: due.AddDate(200, 0, 0)}
		if d := retry.Forever(time.Minute).Decide(f); d != retry.Again(time.Minute) {
			t.Errorf("failure %d: %+v", n, d)
		}
	}
}

func TestTimetableGoesByAge(t *testing.T) {
	for _, tt := range []struct {
		age  time.Duration
		want retry.Decision
	}{
		{-time.Hour, retry.Again(time.Minute)}, // clocks may disagree
		{0, retry.Again(time.Minute)},
		{5*time.Minute - 1, retry.Again(time.Minute)},
		{5 * time.Minute, retry.Again(5 * time.Minute)},
		{time.Hour - 1, retry.Again(5 * time.Minute)},
		{time.Hour, retry.Again(time.Hour)},
		{24*time.Hour - 1, retry.Again(time.Hour)},
		{24 * time.Hour, retry.Final("policy gave no date")},
	} {
		f := retry.Failure{Charged: 1000, Created: due.AddDate(-1, 0, 0), Due: due, Now: due.Add(tt.age)}
		if got := retry.Timetable().Decide(f); got != tt.want {
			t.Errorf("at the age of %v: %+v, want %+v", tt.age, got, tt.want)
		}
	}
	if waits, _ := live(retry.Timetable()); len(waits) != 5+11+23 {
		t.Errorf("the default timetable retries %d times", len(waits))
	}
}

func TestFiltersLetErrorsPassByClass(t *testing.T) {
	again, final := retry.Again(0), retry.Final("error not retriable")
	p := retry.Fixed(9, 0)
	for _, tt := range []struct {
		name    string
		p       retry.Policy
		classes []string
		want    retry.Decision
	}{
		{"only, outer class", p.Only("net", "dns"), []string{"net", "*net.OpError"}, again},
		{"only, inner type", p.Only("*net.OpError"), []string{"net", "*net.OpError"}, again},
		{"only, other error", p.Only("net"), []string{"network"}, final},
		{"only, no class", p.Only("net"), nil, final},
		{"except, its error", p.Except("net"), []string{"a", "net"}, final},
		{"except, other error", p.Except("net"), []string{"a"}, again},
		{"except, no class", p.Except("net"), nil, again},
		{"both, allowed", p.Only("net").Except("dns"), []string{"net"}, again},
		{"both, excepted", p.Only("net").Except("dns"), []string{"net", "dns"}, final},
		{"the last only counts", p.Only("net").Only("dns"), []string{"net"}, final},
		{"filter before count", retry.Fixed(0, 0).Only("net"), nil, final},
	} {
		if got := tt.p.Decide(retry.Failure{Charged: 1, Classes: tt.classes}); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestAnErrorCanForbidItsRetry(t *testing.T) {
	if d := retry.Forever(1).Decide(retry.Failure{NoRetry: true}); d != retry.Final("error not retriable") {
		t.Errorf("%+v", d)
	}
}

func TestByErrorTakesTheFirstMatch(t *testing.T) {
	cases := []retry.Case{
		retry.On("timeout", retry.Fixed(1, time.Second)),
		retry.On("net", retry.Forever(time.Minute)),
	}
	strict := retry.ByError(cases...)
	open := retry.ByError(append(cases, retry.Otherwise(retry.Forever(time.Hour)))...)
	for _, tt := range []struct {
		p       retry.Policy
		charged int
		classes []string
		want    retry.Decision
	}{
		{strict, 1, []string{"net", "timeout"}, retry.Again(time.Second)}, // the first case, not the first class
		{strict, 2, []string{"net", "timeout"}, retry.Final("retries exhausted")},
		{strict, 2, []string{"net"}, retry.Again(time.Minute)},
		{strict, 1, []string{"other"}, retry.Final("error not retriable")},
		{open, 1, []string{"other"}, retry.Again(time.Hour)},
		{open.MaxDelay(time.Minute), 1, nil, retry.Again(time.Minute)},
		{retry.ByError(retry.On("a", strict)), 1, []string{"a", "net"}, retry.Again(time.Minute)},
	} {
		if got := tt.p.Decide(retry.Failure{Charged: tt.charged, Classes: tt.classes}); got != tt.want {
			t.Errorf("%v on failure %d with %v: %+v, want %+v", tt.p, tt.charged, tt.classes, got, tt.want)
		}
	}
}

func TestMaxDelayCutsWaits(t *testing.T) {
	waits, _ := live(retry.Exponential(5, time.Second).MaxDelay(5 * time.Second))
	want := []time.Duration{1e9, 2e9, 4e9, 5e9, 5e9}
	if !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
}

func TestJitterShortensWaitsByChance(t *testing.T) {
	for _, tt := range []struct {
		p    retry.Policy
		rand float64
		want time.Duration
	}{
		{retry.Forever(time.Minute).Jitter(0.5), 0, time.Minute},
		{retry.Forever(time.Minute).Jitter(0.5), 0.5, 45 * time.Second},
		{retry.Forever(time.Minute).Jitter(1), 0.75, 15 * time.Second},
		{retry.Forever(time.Hour).Jitter(1).MaxDelay(time.Minute), 0.5, 30 * time.Second}, // not gathered at the maximum
		{retry.Forever(time.Minute), 0.5, time.Minute},
		{retry.Forever(time.Minute).Jitter(1), 7, time.Minute},
		{retry.Forever(time.Minute).Jitter(1), math.NaN(), time.Minute},
	} {
		if d := tt.p.Decide(retry.Failure{Rand: tt.rand}); d.Wait != tt.want {
			t.Errorf("%v with chance %v waits %v, want %v", tt.p, tt.rand, d.Wait, tt.want)
		}
	}
	almost := math.Nextafter(1, 0)
	if d := retry.Forever(retry.MaxWait).Jitter(1).Decide(retry.Failure{Rand: almost}); d.Wait < 0 {
		t.Errorf("jitter made the wait %v", d.Wait)
	}
}

func TestDeadlinePlansNothingBehindIt(t *testing.T) {
	p := retry.Forever(10 * time.Minute).Deadline(time.Hour)
	if waits, end := live(p); sum(waits) != time.Hour || end != "policy gave no date" {
		t.Errorf("waited %v in all and ended with %q", sum(waits), end)
	}
	f := retry.Failure{Due: due, Now: due.AddDate(5000, 0, 0)} // more than a Duration holds
	if d := p.Decide(f); d.Retry {
		t.Errorf("five thousand years later: %+v", d)
	}
	f.Now = due.AddDate(-5000, 0, 0)
	if d := p.Decide(f); !d.Retry {
		t.Errorf("five thousand years earlier: %+v", d)
	}
}

func TestLossesCountAndNothingElseDoes(t *testing.T) {
	again, exhausted := retry.Again(0), retry.Final("retries exhausted")
	for _, tt := range []struct {
		p       retry.Policy
		charged int
		want    retry.Decision
	}{
		{retry.Fixed(1, time.Hour), 1, again}, // at once, whatever it waits
		{retry.Fixed(1, time.Hour), 2, exhausted},
		{retry.Fixed(0, 0), 1, exhausted},
		{retry.Default().Only("net").Deadline(1), 10, again},
		{retry.Default().Only("net"), 11, exhausted},
		{retry.None(), 100, again},
		{retry.None().Only("net"), 100, again},
		{retry.Forever(time.Hour), 100, again},
		{retry.Timetable(), 100, again},
		{retry.Function("unknown"), 100, again},
		{retry.ByError(retry.On("a", retry.Fixed(1, 0)), retry.On("b", retry.Fixed(5, 0))), 5, again},
		{retry.ByError(retry.On("a", retry.Fixed(1, 0)), retry.On("b", retry.Fixed(5, 0))), 6, exhausted},
		{retry.ByError(retry.On("a", retry.None()), retry.On("b", retry.Fixed(0, 0))), 1, exhausted},
		{retry.ByError(retry.On("a", retry.None()), retry.Otherwise(retry.None())), 100, again},
		{retry.ByError(retry.On("a", retry.None())), 100, again},
	} {
		f := retry.Failure{Charged: tt.charged, Lost: true, NoRetry: true, Due: due, Now: due.AddDate(1, 0, 0)}
		if got := tt.p.Decide(f); got != tt.want {
			t.Errorf("%v on loss %d: %+v, want %+v", tt.p, tt.charged, got, tt.want)
		}
	}
}
