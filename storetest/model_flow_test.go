package storetest_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// place is where a job stands in a flow.
type place struct {
	flow   stint.ID // that it belongs to; 0 for none
	name   string   // there
	isFlow bool
	needs  []need
	also   map[string]stint.ID // of a flow that is retried, what completed before, by name
}

// need is a job that another one needs.
type need struct {
	job   stint.ID
	wants stint.Want
}

// seenIn is the row of a job as a transaction sees it, or nil.
func (d *database) seenIn(in *modelTx, id stint.ID) *row {
	if r := d.jobs[id]; r != nil && (r.tx == nil || r.tx == in) {
		return r
	}
	return nil
}

// checkFlow refuses jobs that are added to a flow which is not open, and jobs that need what is not there.
func (d *database) checkFlow(in *modelTx, jobs []stint.NewJob) error {
	if len(jobs) == 0 || jobs[0].Member == nil {
		return nil
	}
	first := jobs[0].Member
	if first.Call {
		if err := d.mayCall(in, first.Into); err != nil {
			return err
		}
	} else if first.Into != 0 {
		flow := d.seenIn(in, first.Into)
		_, marked := d.cancelled[first.Into]
		switch {
		case flow == nil || !flow.isFlow:
			return stint.ErrNotFound
		case d.ended(first.Into) && !d.is("adds to a flow that has ended"), marked && !d.is("adds to a flow that is cancelled"):
			return stint.ErrEnded
		}
	}
	for _, j := range jobs {
		for _, n := range j.Member.Needs {
			other := d.seenIn(in, n.Job)
			if n.Job != 0 && (other == nil || other.flow == 0 && !other.isFlow) && !d.is("needs what is not there") {
				return stint.ErrNotFound
			}
			for flow := first.Into; flow != 0 && n.Job != 0; flow = d.seenIn(in, flow).flow {
				if flow == n.Job && !d.is("lets a job need the flow that it is in") {
					return valid.Invalid("needs", "a job needs the flow %d that it is in", flow)
				}
			}
		}
	}
	return nil
}

// ofHeld are the receipts of a flow whose key is held; nil unless it is.
func (d *database) ofHeld(jobs []stint.NewJob, stored []stint.Receipt) []stint.Receipt {
	first := jobs[0].Member
	if first == nil || first.Into != 0 || len(stored) == 0 || !stored[0].Duplicate || d.is("stores the jobs of a flow whose key is held") {
		return nil
	}
	return append(stored, make([]stint.Receipt, len(jobs)-1)...)
}

// there is what is in the flow already of what is to be added: the job of its name, or, of what is within a flow that is
// there, that flow; 0 for none.
func (d *database) there(in *modelTx, j *stint.NewJob, stored []stint.Receipt) stint.ID {
	m := j.Member
	if m == nil || d.is("adds a name twice") {
		return 0
	}
	flow := m.Into
	if m.Place >= 0 {
		if flow = stored[m.Place].ID; !stored[m.Place].Duplicate || d.is("adds again what is within a flow") {
			return 0
		}
	}
	for _, r := range d.rows {
		if r.job != nil && flow != 0 && r.flow == flow && r.name == m.Name && m.Name != "" && d.seenIn(in, r.id) != nil {
			return r.id
		}
	}
	if m.Place >= 0 {
		return flow
	}
	return 0
}

// join has a job take its place, after those of its batch that were stored.
func (d *database) join(job *row, stored []stint.Receipt) {
	m := job.job.Member
	if m == nil {
		return
	}
	job.flow, job.isFlow = m.Into, m.Root
	if !d.is("forgets names") {
		job.name = m.Name
	}
	if m.Place >= 0 {
		job.flow = stored[m.Place].ID
	}
	if job.flow != 0 && job.job.Correlation == "" && !d.is("gives each job of a flow a correlation id of its own") {
		job.job.Correlation = d.correlation(d.jobs[cmp.Or(m.Into, stored[0].ID)])
	}
	for _, n := range m.Needs {
		if n.Job == 0 {
			n.Job = stored[n.Place].ID
		}
		job.needs = append(job.needs, need{n.Job, n.Wants})
	}
}

// blocks reports whether a new job waits for others.
func (d *database) blocks(job *row) bool {
	switch {
	case job.isFlow:
		return !d.is("claims a flow")
	case d.is("lets what is needed from elsewhere be"):
		return slices.ContainsFunc(job.needs, func(n need) bool { return d.jobs[n.job].flow == job.flow })
	}
	return len(job.needs) > 0
}

