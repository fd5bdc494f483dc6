package check

import (
	"cmp"
	"slices"
)

// assign finds the entry of each run. Handlers that could not know their position
// are matched by what is known of them, those of one engine together: in the order
// of their runs, which is that of its entries. It is so among those of one engine
// only: one that was frozen just before a handler began may have it begin when the
// job has run elsewhere.
func (c *checker) assign(s *story) {
	s.of = s.of[:0]
	for range s.runs {
		s.of = append(s.of, -1)
	}
	for i := range s.runs {
		r := &s.runs[i]
		switch {
		case r.Pos != 0:
			at, ok := slices.BinarySearchFunc(s.entries, r.Pos, func(e Entry, pos int64) int { return cmp.Compare(e.Pos, pos) })
			if ok {
				s.of[i] = at
			}
		case !slices.ContainsFunc(s.runs[:i], func(o Run) bool { return o.Pos == 0 && o.Engine == r.Engine }):
			c.match(s, r.Engine)
		}
	}
}

// matched is worth more than whatever entries may suit.
const matched = 1 << 20

// match finds entries for an engine's runs that do not name theirs, 0 for those
// that do not name their engine either: as many runs as can be have one, and
// among such matches it is one that suits best. Of what is alike the later entry
// is the one. It is the alignment of two sequences of Needleman and Wunsch, A
// general method applicable to the search for similarities (1970), where leaving
// out costs nothing.
func (c *checker) match(s *story, engine int64) {
	runs := c.runs[:0]
	for i := range s.runs {
		if s.runs[i].Pos == 0 && s.runs[i].Engine == engine {
			runs = append(runs, i)
		}
	}
	c.runs = runs
	// Of so many runs and so many entries from the first on, the best match.
	width := len(s.entries) + 1
	best := slices.Grow(c.best[:0], (len(runs)+1)*width)[:(len(runs)+1)*width]
	clear(best[:width])
	c.best = best
	worth := func(n, k int) int {
		if q := c.suits(s, k, &s.runs[runs[n]]); q > 0 {
			return matched + q
		}
		return -1
	}
	for n := range runs {
		above, row := best[n*width:(n+1)*width], best[(n+1)*width:(n+2)*width]
		row[0] = 0
		for k := range s.entries {
			row[k+1] = max(above[k+1], row[k], above[k]+worth(n, k))
		}
	}
	for n, k := len(runs)-1, len(s.entries)-1; n >= 0 && k >= 0; {
		here, above := best[(n+1)*width+k+1], best[n*width+k]
		switch w := worth(n, k); {
		case w > 0 && here == above+w:
			s.of[runs[n]] = k
			n, k = n-1, k-1
		case here == best[n*width+k+1]:
			n--
		default:
			k--
		}
	}
}

// suits grades how well entry k fits a run: 0 not at all, 4 exactly. That a job
// was cancelled fits much, and may also mean that the entry never began.
func (c *checker) suits(s *story, k int, r *Run) int {
	e := &s.entries[k]
	switch {
	case e.Attempt != r.Attempt || r.Engine != 0 && c.holder(e.Pos) != r.Engine:
		return 0
	case says(r.How, s.done[k]):
		if x := s.done[k]; x != nil && x.Outcome == OutcomeCancelled {
			return 3
		}
		return 4
	case c.mayEnd(s, r, s.done[k]):
		return 2
	}
	return 1
}
