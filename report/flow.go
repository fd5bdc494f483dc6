package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

// FlowGraph is a flow as people look at it: nodes that need each other. A node is a job, a flow within
// the flow with all that is in it, or several jobs that were folded into one.
type FlowGraph struct {
	Flow  stint.ID    `json:"flow"`
	Kind  string      `json:"kind"`
	State stint.State `json:"state"`

	Jobs   int                 `json:"jobs" doc:"How many are in it and in the flows within it, without those that another one does again in it"`
	States map[stint.State]int `json:"states" doc:"How many of them are in each state"`

	OldestOpen stint.ID `json:"oldest_open,omitempty" doc:"The first of its jobs that has not ended and waits for no other one"`
	NewestOpen stint.ID `json:"newest_open,omitempty" doc:"The last of these"`

	Folded       bool `json:"folded,omitempty" doc:"Jobs of one kind that need the same, and that the same needs, are one node"`
	LeftOut      int  `json:"left_out,omitempty" doc:"How many nodes are left out, although it is folded"`
	EdgesLeftOut int  `json:"edges_left_out,omitempty" doc:"How many edges are left out between these nodes"`
	Cut          bool `json:"cut,omitempty" doc:"The flow has more jobs, or more that they need, than is read: the oldest are here"`

	Nodes []FlowNode `json:"nodes" doc:"By layer, and in each by id"`
	Edges []FlowEdge `json:"edges"`
}

// FlowNode is a node of a [FlowGraph].
type FlowNode struct {
	ID     stint.ID `json:"id" doc:"Of several jobs that of the first"`
	Name   string   `json:"name,omitempty" doc:"In its flow"`
	Kind   string   `json:"kind"`
	Flow   stint.ID `json:"flow,omitempty" doc:"That it is in"`
	IsFlow bool     `json:"is_flow,omitempty"`

	Outside bool `json:"outside,omitempty" doc:"It is of another flow, and is needed here"`
	Deleted bool `json:"deleted,omitempty" doc:"It is needed and was deleted"`

	State   stint.State         `json:"state" doc:"Of several jobs the state that asks for most attention"`
	Outcome stint.Outcome       `json:"outcome,omitempty" doc:"Of one that ended"`
	Jobs    int                 `json:"jobs" doc:"How many jobs it stands for; those in a flow"`
	States  map[stint.State]int `json:"states,omitempty" doc:"How many of them are in each state, where there may be several"`

	Layer    int        `json:"layer" doc:"From 0; what is needed is in a lower one, but where flows need jobs of each other"`
	Critical bool       `json:"critical,omitempty" doc:"It is on the way that decided how long it took: the job that ended last, of those that it needed the one that ended last, and so on"`
	Replaces []stint.ID `json:"replaces,omitempty" doc:"The jobs that it does again in the flow, oldest first"`

	Created  time.Time `json:"created,omitzero"`
	Ready    time.Time `json:"ready,omitzero" doc:"When what it needs had ended, and its time had come"`
	Started  time.Time `json:"started,omitzero" doc:"When the first attempt began, as far as that is recorded"`
	Finished time.Time `json:"finished,omitzero" doc:"When all of it had ended"`
	Runs     []FlowRun `json:"runs,omitempty" doc:"The attempts of one job that ended, oldest first: the first, and the last 20"`
}

// FlowRun is an attempt of a [FlowNode].
type FlowRun struct {
	Outcome  stint.Outcome `json:"outcome"`
	Started  time.Time     `json:"started,omitzero" doc:"Absent if it never began"`
	Finished time.Time     `json:"finished"`
}

// FlowEdge says that nodes need another one.
type FlowEdge struct {
	From  stint.ID `json:"from" doc:"The node that is needed"`
	To    stint.ID `json:"to" doc:"The node that needs it"`
	Wants string   `json:"wants" enum:"success,failure,end"`

	// How many needs it stands for, by what became of them.
	Satisfied int `json:"satisfied,omitempty"`
	Open      int `json:"open,omitempty" doc:"What is needed has not ended"`
	Broken    int `json:"broken,omitempty" doc:"It ended in another way"`
}

// FlowOptions say how a flow is shown.
type FlowOptions struct {
	// All shows each job by itself, also those in flows within the flow.
	All bool
}

