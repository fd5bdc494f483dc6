package engine

import "testing"

func TestThePrefetchKnowsTheMostAndTheLeastThatWaited(t *testing.T) {
	var p prefetching
	for _, waiting := range []int{7, 3, 5} {
		p.more(waiting)
	}
	for _, waiting := range []int{8, 12, 0} {
		p.filled(waiting, true)
	}
	p.filled(9, false)
	if p.Min != 3 || p.Max != 12 || p.Full != 2 {
		t.Errorf("it says %+v", p.PrefetchMetrics)
	}
	p.more(0)
	p.more(1)
	if p.Min != 0 {
		t.Errorf("the least is %d", p.Min)
	}
}
