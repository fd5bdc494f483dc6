package store_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// ledger is what a store keeps of gates, and what engines were told.
type ledger struct {
	t      *testing.T
	now    time.Time
	rules  map[string]stint.LimitRule
	states map[string]store.GateState
	told   map[store.EngineID]map[string]int
}

func newLedger(t *testing.T, rules map[string]stint.LimitRule) *ledger {
	return &ledger{t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), rules, map[string]store.GateState{}, map[store.EngineID]map[string]int{}}
}

// ask grants a request, checks the answer, and writes what changed.
func (l *ledger) ask(engine store.EngineID, req store.PermitRequest) []store.Hold {
	l.t.Helper()
	var states []store.GateState
	for _, gate := range req.Gates() {
		s := l.states[gate]
		s.Gate, s.Rule = gate, l.rules[store.LimitOf(gate)]
		states = append(states, s)
	}
	before := fmt.Sprint(states)
	result := store.Grant(engine, l.now, states, req)
	if again := store.Grant(engine, l.now, states, req); !reflect.DeepEqual(result, again) || fmt.Sprint(states) != before {
		l.t.Fatalf("asked twice it answers %+v and %+v, or it has changed what it was given", result, again)
	}
	for _, s := range result.Changed {
		if s.N != l.states[s.Gate].N+1 {
			l.t.Fatalf("state %d of %s follows %d", s.N, s.Gate, l.states[s.Gate].N)
		}
		l.states[s.Gate] = s
	}
	if l.told[engine] == nil {
		l.told[engine] = map[string]int{}
	}
	for _, h := range result.Holds {
		l.told[engine][h.Gate] = h.Permits
		if h.N != l.states[h.Gate].N {
			l.t.Fatalf("a hold of %s is of state %d, and %d is the newest", h.Gate, h.N, l.states[h.Gate].N)
		}
	}
	l.check()
	return result.Holds
}

// check compares what engines were told with the states, and these with the rules.
func (l *ledger) check() {
	l.t.Helper()
	for gate, s := range l.states {
		sum, seen := 0, map[store.EngineID]bool{}
		for _, u := range s.Used {
			if u.Held < 0 || u.Asked < 0 || seen[u.Engine] || u.Held+u.Asked == 0 {
				l.t.Fatalf("%s is used by %+v", gate, s.Used)
			}
			seen[u.Engine] = true
			sum += u.Held
			if u.Held != l.told[u.Engine][gate] {
				l.t.Fatalf("of %s engine %d was told %d and holds %d", gate, u.Engine, l.told[u.Engine][gate], u.Held)
			}
		}
		for engine, told := range l.told {
			if told[gate] > 0 && !seen[engine] {
				l.t.Fatalf("what engine %d holds of %s is lost", engine, gate)
			}
		}
		if most := l.rules[store.LimitOf(gate)].AtOnce; most > 0 && sum > most || most < 0 && sum > 0 {
			l.t.Fatalf("of %s %d are held", gate, sum)
		}
	}
}