const (
	// MostFlowJobs and MostFlowNeeds are how much of a flow is read.
	MostFlowJobs  = 200_000
	MostFlowNeeds = 500_000

	// MostFlowNodes and MostFlowEdges are how much is shown without [FlowOptions.All].
	MostFlowNodes = 200
	MostFlowEdges = 1000
)

// FlowGraphOf makes a graph of a flow. It takes a time that is proportional to the size of what was read.
func FlowGraphOf(read *store.FlowGraph, flow stint.ID, o FlowOptions) FlowGraph {
	b := newFlowBuilder(read, flow, o.All)
	g := FlowGraph{Flow: flow, Cut: read.Cut, States: map[stint.State]int{}}
	b.count(&g)
	b.connect(read.Needs)
	b.place()
	b.time()
	b.follow()
	of, n := b.alone()
	if !o.All && (n > MostFlowNodes || len(b.links) > MostFlowEdges) {
		of, n = b.fold(MostFlowNodes)
		g.Folded = n < len(b.units)
	}
	b.show(&g, of, n)
	if !o.All {
		g.shorten()
	}
	return g
}

// flowUnit is what is shown as one node unless it is folded.
type flowUnit struct {
	job               *store.FlowJob // nil for one that was deleted
	id                stint.ID
	outside, critical bool
	layer             int
	states            map[stint.State]int // of what is in a flow
	within            int
	ready             time.Time
	replaced          []*store.FlowJob // that it does again, oldest first
}

// flowLink is a need of one unit of another.
type flowLink struct {
	from, to int
	wants    stint.Want // 0 of a job and the flow that it is in
	fate     int8
}

const (
	fateOpen = iota
	fateSatisfied
	fateBroken
)

// flowBuilder makes a graph. Of a job that was read, the number is its place among them.
type flowBuilder struct {
	flow  stint.ID
	all   bool
	jobs  []store.FlowJob
	ids   []stint.ID        // of these
	in    map[stint.ID]bool // the flow and those within it
	again []int             // by job, the one that does it again in its flow; -1 for none
	at    []int             // by job, the unit that it is; -1 for none
	gone  map[stint.ID]int  // units of jobs that were deleted

	units  []flowUnit
	links  []flowLink
	after  groups // links by the unit that they come from
	before groups // and by the one that they lead to
}

func newFlowBuilder(read *store.FlowGraph, flow stint.ID, all bool) *flowBuilder {
	b := &flowBuilder{flow: flow, all: all, jobs: read.Jobs, in: map[stint.ID]bool{flow: true}, gone: map[stint.ID]int{}, again: make([]int, len(read.Jobs)), at: make([]int, len(read.Jobs))}
	b.findFlows()
	b.ids = make([]stint.ID, len(b.jobs))
	for i := range b.jobs {
		b.ids[i], b.again[i], b.at[i] = b.jobs[i].ID, -1, -1
	}
	for i := range b.jobs {
		j := &b.jobs[i]
		if old := b.find(j.Recovered); old >= 0 && b.jobs[old].Flow == j.Flow && b.in[j.Flow] {
			b.again[old] = i
		}
	}
	for i := range b.jobs {
		j := &b.jobs[i]
		if b.again[i] >= 0 || j.ID == flow || b.in[j.Flow] && !all && j.Flow != flow {
			continue
		}
		u := flowUnit{job: j, id: j.ID, outside: !b.in[j.Flow]}
		for old := b.find(j.Recovered); old >= 0 && b.again[old] >= 0 && b.jobs[old].Flow == j.Flow; old = b.find(b.jobs[old].Recovered) {
			u.replaced = append(u.replaced, &b.jobs[old])
		}
		slices.Reverse(u.replaced)
		b.at[i] = b.add(u)
	}
	return b
}

// findFlows finds the flows within the flow. One has a higher id than the flow that it is in.
func (b *flowBuilder) findFlows() {
	for i := range b.jobs {
		if j := &b.jobs[i]; j.IsFlow && b.in[j.Flow] {
			b.in[j.ID] = true
		}
	}
}