// block has a job wait for others.
func (d *database) block(in *modelTx, job *row, next store.Next) {
	next.Why = stint.Blocked
	if d.is("shows what waits for jobs as scheduled") {
		next.Why = stint.Scheduled
	}
	d.wait(in, job, time.Time{}, next)
	d.rows[len(d.rows)-1].forJobs = true
}

// graph is what is known of jobs while some are decided about.
type graph struct {
	*database
	outcomes map[stint.ID]stint.Outcome
	members  map[stint.ID][]*row // by flow
	replaced map[stint.ID]bool   // jobs whose place another one took
}

func (d *database) graph() *graph {
	g := &graph{database: d, outcomes: map[stint.ID]stint.Outcome{}, members: map[stint.ID][]*row{}, replaced: map[stint.ID]bool{}}
	for _, x := range d.done {
		unseen := d.is("does not see who was cancelled before it began") && x.engine == 0 && x.Outcome == stint.OutcomeCancelled && d.jobs[x.Job] != nil && !d.jobs[x.Job].isFlow && len(d.jobs[x.Job].needs) == 0
		if x.Final && !unseen {
			g.outcomes[x.Job] = x.Outcome
		}
	}
	for _, r := range d.rows {
		if r.job == nil || r.flow == 0 {
			continue
		}
		g.members[r.flow] = append(g.members[r.flow], r)
		if r.from != 0 && !d.is("counts the failed beside the one that took its place") {
			g.replaced[r.from] = true
		}
	}
	return g
}

// promoteBlocked ends the waits for other jobs: a job begins, is skipped or cancelled, and a flow ends. The answer
// is how many began.
func (d *database) promoteBlocked(now time.Time) (begun int) {
	for more := true; more; {
		more = false
		d.cancelFlows()
		g := d.graph()
		for _, w := range d.visible(func(r *row) bool { return r.forJobs }) {
			outcome, cause := g.verdict(d.jobs[w.id])
			switch {
			case outcome == 0:
				continue
			case d.jobs[w.id].isFlow || outcome != stint.OutcomeCompleted:
				g.end(w, outcome, cause)
			default:
				d.begin(w, now)
				begun++
			}
			more = true
		}
	}
	return begun
}

// verdict is how a job that waits for others ends, which is completed if it begins; 0 while one of them is open.
// And it is the job that decided.
func (g *graph) verdict(job *row) (stint.Outcome, stint.ID) {
	if job.isFlow {
		return g.flowVerdict(job)
	}
	verdict, cause, open := stint.OutcomeCompleted, stint.ID(0), 0
	for _, n := range job.needs {
		how, ended := g.howEnded(n.job)
		if !ended {
			open++
			continue
		}
		means := g.means(n.wants, how)
		if g.is("decides at the first edge that is broken") && verdict != stint.OutcomeCompleted {
			continue
		}
		if means == stint.OutcomeCancelled && verdict != means || means == stint.OutcomeSkipped && verdict == stint.OutcomeCompleted {
			verdict, cause = means, n.job
		}
	}
	switch {
	case open == 0, open < len(job.needs) && g.is("begins a job when one of what it needs has ended"), g.is("promotes what waits for jobs"):
		return verdict, cause
	case verdict != stint.OutcomeCompleted && g.is("decides before all have ended"):
		return verdict, cause
	}
	return 0, 0
}

// howEnded is the outcome of a job that is needed. One that was deleted can no longer do what it was to do.
func (g *graph) howEnded(id stint.ID) (stint.Outcome, bool) {
	how, ended := g.outcomes[id]
	if job := g.jobs[id]; job == nil {
		how, ended = stint.OutcomeCancelled, true
		if g.is("takes the deleted for completed") {
			how = stint.OutcomeCompleted
		}
		ended = !g.is("waits for the deleted")
	} else if job.isFlow && !ended && g.is("does not wait for a flow within a flow") {
		return stint.OutcomeCompleted, true
	}
	return how, ended
}

// means is what the outcome of a job means to one that needs it.
func (d *database) means(wants stint.Want, how stint.Outcome) stint.Outcome {
	switch {
	case how == stint.OutcomeSkipped && d.is("goes on with what needs a skipped job"):
		return stint.OutcomeCompleted
	case how == stint.OutcomeSkipped && (!d.is("takes the skipped for cancelled") || wants != stint.WantsSuccess):
		return stint.OutcomeSkipped
	case wants == stint.WantsEnd:
		if how != stint.OutcomeCompleted && d.is("wants success of every end") {
			return stint.OutcomeCancelled
		}
	case wants == stint.WantsFailure:
		if how == stint.OutcomeCompleted && !d.is("takes a success for a failure") || how == stint.OutcomeCancelled && d.is("takes the cancelled for no failure") {
			return stint.OutcomeSkipped
		}
	case how != stint.OutcomeCompleted && !d.is("takes a failure for a success"):
		return stint.OutcomeCancelled
	}
	return stint.OutcomeCompleted
}

