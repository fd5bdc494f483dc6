package ops

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/report"
)

// FlowJob is a job of a flow that is to be enqueued, or a flow: a [NewJob] that also has its name in the flow, what it needs of those before it, and, if it
// is a flow, its jobs.
type FlowJob struct {
	NewJob
	Name  string
	Needs [3][]Needed // by what is wanted of them: see needNames
	Jobs  []FlowJob   // of a flow; nil for a job
}

// Needed is what a job needs: one before it by its name, which it has in the same flow or in one around that, or any
// job of a flow by its id.
type Needed struct {
	Name string
	ID   stint.ID
}

// needNames are the fields that say what a job needs, by what it wants of that.
var needNames = [3]string{"needs", "needs_failure", "needs_end"}

var needOptions = [3]func(...*stint.Node) stint.Option{stint.Needs, stint.NeedsFailure, stint.NeedsEnd}

// UnmarshalJSON implements [json.Unmarshaler]: a number is an id.
func (n *Needed) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte(`"`)) {
		return json.Unmarshal(raw, &n.Name)
	}
	return json.Unmarshal(raw, &n.ID)
}

// MarshalJSON implements [json.Marshaler].
func (n Needed) MarshalJSON() ([]byte, error) {
	if n.ID != 0 {
		return json.Marshal(n.ID)
	}
	return json.Marshal(n.Name)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (f *FlowJob) UnmarshalJSON(raw []byte) error {
	said := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &said); err != nil {
		return err
	}
	take := func(field string, into any) error {
		text, ok := said[field]
		delete(said, field)
		if !ok {
			return nil
		}
		if err := json.Unmarshal(text, into); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
		return nil
	}
	err := cmp.Or(take("name", &f.Name), take("jobs", &f.Jobs))
	for i, name := range needNames {
		err = cmp.Or(err, take(name, &f.Needs[i]))
	}
	if err != nil {
		return err
	}
	job, err := json.Marshal(said)
	if err != nil {
		return err
	}
	return f.NewJob.UnmarshalJSON(job)
}

// MarshalJSON implements [json.Marshaler].
func (f FlowJob) MarshalJSON() ([]byte, error) {
	said := map[string]any{}
	if err := json.Unmarshal(f.said, &said); err != nil {
		return nil, err
	}
	if f.Name != "" {
		said["name"] = f.Name
	}
	if f.Jobs != nil {
		said["jobs"] = f.Jobs
	}
	for i, name := range needNames {
		if len(f.Needs[i]) > 0 {
			said[name] = f.Needs[i]
		}
	}
	return json.Marshal(said)
}

// Schema describes it for the document of the API: a job with more fields.
func (FlowJob) Schema(r huma.Registry) *huma.Schema {
	const name = "FlowJob"
	ref := &huma.Schema{Ref: "#/components/schemas/" + name}
	if r.Map()[name] != nil {
		return ref
	}
	s := huma.SchemaFromType(r, requested)
	s.Properties["name"] = &huma.Schema{Type: huma.TypeString, Description: "Unique in the flow; what others need it by"}
	s.Properties["jobs"] = &huma.Schema{Type: huma.TypeArray, Items: ref, Description: "Of a flow, its jobs. Each can need only what stands before it"}
	for i, wants := range [3]string{"completed", "failed, expired or been cancelled", "ended"} {
		s.Properties[needNames[i]] = &huma.Schema{
			Type:        huma.TypeArray,
			Items:       &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeInteger}}},
			Description: "It begins when these have " + wants + ": their names, in the same flow or one around it, or ids",
		}
	}
	r.Map()[name] = s
	return ref
}

