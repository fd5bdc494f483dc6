package store_test

import (
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

func TestWhatComesAgainGoesFirstUnderAnOrder(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	kept, halts := stint.LimitRule{AtOnce: 1, InOrder: true}, stint.LimitRule{AtOnce: 1, InOrder: true, Halt: true}
	waits := []store.GateUse{{Engine: 2, Asked: 1, Since: now}} // it asked before
	holds := []store.GateUse{{Engine: 2, Held: 1}}
	mine := []store.GateUse{{Engine: 1, Held: 1}}
	for name, c := range map[string]struct {
		rule           stint.LimitRule
		order          store.GateOrder
		used           []store.GateUse
		again          bool
		have           int
		permits, asked int
		blocked        bool
	}{
		"nothing comes again":                          {kept, store.GateOrder{}, nil, false, 0, 1, 0, false},
		"nothing comes again, and another one waits":   {kept, store.GateOrder{}, waits, true, 0, 0, 1, false},
		"one comes again":                              {kept, store.GateOrder{Again: 7}, nil, false, 0, 0, 0, true},
		"one comes again, and this is for it":          {kept, store.GateOrder{Again: 7}, nil, true, 0, 1, 0, true},
		"one comes again, and others wait in vain":     {kept, store.GateOrder{Again: 7}, waits, true, 0, 1, 0, true},
		"one comes again, and another one has it":      {kept, store.GateOrder{Again: 7}, holds, true, 0, 0, 1, true},
		"one comes again, and this holds what is left": {kept, store.GateOrder{Again: 7}, mine, true, 1, 1, 0, true},
		"one comes again, but there is no order":       {stint.LimitRule{AtOnce: 1}, store.GateOrder{Again: 7}, nil, false, 0, 1, 0, false},
		"one failed":                                   {halts, store.GateOrder{Failed: 7}, nil, false, 0, 0, 0, true},
		"one failed, and this is for what comes again": {halts, store.GateOrder{Again: 9, Failed: 7}, nil, true, 0, 0, 0, true},
		"one failed, which halts nothing":              {kept, store.GateOrder{Failed: 7}, nil, false, 0, 1, 0, false},
		"none may start":                               {stint.LimitRule{AtOnce: -1, InOrder: true}, store.GateOrder{Again: 7}, nil, true, 0, 0, 1, true},
	} {
		state := store.GateState{Gate: "g", Rule: c.rule, Used: c.used, GateOrder: c.order}
		r := store.Grant(1, now, []store.GateState{state}, store.PermitRequest{
			Take: []store.Taking{{Gates: []store.TakingGate{{Gate: "g", Permits: c.have}}, Want: 1, Again: c.again}},
		})
		h, asked := r.Holds[0], 0
		for _, s := range r.Changed {
			for _, u := range s.Used {
				if u.Engine == 1 {
					asked = u.Asked
				}
			}
		}
		if h.Permits != c.permits || h.Blocked != c.blocked || asked != c.asked {
			t.Errorf("%s: it holds %d and waits for %d, blocked %v; want %d, %d, %v", name, h.Permits, asked, h.Blocked, c.permits, c.asked, c.blocked)
		}
	}
}

func TestWhatIsHeldUpByOneGateGetsNothingOfTheOthers(t *testing.T) {
	states := []store.GateState{
		{Gate: "a", Rule: stint.LimitRule{AtOnce: 1, InOrder: true}, GateOrder: store.GateOrder{Again: 7}},
		{Gate: "b", Rule: stint.LimitRule{AtOnce: 5}},
	}
	take := store.Taking{Gates: []store.TakingGate{{Gate: "a"}, {Gate: "b"}}, Want: 3}
	r := store.Grant(1, time.Now(), states, store.PermitRequest{Take: []store.Taking{take}})
	if len(r.Changed) > 0 {
		t.Errorf("held up, it changed %+v", r.Changed)
	}
	take.Again = true
	r = store.Grant(1, time.Now(), states, store.PermitRequest{Take: []store.Taking{take}})
	if r.Holds[0].Permits != 1 || r.Holds[1].Permits != 1 {
		t.Errorf("coming again, it holds %+v", r.Holds)
	}
}

func TestWhoWasHeldUpIsWokenWhenAPermitComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		rule  stint.LimitRule
		order store.GateOrder
		want  int
	}{
		"nothing holds them up any more": {stint.LimitRule{AtOnce: 1, InOrder: true}, store.GateOrder{}, 1},
		"something does":                 {stint.LimitRule{AtOnce: 1, InOrder: true}, store.GateOrder{Again: 7}, 0},
		"there is no order":              {stint.LimitRule{AtOnce: 1}, store.GateOrder{}, 0},
	} {
		state := store.GateState{Gate: "g", Rule: c.rule, Used: []store.GateUse{{Engine: 1, Held: 1}}, GateOrder: c.order}
		r := store.Grant(1, time.Now(), []store.GateState{state}, store.PermitRequest{Keep: []store.Keeping{{Gate: "g"}}})
		if len(r.Wake) != c.want {
			t.Errorf("%s: it wakes %+v", name, r.Wake)
		}
	}
}