// seeded runs a test with some seeds, which its name tells.
func seeded(t *testing.T, test func(t *testing.T, r *rand.Rand)) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { test(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func TestEnginesHoldNoMoreThanARuleHasAndNothingIsLost(t *testing.T) {
	seeded(t, func(t *testing.T, r *rand.Rand) {
		l := newLedger(t, map[string]stint.LimitRule{
			"a": {AtOnce: 1 + r.IntN(5)}, "b": {AtOnce: 1 + r.IntN(20)}, "none": {AtOnce: -1},
			"rate": {Starts: 10, Per: time.Second, Burst: 3}, "both": {AtOnce: 3, Starts: 5, Per: time.Second},
		})
		gates := []string{"a", "b", "b=1", "both", "none", "rate", "unruled"}
		for range 1000 {
			l.now = l.now.Add(time.Duration(r.Int64N(int64(300 * time.Millisecond))))
			engine := store.EngineID(r.IntN(5))
			var req store.PermitRequest
			for _, gate := range gates {
				if r.IntN(3) == 0 {
					req.Keep = append(req.Keep, store.Keeping{Gate: gate, Permits: r.IntN(4), Doubted: r.IntN(10) == 0})
				}
			}
			for range r.IntN(3) {
				take := store.Taking{Want: 1 + r.IntN(6)}
				for _, gate := range gates {
					if r.IntN(4) == 0 {
						take.Gates = append(take.Gates, store.TakingGate{Gate: gate, Permits: r.IntN(2), Starts: r.IntN(2)})
					}
				}
				req.Take = append(req.Take, take)
			}
			l.ask(engine, req)
		}
	})
}

func TestPermitsOfSeveralGatesAreGivenTogetherOrNotAtAll(t *testing.T) {
	seeded(t, func(t *testing.T, r *rand.Rand) {
		l := newLedger(t, map[string]stint.LimitRule{"a": {AtOnce: 3}, "b": {AtOnce: 5}, "c": {AtOnce: 4, Starts: 3, Per: time.Second}})
		for range 500 {
			l.now = l.now.Add(time.Duration(r.Int64N(int64(time.Second))))
			engine := store.EngineID(r.IntN(3))
			if r.IntN(2) == 0 {
				n := r.IntN(3)
				l.ask(engine, store.PermitRequest{Keep: []store.Keeping{{Gate: "a", Permits: n}, {Gate: "b", Permits: n}, {Gate: "c", Permits: n}}})
				continue
			}
			before := l.told[engine]["a"]
			holds := l.ask(engine, store.PermitRequest{Take: []store.Taking{{
				Gates: []store.TakingGate{{Gate: "a"}, {Gate: "b"}, {Gate: "c"}}, Want: 1 + r.IntN(4),
			}}})
			got := holds[0].Permits - before
			if holds[0].Permits != holds[1].Permits || holds[0].Permits != holds[2].Permits || got != len(holds[2].Starts) {
				t.Fatalf("of three gates it holds %+v, after %d of each", holds, before)
			}
		}
	})
}

func TestWhoeverWaitsForPermitsGetsThemInTurn(t *testing.T) {
	seeded(t, func(t *testing.T, r *rand.Rand) {
		most := 1 + r.IntN(3)
		l := newLedger(t, map[string]stint.LimitRule{"x": {AtOnce: most}})
		var waiting, holding []store.EngineID
		for range 1000 {
			l.now = l.now.Add(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
			for _, engine := range waiting { // they ask again, before anybody thinks that they do not wait any more
				if holds := l.ask(engine, takeOne("x")); holds[0].Permits > 0 != (most > len(holding) && engine == waiting[0]) {
					t.Fatalf("engine %d got %d; %d of %d were held, and %v wait", engine, holds[0].Permits, len(holding), most, waiting)
				} else if holds[0].Permits > 0 {
					holding, waiting = append(holding, engine), waiting[1:]
				}
			}
			engine := store.EngineID(r.IntN(8))
			switch i := slices.Index(holding, engine); {
			case i >= 0:
				l.ask(engine, store.PermitRequest{Keep: []store.Keeping{{Gate: "x"}}})
				holding = slices.Delete(holding, i, i+1)
			case !slices.Contains(waiting, engine):
				free := most - len(holding) - len(waiting)
				if got := l.ask(engine, takeOne("x"))[0].Permits; got > 0 != (free > 0) {
					t.Fatalf("engine %d came last and got %d; %d of %d were held, and %v wait", engine, got, len(holding), most, waiting)
				} else if got > 0 {
					holding = append(holding, engine)
				} else {
					waiting = append(waiting, engine)
				}
			}
		}
	})
}

func takeOne(gate string) store.PermitRequest {
	return store.PermitRequest{Take: []store.Taking{{Gates: []store.TakingGate{{Gate: gate}}, Want: 1}}}
}

func TestWhoDoesNotAskAnyMoreHoldsUpNobody(t *testing.T) {
	l := newLedger(t, map[string]stint.LimitRule{"x": {AtOnce: 1}})
	l.ask(1, takeOne("x"))
	l.ask(2, takeOne("x"))
	l.ask(1, store.PermitRequest{Keep: []store.Keeping{{Gate: "x"}}})
	if got := l.ask(3, takeOne("x"))[0].Permits; got != 0 {
		t.Fatalf("before its turn it got %d", got)
	}
	l.now = l.now.Add(4 * time.Second)
	if got := l.ask(3, takeOne("x"))[0].Permits; got != 1 {
		t.Fatalf("when the other one did not ask for four seconds it got %d", got)
	}
}

func TestEnginesAreWokenForRoomAndForThoseWhoWait(t *testing.T) {
	state := func(used ...store.GateUse) []store.GateState {
		return []store.GateState{{Gate: "x", N: 7, Rule: stint.LimitRule{AtOnce: 2}, Used: used}}
	}
	now := time.Now()
	for what, c := range map[string]struct {
		states []store.GateState
		req    store.PermitRequest
		want   []store.Wake
	}{
		"the first asks":           {state(), takeOne("x"), nil},
		"one has to wait":          {state(store.GateUse{Engine: 2, Held: 2}), takeOne("x"), []store.Wake{{Gate: "x"}}},
		"one gives back":           {state(store.GateUse{Engine: 1, Held: 2}, store.GateUse{Engine: 3, Asked: 1, Since: now}, store.GateUse{Engine: 4, Asked: 1, Since: now}), store.PermitRequest{Keep: []store.Keeping{{Gate: "x", Permits: 1}}}, []store.Wake{{Gate: "x", Engine: 3}}},
		"one gives back to nobody": {state(store.GateUse{Engine: 1, Held: 2}, store.GateUse{Engine: 3, Held: 1}), store.PermitRequest{Keep: []store.Keeping{{Gate: "x", Permits: 1}}}, nil},
	} {
		if diff := cmp.Diff(c.want, store.Grant(1, now, c.states, c.req).Wake); diff != "" {
			t.Errorf("when %s, others are woken (-want +got):\n%s", what, diff)
		}
	}
}

// The generic cell rate algorithm: in no window of the rate's time are there more starts than it has and its
// burst, they are not closer together than the rate says when it has no burst, and who always asks gets them all.
func TestStartsFollowTheRate(t *testing.T) {
	seeded(t, func(t *testing.T, r *rand.Rand) {
		rule := stint.LimitRule{Starts: 1 + r.IntN(50), Per: time.Duration(1+r.IntN(20)) * 100 * time.Millisecond}
		rule.Burst = r.IntN(rule.Starts + 1)
		if err := rule.Check(); err != nil {
			t.Fatal(err)
		}
		l := newLedger(t, map[string]stint.LimitRule{"x": rule})
		pauses := r.IntN(2) == 0
		var all []time.Time
		began := l.now
		for l.now.Sub(began) < 20*rule.Per {
			l.now = l.now.Add(time.Duration(r.Int64N(int64(200 * time.Millisecond))))
			if pauses && r.IntN(20) == 0 {
				l.now = l.now.Add(2 * rule.Per)
			}
			req := takeOne("x")
			req.Take[0].Want = 1 + r.IntN(5)
			if !pauses {
				req.Take[0].Want = 10_000
			}
			h := l.ask(store.EngineID(r.IntN(3)), req)[0]
			for _, start := range h.Starts {
				if start.Before(l.now) || start.After(l.now.Add(store.StartLead)) {
					t.Fatalf("at %v the start %v was bought", l.now, start)
				}
			}
			if h.Next.Before(l.now) {
				t.Fatalf("at %v more can be bought from %v on", l.now, h.Next)
			}
			all = append(all, h.Starts...)
		}
		for i, first := range all {
			n, _ := slices.BinarySearchFunc(all[i:], first.Add(rule.Per), time.Time.Compare)
			if n > rule.Starts+max(1, rule.Burst) {
				t.Fatalf("under the rule %v there are %d starts in %v", rule, n, rule.Per)
			}
			if i > 0 && (first.Before(all[i-1]) || rule.Burst <= 1 && first.Sub(all[i-1]) < rule.Per/time.Duration(rule.Starts)) {
				t.Fatalf("under the rule %v start %v follows %v", rule, first, all[i-1])
			}
		}
		if want := float64(20*rule.Starts) * 0.9; !pauses && float64(len(all)) < want-1 {
			t.Fatalf("in 20 times %v there are %d starts under the rule %v, want about %v", rule.Per, len(all), rule, want)
		}
	})
}

func TestWhatChangesNothingIsNotWritten(t *testing.T) {
	l := newLedger(t, map[string]stint.LimitRule{"x": {AtOnce: 2}})
	l.ask(1, takeOne("x"))
	l.ask(1, store.PermitRequest{Keep: []store.Keeping{{Gate: "x", Permits: 1}, {Gate: "y", Permits: 3}}})
	l.ask(1, store.PermitRequest{Take: []store.Taking{{Gates: []store.TakingGate{{Gate: "x", Permits: 1}}, Want: 1}}})
	if n := l.states["x"].N; n != 1 {
		t.Errorf("after one change and two questions the state is %d", n)
	}
	h := l.ask(1, store.PermitRequest{Keep: []store.Keeping{{Gate: "x", Permits: 1, Doubted: true}}})
	if h[0].N != 2 || l.states["x"].N != 2 {
		t.Errorf("doubted it is %+v, and the state %d, want 2", h[0], l.states["x"].N)
	}
}