// find finds a job by its id; -1 if it was not read.
func (b *flowBuilder) find(id stint.ID) int {
	i, ok := slices.BinarySearch(b.ids, id)
	if !ok || id == 0 {
		return -1
	}
	return i
}

func (b *flowBuilder) add(u flowUnit) int {
	b.units = append(b.units, u)
	return len(b.units) - 1
}

// unitOf is the unit that shows a job: what does it again, or the flow that it is in. It is -1 for none.
func (b *flowBuilder) unitOf(job int) int {
	for job >= 0 {
		switch {
		case b.again[job] >= 0:
			job = b.again[job]
		case b.at[job] >= 0:
			return b.at[job]
		default:
			job = b.find(b.jobs[job].Flow)
		}
	}
	return -1
}

// count counts the jobs by their states, in all and in each flow.
func (b *flowBuilder) count(g *FlowGraph) {
	if root := b.find(b.flow); root >= 0 {
		g.Kind, g.State = b.jobs[root].Kind, b.jobs[root].State
	}
	for i := range b.jobs {
		j := &b.jobs[i]
		if b.again[i] >= 0 || j.IsFlow || !b.in[j.Flow] {
			continue
		}
		for around := j.Flow; around != b.flow; {
			flow := b.find(around)
			if b.at[flow] >= 0 {
				u := &b.units[b.at[flow]]
				if u.within++; u.states == nil {
					u.states = map[stint.State]int{}
				}
				u.states[j.State]++
			}
			around = b.jobs[flow].Flow
		}
		g.Jobs++
		g.States[j.State]++
		if !j.State.Final() && j.State != stint.Blocked {
			g.OldestOpen, g.NewestOpen = cmp.Or(g.OldestOpen, j.ID), j.ID
		}
	}
}

// connect takes the needs between units.
func (b *flowBuilder) connect(needs []store.FlowNeed) {
	b.links = make([]flowLink, 0, len(needs))
	for _, n := range needs {
		child, parent := b.find(n.Child), b.find(n.Parent)
		to, from := b.unitOf(child), b.unitOf(parent)
		if parent < 0 {
			if _, ok := b.gone[n.Parent]; !ok {
				b.gone[n.Parent] = b.add(flowUnit{id: n.Parent, outside: true})
			}
			from = b.gone[n.Parent]
		}
		if to < 0 || from < 0 || from == to || b.again[child] >= 0 {
			continue
		}
		b.links = append(b.links, flowLink{from, to, n.Wants, fateOf(b.job(parent), n.Wants)})
	}
	if b.all { // a flow ends after its jobs
		for i := range b.units {
			if flow := b.find(b.units[i].flow()); flow >= 0 && b.at[flow] >= 0 {
				b.links = append(b.links, flowLink{from: i, to: b.at[flow]})
			}
		}
	}
	b.after = grouped(len(b.units), len(b.links), func(i int) int { return b.links[i].from })
	b.before = grouped(len(b.units), len(b.links), func(i int) int { return b.links[i].to })
}

// job is one by its number, or nil.
func (b *flowBuilder) job(i int) *store.FlowJob {
	if i < 0 {
		return nil
	}
	return &b.jobs[i]
}

// groups are numbers by what they belong to.
type groups struct{ first, of []int }

// grouped groups the numbers below n, each of which belongs to one of so many.
func grouped(many, n int, to func(i int) int) groups {
	g := groups{make([]int, many+1), make([]int, n)}
	for i := range n {
		g.first[to(i)+1]++
	}
	for i := range many {
		g.first[i+1] += g.first[i]
	}
	next := slices.Clone(g.first)
	for i := range n {
		g.of[next[to(i)]] = i
		next[to(i)]++
	}
	return g
}

// at are those that belong to one.
func (g groups) at(i int) []int { return g.of[g.first[i]:g.first[i+1]] }

// fateOf says what became of what is wanted of a job; one that is not there was deleted.
func fateOf(j *store.FlowJob, wants stint.Want) int8 {
	how := stint.OutcomeCancelled
	if j != nil {
		how = outcomeOf(j)
	}
	switch {
	case how == 0:
		return fateOpen
	case how == stint.OutcomeSkipped:
		return fateBroken
	case wants == stint.WantsEnd, (how == stint.OutcomeCompleted) == (wants == stint.WantsSuccess):
		return fateSatisfied
	}
	return fateBroken
}

