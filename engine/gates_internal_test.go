package engine

import (
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

func TestALastPermitIsKeptOnlyWhileItMayBeOfUse(t *testing.T) {
	now := time.Now()
	for used, want := range map[time.Duration]int{time.Second: 1, idlePermits + time.Second: 0} {
		g := &gate{held: 1, rule: stint.LimitRule{AtOnce: 3}, lastUsed: now.Add(-used)}
		if n := g.keep(now); n != want {
			t.Errorf("used %v ago, of one permit of three that nobody else has left it keeps %d, want %d", used, n, want)
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
		one := &task{gates: &gateSet{gates: []*gate{&c.gate}}, permitted: true, startBy: c.startBy, batch: c.batch}
		if got := p.withdrawn(one); got != c.want {
			t.Errorf("%s: it is withdrawn: %v, want %v", name, got, c.want)
		}
	}
}

func TestATaskStartsSoonAfterTheStartsThatItGot(t *testing.T) {
	now := time.Now()
	rate := func(ago time.Duration) *gate {
		return &gate{held: 1, rule: stint.LimitRule{Starts: 1, Per: time.Second}, starts: []time.Time{now.Add(-ago)}}
	}
	p, pool := &permits{}, newPool(make([]slot, 1), 0, 0)
	set := &gateSet{gates: []*gate{rate(time.Millisecond), rate(5 * time.Millisecond), {held: 1}}}
	one := &task{entry: &store.Entry{}, runner: &kindRunner{}, pool: pool}
	set.waiting = []*task{one}
	p.admitLocked(set)
	if want := now.Add(lateStart - 5*time.Millisecond); !one.permitted || !one.startBy.Equal(want) {
		t.Errorf("admitted: %v, it is to start by %v, want %v", one.permitted, one.startBy, want)
	}
}
