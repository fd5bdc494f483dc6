package storetest_test

import (
	"context"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

func (m *model) Examine(ctx context.Context, _ report.Options) (report.Facts, error) {
	var signs report.Facts
	now := time.Now()
	engines, err := m.Engines(ctx)
	if err != nil {
		return signs, err
	}
	signs.Holds = map[store.EngineID]int{}
	for _, e := range engines {
		if !e.Silent(now) && !m.is("counts what the living hold") {
			continue
		}
		claims, err := m.Held(ctx, e.Token, 0)
		if err != nil {
			return signs, err
		}
		for _, c := range claims {
			signs.Holds[e.Token] += len(c.Positions)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	size := report.Size{Name: "all of it"}
	for _, j := range m.all() {
		if size.Bytes += int64(len(j.Args)); m.is("tells what it took once") {
			size.Bytes = 1
		}
		switch {
		case j.PendingRetry != "":
			m.doubt(&signs, j)
		case j.State == stint.Available || j.State == stint.Running && m.is("tells of what was taken as ready"):
			m.backlog(&signs, j, now)
		}
	}
	signs.Sizes = append(signs.Sizes, size)
	g := m.graph()
	for _, w := range m.visible(func(r *row) bool { return r.forJobs }) {
		job := m.jobs[w.id]
		outcome, _ := g.verdict(job)
		switch {
		case outcome != 0:
			if (signs.Flows.Noted.IsZero() || job.made.Before(signs.Flows.Noted)) && !m.is("notes nothing") {
				signs.Flows.Noted = job.made
			}
		case job.isFlow:
			signs.Flows.Open++
		case !m.is("counts no jobs that are blocked"):
			signs.Flows.Blocked++
		}
	}
	if m.is("changes what it looks at") {
		m.engines = nil
	}
	return signs, nil
}

// backlog counts a job that is ready.
func (m *model) backlog(signs *report.Facts, j stint.JobInfo, now time.Time) {
	key := report.Backlog{Queue: j.Queue, Priority: j.Priority, Kind: j.Kind, Limited: len(j.Limits) > 0 && !m.is("passes over limits")}
	if p, paused := m.paused[j.Queue]; paused && !m.is("passes over who paused") {
		key.Paused, key.By, key.Why = p.Paused, p.By, p.Why
	}
	late := !j.StartBy.IsZero() && j.StartBy.Before(now) && !m.is("passes over what is late")
	for i := range signs.Backlogs {
		b := &signs.Backlogs[i]
		if b.Queue != key.Queue || b.Priority != key.Priority || b.Kind != key.Kind || b.Limited != key.Limited {
			continue
		}
		b.Jobs++
		if late {
			b.Late++
		}
		if j.Due.Before(b.Oldest) {
			b.Oldest = j.Due
		}
		return
	}
	key.Jobs, key.Oldest = 1, j.Due
	if late {
		key.Late = 1
	}
	signs.Backlogs = append(signs.Backlogs, key)
}

// doubt counts a job that is undecided.
func (m *model) doubt(signs *report.Facts, j stint.JobInfo) {
	since := j.Finished
	if m.is("counts doubts from the enqueue") {
		since = j.Created
	}
	for i := range signs.Undecided {
		if u := &signs.Undecided[i]; u.Func == j.PendingRetry {
			u.Jobs++
			if since.Before(u.Oldest) {
				u.Oldest = since
			}
			return
		}
	}
	signs.Undecided = append(signs.Undecided, report.UndecidedBacklog{Func: j.PendingRetry, Jobs: 1, Oldest: since})
}
