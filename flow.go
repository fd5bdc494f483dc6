package stint

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/stint-go/stint/internal/valid"
)

// Flow is a graph of jobs that is enqueued as a whole, in one transaction: each job begins when the
// jobs that it needs have ended as it wants ([Needs], [NeedsFailure], [NeedsEnd]).
//
//	f := stint.NewFlow("import")
//	fetch := Fetch.Add(f, "fetch", FetchArgs{Day: day})
//	pages := Page.Each(f, urls, stint.Needs(fetch))
//	Sum.Add(f, "sum", SumArgs{}, stint.Needs(pages...))
//	id, err := f.Enqueue(ctx, client)
//
// A job can only need what was added before it. What would wait for itself all the same, since it is in a flow that another one needs, is an
// error of [Flow.Enqueue]. A job whose needs cannot be met
// does not run: it is cancelled, or skipped if it needed a failure that did not happen. This is decided
// once, when all that it needs has ended, so the order does not matter. Jobs that need it are then decided
// in the same way.
//
// The flow is a job as well, of the kind that is its name, which no engine runs: it has an ID, tags and
// metadata, may be unique, and is shown, awaited and cancelled like any job. It ends when all of its
// jobs have ended: completed, or failed if one of them failed or was cancelled, also if another one took
// care of that ([NeedsFailure]). Those that were skipped do not count.
//
// A Flow is built by one goroutine. Mistakes are kept, and returned by [Flow.Enqueue].
type Flow struct {
	*flowBatch
	place int // of the flow in the batch; -1 for one that exists
}

// flowBatch is what a flow and those within it are enqueued as.
type flowBatch struct {
	into ID   // the flow that exists; 0 for a new one
	call bool // that is a job, which calls this one
	jobs []NewJob
	ids  []ID // when it was enqueued
	err  error
}

// Member is what a job says of the flow that it belongs to. [Flow] makes it.
type Member struct {
	Root  bool   `json:"root,omitempty" doc:"The job is a flow"`
	Into  ID     `json:"into,omitempty" doc:"The flow that it is added to; none for a new one"` // or the job that calls it
	Call  bool   `json:"-"`                                                                     // that is a job: see [Kind.Call]
	Place int    `json:"place" minimum:"-1" doc:"Which of the jobs before it, counted from 0, is the flow that it is in; -1 for none of them"`
	Name  string `json:"name,omitempty" doc:"Unique in its flow"`
	Needs []Need `json:"needs,omitempty" doc:"What it needs of jobs before it, or of others"`
}

// Need is a job or flow that another job needs.
type Need struct {
	Job   ID   `json:"job,omitempty" doc:"The id of a job that was enqueued before"` // 0 for one of the batch
	Place int  `json:"place,omitempty" minimum:"0" doc:"Or which of the jobs before it, counted from 0"`
	Wants Want `json:"wants" minimum:"1" maximum:"3" doc:"1: that it completes, 2: that it fails, 3: that it ends"`

	batch *flowBatch
}

// Want is what a job wants of one that it needs. The numbers are stored and never change their meaning.
type Want int8

// What a job can want of another.
const (
	WantsSuccess Want = 1 // that it completes
	WantsFailure Want = 2 // that it fails, expires or is cancelled
	WantsEnd     Want = 3 // that it ends
)

// Node is what jobs can need: a job of a flow that is being built, or a flow.
type Node struct {
	batch *flowBatch
	place int
	id    ID // of one that exists
}

// ID returns the node's id once its flow was enqueued, and 0 before.
func (n *Node) ID() ID {
	if n.batch != nil && n.place >= 0 && n.place < len(n.batch.ids) {
		return n.batch.ids[n.place]
	}
	return n.id
}

// Existing is a job of a flow, or a flow, that was enqueued before. [Flow.Enqueue] fails with [ErrNotFound] if the ID
// is that of anything else.
func Existing(id ID) *Node { return &Node{id: id} }

// Needs has a job begin when all of these have completed. If one failed or was cancelled, the job is
// cancelled; if one was skipped, and none failed, it is skipped.
func Needs(nodes ...*Node) Option { return needs(WantsSuccess, nodes) }

// NeedsFailure has a job begin when all of these have failed, expired, were lost for good or were cancelled. If one
// completed or was skipped, the job is skipped.
func NeedsFailure(nodes ...*Node) Option { return needs(WantsFailure, nodes) }

// NeedsEnd has a job begin when all of these have ended, however they did, unless one of them was skipped:
// then the job is.
func NeedsEnd(nodes ...*Node) Option { return needs(WantsEnd, nodes) }

