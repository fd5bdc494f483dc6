package store

import (
	"slices"
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

// However dear the starts that others buy, in no time of the rate do all cost more than it has and its burst,
// or than one of them: who buys dear ones gets some beside those who buy cheap ones, and nothing is lost.
func TestStartsCountAsWhatTheyCost(t *testing.T) {
	for _, rule := range []stint.LimitRule{{Starts: 100, Per: time.Second}, {Starts: 100, Per: time.Second, Burst: 20}, {Starts: 10, Per: time.Second, Burst: 10}} {
		now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
		state := GateState{Gate: "g", Rule: rule}
		type start struct {
			at   time.Time
			cost int
		}
		var all []start
		spent := map[int]int{}
		for i := range 3000 {
			now = now.Add(7 * time.Millisecond)
			if i%500 == 0 {
				now = now.Add(5 * time.Second)
			}
			cost := []int{1, 3, 30}[i%3]
			r := Grant(1, now, []GateState{state}, PermitRequest{Take: []Taking{{Gates: []TakingGate{{Gate: "g", Cost: cost}}, Want: 1 + 30/cost}}})
			if len(r.Changed) == 1 {
				state = r.Changed[0]
			}
			for _, at := range r.Holds[0].Starts {
				if r.Holds[0].Cost != cost || at.After(now.Add(StartLead)) || at.Before(now) {
					t.Fatalf("under %s a start of %d was bought for %v at %v, as one of %d", rule, r.Holds[0].Cost, at, now, cost)
				}
				all, spent[cost] = append(all, start{at, cost}), spent[cost]+cost
			}
		}
		slices.SortStableFunc(all, func(a, b start) int { return a.at.Compare(b.at) })
		total := 0
		for i, first := range all {
			total += first.cost
			for _, within := range []time.Duration{rule.Per, rule.Per / 10} {
				n, most := 0, int(int64(rule.Starts)*int64(within)/int64(rule.Per))+max(30, rule.Burst)
				for _, s := range all[i:] {
					if s.at.Sub(first.at) < within {
						n += s.cost
					}
				}
				if n > most {
					t.Fatalf("under %s starts of %d begin in %v from %v, want at most %d", rule, n, within, first.at, most)
				}
			}
		}
		if want := 21 * rule.Starts * 9 / 10; total < want || spent[1] == 0 || spent[3] == 0 || spent[30] == 0 {
			t.Errorf("under %s starts of %d begin in 21 s, %v by cost, want %d at least", rule, total, spent, want)
		}
	}
}

func TestOneRequestBuysStartsOfAGateAtOneCost(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	state := GateState{Gate: "g", Rule: stint.LimitRule{Starts: 100, Per: time.Second, Burst: 50}}
	r := Grant(1, now, []GateState{state}, PermitRequest{Take: []Taking{
		{Gates: []TakingGate{{Gate: "g", Cost: 5}}, Want: 2},
		{Gates: []TakingGate{{Gate: "g"}}, Want: 2},
	}})
	if h := r.Holds[0]; h.Cost != 5 || len(h.Starts) != 2 || h.Permits != 2 {
		t.Errorf("it got %+v, want two starts of 5", h)
	}
}

// A rule that is faster now is not held up by what a dear start cost under the one before.
func TestADearStartUnderASlowRuleThatWasReplacedHoldsUpNoMoreThanItCosts(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	r := Grant(1, now, []GateState{{Gate: "g", Rule: stint.LimitRule{Starts: 1, Per: time.Hour}}},
		PermitRequest{Take: []Taking{{Gates: []TakingGate{{Gate: "g", Cost: 20}}, Want: 1}}})
	state := r.Changed[0]
	if h := r.Holds[0]; len(h.Starts) != 1 || h.Next.Before(now.Add(20*time.Hour)) || state.Cost != 20 {
		t.Fatalf("it got %+v, and left %+v", h, state)
	}
	state.Rule = stint.LimitRule{Starts: 10, Per: time.Second}
	if h, _ := startsOf(t, now, state, 1); h.Next.Before(now.Add(2*time.Second)) || h.Next.After(now.Add(3*time.Second)) {
		t.Errorf("under 10 a second a start after one of 20 comes after %v", h.Next.Sub(now))
	}
	later := now.Add(time.Hour)
	if h, after := startsOf(t, later, state, 1); len(h.Starts) != 0 || h.Next.After(later.Add(3*time.Second)) {
		t.Errorf("an hour later: %+v, %+v", h, after)
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

func TestAStartIsUsedAsLongAsTheSlackOfItsPeriodMakesUpForIt(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"100/1s":   20 * time.Millisecond,
		"1/1s":     20 * time.Millisecond,
		"10/100ms": 20 * time.Millisecond,
		"1/10s":    200 * time.Millisecond,
		"10/1m":    1200 * time.Millisecond,
		"60/1m":    time.Second,
		"6000/1m":  20 * time.Millisecond,
		"1/1h":     72 * time.Second,
	} {
		rule, err := stint.ParseLimitRule(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := LateStart(rule); got != want {
			t.Errorf("under %s a start is used for %v, want %v", text, got, want)
		}
	}
}
