package storetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

func (m *model) Retry(ctx context.Context, ids []stint.ID, again stint.RerunOptions) (map[stint.ID]stint.RerunResult, error) {
	if err := ctx.Err(); err != nil && !m.is("operates without a context") {
		return nil, err
	}
	if err := again.Check(); err != nil && !m.is("takes any time") {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	due := now.Add(again.Delay)
	if !again.RunAt.IsZero() {
		due = again.RunAt
	}
	answers := map[stint.ID]stint.RerunResult{}
	for _, id := range ids {
		if _, twice := answers[id]; !twice || m.is("recovers as often as it is told") {
			answers[id] = m.retry(id, now, due, again)
		}
	}
	if !m.is("does not ring for what runs again") {
		m.ring()
	}
	return answers, nil
}

func (d *database) retry(id stint.ID, now, due time.Time, opts stint.RerunOptions) stint.RerunResult {
	jobs := d.visible(func(r *row) bool { return r.job != nil && r.id == id })
	if len(jobs) == 0 {
		return stint.RerunResult{Answer: stint.RerunNotFound}
	}
	job := jobs[0]
	rows := d.visible(func(r *row) bool { return r.id == id && r.job == nil })
	state := d.show(job, rows).State
	switch {
	case state == stint.Available:
		return stint.RerunResult{Answer: stint.RerunAvailable, ID: id}
	case state == stint.Running && !d.is("recovers what runs"):
		return stint.RerunResult{Answer: stint.RerunRunning, ID: id}
	case slices.ContainsFunc(rows, func(r *row) bool { return r.forJobs }) && !d.is("begins what waits for others when it is retried"):
		return stint.RerunResult{Answer: stint.RerunBlocked, ID: id}
	case !state.Final() && state != stint.Running:
		return d.hurry(job, rows, now, due)
	}
	for _, r := range d.rows {
		if opts.Once && r.job != nil && r.from == id && !d.is("recovers twice") {
			return stint.RerunResult{Answer: stint.RerunRecoveredBefore, ID: r.id}
		}
	}
	if d.is("recovers what it has not") {
		return stint.RerunResult{Answer: stint.RerunRecovered, ID: 1 << 50}
	}
	target, into := d.outermost(id)
	if before := d.redone(id, target, into); before != 0 {
		return stint.RerunResult{Answer: stint.RerunRecoveredBefore, ID: before}
	}
	if job = d.jobs[target]; job.job.Unique != "" && !d.is("recovers beside the unique") {
		if holder, _ := d.uniqueHolder(nil, *job.job); holder != 0 && holder != target {
			return stint.RerunResult{Answer: stint.RerunNotUnique, ID: holder}
		}
	}
	olds := []stint.ID{id}
	if job.isFlow {
		olds = d.toRedo(target, id, opts.Whole)
	}
	if !slices.Contains(olds, id) && !d.is("retries a job of whose place another took nothing") {
		return stint.RerunResult{Answer: stint.RerunRecoveredBefore, ID: d.instead(id)}
	}
	anew := d.redo(olds, target, into, now, due)
	if job.job.Unique != "" {
		_, u, _ := job.job.UniqueKey()
		d.keepUnique(nil, *job.job, anew[target], time.UnixMicro(u.Until(time.Now().UnixMicro())))
	}
	if d.is("recovers in place of the old") {
		d.erase(id)
	}
	return stint.RerunResult{Answer: stint.RerunRecovered, ID: anew[id]}
}

// hurry has a job that waits become ready now or at another time.
func (d *database) hurry(job *row, rows []*row, now, due time.Time) stint.RerunResult {
	wait := rows[slices.IndexFunc(rows, func(r *row) bool { return r.wait != nil })]
	if due.After(now) && !d.is("runs now whatever the time") {
		wait.due, wait.wait.Due = due, due
		if !d.is("leaves undecided what has a time") {
			wait.next.Func = ""
		}
		return stint.RerunResult{Answer: stint.RerunScheduled, ID: job.id}
	}
	if !d.is("leaves waiting what it made ready") {
		d.rows = slices.DeleteFunc(d.rows, func(o *row) bool { return o == wait })
	}
	if d.is("charges for running now") {
		wait.next.Attempt++
	}
	wait.next.Part = d.readyPart(job.id)
	d.append(nil, job, d.draw(), now, wait.next)
	return stint.RerunResult{Answer: stint.RerunReady, ID: job.id}
}

func (m *model) Delete(ctx context.Context, ids []stint.ID) (map[stint.ID]store.DeleteStatus, error) {
	if err := ctx.Err(); err != nil && !m.is("operates without a context") {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	answers := map[stint.ID]store.DeleteStatus{}
	for _, id := range ids {
		if _, twice := answers[id]; twice {
			continue
		}
		jobs := m.visible(func(r *row) bool { return r.job != nil && r.id == id })
		final := false
		for _, x := range m.done {
			final = final || x.Job == id && x.Final
		}
		switch {
		case len(jobs) == 0:
			answers[id] = store.DeleteNotFound
		case !final, m.hasOpenParent(id) && !m.is("deletes from an open flow"):
			answers[id] = store.DeleteNotFinal
		default:
			answers[id] = store.DeletedNow
			m.erase(id)
		}
	}
	return answers, nil
}

func (d *database) erase(id stint.ID) {
	if d.is("deletes the history only") {
		for pos, x := range d.done {
			if x.Job == id && !x.Final {
				delete(d.done, pos)
			}
		}
		return
	}
	if !d.is("forgets the attempts of what it deletes") {
		d.gone = append(d.gone, d.attempts(func(r *row) bool { return r.id == id })...)
	}
	for _, r := range d.rows {
		if r.id == id && r.entry != nil {
			delete(d.done, r.entry.Pos)
			d.deleted[r.entry.Pos] = true
		}
	}
	d.rows = slices.DeleteFunc(d.rows, func(r *row) bool { return r.id == id })
	delete(d.jobs, id)
	delete(d.cancelled, id)
	d.eraseSteps(id)
	d.eraseSignals(id)
	d.eraseLog(id)
	if d.is("forgets the keys of what it deletes") {
		d.rows = slices.DeleteFunc(d.rows, func(r *row) bool { return r.key != "" && r.holder == id })
	}
	if d.is("starts lanes again") {
		d.seq = 0
	}
}