// outcomeOf is how a job ended; 0 before.
func outcomeOf(j *store.FlowJob) stint.Outcome {
	if !j.State.Final() {
		return 0
	}
	if n := len(j.Runs); n > 0 && j.Runs[n-1].Final {
		return j.Runs[n-1].Outcome
	}
	return stint.OutcomeCancelled // which no engine has recorded yet
}

// place finds the layers: each unit is in the first one that is after all that it needs. Where units wait for each other,
// as flows may do whose jobs need each other, the oldest goes first.
func (b *flowBuilder) place() {
	open, placed := make([]int, len(b.units)), make([]bool, len(b.units))
	var next []int
	for i := range b.units {
		if open[i] = len(b.before.at(i)); open[i] == 0 {
			next = append(next, i)
		}
	}
	for oldest := 0; ; {
		for oldest < len(placed) && placed[oldest] {
			oldest++
		}
		if len(next) == 0 && oldest < len(placed) {
			next = append(next, oldest)
		} else if len(next) == 0 {
			return
		}
		i := next[0]
		next = next[1:]
		if placed[i] {
			continue
		}
		placed[i] = true
		for _, l := range b.after.at(i) {
			c := b.links[l].to
			if placed[c] {
				continue
			}
			b.units[c].layer = max(b.units[c].layer, b.units[i].layer+1)
			if open[c]--; open[c] == 0 {
				next = append(next, c)
			}
		}
	}
}

// flow is the flow that a unit is in; 0 for none.
func (u *flowUnit) flow() stint.ID {
	if u.job == nil {
		return 0
	}
	return u.job.Flow
}

// ended is when a unit had ended; zero if it has not, or that is not recorded.
func (u *flowUnit) ended() time.Time {
	if u.job == nil || !u.job.State.Final() || len(u.job.Runs) == 0 {
		return time.Time{}
	}
	return u.job.Runs[len(u.job.Runs)-1].Finished
}

// time finds when each unit was ready to begin.
func (b *flowBuilder) time() {
	for i := range b.units {
		u := &b.units[i]
		if u.job == nil || u.job.IsFlow {
			continue
		}
		ready, open := latest(u.job.Created, u.job.Due), false
		for _, l := range b.before.at(i) {
			open = open || b.links[l].fate == fateOpen
			ready = latest(ready, b.units[b.links[l].from].ended())
		}
		if !open {
			u.ready = ready
		}
	}
}

// follow marks the way that decided when the flow ended.
func (b *flowBuilder) follow() {
	last := -1
	for i := range b.units {
		u := &b.units[i]
		if !u.outside && !u.ended().IsZero() && (last < 0 || u.ended().After(b.units[last].ended())) {
			last = i
		}
	}
	for last >= 0 && !b.units[last].critical {
		i := last
		b.units[i].critical = true
		last = -1
		for _, l := range b.before.at(i) {
			p := b.links[l].from
			if !b.units[p].outside && !b.units[p].ended().IsZero() && (last < 0 || b.units[p].ended().After(b.units[last].ended())) {
				last = p
			}
		}
	}
}

// urgent are the states, the one first that a node of several jobs shows.
var urgent = []stint.State{stint.Failed, stint.Running, stint.Available, stint.Retrying, stint.Scheduled, stint.Blocked, stint.Cancelled, stint.Completed}

// show makes nodes and edges of units, each of which is in one of n nodes.
func (b *flowBuilder) show(g *FlowGraph, of []int, n int) {
	g.Nodes, g.Edges = make([]FlowNode, n), []FlowEdge{}
	open := make([]bool, n)
	for i := range b.units {
		u, node := &b.units[i], &g.Nodes[of[i]]
		if node.Jobs++; node.Jobs == 1 {
			*node = u.node()
			node.Jobs = 1
		}
		node.add(u)
		open[of[i]] = open[of[i]] || u.ended().IsZero()
	}
	for i := range g.Nodes {
		g.Nodes[i].settle(open[i])
	}
	type pair struct {
		from, to int
		wants    stint.Want
	}
	at := map[pair]int{}
	for _, l := range b.links {
		p := pair{of[l.from], of[l.to], l.wants}
		if p.from == p.to || l.wants == 0 {
			continue
		}
		i, ok := at[p]
		if !ok {
			i = len(g.Edges)
			at[p] = i
			g.Edges = append(g.Edges, FlowEdge{From: g.Nodes[p.from].ID, To: g.Nodes[p.to].ID, Wants: wantName(l.wants)})
		}
		switch e := &g.Edges[i]; l.fate {
		case fateOpen:
			e.Open++
		case fateSatisfied:
			e.Satisfied++
		default:
			e.Broken++
		}
	}
	slices.SortFunc(g.Nodes, func(a, b FlowNode) int { return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(g.Edges, func(a, b FlowEdge) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From), cmp.Compare(a.Wants, b.Wants))
	})
}

