package engine

import (
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// setOf is a set of gates of which each job counts as one start.
func setOf(gates ...*gate) *gateSet {
	set := &gateSet{want: 1}
	for _, g := range gates {
		set.add(g, 1)
	}
	return set
}

func TestALastPermitIsKeptOnlyWhileItMayBeOfUse(t *testing.T) {
	now := time.Now()
	for used, want := range map[time.Duration]int{time.Second: 1, idlePermits + time.Second: 0} {
		g := &gate{held: 1, rule: stint.LimitRule{AtOnce: 3}, lastUsed: now.Add(-used)}
		if n := g.keep(now); n != want {
			t.Errorf("used %v ago, of one permit of three that nobody else has left it keeps %d, want %d", used, n, want)
		}
	}
}

func TestAnEngineAsksForNoMorePermitsThanItHasSlots(t *testing.T) {
	pool := newPool(make([]slot, 5), 0, 0, newWakeup())
	shared := &gate{name: "shared", held: 2, used: 1, rule: stint.LimitRule{AtOnce: 10}}
	one, other := setOf(shared), setOf(shared)
	one.want, other.want = 64, 64
	one.runIn(pool)
	other.runIn(pool)
	promised := map[*gate]int{}
	if n := one.taking(promised).Want; n != 4 {
		t.Errorf("of 5 slots of which 1 is used it asks for %d, want 4", n)
	}
	if n := other.taking(promised).Want; n != 0 {
		t.Errorf("for other jobs in the same slots it asks for %d, want 0", n)
	}
	if shared.used = 5; !one.noSlots() {
		t.Error("all slots are used, and it would ask for more")
	}
	if shared.left = 800; one.noSlots() || one.taking(map[*gate]int{}).Want != 64 || !one.grows() {
		t.Errorf("of 800 that nobody has, it asks for %d, want 64, to claim more at once", one.taking(map[*gate]int{}).Want)
	}
	shared.left = 0
	shared.used, shared.rule = 1, stint.LimitRule{Starts: 100, Per: time.Second}
	if n := one.taking(map[*gate]int{}).Want; n != 64 {
		t.Errorf("of starts of a rate it asks for %d, want 64", n)
	}
}

func TestLessUrgentLanesHaveTheRoomThatALimitLeavesFreeAndNoOther(t *testing.T) {
	bound := stint.LimitRule{AtOnce: 10}
	for name, c := range map[string]struct {
		urgent  gate
		waits   int  // tasks of it that were claimed and wait
		avoided bool // it is left to other engines for a while
		want    int  // lanes that are claimed from
	}{
		"permits that grow":                     {urgent: gate{held: 1, left: 9, rule: bound}, want: 1},
		"a permit for each slot":                {urgent: gate{held: 4, rule: bound}, want: 1},
		"and as many tasks as may wait for one": {urgent: gate{held: 4, used: 4, waiting: 5, rule: bound}, waits: 5, want: 0},
		"no permits yet":                        {urgent: gate{}, want: 1},
		"a limit that binds":                    {urgent: gate{held: 3, rule: bound}, want: 2},
		"a rate":                                {urgent: gate{held: 4, starts: []*starts{{cost: 1, at: make([]time.Time, 3)}}, rule: stint.LimitRule{Starts: 9, Per: time.Second}}, want: 2},
		"an order":                              {urgent: gate{held: 4, rule: stint.LimitRule{AtOnce: 1, InOrder: true}}, want: 2},
		"a lane that is left to others":         {urgent: gate{held: 4, rule: bound}, avoided: true, want: 2},
		"a pause":                               {urgent: gate{held: 4, rule: bound, paused: time.Now().Add(time.Hour)}, want: 1},
	} {
		s := &session{pools: newPools(Config{Slots: 4}, nil, make([]slot, 4), newWakeup())}
		p := &permits{s: s, gates: map[string]*gate{}, sets: map[string]*gateSet{}, news: newWakeup()}
		later := target{Lane: store.LimitedLane("default", 1, store.PartNormal, "", "later")}
		p.ofLocked(&later).gates[0].held = 4
		urgent := target{Lane: store.LimitedLane("default", 0, store.PartNormal, "", "urgent")}
		c.urgent.name, c.urgent.pools = "urgent", s.pools.all
		p.gates["urgent"] = &c.urgent
		p.ofLocked(&urgent).waiting = make([]*task, c.waits)
		if c.avoided {
			s.pools.rest.avoided.Store(&avoidedLanes{lanes: map[store.LaneID]bool{urgent.ID: true}, until: time.Now().Add(time.Minute)})
		}
		if open, blocked := p.sift([]target{urgent, later}); len(open) != c.want || len(open)+len(blocked) != 2 {
			t.Errorf("%s: of the 2 lanes %d are claimed from, and %d wait, want %d", name, len(open), len(blocked), c.want)
		}
	}
}

// Many engines with a permit each would do little but claim, if each claimed only what starts soon.
func TestWhereMuchWorkWaitsAnEngineClaimsMoreOfItAtOnce(t *testing.T) {
	p := &permits{gates: map[string]*gate{}, sets: map[string]*gateSet{}, news: newWakeup()}
	lane := store.LimitedLane("default", 0, store.PartNormal, "", "shared")
	set := p.setLocked(lane.Limits)
	set.took, set.gates[0].held, set.gates[0].used = 5*time.Millisecond, 2, 2
	for claims, want := range []int{0: 10, 1: 10, 7: 10, 8: 40, 20: 40} {
		if set.full = 0; want == 0 {
			continue
		}
		for range claims {
			p.claimed(lane, 10, true)
		}
		if n := set.most(); n != want {
			t.Errorf("after %d claims that brought all, it claims %d for 2 permits and jobs of 5 ms, want %d", claims, n, want)
		}
	}
	if p.claimed(lane, 9, false); set.most() != 10 {
		t.Errorf("after one that brought less it claims %d, want 10", set.most())
	}
}

func TestTasksThatWaitAskOthersForPermitsOnlyIfTheEngineHasNone(t *testing.T) {
	for held, try := range map[int]bool{0: false, 1: true} {
		set := setOf(&gate{held: held, used: held, pools: []*pool{{slots: make([]slot, 5), together: 1}}, rule: stint.LimitRule{AtOnce: 10}})
		set.waiting = []*task{{}}
		if got := set.taking(map[*gate]int{}).Try; got != try {
			t.Errorf("with %d permits it only tries: %v, want %v", held, got, try)
		}
	}
}

func TestWorkThatStandsStillIsSeenBesideAnotherLaneOfTheSameLimits(t *testing.T) {
	set, began := &gateSet{}, time.Now()
	for i, want := range []bool{false, false, false, true, true} {
		seen := began.Add(time.Duration(i) * 100 * time.Millisecond)
		set.look(&target{Lane: store.Lane{ID: 1}, first: 7, seen: seen})
		set.look(&target{Lane: store.Lane{ID: 2}, first: store.Position(100 + i), seen: seen})
		if set.starved != want {
			t.Errorf("look %d, %v after the first: it starves: %v, want %v", i, seen.Sub(began), set.starved, want)
		}
	}
	set.look(&target{Lane: store.Lane{ID: 1}, first: 8, seen: began.Add(time.Second)})
	if set.starved {
		t.Error("somebody has begun what it waited for, and it starves")
	}
}

func TestATaskWhosePermitIsWithdrawnDoesNotStart(t *testing.T) {
	now, p := time.Now(), &permits{}
	for name, c := range map[string]struct {
		gate    gate
		startBy time.Time
		batch   *batch
		want    bool
	}{
		"a permit":                            {gate: gate{held: 1, used: 1, fair: 1}},
		"a pause":                             {gate: gate{held: 1, used: 1, fair: 1, paused: now.Add(time.Minute)}, want: true},
		"a pause that is over":                {gate: gate{held: 1, used: 1, fair: 1, paused: now.Add(-time.Minute)}},
		"a rule of fewer":                     {gate: gate{held: 2, used: 2, fair: 1, over: 1}, want: true},
		"a rule of fewer that leaves its own": {gate: gate{held: 2, used: 1, fair: 1, over: 1}},
		"a start that is still to come":       {startBy: now.Add(time.Minute)},
		"a start that has passed":             {startBy: now.Add(-time.Millisecond), want: true},
		"a start of a batch that has passed":  {startBy: now.Add(-time.Millisecond), batch: &batch{}},
	} {
		one := &task{gates: setOf(&c.gate), permitted: true, startBy: c.startBy, batch: c.batch}
		if got := p.withdrawn(one); got != c.want {
			t.Errorf("%s: it is withdrawn: %v, want %v", name, got, c.want)
		}
	}
}

func TestATaskStartsSoonAfterTheStartsThatItGot(t *testing.T) {
	now, rule := time.Now(), stint.LimitRule{Starts: 1, Per: time.Second}
	rate := func(ago time.Duration) *gate {
		return &gate{held: 1, rule: rule, starts: []*starts{{cost: 1, at: []time.Time{now.Add(-ago)}}}}
	}
	if was := rate(21 * time.Millisecond); setOf(was).startable(now, &permits{}) || len(was.starts[0].at) != 0 {
		t.Error("a start that has passed is used")
	}
	p, pool := &permits{}, newPool(make([]slot, 1), 0, 0, newWakeup())
	set := setOf(rate(time.Millisecond), rate(5*time.Millisecond), &gate{held: 1})
	one := &task{entry: &store.Entry{}, runner: &kindRunner{}, pool: pool}
	set.waiting = []*task{one}
	p.admitLocked(set)
	if want := now.Add(store.LateStart(rule) - 5*time.Millisecond); !one.permitted || !one.startBy.Equal(want) {
		t.Errorf("admitted: %v, it is to start by %v, want %v", one.permitted, one.startBy, want)
	}
}

func TestATaskStartsOnlyIfEachOfItsGatesLetsIt(t *testing.T) {
	now := time.Now()
	order := stint.LimitRule{AtOnce: 1, InOrder: true}
	bought := func() []*starts { return []*starts{{cost: 1, at: []time.Time{now.Add(-time.Second)}}} }
	for name, c := range map[string]struct {
		gate  gate
		again bool // the task was claimed before
		want  bool
	}{
		"a free permit": {gate: gate{held: 2, used: 1, fair: 2}, want: true},
		"a start a second ago, of one in an hour":  {gate: gate{held: 1, fair: 1, rule: stint.LimitRule{Starts: 1, Per: time.Hour}, starts: bought()}, want: true},
		"a start a second ago, of one in a second": {gate: gate{held: 1, fair: 1, rule: stint.LimitRule{Starts: 1, Per: time.Second}, starts: bought()}},
		"no free permit":                        {gate: gate{held: 1, used: 1, fair: 1}},
		"one that others wait for":              {gate: gate{held: 2, used: 1, fair: 1, asked: 1}, want: true},
		"one that the rule has no more":         {gate: gate{held: 2, used: 1, fair: 1, over: 1}},
		"a pause":                               {gate: gate{held: 1, fair: 1, paused: now.Add(time.Minute)}},
		"an order":                              {gate: gate{held: 1, fair: 1, rule: order}, want: true},
		"an order that another job holds up":    {gate: gate{held: 1, fair: 1, rule: order, blocked: true}},
		"an order that holds up others than it": {gate: gate{held: 1, fair: 1, rule: order, blocked: true}, again: true, want: true},
	} {
		set := setOf(&c.gate, &gate{held: 1, fair: 1})
		set.waiting = []*task{{again: c.again}}
		if got := set.startable(now, &permits{}); got != c.want {
			t.Errorf("%s: it may start: %v, want %v", name, got, c.want)
		}
	}
}

func TestKeysShareTheRoomOfAClaimByTheirWeights(t *testing.T) {
	s := &session{pools: newPools(Config{Slots: 4}, nil, make([]slot, 4), newWakeup())}
	p := &permits{s: s, gates: map[string]*gate{}, sets: map[string]*gateSet{}, news: newWakeup()}
	var list []target
	for _, key := range []string{"tenant=a", "tenant=b"} {
		t := target{Lane: store.LimitedLane("default", 0, store.PartNormal, "", key)}
		p.ofLocked(&t).gates[0].held = 1000
		list = append(list, t)
	}
	for weight, want := range map[int]int{0: 2, 3: 6} {
		p.gates["tenant=b"].rule.Weight = weight
		open, _ := p.sift(list)
		p.planned(list)
		if len(open) != 2 || open[0].most != 2 || open[1].most != want {
			t.Errorf("of a room for 4 two keys, the second of weight %d, are claimed from as %+v, want 2 and %d", weight, open, want)
		}
	}
}

func TestAGateThatNobodyUsesIsForgottenWithItsSets(t *testing.T) {
	for name, c := range map[string]struct {
		gate gate
		want int // are left
	}{
		"long unused":    {gate: gate{}, want: 0},
		"used lately":    {gate: gate{lastUsed: time.Now()}, want: 1},
		"in use":         {gate: gate{used: 1}, want: 1},
		"held":           {gate: gate{held: 1}, want: 1},
		"of unknown use": {gate: gate{doubted: true}, want: 1},
	} {
		p := &permits{gates: map[string]*gate{"key=a": &c.gate}, sets: map[string]*gateSet{}, news: newWakeup()}
		c.gate.name = "key=a"
		set := p.setLocked("key=a")
		if p.forgetLocked(&c.gate); len(p.gates) != c.want || len(p.sets) != c.want || set.dropped == (c.want == 1) {
			t.Errorf("%s: %d gates and %d sets are left, want %d", name, len(p.gates), len(p.sets), c.want)
		}
	}
}

func TestNoPermitIsPassedOnOnceTheSessionStops(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		all := pools{all: []*pool{newPool(make([]slot, 2), 0, 0, newWakeup())}}
		set := setOf(&gate{name: "one", held: 1, rule: stint.LimitRule{AtOnce: 1}})
		set.runIn(all.all[0])
		p := &permits{s: &session{capacity: newWakeup()}, news: newWakeup(), sets: map[string]*gateSet{"one": set}}
		entry := store.Entry{Suspect: suspectAlone}
		entry.Limits = "one"
		first, second := &task{pool: all.all[0], entry: &entry, runner: new(kindRunner)}, &task{pool: all.all[0], entry: &entry, runner: new(kindRunner)}
		for _, one := range []*task{first, second} {
			one.claim = &claimState{}
			p.wait(one, "one")
		}
		if stopped {
			p.close()
			all.close()
		}
		p.ended(first)
		if second.permitted == stopped {
			t.Errorf("the session stopped: %v; the next one got the permit: %v", stopped, second.permitted)
		}
	}
}
