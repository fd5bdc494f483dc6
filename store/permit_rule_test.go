package store

import (
	"testing"
	"time"

	"github.com/stint-go/stint"
)

// startsOf has an engine ask once, and returns what it bought and the state after that.
func startsOf(t *testing.T, now time.Time, state GateState, want int) (Hold, GateState) {
	t.Helper()
	r := Grant(1, now, []GateState{state}, PermitRequest{Take: []Taking{{Gates: []TakingGate{{Gate: state.Gate}}, Want: want}}})
	if len(r.Changed) == 1 {
		state = r.Changed[0]
	}
	return r.Holds[0], state
}

func TestASlowRuleThatWasReplacedHoldsUpNothing(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	slow := GateState{Gate: "g", Rule: stint.LimitRule{Starts: 1, Per: 31 * 24 * time.Hour}}
	h, state := startsOf(t, now, slow, 1)
	if len(h.Starts) != 1 || h.Next.Before(now.Add(30*24*time.Hour)) {
		t.Fatalf("it got %+v", h)
	}
	for _, rule := range []stint.LimitRule{{Starts: 10, Per: time.Second}, {Starts: 10, Per: time.Second, Burst: 5}} {
		state.Rule = rule
		if h, _ := startsOf(t, now.Add(time.Second), state, 1); len(h.Starts) != 0 || h.Next.After(now.Add(2*time.Second)) {
			t.Errorf("under %s it may buy the next start only at %v", rule, h.Next)
		}
	}
}

func TestAClockThatIsSetBackHoldsUpNothing(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	_, state := startsOf(t, now, GateState{Gate: "g", Rule: stint.LimitRule{Starts: 10, Per: time.Second}}, 1)
	back := now.Add(-time.Hour)
	if h, _ := startsOf(t, back, state, 1); h.Next.After(back.Add(time.Second)) {
		t.Errorf("an hour earlier the next start is at %v", h.Next)
	}
}

// The bound on what is ahead takes no start from those that were bought.
func TestStartsThatWereBoughtCountInFull(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for _, rule := range []stint.LimitRule{{Starts: 100, Per: time.Second}, {Starts: 100, Per: time.Second, Burst: 20}, {Starts: 2, Per: time.Minute, Burst: 2}} {
		state, last := GateState{Gate: "g", Rule: rule}, time.Time{}
		var all []time.Time
		for i := range 500 {
			var h Hold
			h, state = startsOf(t, now.Add(time.Duration(i)*17*time.Millisecond), state, 1+i%40)
			for _, at := range h.Starts {
				if at.Before(last) {
					t.Fatalf("under %s a start at %v follows one at %v", rule, at, last)
				}
				last, all = at, append(all, at)
			}
		}
		most := rule.Starts + max(1, rule.Burst)
		for i := range all {
			if j := i + most; j < len(all) && all[j].Sub(all[i]) < rule.Per {
				t.Fatalf("under %s more than %d start in %v from %v", rule, most, rule.Per, all[i])
			}
		}
		if len(all) < 2 {
			t.Errorf("under %s only %d start", rule, len(all))
		}
	}
}
