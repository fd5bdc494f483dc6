package engine

import "testing"

func TestThePrefetchKnowsTheMostAndTheLeastThatWaited(t *testing.T) {
	m := newMeters("", 1)
	p := &m.counts.Prefetch
	for _, waiting := range []int{7, 3, 5} {
		m.beforeClaim(waiting)
	}
	for _, waiting := range []int{8, 12, 0} {
		m.afterClaim(0, waiting, true)
	}
	m.afterClaim(0, 9, false)
	if p.Min != 3 || p.Max != 12 || p.Full != 2 {
		t.Errorf("it says %+v", *p)
	}
	m.beforeClaim(0)
	m.beforeClaim(1)
	if p.Min != 0 {
		t.Errorf("the least is %d", p.Min)
	}
}
