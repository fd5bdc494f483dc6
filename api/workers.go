package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/retry"
)

// WorkersPath is where the calls of workers are, below [Prefix].
const WorkersPath = "/workers"

// WorkerInput names the worker that calls.
type WorkerInput struct {
	Worker string `path:"worker" maxLength:"20" doc:"Its number, as the answer to its join says"`
}

type joinInput struct {
	Body struct {
		Kinds      []workerKind `json:"kinds" minItems:"1" doc:"What it performs"`
		Queues     []string     `json:"queues,omitempty" doc:"The queues to take jobs of; all if there are none"`
		Slots      int          `json:"slots" minimum:"1" maximum:"1000" doc:"How many jobs it performs at once"`
		Instance   string       `json:"instance,omitempty" maxLength:"255" doc:"Its name in the roster"`
		TimeToLive string       `json:"time_to_live,omitempty" doc:"After how long without a heartbeat it counts as dead: 5s to 15m; 30s unless given"`
		Version    string       `json:"version,omitempty" maxLength:"255"`
		Host       string       `json:"host,omitempty" maxLength:"255"`
		PID        int          `json:"pid,omitempty" minimum:"0"`
	}
}

// workerKind is a kind that a worker performs: its name, or that with the defaults of its jobs.
type workerKind struct{ kindDefaults }

type kindDefaults struct {
	Name      string `json:"name" minLength:"1" maxLength:"255"`
	Queue     string `json:"queue,omitempty" maxLength:"255"`
	Priority  int    `json:"priority,omitempty" minimum:"-100" maximum:"100"`
	Retry     string `json:"retry,omitempty" doc:"The policy after a failure: exponential:10:1m, fixed:2:1s, none"`
	Timeout   string `json:"timeout,omitempty" doc:"Bounds each attempt: 30s"`
	MaxLosses *int   `json:"max_losses,omitempty" minimum:"0" maximum:"1000"`
}

// UnmarshalJSON reads a name or an object.
func (k *workerKind) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &k.Name)
	}
	return json.Unmarshal(text, &k.kindDefaults)
}

// Schema describes both.
func (workerKind) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "A name, or an object with the defaults of its jobs; they count if no program has declared the kind",
		OneOf:       []*huma.Schema{{Type: huma.TypeString}, r.Schema(reflect.TypeFor[kindDefaults](), true, "WorkerKind")},
	}
}

func (k *workerKind) info() (stint.KindInfo, error) {
	info := stint.KindInfo{Name: k.Name, Queue: k.Queue, Priority: k.Priority, MaxLosses: k.MaxLosses}
	var err error
	if k.Retry != "" {
		if info.Retry, err = retry.Parse(k.Retry); err != nil {
			return info, valid.Invalid("kinds", "%s: retry: %v", k.Name, err)
		}
	}
	info.Timeout, err = ops.ReadDuration("timeout", k.Timeout)
	return info, err
}

// claiming is how many jobs to claim, and for how long to wait for the first.
type claiming struct {
	Max  int    `json:"max" minimum:"0" maximum:"1000" doc:"How many jobs at most; 0 to hear of the rest only"`
	Wait string `json:"wait,omitempty" doc:"For how long to wait until there is something to tell: 0s to 25s"`
	Idle bool   `json:"idle,omitempty" doc:"Nothing runs: then the worker need not send heartbeats, since claims are some"`
}

func (c *claiming) claim() (gateway.Claim, error) {
	wait, err := ops.ReadDuration("wait", c.Wait)
	return gateway.Claim{Max: c.Max, Wait: wait, Idle: c.Idle}, err
}

type claimInput struct {
	WorkerInput
	Body claiming
}

type finishInput struct {
	WorkerInput
	Body struct {
		Results []gateway.Ending `json:"results" doc:"How runs ended; each stands alone"`
		Claim   *claiming        `json:"claim,omitempty" doc:"What to claim then"`
	}
}