// addTo adds jobs to a flow. Before are those that they can need, by name; path is where the jobs stand in the request. Ids
// gets a node for each name.
func addTo(f *stint.Flow, jobs []FlowJob, path, names string, before map[string]*stint.Node, nodes map[string]*stint.Node,
	declare func(j *NewJob, path string) (stint.NewJob, error),
) error {
	known := map[string]*stint.Node{}
	maps.Copy(known, before)
	for i := range jobs {
		j, path := &jobs[i], fmt.Sprintf("%s[%d]", path, i)
		var node *stint.Node
		var needs []stint.Option
		for w, list := range j.Needs {
			for _, need := range list {
				other := known[need.Name]
				if need.Name == "" {
					other = stint.Existing(need.ID)
				}
				if other == nil {
					return &InError{path, valid.Invalid(needNames[w], "no job before this one is called %q", need.Name)}
				}
				needs = append(needs, needOptions[w](other))
			}
		}
		if j.Jobs == nil {
			job, err := declare(&j.NewJob, path)
			if err != nil {
				return err
			}
			node = f.Add(j.Name, job, needs...)
		} else {
			root, err := j.root(path)
			if err != nil {
				return err
			}
			if len(needs) > 0 {
				return &InError{path, valid.Invalid("needs", "a flow needs nothing: its jobs do")}
			}
			inner := f.Flow(j.Name, j.Kind, root)
			if err := addTo(inner, j.Jobs, path+".jobs", names+j.Name+"/", known, nodes, declare); err != nil {
				return err
			}
			node = inner.Node()
		}
		if j.Name != "" {
			known[j.Name], nodes[names+j.Name] = node, node
		}
	}
	return nil
}

// root is what the job that a flow is says of itself, as an option.
func (f *FlowJob) root(path string) (stint.Option, error) {
	said, err := f.job(stint.KindInfo{Name: f.Kind})
	if err != nil {
		return nil, &InError{path, err}
	}
	return func(j *stint.NewJob) { *j = said }, nil
}

// NewFlow is a flow to be enqueued, all of it or nothing.
type NewFlow struct {
	Flow  FlowJob `json:"flow"`
	Force bool    `json:"force,omitempty" doc:"Also jobs of kinds that no engine ever declared, and with arguments that its handler refuses"`
	Exact bool    `json:"exact,omitempty" doc:"What a job does not say is the default, whatever its kind's declaration says"`
}

func (n NewFlow) enqueued() []NewJob { return jobsOf(n.Flow.Jobs) }

// details are the kind of the flow, and how many jobs it has.
func (n NewFlow) details() any {
	details := numbered(n.enqueued())
	details["flow"] = n.Flow.Kind
	return details
}

// jobsOf are the jobs of a flow, and of those within it.
func jobsOf(flow []FlowJob) (jobs []NewJob) {
	for i := range flow {
		if j := &flow[i]; j.Jobs == nil {
			jobs = append(jobs, j.NewJob)
		} else {
			jobs = append(jobs, jobsOf(j.Jobs)...)
		}
	}
	return jobs
}

// FlowInput is a flow to be enqueued.
type FlowInput struct {
	Body NewFlow
}

// EnqueuedFlow is what came of a flow.
type EnqueuedFlow struct {
	ID        stint.ID            `json:"id"`
	Duplicate bool                `json:"duplicate,omitempty" doc:"Another flow holds its idempotency key or its unique key, and has this id: nothing was stored"`
	Jobs      map[string]stint.ID `json:"jobs,omitempty" doc:"The ids of the jobs that have names; of one in a flow within the flow, after the name of that: pages/first"`
}

// EnqueueFlow stores a flow with all of its jobs.
var EnqueueFlow = declare(&Op[FlowInput, EnqueuedFlow]{
	Decl: Decl{
		Name: "flows enqueue", Method: http.MethodPost, Path: "/flows", Needs: guard.Operator, Summary: "Enqueue a flow: a graph of jobs", Status: http.StatusCreated,
		Doc: "Stores the flow with all of its jobs or nothing. Each job begins when those that it needs have ended as it wants; it needs them by name, and they stand before it. " +
			"A job that has `jobs` is a flow within the flow, which others can need as a whole.",
	},
	do: func(ctx context.Context, l *Local, in *FlowInput) (EnqueuedFlow, error) {
		root, err := in.Body.Flow.root("body.flow")
		if err != nil {
			return EnqueuedFlow{}, err
		}
		f := stint.NewFlow(in.Body.Flow.Kind, root)
		return l.enqueueFlow(ctx, f, in.Body.Flow.Jobs, "body.flow.jobs", in.Body.Force, in.Body.Exact)
	},
})

