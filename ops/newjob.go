package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
)

// NewJob is a job to be enqueued: a [stint.NewJob] as JSON. What it does not say is what
// the kind's declaration says.
type NewJob struct {
	Kind string
	said json.RawMessage
}

// requested is how a [stint.NewJob] is described: durations and policies are texts.
var requested = func() reflect.Type {
	var fields []reflect.StructField
	for f := range reflect.TypeFor[stint.NewJob]().Fields() {
		switch f.Type {
		case reflect.TypeFor[time.Duration](), reflect.TypeFor[retry.Policy]():
			f.Type = reflect.TypeFor[string]()
		}
		fields = append(fields, f)
	}
	return reflect.StructOf(fields)
}()

// Schema describes the options for the document of the API.
func (NewJob) Schema(r huma.Registry) *huma.Schema {
	const name = "NewJob"
	if r.Map()[name] == nil {
		r.Map()[name] = huma.SchemaFromType(r, requested)
	}
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}

// MarshalJSON implements [json.Marshaler].
func (j NewJob) MarshalJSON() ([]byte, error) { return j.said, nil }

// UnmarshalJSON implements [json.Unmarshaler]. What is wrong is found when the job is made.
func (j *NewJob) UnmarshalJSON(raw []byte) error {
	j.said = slices.Clone(raw)
	var of struct{ Kind string }
	err := json.Unmarshal(raw, &of)
	j.Kind = of.Kind
	return err
}

// job fills in what the kind's declaration says.
func (j *NewJob) job(of stint.KindInfo) (stint.NewJob, error) {
	job := of.Job(nil)
	return job, job.UnmarshalJSON(j.said)
}

// NewJobs are jobs to be enqueued, all of them or none.
type NewJobs struct {
	Jobs    []NewJob       `json:"jobs" minItems:"1" maxItems:"10000" nullable:"false"`
	Members []stint.Member `json:"members,omitempty" doc:"If the jobs are a flow, or are added to one: what each says of that. POST /flows is easier to write"`
	Force   bool           `json:"force,omitempty" doc:"Also of kinds that no engine ever declared, and with arguments that its handler refuses"`
	Exact   bool           `json:"exact,omitempty" doc:"What a job does not say is the default, whatever its kind's declaration says"`
	Like    stint.ID       `json:"like,omitempty" minimum:"1" doc:"A job of the same kind that these were made of: where their arguments have [redacted], they get what that one has there"`
}

func (n NewJobs) enqueued() []NewJob { return n.Jobs }

func (n NewJobs) details() any { return numbered(n.Jobs) }

// numbered is how many jobs of which kinds these are.
func numbered(jobs []NewJob) map[string]any {
	kinds := map[string]int{}
	for _, j := range jobs {
		kinds[j.Kind]++
	}
	return map[string]any{"jobs": len(jobs), "kinds": kinds}
}

// JobsInput are jobs to be enqueued.
type JobsInput struct {
	Body NewJobs
}

// EnqueueJobs stores jobs, all of them or none.
var EnqueueJobs = declare(&Op[JobsInput, List[stint.Receipt]]{
	Decl: Decl{
		Name: "jobs enqueue", Method: http.MethodPost, Path: "/jobs", Needs: guard.Operator, Summary: "Enqueue jobs", Status: http.StatusCreated,
		Doc: "Stores all of the jobs or none. With an `idempotency_key` a request whose answer was lost can be sent again: " +
			"the first stores the job, and a repetition is answered with its id and `duplicate`. So is a `unique` job while another " +
			"holds its unique key, with the `state` of that one; `replaced` and `cancelled` name a job that made room for it.",
	},
	do: func(ctx context.Context, l *Local, in *JobsInput) (made List[stint.Receipt], err error) {
		like, err := l.like(ctx, in.Body.Like)
		if err != nil {
			return made, err
		}
		declare, err := l.declarations(ctx, in.Body.Force, in.Body.Exact, like)
		if err != nil {
			return made, err
		}
		if n := len(in.Body.Members); n > 0 && n != len(in.Body.Jobs) {
			return made, &InError{"body.members", valid.Invalid("members", "%d are said for %d jobs", n, len(in.Body.Jobs))}
		}
		jobs := make([]stint.NewJob, len(in.Body.Jobs))
		for i := range in.Body.Jobs {
			if jobs[i], err = declare(&in.Body.Jobs[i], fmt.Sprintf("body.jobs[%d]", i)); err != nil {
				return made, err
			}
			if len(in.Body.Members) > 0 {
				jobs[i].Member = &in.Body.Members[i]
			}
		}
		return listed(stint.NewClient(inClear(l.Store)).Limit(l.Limits).EnqueueReceipts(ctx, jobs))
	},
})