// flowVerdict is how a flow ends; 0 while one of its jobs is open, or somebody adds to it.
func (g *graph) flowVerdict(flow *row) (stint.Outcome, stint.ID) {
	_, marked := g.cancelled[flow.id]
	verdict, cause := stint.OutcomeCompleted, stint.ID(0)
	all := g.members[flow.id]
	if len(all) == 0 && g.is("leaves an empty flow open") {
		return 0, 0
	}
	for _, r := range all {
		how, ended := g.outcomes[r.id]
		switch {
		case marked && g.is("ends a cancelled flow at once"):
		case r.tx != nil && g.is("ends a flow while somebody adds to it"):
		case !ended && r.job.Member.Into != 0 && g.is("ends a flow before what was added to it"):
		case !ended && r.isFlow && g.is("does not wait for a flow within a flow"):
		case !ended:
			return 0, 0
		case g.replaced[r.id], how == stint.OutcomeCompleted, how == stint.OutcomeSkipped && !g.is("counts the skipped as failed"), g.is("completes a flow although one failed"):
		case how == stint.OutcomeCancelled && g.is("counts the cancelled as completed"):
		case verdict == stint.OutcomeCompleted:
			verdict, cause = stint.OutcomeFailed, r.id
		}
	}
	if marked && !g.is("takes a cancelled flow for failed") {
		verdict = stint.OutcomeCancelled
	}
	return verdict, cause
}

// end ends what waits for others without an engine.
func (g *graph) end(w *row, outcome stint.Outcome, cause stint.ID) {
	job := g.jobs[w.id]
	switch {
	case job.isFlow:
	case g.is("runs what was to be skipped") && outcome == stint.OutcomeSkipped, g.is("runs what was to be cancelled") && outcome == stint.OutcomeCancelled:
		g.begin(w, time.Now())
		return
	case g.is("cancels what was to be skipped"):
		outcome = stint.OutcomeCancelled
	case g.is("skips what was to be cancelled"):
		outcome = stint.OutcomeSkipped
	}
	g.rows = slices.DeleteFunc(g.rows, func(r *row) bool { return r == w })
	pos := g.draw()
	g.append(nil, job, pos, time.Now(), w.next)
	g.rows[len(g.rows)-1].lane = store.NoLane
	x := store.Completion{Pos: store.Position(pos), Job: w.id, Attempt: 1, Outcome: outcome, Final: true}
	if _, marked := g.cancelled[w.id]; cause != 0 && !marked && !g.is("does not say what decided") {
		x.Reason = fmt.Sprintf("job %d (%s)", cause, g.outcomes[cause])
	}
	g.record(0, x)
	g.outcomes[w.id] = outcome
}

// begin has a job begin that waited for others, or wait for its time.
func (d *database) begin(w *row, now time.Time) {
	w.forJobs = false
	if job := d.jobs[w.id]; job.due.After(now) && !d.is("begins before its time what waited for jobs") {
		w.next.Why, w.wait.Why, w.due, w.wait.Due = stint.Scheduled, stint.Scheduled, job.due, job.due
		return
	}
	d.promote(w)
}

// cancelLateFlows cancels flows whose time is over, and returns how long it is until the next one's is; -1 for none.
func (d *database) cancelLateFlows(now time.Time) time.Duration {
	next := time.Duration(-1)
	for _, w := range d.visible(func(r *row) bool { return r.forJobs && d.jobs[r.id].isFlow && d.jobs[r.id].job.Timeout > 0 }) {
		job := d.jobs[w.id]
		left := job.made.Add(job.job.Timeout).Sub(now)
		_, marked := d.cancelled[w.id]
		switch {
		case marked, d.is("lets flows take as long as they want"), job.from != 0 && d.is("lets a flow that is retried take as long as it wants"):
		case left <= 0 || d.is("cancels flows before their time"):
			why := "it took longer than its timeout"
			if d.is("does not say that a flow was late") {
				why = ""
			}
			d.cancel(w.id, why)
		case next < 0 || left < next:
			next = left
		}
	}
	if d.is("does not say when a flow is late") {
		return -1
	}
	return next
}