// AddedJobs are jobs that are added to a flow, all of them or none.
type AddedJobs struct {
	Jobs  []FlowJob `json:"jobs" minItems:"1" nullable:"false"`
	Force bool      `json:"force,omitempty" doc:"Also of kinds that no engine ever declared, and with arguments that its handler refuses"`
	Exact bool      `json:"exact,omitempty" doc:"What a job does not say is the default, whatever its kind's declaration says"`
}

func (a AddedJobs) enqueued() []NewJob { return jobsOf(a.Jobs) }

func (a AddedJobs) details() any { return numbered(a.enqueued()) }

// AddInput says to which flow jobs are added.
type AddInput struct {
	ID   int64 `path:"id" minimum:"1"`
	Body AddedJobs
}

// AddToFlow adds jobs to a flow that is open.
var AddToFlow = declare(&Op[AddInput, EnqueuedFlow]{
	Decl: Decl{
		Name: "flows add", Method: http.MethodPost, Path: "/flows/{id}/add", Needs: guard.Operator, Summary: "Add jobs to a flow while it is open", Status: http.StatusCreated,
		Doc: "Adds all of the jobs or none. A job whose name is in the flow already is that job, so a request whose answer was lost can be sent again if all have names. " +
			"What is in the flow already is needed by its id.",
	},
	do: func(ctx context.Context, l *Local, in *AddInput) (EnqueuedFlow, error) {
		return l.enqueueFlow(ctx, stint.OpenFlow(stint.ID(in.ID)), in.Body.Jobs, "body.jobs", in.Body.Force, in.Body.Exact)
	},
})

// enqueueFlow stores a flow, or adds to one.
func (l *Local) enqueueFlow(ctx context.Context, f *stint.Flow, jobs []FlowJob, path string, force, exact bool) (EnqueuedFlow, error) {
	declare, err := l.declarations(ctx, force, exact, nil)
	if err != nil {
		return EnqueuedFlow{}, err
	}
	nodes := map[string]*stint.Node{}
	if err := addTo(f, jobs, path, "", nil, nodes, declare); err != nil {
		return EnqueuedFlow{}, err
	}
	r, err := f.EnqueueReceipt(ctx, stint.NewClient(inClear(l.Store)).Limit(l.Limits))
	if err != nil {
		return EnqueuedFlow{}, err
	}
	done := EnqueuedFlow{ID: r.ID, Duplicate: r.Duplicate, Jobs: map[string]stint.ID{}}
	for name, n := range nodes {
		if id := n.ID(); id != 0 {
			done.Jobs[name] = id
		}
	}
	return done, nil
}

// GraphInput says which flow is shown as a graph, and how.
type GraphInput struct {
	ID  int64 `path:"id" minimum:"1"`
	All bool  `query:"all" doc:"Each job by itself, also those in flows within the flow"`
}

// FlowGraph shows a flow as a graph, or is [stint.ErrNotFound].
var FlowGraph = declare(&Op[GraphInput, report.FlowGraph]{
	Decl: Decl{
		Name: "flows graph", Method: http.MethodGet, Path: "/flows/{id}/graph", Summary: "Show a flow as a graph: its jobs, what they need of each other, and their attempts",
		Doc: "A flow within the flow is one node, which has a graph of its own. With more than 200 nodes or 1,000 edges, jobs of one kind that need the same, and that the same needs, are one node, with how many are in each state. " +
			"200,000 jobs and 500,000 needs are read at most.",
	},
	do: func(ctx context.Context, l *Local, in *GraphInput) (report.FlowGraph, error) {
		read, err := l.Store.FlowGraph(ctx, stint.ID(in.ID), report.MostFlowJobs, report.MostFlowNeeds)
		if err != nil {
			return report.FlowGraph{}, err
		}
		return report.FlowGraphOf(&read, stint.ID(in.ID), report.FlowOptions{All: in.All}), nil
	},
})
