package check

import (
	"cmp"
	"slices"
)

// story is everything that both accounts say about one job.
type story struct {
	id         int64
	jobs       []Job       // one, unless something is wrong
	entries    []Entry     // by position
	executions []Execution // by position
	waiting    []Waiting   // at most one, unless something is wrong
	enqueues   []Enqueue   // the committed ones
	runs       []Run       // by start

	done []*Execution // of each entry; nil while it is unfinished
	of   []int        // of each run, the index of its entry; -1 for none
}

// sortByJob brings rows and records into the order in which stories are told.
func sortByJob(f *Facts, h *History) {
	slices.SortFunc(f.Jobs, func(a, b Job) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(f.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Pos, b.Pos))
	})
	slices.SortFunc(f.Executions, func(a, b Execution) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Pos, b.Pos))
	})
	slices.SortFunc(f.Waiting, func(a, b Waiting) int { return cmp.Compare(a.Job, b.Job) })
	slices.SortFunc(h.Runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Start, b.Start))
	})
	slices.SortFunc(h.Enqueues, func(a, b Enqueue) int {
		if known := b.Fate == Committed; known != (a.Fate == Committed) {
			if known {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Job, b.Job)
	})
}

// split separates the sorted enqueues: those that have no job to belong to,
// and those that were committed.
func split(all []Enqueue) (others, committed []Enqueue) {
	i, _ := slices.BinarySearchFunc(all, Committed, func(e Enqueue, _ Fate) int {
		if e.Fate == Committed {
			return 0
		}
		return -1
	})
	return all[:i], all[i:]
}

// tell calls visit with the story of each job, in the order of ids. The story
// is valid during the call only.
func tell(f *Facts, enqueues []Enqueue, runs []Run, visit func(*story)) {
	jobs, entries, executions, waiting := f.Jobs, f.Entries, f.Executions, f.Waiting
	s := new(story)
	for {
		id, some := int64(0), false
		first(&id, &some, jobs, jobID)
		first(&id, &some, entries, entryJob)
		first(&id, &some, executions, executionJob)
		first(&id, &some, waiting, waitingJob)
		first(&id, &some, enqueues, enqueueJob)
		first(&id, &some, runs, runJob)
		if !some {
			return
		}
		s.id = id
		s.jobs = take(&jobs, id, jobID)
		s.entries = take(&entries, id, entryJob)
		s.executions = take(&executions, id, executionJob)
		s.waiting = take(&waiting, id, waitingJob)
		s.enqueues = take(&enqueues, id, enqueueJob)
		s.runs = take(&runs, id, runJob)
		visit(s)
	}
}

func jobID(j *Job) int64              { return j.ID }
func entryJob(e *Entry) int64         { return e.Job }
func executionJob(x *Execution) int64 { return x.Job }
func waitingJob(w *Waiting) int64     { return w.Job }
func enqueueJob(e *Enqueue) int64     { return e.Job }
func runJob(r *Run) int64             { return r.Job }

// first lowers id to that of the first row.
func first[T any](id *int64, some *bool, rows []T, job func(*T) int64) {
	if len(rows) == 0 {
		return
	}
	if j := job(&rows[0]); !*some || j < *id {
		*id, *some = j, true
	}
}

// take cuts the rows of one job off the front.
func take[T any](rows *[]T, id int64, job func(*T) int64) []T {
	all, n := *rows, 0
	for n < len(all) && job(&all[n]) == id {
		n++
	}
	*rows = all[n:]
	return all[:n]
}

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
// was cancelled fits much, and may also mean that the entry never began. One that
// was recorded as not begun before the run is not its entry, and at about that time it is
// if no other can be.
func (c *checker) suits(s *story, k int, r *Run) int {
	e, x := &s.entries[k], s.done[k]
	switch {
	case e.Attempt != r.Attempt || r.Engine != 0 && c.holder(e.Pos) != r.Engine:
		return 0
	case x != nil && x.Unbegun && c.history.Processes[r.Process].instant(x.Finished).Add(c.opt.slack()) < r.Start:
		return 0
	case x != nil && x.Unbegun:
		return 1
	case says(r.How, x):
		if x != nil && x.Outcome == OutcomeCancelled {
			return 3
		}
		return 4
	case c.mayEnd(s, r, x):
		return 2
	}
	return 1
}
