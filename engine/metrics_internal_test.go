package engine

import "testing"

func TestThePrefetchKnowsTheMostAndTheLeastThatWaited(t *testing.T) {
	var p prefetchCounts
	for _, waiting := range []int{7, 3, 5} {
		p.beforeClaim(waiting)
	}
	for _, waiting := range []int{8, 12, 0} {
		p.afterClaim(waiting, true)
	}
	p.afterClaim(9, false)
	if p.Min != 3 || p.Max != 12 || p.Full != 2 {
		t.Errorf("it says %+v", p.PrefetchMetrics)
	}
	p.beforeClaim(0)
	p.beforeClaim(1)
	if p.Min != 0 {
		t.Errorf("the least is %d", p.Min)
	}
}
