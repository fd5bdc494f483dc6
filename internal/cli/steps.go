package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/jobs"
	"github.com/stint-go/stint/jobs/httpjob"
	"github.com/stint-go/stint/jobs/shelljob"
	"github.com/stint-go/stint/jobs/stepjob"
)

// shStep is the kind sh as a step. The command reads what the step before came
// to, as JSON, on its standard input, unless its arguments give it another.
func shStep(h stint.Handler) stepjob.Operation {
	return kindStep(h, func(args *shelljob.Args, previous json.RawMessage) {
		args.Stdin = cmp.Or(args.Stdin, string(previous))
	})
}

// httpStep is the kind http as a step. A request that is to have a body, and
// whose arguments give it none, sends what the step before came to.
func httpStep(h stint.Handler) stepjob.Operation {
	return kindStep(h, func(args *httpjob.Args, previous json.RawMessage) {
		switch args.Method {
		case http.MethodPost, http.MethodPut, http.MethodPatch:
			if args.Body == "" && args.JSON == nil {
				args.JSON = previous
			}
		}
	})
}

// kindStep makes a step of a kind whose arguments are of type A, and feeds it
// what the step before came to.
func kindStep[A jobs.Checked](h stint.Handler, feed func(args *A, previous json.RawMessage)) stepjob.Operation {
	return stepjob.Operation{
		Check: func(raw json.RawMessage) error {
			_, err := jobs.Decode[A](raw)
			return err
		},
		Run: func(ctx context.Context, in stepjob.Input) (json.RawMessage, error) {
			args, err := jobs.Decode[A](in.Args)
			if err != nil {
				return nil, stint.NoRetry(err)
			}
			if in.Previous != nil {
				feed(&args, in.Previous)
			}
			if in.Args, err = encode(args); err != nil {
				return nil, stint.NoRetry(err)
			}
			return stepjob.Of(h).Run(ctx, in)
		},
	}
}

// checkSteps finds, before anything is opened, steps that no engine of this
// program can do.
func checkSteps(kind string, raw json.RawMessage) error {
	if kind != stepjob.Kind.Declaration().Name {
		return nil
	}
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	args, err := jobs.Decode[stepjob.Args](raw)
	if err == nil {
		err = builtin.operations(builtin.names(), kindOptions{}).Check(args)
	}
	if err != nil {
		return withHint(err, "engines of your own programs may know other steps: --force enqueues it all the same")
	}
	return nil
}
