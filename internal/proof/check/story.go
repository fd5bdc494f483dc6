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
