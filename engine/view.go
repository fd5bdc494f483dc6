package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint/store"
)

const (
	// lookAge is how long a look is trusted while claims from it succeed. Within this time a new
	// lane of lower number may go unnoticed.
	lookAge = 5 * time.Millisecond

	// lookShare is how many times as long as a look took it is trusted, if that is
	// longer: where looks cost much, most of the time is for claims.
	lookShare = 4

	// firstAge is for how long a look is trusted while the list begins with a lane after which all others come that
	// are known: only one that is new could come before it, and each look costs as much as a claim.
	firstAge = 250 * time.Millisecond

	// manyLanes is from how many known lanes on, and dearLook from what time of a look at all of
	// them, most looks are only at what was appended since the last one. With fewer, a look at all
	// costs no more. An engine does not know the lanes that had no work since it joined.
	manyLanes = 100
	dearLook  = 10 * time.Millisecond

	// lanePause is how long passes for each of many lanes between two looks at all, unless work may
	// have been missed, and allShare how many times as long as such a look takes: 2 % of the time is
	// for these. But what only they find need not wait for longer than longestRest.
	lanePause   = 200 * time.Microsecond
	allShare    = 50
	longestRest = 10 * time.Second
)

// view is what an engine sees of the lanes. It belongs to the claim stage.
//
// Where there are many lanes, work is found by what was appended. That decides only when it is found:
// the looks at all lanes, which go on, find what was appended long before it was committed.
type view struct {
	s *session
	*lanes
	list []target // lanes that may have work, in the order of claims

	looked  time.Time
	trusted time.Duration // for how long after that

	mark   store.Mark    // of what was appended
	behind bool          // there may be work that neither the list nor a look since the mark shows
	all    time.Time     // when all lanes were looked at
	took   time.Duration // how long that took
	cost   time.Duration // the lesser time of the last two: one may be slow by chance, as the first mostly is
	turn   int           // counts these looks
}

func (s *session) newView() *view {
	v := &view{s: s, lanes: newLanes(s.mux, s.config.Queues)}
	v.order = s.config.QueueOrder
	return v
}

// many reports whether looks follow what is appended.
func (v *view) many() bool { return v.count() >= manyLanes || v.cost > dearLook }

// stale reports whether it is time to look.
func (v *view) stale() bool {
	if len(v.list) == 0 {
		return true
	}
	old := time.Since(v.looked)
	return old > v.trusted && (old > firstAge || v.many() || !v.leads(v.list[0]))
}

// reorder puts the list in the order of queues that holds now. Where looks follow what is appended the list outlives
// them.
func (v *view) reorder() {
	if v.order == nil {
		return
	}
	order := v.order()
	if slices.Equal(order, v.sorted) {
		return
	}
	v.sorted = order
	for i := range v.list {
		v.list[i].place = placeIn(order, v.list[i].Queue)
	}
	slices.SortStableFunc(v.list, inOrder)
}

// expire has the next look be made at once.
func (v *view) expire() { v.looked = time.Time{} }

// lose forgets what the list was.
func (v *view) lose() { v.list, v.behind = nil, true }

// look updates the list.
func (v *view) look(ctx context.Context) error {
	v.looked = time.Now()
	v.behind = v.s.passedOver.Swap(false) || v.behind
	if !v.many() {
		v.mark = store.Mark{}
		err := v.lookAtAll(ctx)
		v.trust()
		return err
	}
	err := v.lookAtNew(ctx)
	v.trust()
	if err != nil || !v.dueForAll(time.Since(v.all)) {
		return err
	}
	v.mark = store.Mark{} // a database that was restored knows nothing of the old one
	if err := v.lookAtNew(ctx); err != nil {
		return err
	}
	return v.lookAtAll(ctx)
}

// dueForAll reports whether to look at all of many lanes, so long after the last time. What is
// known goes first, as long as there is time for both.
func (v *view) dueForAll(since time.Duration) bool {
	rest := min(max(time.Duration(v.count())*lanePause, allShare*v.cost), longestRest)
	switch {
	case len(v.list) == 0:
		return v.behind || since > rest
	case v.behind:
		return since > lookShare*v.cost
	}
	return since > 2*rest
}

func (v *view) lookAtNew(ctx context.Context) error {
	limit, cancel := v.s.limit(ctx)
	defer cancel()
	seen, err := v.s.store.LookSince(limit, v.mark)
	if err != nil {
		return err
	}
	v.mark, v.behind = seen.Until, v.behind || seen.All
	v.list = merge(v.list, v.targets(v.s.claimable(seen.Heads), 0))
	return nil
}

// trust says for how long the look that ends is trusted.
func (v *view) trust() { v.trusted = max(lookAge, lookShare*time.Since(v.looked)) }

func (v *view) lookAtAll(ctx context.Context) error {
	began := time.Now()
	limit, cancel := v.s.limit(ctx)
	heads, err := v.s.store.Look(limit, v.hints())
	cancel()
	took := time.Since(began)
	v.cost, v.took = min(took, v.took), took
	if err != nil {
		return err
	}
	v.turn++
	v.list = v.targets(v.s.claimable(heads), v.turn)
	v.all, v.behind = time.Now(), false
	return nil
}

// merge adds targets to a list. Both are in the order of claims, and so is what it returns; among
// equals those of the list come first.
func merge(list, more []target) []target {
	if len(more) == 0 {
		return list
	}
	fresh := make(map[store.LaneID]bool, len(more))
	for _, t := range more {
		fresh[t.ID] = true
	}
	for _, t := range list {
		delete(fresh, t.ID)
	}
	all := make([]target, 0, len(list)+len(fresh))
	for _, t := range more {
		if !fresh[t.ID] {
			continue
		}
		n := 0
		for n < len(list) && inOrder(list[n], t) <= 0 {
			n++
		}
		all, list = append(append(all, list[:n]...), t), list[n:]
	}
	return append(all, list...)
}

// inOrder compares two lanes by which is claimed from first.
func inOrder(a, b target) int {
	return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.Priority, b.Priority), cmp.Compare(rank[a.Part], rank[b.Part]))
}
