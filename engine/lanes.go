package engine

import (
	"cmp"
	"slices"

	"github.com/stint-go/stint"
)

// lanes is what an engine has learnt about lanes from its looks.
type lanes struct {
	mux     *stint.Mux
	queues  []string // nil: every queue
	known   map[stint.LaneID]stint.Lane
	foreign map[stint.LaneID]bool
}

func newLanes(mux *stint.Mux, queues []string) *lanes {
	return &lanes{mux: mux, queues: queues, known: map[stint.LaneID]stint.Lane{}, foreign: map[stint.LaneID]bool{}}
}

// forLook is what to tell the store.
func (l *lanes) forLook() stint.KnownLanes {
	k := stint.KnownLanes{Mine: make([]stint.LaneID, 0, len(l.known)), Foreign: make([]stint.LaneID, 0, len(l.foreign))}
	for id := range l.known {
		k.Mine = append(k.Mine, id)
	}
	for id := range l.foreign {
		k.Foreign = append(k.Foreign, id)
	}
	return k
}

// target is a lane to claim from.
type target struct {
	stint.Lane
	settle bool
}

// targets turns what was seen into an order of claims: by priority, and in
// one priority what has waited longest first: returned work, then work that
// went round to find somebody who knows its kind, then the rest. Queues of one
// priority keep the order of the look, rotated so that none is always first.
func (l *lanes) targets(sights []stint.Sight, turn int) []target {
	if len(sights) > 1 {
		turn %= len(sights)
		sights = append(slices.Clone(sights[turn:]), sights[:turn]...)
	}
	var list []target
	for _, sight := range sights {
		lane, mine := l.learn(sight)
		if mine {
			list = append(list, target{lane, sight.Settle})
		}
	}
	slices.SortStableFunc(list, func(a, b target) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(rank[a.Part], rank[b.Part]))
	})
	return list
}

// first tells whether a lane was seen that no other known one goes before.
func (l *lanes) first(t target) bool {
	if _, ok := l.known[t.ID]; !ok || t.Part != stint.PartNormal {
		return false
	}
	for _, lane := range l.known {
		if lane.Priority < t.Priority || lane.Priority == t.Priority && rank[lane.Part] < rank[t.Part] {
			return false
		}
	}
	return true
}

var rank = map[stint.Part]int{stint.PartFront: 0, stint.PartKind: 1, stint.PartNormal: 2}

// learn tells which lane was seen, and whether it is for this engine. A lane
// is a hash; its first entry's traits tell of what.
func (l *lanes) learn(s stint.Sight) (stint.Lane, bool) {
	if lane, ok := l.known[s.Lane]; ok {
		return lane, true
	}
	if s.Settle && s.Queue == "" {
		// Nothing visible to tell what it is, but somebody has to step over it.
		return stint.Lane{ID: s.Lane}, true
	}
	for _, part := range []stint.Part{stint.PartNormal, stint.PartFront, stint.PartKind} {
		lane := stint.LaneOf(s.Queue, s.Priority, part, s.Kind)
		if lane.ID != s.Lane {
			continue
		}
		mine := l.queues == nil || slices.Contains(l.queues, lane.Queue)
		if part == stint.PartKind && l.mux.Handler(lane.Kind) == nil {
			mine = false
		}
		if mine {
			l.known[lane.ID] = lane
		} else {
			l.foreign[lane.ID] = true
		}
		return lane, mine
	}
	// A lane that another version of the program made in another way.
	l.foreign[s.Lane] = true
	return stint.Lane{}, false
}