func needs(wants Want, nodes []*Node) Option {
	return func(j *NewJob) {
		if j.Member == nil {
			j.Member = &Member{}
		}
		for _, n := range nodes {
			if n == nil {
				n = &Node{} // which Add refuses
			}
			j.Member.Needs = append(j.Member.Needs, Need{Job: n.ID(), Place: n.place, Wants: wants, batch: n.batch})
		}
	}
}

// NewFlow begins a flow. The name is the kind that it is shown as. These options apply to a flow: [Tag], [URN], [Source], [Description], [Metadata], [Correlation], [Timeout],
// [IdempotencyKey] and those of uniqueness, by its name, since it has no arguments. Any other is an error of [Flow.Enqueue]. If another flow
// holds its key, nothing of this one is stored.
func NewFlow(name string, opts ...Option) *Flow {
	f := &Flow{flowBatch: new(flowBatch), place: -1}
	return f.begin("", name, opts)
}

// Flow adds a flow within the flow, under a name that is unique there; empty for none. Others need all of its jobs
// by needing its [Flow.Node]. Its options are those of [NewFlow], without keys.
func (f *Flow) Flow(name, kind string, opts ...Option) *Flow { return f.begin(name, kind, opts) }

// Node is the flow as what jobs outside of it can need.
func (f *Flow) Node() *Node {
	if f.place < 0 {
		return &Node{id: f.into}
	}
	return &Node{batch: f.flowBatch, place: f.place}
}

// FlowFrom returns the flow of the running handler's job, so that jobs can be added to it while it
// is open. A job whose name is already in the flow is not added again, so a repeated attempt adds nothing twice if
// it names its jobs, which [Kind.Each] does not. Outside of a handler, or if its job is in no flow, the error of [Flow.Enqueue]
// is [ErrNoAttempt].
func FlowFrom(ctx context.Context) *Flow {
	if job := JobFrom(ctx); job != nil && job.Flow != 0 {
		return OpenFlow(job.Flow)
	}
	f := OpenFlow(0)
	f.err = fmt.Errorf("stint: the running job is in no flow: %w", ErrNoAttempt)
	return f
}

// OpenFlow returns the flow of this ID, so that jobs can be added to it while it is open: see [FlowFrom]. After its end
// the error of [Flow.Enqueue] is [ErrEnded], and [ErrNotFound] if there is no such flow.
func OpenFlow(id ID) *Flow {
	return &Flow{flowBatch: &flowBatch{into: id}, place: -1}
}

func (f *Flow) begin(name, kind string, opts []Option) *Flow {
	root := NewJob{Kind: kind}
	for _, opt := range opts {
		opt(&root)
	}
	if root.Member != nil {
		f.fail(valid.Invalid("needs", "the flow %s is not run, and has none: its jobs have", kind))
	}
	root.Member = &Member{Root: true}
	n := f.add(name, root)
	return &Flow{f.flowBatch, n.place}
}

// Add adds a job of the kind to a flow, under a name that is unique there; empty for none. The options
// are those of the job, with what it needs among them; its times count from when it is enqueued. Only flows have keys
// and uniqueness.
func (k Kind[A]) Add(f *Flow, name string, args A, opts ...Option) *Node {
	job, err := k.New(args, opts...)
	f.fail(err)
	return f.Add(name, job)
}

// Add adds a job that was made before, as by [Kind.New]: see [Kind.Add].
func (f *Flow) Add(name string, job NewJob, opts ...Option) *Node {
	if job.Member != nil {
		job.Member = &Member{Needs: slices.Clone(job.Member.Needs)}
	}
	for _, opt := range opts {
		opt(&job)
	}
	if job.Member == nil {
		job.Member = &Member{}
	}
	return f.add(name, job)
}

// Each adds a job of the kind for each of the arguments, without names.
func (k Kind[A]) Each(f *Flow, args []A, opts ...Option) []*Node {
	nodes := make([]*Node, len(args))
	for i, a := range args {
		nodes[i] = k.Add(f, "", a, opts...)
	}
	return nodes
}

// add adds a job, whose Member is set.
func (f *Flow) add(name string, job NewJob) *Node {
	m := job.Member
	m.Name, m.Place, m.Into, m.Call = name, f.place, f.into, f.call
	for _, need := range m.Needs {
		if need.Job == 0 && need.batch != f.flowBatch {
			f.fail(valid.Invalid("needs", "the job %s needs one of a flow that was not enqueued", job.Kind))
		}
	}
	f.jobs = append(f.jobs, job)
	return &Node{batch: f.flowBatch, place: len(f.jobs) - 1}
}