// cancelFlows cancels the jobs of flows that are being cancelled, the newest first.
func (d *database) cancelFlows() {
	for _, w := range d.visible(func(r *row) bool { return r.forJobs && d.jobs[r.id].isFlow }) {
		mark, marked := d.cancelled[w.id]
		if !marked || d.is("leaves the jobs of a flow that is cancelled") {
			continue
		}
		why := d.whyWith(w.id, mark.why)
		for _, r := range slices.Backward(d.visible(func(r *row) bool { return r.job != nil && r.flow == w.id })) {
			late := mark.told && d.is("leaves what is added while a flow is cancelled")
			if _, twice := d.cancelled[r.id]; !twice && !d.ended(r.id) && !late {
				d.cancel(r.id, why)
			}
		}
		mark.told = true
		d.cancelled[w.id] = mark
	}
}

// inOpenFlow reports whether a job belongs to a flow that has not ended.
func (d *database) inOpenFlow(id stint.ID) bool {
	r := d.jobs[id]
	return r != nil && r.flow != 0 && d.jobs[r.flow] != nil && d.jobs[r.flow].isFlow && !d.ended(r.flow)
}

// hasOpenParent reports whether a job belongs to a flow, or was called by a job, that has not ended.
func (d *database) hasOpenParent(id stint.ID) bool {
	r := d.jobs[id]
	called := r != nil && d.jobs[r.flow] != nil && !d.jobs[r.flow].isFlow && !d.ended(r.flow)
	return d.inOpenFlow(id) || called && !d.is("forgets what was called")
}

// takePlace has a job that was recovered stand where the old one did, while their flow is open.
func (d *database) takePlace(old, anew *row) {
	if !d.is("leaves the name to the old job") {
		anew.name, old.name = old.name, ""
	} else {
		anew.name = ""
	}
	for _, r := range d.rows {
		for i := range r.needs {
			if r.needs[i].job == old.id && !d.is("waits for the old job") {
				r.needs[i].job = anew.id
			}
		}
	}
}

// showPlace shows where a job stands.
func (d *database) showPlace(job *row, waits bool, i *stint.JobInfo) {
	if !d.is("shows no flow") {
		i.Flow = job.flow
	}
	if !d.is("shows no name in the flow") {
		i.Node = job.name
	}
	i.IsFlow = job.isFlow && !d.is("shows flows as jobs")
	if !waits || d.is("shows nothing that is needed") {
		return
	}
	g := d.graph()
	for _, r := range g.members[job.id] {
		if _, ended := g.outcomes[r.id]; !ended && r.tx == nil {
			i.NeedsFirst = max(i.NeedsFirst, r.id)
		}
	}
	for _, n := range job.needs {
		if _, ended := g.howEnded(n.job); !ended {
			i.NeedsFirst = max(i.NeedsFirst, n.job)
		}
	}
}

// Node implements [store.FlowReader].
func (m *model) Node(_ context.Context, flow stint.ID, name string) (stint.ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.visible(func(r *row) bool { return r.job != nil && r.name == name }) {
		if r.flow == flow || m.is("looks for names in every flow") {
			return r.id, nil
		}
	}
	if f := m.jobRow(flow); f != nil && f.also[name] != 0 {
		return f.also[name], nil
	}
	return 0, stint.ErrNotFound
}

// Needed implements [store.FlowReader].
func (m *model) Needed(_ context.Context, job, after stint.ID, limit int) ([]stint.NeededJob, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.jobRow(job)
	if r == nil || m.is("lists nothing that is needed") {
		return nil, nil
	}
	var all []stint.NeededJob
	for _, n := range r.needs {
		if n.job <= after && !m.is("lists what is needed from the first") {
			continue
		}
		all = append(all, m.needed(n))
	}
	slices.SortFunc(all, func(a, b stint.NeededJob) int {
		if m.is("lists the newest that is needed first") {
			a, b = b, a
		}
		return cmp.Compare(a.ID, b.ID)
	})
	if m.is("lists all that is needed at once") {
		limit = len(all)
	}
	return all[:min(limit, len(all))], nil
}

func (d *database) needed(n need) stint.NeededJob {
	needed := stint.NeededJob{ID: n.job, Wants: n.wants}
	if job := d.jobRow(n.job); job != nil {
		needed.Kind, needed.Name = job.job.Kind, job.name
	}
	for _, x := range d.done {
		if x.Job == n.job && (x.Final || d.is("takes any attempt for the end of what is needed")) {
			needed.Outcome, needed.Result = x.Outcome, slices.Clone(x.Result)
		}
	}
	if d.is("tells no outcome of what is needed") {
		needed.Outcome = 0
	}
	if d.is("tells no result of what is needed") {
		needed.Result = nil
	}
	return needed
}
