package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stint-go/stint"
)

// casualties are attempts that were lost with their engine. A burial that has
// to be tried again judges twice.
type casualties map[stint.Position]*ended

func (c casualties) note(e *stint.Entry, x stint.Execution) {
	delete(c, e.Pos)
	if x.Outcome == stint.OutcomeLost {
		c[e.Pos] = &ended{job: e.Job, done: x}
	}
}

// mourn tells of what was lost, once the burial is recorded.
func (s *session) mourn(lost casualties) {
	for _, t := range slices.SortedFunc(maps.Values(lost), func(a, b *ended) int { return cmp.Compare(a.done.Pos, b.done.Pos) }) {
		s.emitFailed(&t.job, &t.done)
		s.callHooks(&t.job, &t.done, false)
	}
}