// checkMembers refuses jobs that are not together a flow, or what is added to one, though one of them says so.
func checkMembers(jobs []NewJob) error {
	if !slices.ContainsFunc(jobs, func(j NewJob) bool { return j.Member != nil }) {
		return nil
	}
	type nodeName struct {
		flow int // its place
		name string
	}
	names := map[nodeName]bool{}
	for i := range jobs {
		m := jobs[i].Member
		if m == nil || i == 0 && !m.Root && m.Into == 0 || m.Into != jobs[0].Member.Into || m.Place >= i || m.Place < 0 && i > 0 && m.Into == 0 ||
			m.Place >= 0 && !jobs[m.Place].Member.Root || slices.ContainsFunc(m.Needs, func(n Need) bool { return n.Job == 0 && (n.Place < 0 || n.Place >= i) }) {
			return valid.Invalid("needs", "the job %s is enqueued by itself: only jobs that were added to a flow, and are enqueued with it, need others", jobs[i].Kind)
		}
		if err := checkMember(jobs, i); err != nil {
			return err
		}
		if name := (nodeName{m.Place, m.Name}); m.Name != "" && names[name] {
			return valid.Invalid("name", "%q is there twice in the flow", m.Name)
		} else if m.Name != "" {
			names[name] = true
		}
	}
	if circular(jobs) {
		return valid.Invalid("needs", "jobs wait for each other in a circle: one needs a flow that has a job which waits for it")
	}
	return nil
}

// checkMember checks what one of the jobs says of its flow.
func checkMember(jobs []NewJob, i int) error {
	j := &jobs[i]
	m := j.Member
	if m.Root {
		said := NewJob{
			Kind: j.Kind, Tags: j.Tags, URN: j.URN, Source: j.Source, Description: j.Description, Metadata: j.Metadata,
			Correlation: j.Correlation, IdempotencyKey: j.IdempotencyKey, Unique: j.Unique, Timeout: j.Timeout,
		}
		if len(m.Needs) == 0 {
			said.Member = m
		}
		said.Fill()
		if field := j.differs(said); field != "" {
			return valid.Invalid(field, "the flow %s is not run, and has none: its jobs have", j.Kind)
		}
	}
	if (i > 0 || m.Into != 0) && (j.IdempotencyKey != "" || j.Unique != "") {
		return valid.Invalid("unique", "%s is in a flow: only the flow as a whole has keys", j.Kind)
	}
	if m.Name != "" {
		if err := valid.Name("name", m.Name); err != nil {
			return err
		}
	}
	for _, need := range m.Needs {
		if need.Wants < WantsSuccess || need.Wants > WantsEnd {
			return valid.Invalid("wants", "%d is outside %d to %d", need.Wants, WantsSuccess, WantsEnd)
		}
		if isAround(jobs, m, need) {
			return valid.Invalid("needs", "the job %s needs the flow that it is in, which waits for it", j.Kind)
		}
	}
	return nil
}

// isAround reports whether what is needed is the flow that a job is in, or one around that.
func isAround(jobs []NewJob, m *Member, need Need) bool {
	if need.Job != 0 {
		return need.Job == m.Into
	}
	for place := m.Place; place >= 0; place = jobs[place].Member.Place {
		if place == need.Place {
			return true
		}
	}
	return false
}

func (b *flowBatch) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Enqueue stores the flow, or adds to the one that exists, with all of its jobs or none, and returns its ID: see [Client.Enqueue].
func (f *Flow) Enqueue(ctx context.Context, c *Client) (ID, error) {
	r, err := f.EnqueueReceipt(ctx, c)
	return r.ID, err
}

// EnqueueReceipt is [Flow.Enqueue] and also reports whether the flow is a duplicate.
func (f *Flow) EnqueueReceipt(ctx context.Context, c *Client) (Receipt, error) {
	switch {
	case f.err != nil:
		return Receipt{}, f.err
	case f.ids != nil:
		return Receipt{}, errors.New("stint: the flow was enqueued before")
	case len(f.jobs) == 0:
		return Receipt{ID: f.into}, nil
	}
	receipts, err := c.EnqueueReceipts(ctx, f.jobs)
	if err != nil {
		return Receipt{}, err
	}
	f.ids = make([]ID, len(receipts))
	for i, r := range receipts {
		f.ids[i] = r.ID
	}
	if f.into != 0 {
		return Receipt{ID: f.into}, nil
	}
	return receipts[0], nil
}