type finished struct {
	Results []gateway.Recorded `json:"results" doc:"What became of each, in their order"`
	gateway.News
}

type beatInput struct {
	WorkerInput
	Body struct {
		Running  []gateway.Running `json:"running" doc:"All jobs whose end was not answered yet"`
		MovedFor string            `json:"moved_for,omitempty" doc:"Of a worker that has joined again: how long ago it last claimed by this name"`
	}
}

type stepInput struct {
	WorkerInput
	Body struct {
		Receipt string          `json:"receipt"`
		Name    string          `json:"name" minLength:"1" maxLength:"255"`
		Value   json.RawMessage `json:"value,omitempty" doc:"What the step came to"`
	}
}

type stepAnswer struct {
	Value json.RawMessage `json:"value" doc:"What is recorded"`
}

type sleepInput struct {
	WorkerInput
	Body struct {
		Receipt string `json:"receipt"`
		Name    string `json:"name" minLength:"1" maxLength:"255"`
		For     string `json:"for" doc:"How long: 14d"`
	}
}

type awaitInput struct {
	WorkerInput
	Body struct {
		Receipt string `json:"receipt"`
		Name    string `json:"name" minLength:"1" maxLength:"240"`
		Signal  string `json:"signal,omitempty" maxLength:"255" doc:"The name of the signal; that of the step unless given"`
		Timeout string `json:"timeout" doc:"For how long: 24h"`
	}
}

type waitAnswer struct {
	Suspended bool            `json:"suspended" doc:"The run has ended: the job comes again when it is to go on"`
	Value     json.RawMessage `json:"value,omitempty" doc:"Of the signal that came"`
	TimedOut  bool            `json:"timed_out,omitempty" doc:"No signal came in time"`
}

type body[T any] struct{ Body T }

// forWorker bounds how long a call may take beside a long poll.
const forWorker = 30 * time.Second