// restricted reports whether a job may do whatever its arguments say.
func (l *Local) restricted(j NewJob) bool { return slices.Contains(l.Restricted, j.Kind) }

// declarations returns what makes jobs of what requests say and the declarations
// of their kinds. An unknown kind is an error unless it is forced, so that a
// misspelt name does not wait for ever. Exact jobs get nothing of a declaration. What was
// redacted of a job that they are like is taken from that one.
func (l *Local) declarations(ctx context.Context, force, exact bool, of *like) (func(j *NewJob, path string) (stint.NewJob, error), error) {
	known, err := l.Store.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range l.Builtin {
		if !slices.ContainsFunc(known, func(k stint.KindInfo) bool { return k.Name == d.Name }) {
			known = append(known, d)
		}
	}
	return func(j *NewJob, path string) (stint.NewJob, error) {
		declared := stint.KindInfo{Name: j.Kind}
		switch k := slices.IndexFunc(known, func(d stint.KindInfo) bool { return d.Name == j.Kind }); {
		case k >= 0 && !exact:
			declared = known[k]
		case k >= 0:
			declared.Redacted = known[k].Redacted
		case !force:
			return stint.NewJob{}, &InError{path, valid.Invalid("kind", "no engine ever declared the kind %q; force enqueues it all the same", j.Kind)}
		}
		if l.restricted(*j) && l.who(ctx).Role < guard.Admin {
			return stint.NewJob{}, &ForbiddenError{Needs: guard.Admin, Kind: j.Kind, Place: path + ".kind"}
		}
		job, err := j.job(declared)
		if err == nil {
			err = of.fill(&job)
		}
		if err == nil {
			err = job.Check(l.Limits)
		}
		if err == nil {
			err = takeSealed(&job, known)
		}
		if err == nil && l.CheckArgs != nil && !force {
			err = l.CheckArgs(job.Kind, job.Args)
		}
		if err != nil {
			return stint.NewJob{}, &InError{path, err}
		}
		return job, nil
	}, nil
}

// takeSealed takes a job of a sealed kind only if it is sealed already: nobody here has a key.
func takeSealed(j *stint.NewJob, known []stint.KindInfo) error {
	k := slices.IndexFunc(known, func(d stint.KindInfo) bool { return d.Name == j.Kind })
	if k < 0 || known[k].Sealed == nil {
		return nil
	}
	j.Fill()
	j.Sealed = known[k].Sealed
	if pointer, clear := j.InClear(); clear {
		place := ""
		if pointer != "" {
			place = " at " + pointer
		}
		return valid.Invalid("args", "the kind %s is sealed, and they are in clear%s: a program with the key enqueues it, or seals them", j.Kind, place)
	}
	return nil
}

// ExactJob is a job as a request has it that stores it exactly so.
func ExactJob(j stint.NewJob) (NewJob, error) {
	said, err := j.MarshalJSON()
	return NewJob{j.Kind, said}, err
}

// JobOfTexts is a job of the values of its options as people type them, by their names
// in JSON. An empty one says nothing, and other names are ignored. Tags are lines.
func JobOfTexts(get func(name string) string) (NewJob, error) {
	said := map[string]any{}
	for f := range reflect.TypeFor[stint.NewJob]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		value := get(name)
		text := strings.TrimSpace(value)
		if text == "" {
			continue
		}
		field := strings.ReplaceAll(name, "_", " ")
		switch f.Type {
		case reflect.TypeFor[json.RawMessage]():
			if !json.Valid([]byte(text)) {
				return NewJob{}, valid.Invalid(field, "it is not JSON")
			}
			said[name] = json.RawMessage(text)
		case reflect.TypeFor[string]():
			said[name] = value
		case reflect.TypeFor[time.Duration](), reflect.TypeFor[retry.Policy]():
			said[name] = text
		default:
			texts := []string{text}
			if f.Type.Kind() == reflect.Slice {
				texts = trimmed(strings.Split(text, "\n"))
			}
			into := reflect.New(f.Type).Elem()
			if err := set(into, field, texts); err != nil {
				return NewJob{}, err
			}
			said[name] = into.Interface()
		}
	}
	raw, err := json.Marshal(said)
	return NewJob{get("kind"), raw}, err
}
