package engine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// lostAttempts are attempts that were lost with their engine. A burial that is tried again judges
// twice.
type lostAttempts map[store.Position]*hookRun

// judge returns the function by which a store ends the attempts of a dead engine, and collects
// those that are lost.
func (c lostAttempts) judge(scene crashScene, clock *clock) func(*store.Entry, bool) store.Completion {
	return func(e *store.Entry, begun bool) store.Completion {
		x := store.Conclude(e, scene.judge(e, begun), clock.at(time.Now()), random01())
		delete(c, e.Pos)
		if x.Outcome == stint.OutcomeLost {
			c[e.Pos] = &hookRun{job: e.Job, done: x}
		}
		return x
	}
}

// reportLost reports lost attempts after the burial is recorded.
func (s *session) reportLost(lost lostAttempts) {
	for _, t := range slices.SortedFunc(maps.Values(lost), func(a, b *hookRun) int { return cmp.Compare(a.done.Pos, b.done.Pos) }) {
		s.emitFailed(&t.job, &t.done)
		s.callHooks(&t.job, &t.done, false)
	}
}