// registerWorkers adds the calls of workers.
func (c *Config) registerWorkers(a huma.API, problems *huma.Response) {
	g := c.Workers
	addWork(c, a, problems, "join", http.MethodPost, "", http.StatusCreated, "Join the roster",
		"A worker joins like an engine: the database fences it, and it is seen, drained and buried in the same way.",
		func(ctx context.Context, in *joinInput) (gateway.Joined, error) {
			b := &in.Body
			j := gateway.Joining{Instance: b.Instance, Queues: b.Queues, Slots: b.Slots, Version: b.Version, Host: b.Host, PID: b.PID}
			var err error
			if j.TimeToLive, err = ops.ReadDuration("time_to_live", b.TimeToLive); err != nil {
				return gateway.Joined{}, err
			}
			for i := range b.Kinds {
				k, err := b.Kinds[i].info()
				if err != nil {
					return gateway.Joined{}, err
				}
				j.Kinds = append(j.Kinds, k)
			}
			return g.Join(ctx, j)
		})
	addWork(c, a, problems, "claim", http.MethodPost, "/{worker}/claim", 0, "Take jobs",
		"It is answered as soon as there is a job or anything else to tell. A later claim of the worker ends it.",
		func(ctx context.Context, in *claimInput) (gateway.News, error) {
			c, err := in.Body.claim()
			if err != nil {
				return gateway.News{}, err
			}
			return g.Claim(ctx, in.Worker, c)
		})
	addWork(c, a, problems, "finish", http.MethodPost, "/{worker}/finish", 0, "Say how jobs ended",
		"It is answered when all are recorded. It may claim in the same call.",
		func(ctx context.Context, in *finishInput) (out finished, err error) {
			var next *gateway.Claim
			if in.Body.Claim != nil {
				c, err := in.Body.Claim.claim()
				if err != nil {
					return out, err
				}
				next = &c
			}
			out.Results, out.News, err = g.Finish(ctx, in.Worker, in.Body.Results, next)
			return out, err
		})
	addWork(c, a, problems, "beat", http.MethodPost, "/{worker}/beat", 0, "Send a heartbeat",
		"It names all jobs that run, with their progress and what they log. The answer says again which of them are to end.",
		func(ctx context.Context, in *beatInput) (gateway.News, error) {
			moved, err := ops.ReadDuration("moved_for", in.Body.MovedFor)
			if err != nil {
				return gateway.News{}, err
			}
			return g.Beat(ctx, in.Worker, in.Body.Running, moved)
		})
	addWork(c, a, problems, "step", http.MethodPost, "/{worker}/step", 0, "Record a step",
		"The step of a running job is recorded durably; what an earlier run recorded stays and is the answer.",
		func(ctx context.Context, in *stepInput) (stepAnswer, error) {
			value, err := g.Step(ctx, in.Worker, in.Body.Receipt, in.Body.Name, in.Body.Value)
			return stepAnswer{value}, err
		})
	addWork(c, a, problems, "sleep", http.MethodPost, "/{worker}/sleep", 0, "Let a job sleep", "",
		func(ctx context.Context, in *sleepInput) (waitAnswer, error) {
			d, err := ops.ReadDuration("for", in.Body.For)
			if err != nil {
				return waitAnswer{}, err
			}
			suspended, err := g.Sleep(ctx, in.Worker, in.Body.Receipt, in.Body.Name, d)
			return waitAnswer{Suspended: suspended}, err
		})
	addWork(c, a, problems, "await", http.MethodPost, "/{worker}/await", 0, "Let a job wait for a signal", "",
		func(ctx context.Context, in *awaitInput) (waitAnswer, error) {
			d, err := ops.ReadDuration("timeout", in.Body.Timeout)
			if err != nil {
				return waitAnswer{}, err
			}
			signal := in.Body.Signal
			if signal == "" {
				signal = in.Body.Name
			}
			value, suspended, err := g.Await(ctx, in.Worker, in.Body.Receipt, in.Body.Name, signal, d)
			if errors.Is(err, stint.ErrNoSignal) {
				return waitAnswer{TimedOut: true}, nil
			}
			return waitAnswer{Suspended: suspended, Value: value}, err
		})
	addWork(c, a, problems, "leave", http.MethodDelete, "/{worker}", http.StatusNoContent, "Leave the roster",
		"What still runs is handed back, uncharged.",
		func(ctx context.Context, in *WorkerInput) (struct{}, error) {
			return struct{}{}, g.Leave(ctx, in.Worker)
		})
}

// addWork registers a call of workers.
func addWork[I, O any](c *Config, a huma.API, problems *huma.Response, verb, method, path string, status int, summary, doc string, do func(context.Context, *I) (O, error)) {
	name := "workers-" + verb
	op := huma.Operation{
		OperationID: name, Method: method, Path: Prefix + WorkersPath + path, Summary: summary, Description: doc,
		Tags: []string{"workers"}, DefaultStatus: status, MaxBodyBytes: maxBody, Responses: map[string]*huma.Response{"default": problems},
	}
	if op.Description != "" {
		op.Description += "\n\n"
	}
	op.Description += "For the role worker, or operator and more."
	call := func(ctx context.Context, in *I) (out O, err error) {
		if role := guard.Of(ctx).Role; role != guard.Worker && role < guard.Operator {
			return out, huma.Error403Forbidden("this is for the role worker")
		}
		ctx, cancel := context.WithTimeout(ctx, gateway.MaxWait+forWorker)
		defer cancel()
		if out, err = do(ctx, in); err != nil {
			err = c.told(ctx, name, err)
		}
		return out, err
	}
	if status == http.StatusNoContent {
		huma.Register(a, op, func(ctx context.Context, in *I) (*struct{}, error) {
			_, err := call(ctx, in)
			return nil, err
		})
		return
	}
	huma.Register(a, op, func(ctx context.Context, in *I) (*body[O], error) {
		out, err := call(ctx, in)
		if err != nil {
			return nil, err
		}
		return &body[O]{out}, nil
	})
}
