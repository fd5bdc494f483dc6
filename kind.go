package stint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/stint-go/stint/outside"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/seal"
)

// KindInfo is the name of a kind and the defaults of its jobs. Engines write those of
// the kinds that they handle into the store, for producers that are not Go programs.
type KindInfo struct {
	Name     string        `json:"name"`
	Queue    string        `json:"queue"`
	Priority int           `json:"priority"`
	Retry    retry.Policy  `json:"retry"`
	Timeout  time.Duration `json:"timeout,omitempty"`
	Tags     []string      `json:"tags,omitempty"`

	MaxLosses *int `json:"max_losses,omitempty"`

	// StartWithin is how long after they are due jobs may begin: see
	// [NewJob.StartWithin].
	StartWithin time.Duration `json:"start_within,omitempty"`

	// Unique is the uniqueness of its jobs: see [NewJob.Unique].
	Unique string `json:"unique,omitempty"`

	// Limits are the limits of its jobs: see [NewJob.Limits].
	Limits []string `json:"limits,omitempty"`

	// Sealed are the parts of the arguments that are stored encrypted: see [NewJob.Sealed]. Results and
	// what steps record are, too, if it is not nil.
	Sealed []string `json:"sealed,omitempty" doc:"JSON pointers to the parts of the arguments that are stored encrypted; one empty pointer for all of them"`

	// Redacted are the parts of the arguments that people are not shown: see [NewJob.Redacted].
	Redacted []string `json:"redacted,omitempty" doc:"JSON pointers to the parts of the arguments that pages, the API and the command show as [redacted]; one empty pointer for all of them"`

	// Indexed are the arguments that tags tell of: see [NewJob.Indexed]. It is not written into the store.
	Indexed []string `json:"-"`

	// Declared is when an engine last changed the declaration. Only stores set it.
	Declared time.Time `json:"declared,omitzero"`

	// Keep lets handlers of this kind go on when their engine finds that it was
	// buried; others are cancelled. It is for work of which two runs may overlap
	// without harm. The outcome of such a run is not recorded. The engine joins
	// again meanwhile.
	Keep bool `json:"-"`
}

// kindText is how a kind is written: durations and the policy are texts, as a job has them.
type kindText struct {
	*plainKind
	Retry       string         `json:"retry"`
	Timeout     retry.Duration `json:"timeout,omitempty"`
	StartWithin retry.Duration `json:"start_within,omitempty"`
}

type plainKind KindInfo