// circular reports whether jobs wait for each other in a circle. A flow waits for its jobs.
func circular(jobs []NewJob) bool {
	waiters, waits := make([][]int, len(jobs)), make([]int, len(jobs)) // who waits for each, and for how many it waits
	inner := false
	for i := range jobs {
		m := jobs[i].Member
		for _, n := range m.Needs {
			if n.Job == 0 {
				waiters[n.Place], waits[i] = append(waiters[n.Place], i), waits[i]+1
			}
		}
		if m.Place >= 0 {
			waiters[i], waits[m.Place] = append(waiters[i], m.Place), waits[m.Place]+1
		}
		inner = inner || m.Root && i > 0
	}
	if !inner {
		return false
	}
	var over []int
	for i, n := range waits {
		if n == 0 {
			over = append(over, i)
		}
	}
	for next := 0; next < len(over); next++ {
		for _, i := range waiters[over[next]] {
			if waits[i]--; waits[i] == 0 {
				over = append(over, i)
			}
		}
	}
	return len(over) < len(jobs)
}

// NeededJob is a job that another one needs, as it is now.
type NeededJob struct {
	ID      ID      `json:"id"`
	Kind    string  `json:"kind"`
	Name    string  `json:"name,omitempty"` // in its flow
	Wants   Want    `json:"wants"`
	Outcome Outcome `json:"outcome,omitempty"` // of its end; 0 before
	Result  []byte  `json:"-"`
}

// neededPage is how many are read at once.
const neededPage = 500

// Needed yields the results of the jobs of the kind that the running handler's job needs, by ID, which is the order in
// which they were added, but for those that were retried by hand; [ErrNoResult] for one that did not complete. It reads a few hundred at once.
func (k ResultKind[A, R]) Needed(ctx context.Context) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		var none R
		job, store := JobFrom(ctx), flowReader(ctx)
		if job == nil || store == nil {
			yield(none, fmt.Errorf("stint: no job of a flow runs: %w", ErrNoAttempt))
			return
		}
		for after := ID(0); ; {
			page, err := store.Needed(ctx, job.ID, after, neededPage)
			if err != nil {
				yield(none, err)
				return
			}
			for _, n := range page {
				if after = n.ID; n.Kind != k.decl.Name {
					continue
				}
				r, err := k.decode(ctx, n)
				if !yield(r, err) {
					return
				}
			}
			if len(page) < neededPage {
				return
			}
		}
	}
}

func (k ResultKind[A, R]) decode(ctx context.Context, n NeededJob) (R, error) {
	var err error
	if n.Result, err = ClientFrom(ctx).OpenResult(ctx, n.Kind, n.Result); err != nil {
		var none R
		return none, leftToOthers(ctx, err)
	}
	return k.Result(&JobInfo{Attempts: []Attempt{{Outcome: n.Outcome, Result: n.Result}}})
}

// FromFlow returns the result of the job with this name in the flow of the running handler's job. It
// should be one that has ended, since this one needs it: otherwise the error is [ErrNoResult].
func (k ResultKind[A, R]) FromFlow(ctx context.Context, name string) (R, error) {
	var none R
	job, store := JobFrom(ctx), flowReader(ctx)
	if job == nil || store == nil || job.Flow == 0 {
		return none, fmt.Errorf("stint: no job of a flow runs: %w", ErrNoAttempt)
	}
	id, err := store.Node(ctx, job.Flow, name)
	if err != nil {
		return none, err
	}
	info, err := runFrom(ctx).Reader.Job(ctx, id)
	if info, err = ClientFrom(ctx).opened(ctx, info, err); err != nil {
		return none, err
	}
	if info.Kind != k.decl.Name {
		return none, valid.Invalid("name", "%q is a job of the kind %s, not %s", name, info.Kind, k.decl.Name)
	}
	r, err := k.Result(info)
	if errors.Is(err, ErrNoKey) {
		err = leftToOthers(ctx, err)
	}
	return r, err
}

type flowStore interface {
	Node(ctx context.Context, flow ID, name string) (ID, error)
	Needed(ctx context.Context, job, after ID, limit int) ([]NeededJob, error)
}

// flowReader is the store of the running handler's job, or nil.
func flowReader(ctx context.Context) flowStore {
	a := runFrom(ctx)
	if a == nil {
		return nil
	}
	store, _ := a.Reader.(flowStore)
	return store
}
