package storetest_test

import (
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// isIn reports whether a job belongs to a flow that exists.
func (d *database) isIn(job *row) bool {
	return job != nil && job.flow != 0 && d.jobs[job.flow] != nil && d.jobs[job.flow].isFlow
}

// keptByFlow reports whether retention leaves a job: it goes after its flow, and a flow after those that retry it.
func (d *database) keptByFlow(id stint.ID) bool {
	if d.is("does not keep what is in an open flow") {
		return false
	}
	if d.is("keeps jobs of a flow only while it is open") {
		return d.inOpenFlow(id)
	}
	retried := slices.ContainsFunc(d.rows, func(r *row) bool { return r.job != nil && r.isFlow && r.from == id })
	return d.isIn(d.jobs[id]) || d.hasOpenParent(id) || retried && !d.is("does not keep a flow that is retried")
}

// redone is what does a job again in an open flow, or is one, or has taken the place of the flow of it that ended; 0 for none.
func (d *database) redone(id, target, into stint.ID) (last stint.ID) {
	for _, from := range []stint.ID{target, id} {
		for _, r := range d.rows {
			open := r.job != nil && (r.isFlow && !d.ended(r.id) || d.inOpenFlow(r.id) || from == target && into != 0 && r.flow == into)
			if open && r.from == from && !d.is("does a flow twice at once") {
				last = r.id
			}
		}
	}
	return last
}

// outermost is the outermost flow of a job that has ended, or the job, and the open flow that is in.
func (d *database) outermost(id stint.ID) (target, into stint.ID) {
	target = id
	for job := d.jobs[id]; d.isIn(job) && !d.is("does a job of an ended flow alone"); job = d.jobs[target] {
		if !d.ended(job.flow) {
			return target, job.flow
		}
		target = job.flow
	}
	return target, 0
}

// within are the jobs of a flow and of those within it, without those that others took the place of.
func (d *database) within(flow stint.ID) (all []stint.ID) {
	for _, r := range d.rows {
		if r.job == nil || r.flow != flow {
			continue
		}
		replaced := slices.ContainsFunc(d.rows, func(o *row) bool { return o.job != nil && o.from == r.id && o.flow == flow })
		if !replaced {
			all = append(append(all, r.id), d.within(r.id)...)
		}
	}
	return all
}

// instead is what took the place of a job, or of the innermost flow around it of which that is so.
func (d *database) instead(id stint.ID) (last stint.ID) {
	for _, r := range d.rows {
		if r.job != nil && r.from == id {
			last = r.id
		}
	}
	if last == 0 && d.isIn(d.jobs[id]) {
		return d.instead(d.jobs[id].flow)
	}
	return last
}

// toRedo is what is done again of a flow that has ended.
func (d *database) toRedo(flow, job stint.ID, all bool) []stint.ID {
	outcomes := d.graph().outcomes
	members := d.within(flow)
	all = all && !d.is("does not do all of a flow again") || job == flow && outcomes[flow] == stint.OutcomeCompleted
	named := []stint.ID{job}
	if job != flow {
		named = append(named, d.within(job)...)
	}
	const must, whatever = 1, 2 // whatever came of what depends on it
	again := map[stint.ID]int{}
	for _, id := range members {
		failed := outcomes[id] != stint.OutcomeCompleted && outcomes[id] != stint.OutcomeSkipped
		switch {
		case all, slices.Contains(named, id):
			again[id] = whatever
		case failed || d.is("does what was skipped again") && outcomes[id] == stint.OutcomeSkipped:
			again[id] = must
		}
	}
	for more := true; more; {
		more = false
		raise := func(id stint.ID, to int) {
			if slices.Contains(members, id) && again[id] < to {
				again[id], more = to, true
			}
		}
		for _, id := range members {
			if again[id] > 0 {
				raise(d.jobs[id].flow, again[id])
			}
			for _, n := range d.jobs[id].needs {
				if how := again[n.job]; how == whatever && !d.is("does only the job again, and not what depends on it") || how == must && outcomes[id] != stint.OutcomeCompleted {
					raise(id, how)
				}
			}
		}
	}
	redo := []stint.ID{flow}
	for id := range again {
		redo = append(redo, id)
	}
	slices.Sort(redo)
	return redo
}

// redo does jobs again, each as a new one.
func (d *database) redo(olds []stint.ID, target, into stint.ID, now, due time.Time) map[stint.ID]stint.ID {
	anew := map[stint.ID]stint.ID{}
	rows := map[stint.ID]*row{}
	inFlow := into != 0 || d.jobs[target].isFlow
	for _, id := range olds {
		rows[id] = d.copy(d.jobs[id], now, due, inFlow)
		anew[id] = rows[id].id
	}
	if !inFlow || d.is("recovers outside of the flow") {
		return anew
	}
	newOf := func(id stint.ID) stint.ID {
		if as := anew[id]; as != 0 && !d.is("has what is done again need what was done before") {
			return as
		}
		return id
	}
	for _, id := range olds {
		old, job := d.jobs[id], rows[id]
		job.name, job.isFlow, job.flow = old.name, old.isFlow, anew[old.flow]
		if id == target {
			job.flow = into
		}
		if d.is("forgets what is needed of what is done again") {
			continue
		}
		for _, n := range old.needs {
			job.needs = append(job.needs, need{newOf(n.job), n.wants})
		}
		job.also = map[string]stint.ID{}
		for _, r := range d.rows {
			if r.job != nil && r.flow == id && r.name != "" && anew[r.id] == 0 && !d.is("forgets the names of what completed before") {
				job.also[r.name] = r.id
			}
		}
		for name, before := range old.also {
			if _, is := job.also[name]; !is && anew[before] == 0 {
				job.also[name] = before
			}
		}
	}
	if into != 0 {
		d.takePlace(d.jobs[target], rows[target])
	}
	return anew
}

// copy does a job again.
func (d *database) copy(old *row, now, due time.Time, inFlow bool) *row {
	j := *old.job
	if d.is("recovers without the labels") {
		j.Tags, j.URN = nil, ""
	}
	if !d.is("recovers without the correlation id") {
		j.Correlation = d.correlation(old)
	}
	if !d.is("recovers with the time to begin by") {
		j.StartBy = time.Time{}
	}
	num := d.draw()
	if d.is("recovers with the key") && j.IdempotencyKey != "" {
		d.keyRow(j.IdempotencyKey).holder = stint.ID(num)
	}
	from := old.id
	if d.is("forgets the provenance") {
		from = 0
	}
	job := &row{num: num, job: &j, id: stint.ID(num), made: now, due: now, from: from}
	d.addJob(job)
	next := store.Next{Kind: j.Kind, Queue: j.Queue, Priority: j.Priority, Attempt: 1, Part: d.goesFirst(old.id, job.id), Why: stint.Scheduled}
	later := due.After(now) && !d.is("runs now whatever the time")
	if later {
		job.due = due
	}
	switch {
	case inFlow && !d.is("recovers outside of the flow") && !d.is("begins at once what is retried in a flow"):
		d.block(nil, job, next)
	case later:
		d.wait(nil, job, due, next)
	default:
		d.append(nil, job, num, now, next)
	}
	d.takeSteps(old.id, job.id)
	d.passSignals(old.id, job.id)
	return job
}