// MarshalJSON writes the durations and the policy as a [NewJob] has them.
func (d KindInfo) MarshalJSON() ([]byte, error) {
	return json.Marshal(kindText{(*plainKind)(&d), d.Retry.String(), retry.Duration(d.Timeout), retry.Duration(d.StartWithin)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (d *KindInfo) UnmarshalJSON(raw []byte) error {
	text := kindText{plainKind: &plainKind{}}
	err := json.Unmarshal(raw, &text)
	if err == nil && text.Retry != "" {
		text.plainKind.Retry, err = retry.Parse(text.Retry)
	}
	*d = KindInfo(*text.plainKind)
	d.Timeout, d.StartWithin = time.Duration(text.Timeout), time.Duration(text.StartWithin)
	return err
}

// Job returns a job of the kind, with the kind's defaults and then the options.
func (d KindInfo) Job(args json.RawMessage, opts ...Option) NewJob {
	job := NewJob{
		Kind: d.Name, Args: args, Queue: d.Queue, Priority: d.Priority,
		Retry: d.Retry, Timeout: d.Timeout, MaxLosses: d.MaxLosses, Tags: slices.Clone(d.Tags),
		StartWithin: d.StartWithin, Unique: d.Unique, Limits: slices.Clone(d.Limits), Sealed: d.Sealed, Redacted: d.Redacted, Indexed: d.Indexed,
	}
	for _, opt := range opts {
		opt(&job)
	}
	job.index()
	return job
}

// encode makes a job of arguments that have not been encoded.
func (d KindInfo) encode(args any, opts []Option) (NewJob, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return NewJob{}, fmt.Errorf("encode the arguments of %s: %w", d.Name, err)
	}
	return d.Job(raw, opts...), nil
}

// Check reports what is wrong with the declaration, or nil.
func (d KindInfo) Check() error { return d.Job(nil).Check(Limits{}) }

// Kind is a type of job with arguments of type A. Declare it once, in a
// package that producers and handlers share: it is all that they need to
// agree on, and the compiler checks that they do.
type Kind[A any] struct {
	decl KindInfo
}

// NewKind declares a kind. The options are the defaults of its jobs. It
// panics when the name or an option can never be right, since a declaration is
// part of the program.
func NewKind[A any](name string, defaults ...Option) Kind[A] {
	job := NewJob{Kind: name}
	for _, opt := range defaults {
		opt(&job)
	}
	d := KindInfo{
		Name: name, Queue: job.Queue, Priority: job.Priority,
		Retry: job.Retry, Timeout: job.Timeout, MaxLosses: job.MaxLosses, Tags: job.Tags,
		StartWithin: job.StartWithin, Unique: job.Unique, Limits: job.Limits, Sealed: job.Sealed, Redacted: job.Redacted, Indexed: job.Indexed,
	}
	if field := job.differs(d.Job(nil)); field != "" {
		panic(fmt.Sprintf("stint: kind %q: %s belongs to a job, not to a kind", name, field))
	}
	if err := d.Check(); err != nil {
		panic(fmt.Sprintf("stint: kind %q: %v", name, err))
	}
	if pointer := lackingMember(reflect.TypeFor[A](), d.Sealed); pointer != "" {
		panic(fmt.Sprintf("stint: kind %q: its arguments have nothing at %s to seal", name, pointer))
	}
	if pointer := lackingMember(reflect.TypeFor[A](), d.Redacted); pointer != "" {
		panic(fmt.Sprintf("stint: kind %q: its arguments have nothing at %s to redact", name, pointer))
	}
	if pointer := lackingMember(reflect.TypeFor[A](), d.Indexed); pointer != "" {
		panic(fmt.Sprintf("stint: kind %q: its arguments have nothing at %s to index", name, pointer))
	}
	return Kind[A]{d}
}

// Declaration returns the kind's name and defaults, without the type of its arguments.
func (k Kind[A]) Declaration() KindInfo { return k.decl }

// Keep returns the kind with handlers that go on when their engine was buried:
// see [KindInfo].
func (k Kind[A]) Keep() Kind[A] {
	k.decl.Keep = true
	return k
}

// New makes a job of the kind for [Client.EnqueueMany].
func (k Kind[A]) New(args A, opts ...Option) (NewJob, error) {
	return k.decl.encode(args, opts)
}

// Enqueue stores one job of the kind and returns its ID.
func (k Kind[A]) Enqueue(ctx context.Context, c *Client, args A, opts ...Option) (ID, error) {
	r, err := k.EnqueueReceipt(ctx, c, args, opts...)
	return r.ID, err
}

// EnqueueReceipt is [Kind.Enqueue] and also reports whether the job is a duplicate.
func (k Kind[A]) EnqueueReceipt(ctx context.Context, c *Client, args A, opts ...Option) (Receipt, error) {
	job, err := k.New(args, opts...)
	if err != nil {
		return Receipt{}, err
	}
	return c.EnqueueReceipt(ctx, job)
}

// ResultKind is a kind whose handler returns a result of type R, which is kept with
// the attempt.
type ResultKind[A, R any] struct {
	Kind[A]
}

// NewResultKind declares a kind with a result. It is otherwise [NewKind].
func NewResultKind[A, R any](name string, defaults ...Option) ResultKind[A, R] {
	return ResultKind[A, R]{NewKind[A](name, defaults...)}
}

// Result decodes the result of a completed job. It returns [ErrNoResult] when there
// is none yet.
func (k ResultKind[A, R]) Result(job *JobInfo) (R, error) {
	var r R
	for _, x := range job.Attempts {
		if x.Outcome == OutcomeCompleted && x.Result != nil {
			if outside.Is(x.Result) {
				return r, outside.ErrNoBlobs
			}
			if key := seal.KeyOf(x.Result); key != "" {
				return r, fmt.Errorf("the result is sealed: %w: %q", ErrNoKey, key)
			}
			err := json.Unmarshal(x.Result, &r)
			if err != nil && k.decl.Sealed != nil {
				err = errors.New("decode the result: it is not what the program expects") // which the error may quote
			}
			return r, err
		}
	}
	return r, ErrNoResult
}
