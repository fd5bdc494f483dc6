package retry

import (
	"testing"
	"time"
)

func TestLastIsSaidOnlyWhenNoErrorCanLeadToAnotherAttempt(t *testing.T) {
	born := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(charged int, age time.Duration) Failure {
		return Failure{Charged: charged, Created: born, Due: born, Now: born.Add(age)}
	}
	byError := ByError(On("timeout", Fixed(1, time.Minute)), On("busy", Fixed(3, 0)), Otherwise(None()))
	for _, c := range []struct {
		policy Policy
		f      Failure
		want   bool
	}{
		{None(), at(1, 0), true},
		{Fixed(2, 0), at(2, 0), false},
		{Fixed(2, 0), at(3, 0), true},
		{Default(), at(10, 0), false},
		{Default(), at(11, 0), true},
		{Forever(time.Second), at(1000, 0), false},
		{Timetable(), at(1, 24*time.Hour-1), false},
		{Timetable(), at(1, 24*time.Hour), true},
		{Fixed(9, time.Hour).Deadline(2 * time.Hour), at(1, time.Hour), false},
		{Fixed(9, time.Hour).Deadline(2 * time.Hour), at(1, time.Hour+1), true},
		{Fixed(9, time.Hour).Deadline(2 * time.Hour).MaxDelay(time.Minute), at(1, time.Hour+1), false},
		{Fixed(9, time.Hour).Deadline(2 * time.Hour).Jitter(0.5), at(1, 90*time.Minute-1), false},
		{Fixed(9, time.Hour).Deadline(2 * time.Hour).Jitter(0.5), at(1, 90*time.Minute+1), true},
		{Fixed(9, 0).Only("timeout"), at(9, 0), false},
		{Fixed(9, 0).Except("timeout"), at(10, 0), true},
		{byError, at(1, 0), false},
		{byError, at(3, 0), false}, // another busy would be tried again
		{byError, at(4, 0), true},
		{ByError(On("a", None()), On("b", None())), at(1, 0), true},
		{ByError(On("a", Fixed(9, time.Hour).Deadline(time.Minute)), Otherwise(Forever(time.Minute))), at(1, 0), false},
		{Function("billing"), at(1000, 0), false},
		{Function("billing").Deadline(time.Hour), at(1, 2*time.Hour), true},
		{Fixed(-1, 0), at(10, 0), false}, // a mistake: the default decides
		{Fixed(-1, 0), at(11, 0), true},
	} {
		if got := c.policy.Last(c.f); got != c.want {
			t.Errorf("%v, attempt %d at the age of %v: %v", c.policy, c.f.Charged, c.f.Age(), got)
		}
	}
}

// What Last says must hold for every class, whatever chance draws, now and later.
func FuzzLastNeverSaysSoOfAnAttemptThatIsFollowedByAnother(f *testing.F) {
	f.Add("fixed:3:1m,jitter=0.5,deadline=1h", 2, int64(time.Minute), int64(0), 0.5, "timeout")
	f.Add("timetable", 1, int64(time.Hour), int64(time.Hour), 0.0, "")
	f.Add("exponential:5:1s,only=timeout", 6, int64(0), int64(time.Hour), 0.9, "timeout")
	f.Fuzz(func(t *testing.T, text string, charged int, age, longer int64, chance float64, class string) {
		p, err := Parse(text)
		if err != nil || age < 0 || longer < 0 || age > int64(MaxWait) || longer > int64(MaxWait) {
			return
		}
		born := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		now := Failure{Charged: charged, Created: born, Due: born, Now: born.Add(time.Duration(age)), Classes: []string{class}, Rand: chance}
		last := p.Last(now)
		now.Now = now.Now.Add(time.Duration(longer))
		if d := p.Decide(now); last && d.Retry {
			t.Errorf("%q said that it was the last, and decides %+v", text, d)
		}
	})
}
