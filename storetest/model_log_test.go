package storetest_test

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// said is what an attempt said.
type said struct {
	job      stint.ID
	attempt  int
	progress *stint.Progress
	lines    []stint.LogLine
}

// keepLog keeps what an attempt says, if the engine has it and it did not end.
func (d *database) keepLog(engine store.EngineID, r *store.LogRecord) {
	_, over := d.done[r.Pos]
	switch {
	case over && !d.is("keeps what the ended say"),
		d.deleted[r.Pos] && !d.is("brings back what the deleted said"),
		d.mayRecord(engine, []store.ClaimRef{r.Claim}) != nil && !d.is("keeps what anybody says"):
		return
	}
	pos := r.Pos
	if d.is("keeps what was said by job") {
		pos = store.Position(r.Job)
	}
	s := d.said[pos]
	if s == nil {
		s = &said{job: r.Job, attempt: d.attemptAt(r.Pos)}
		d.said[pos] = s
	}
	for _, l := range r.Lines {
		l.Run, l.Attempt, l.At = int64(r.Pos), s.attempt, time.Now().Add(-time.Since(l.At))
		if d.is("takes lines for as late as their beat") {
			l.At = time.Now()
		}
		if d.is("forgets levels") {
			l.Level = 0
		}
		i, there := slices.BinarySearchFunc(s.lines, l.N, func(l stint.LogLine, n int) int { return cmp.Compare(l.N, n) })
		switch {
		case !there:
			s.lines = slices.Insert(s.lines, i, l)
		case d.is("takes the last of a line"):
			s.lines[i] = l
		case d.is("doubles lines"):
			s.lines = slices.Insert(s.lines, i, l)
		}
	}
	s.lines = slices.DeleteFunc(s.lines, func(l stint.LogLine) bool {
		return r.From <= l.N && l.N <= r.To && !d.is("keeps what is left out")
	})
	if p := r.Progress; p != nil && (s.progress == nil || s.progress.N < p.N || d.is("takes the progress that comes last")) {
		next := *p
		next.Run, next.Attempt, next.At = int64(r.Pos), s.attempt, time.Now().Add(-time.Since(p.At))
		s.progress = &next
	}
}

func (d *database) attemptAt(pos store.Position) int {
	for _, r := range d.rows {
		if r.entry != nil && r.entry.Pos == pos {
			return r.entry.Attempt
		}
	}
	return 0
}

// sayings are those of a job, by their runs.
func (d *database) sayings(job stint.ID) []*said {
	var at []store.Position
	for pos, s := range d.said {
		if s.job == job || d.is("shows what all jobs said") {
			at = append(at, pos)
		}
	}
	slices.Sort(at)
	if d.is("shows the last run first") {
		slices.Reverse(at)
	}
	all := make([]*said, len(at))
	for i, pos := range at {
		all[i] = d.said[pos]
	}
	return all
}

func (m *model) Log(_ context.Context, job stint.ID, f store.LogFilter) ([]stint.LogLine, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []stint.LogLine
	for _, s := range m.sayings(job) {
		for _, l := range s.lines {
			after := l.Run > f.Run || l.Run == f.Run && l.N > f.N
			if m.is("goes on at a line of any run") {
				after = l.N > f.N
			}
			if after || m.is("begins with the first line always") {
				all = append(all, l)
			}
		}
	}
	switch over := len(all) - f.Limit; {
	case f.Limit <= 0 || over <= 0 || m.is("shows all lines"):
	case f.Last && !m.is("shows the first lines for the last"):
		all = all[over:]
	default:
		all = all[:f.Limit]
	}
	return all, nil
}

func (m *model) Progress(_ context.Context, job stint.ID) ([]stint.Progress, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []stint.Progress
	for _, s := range m.sayings(job) {
		if s.progress != nil {
			all = append(all, *s.progress)
		}
	}
	if over := len(all) - store.MostProgress; over > 0 && !m.is("shows the progress of all runs") {
		if m.is("shows the progress of the first runs") {
			return all[:store.MostProgress], nil
		}
		all = all[over:]
	}
	return all, nil
}

// eraseLog deletes what the runs of a job said.
func (d *database) eraseLog(job stint.ID) {
	for pos, s := range d.said {
		if s.job == job && !d.is("keeps what the deleted said") {
			delete(d.said, pos)
		}
	}
}