// wantName is what a job wants of another one, as a word.
func wantName(w stint.Want) string {
	return map[stint.Want]string{stint.WantsSuccess: "success", stint.WantsFailure: "failure", stint.WantsEnd: "end"}[w]
}

// node is a unit by itself.
func (u *flowUnit) node() FlowNode {
	n := FlowNode{ID: u.id, Outside: u.outside, Layer: u.layer, Ready: u.ready, States: map[stint.State]int{}}
	if u.job == nil {
		n.Kind, n.Deleted, n.Outcome = "deleted", true, stint.OutcomeCancelled
		return n
	}
	n.Name, n.Kind, n.Flow, n.IsFlow, n.Created, n.Outcome = u.job.Node, u.job.Kind, u.job.Flow, u.job.IsFlow, u.job.Created, outcomeOf(u.job)
	for _, old := range u.replaced {
		n.Replaces = append(n.Replaces, old.ID)
		n.run(old)
		if old.Created.Before(n.Created) {
			n.Created = old.Created
		}
	}
	if !u.job.IsFlow {
		n.run(u.job)
	}
	return n
}

func (n *FlowNode) run(j *store.FlowJob) {
	for _, r := range j.Runs {
		if !r.Begun {
			r.Started = time.Time{}
		}
		n.Runs = append(n.Runs, FlowRun{Outcome: r.Outcome, Started: r.Started, Finished: r.Finished})
	}
}

// add counts a unit.
func (n *FlowNode) add(u *flowUnit) {
	n.Critical = n.Critical || u.critical
	state := stint.Cancelled
	if u.job != nil {
		state = u.job.State
		if u.job.Created.Before(n.Created) {
			n.Created = u.job.Created
		}
		n.begin(u.job)
		for _, old := range u.replaced {
			n.begin(old)
		}
	}
	if !u.ready.IsZero() && u.ready.Before(n.Ready) {
		n.Ready = u.ready
	}
	n.Finished = latest(n.Finished, u.ended())
	if u.job != nil && u.job.IsFlow && n.Jobs == 1 {
		n.State, n.Jobs = state, u.within
		for s, k := range u.states {
			n.States[s] += k
		}
		return
	}
	n.States[state]++
}

// begin finds the first attempt that began.
func (n *FlowNode) begin(j *store.FlowJob) {
	for _, r := range j.Runs {
		if r.Begun && (n.Started.IsZero() || r.Started.Before(n.Started)) {
			n.Started = r.Started
		}
	}
}

// settle leaves out what is said of several jobs where there is one.
func (n *FlowNode) settle(open bool) {
	if open {
		n.Finished = time.Time{}
	}
	if n.State == "" {
		n.State = urgent[slices.IndexFunc(urgent, func(s stint.State) bool { return n.States[s] > 0 })]
	}
	several := n.Jobs > 1 && !n.IsFlow
	if several {
		n.Name, n.Runs, n.Replaces, n.Outcome = "", nil, nil, 0
	}
	if !several && !n.IsFlow || len(n.States) == 0 {
		n.States = nil
	}
}

// Label names a node for people: by its name, its kind, or its kind and how many jobs it stands for.
func (n *FlowNode) Label() string {
	switch {
	case n.Jobs > 1 && !n.IsFlow:
		return n.Kind + " ×" + words.Count(n.Jobs)
	case n.Deleted:
		return "job " + n.ID.String() + " (deleted)"
	}
	return cmp.Or(n.Name, n.Kind)
}
