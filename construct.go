package stint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
)

// HandleNew registers a constructor for a kind: each run of a job gets a
// fresh R, whose method Run performs it, so that no run sees what another left in its
// fields. The constructor is a closure over what the runs depend on.
//
// Arguments that do not decode into A fail the attempt before the constructor
// is called. A constructor that returns an error or panics is a failed attempt
// whose error names the kind; the retry policy applies, and [NoRetry], [Snooze]
// and [Cancel] mean what they always do. A runner leaves a result by
// [SetResult].
func HandleNew[A any, R interface {
	Run(ctx context.Context, job *Job, args A) error
}](m *Mux, k Kind[A], construct func(ctx context.Context, job *Job) (R, error)) *Registration {
	if construct == nil {
		panic(fmt.Sprintf("stint: kind %q: the constructor is nil", k.decl.Name))
	}
	return m.Add(k.decl, func(ctx context.Context, job *Job) (json.RawMessage, error) {
		args, err := decode[A](job.Args)
		if err != nil {
			return nil, err
		}
		runner, err := guarded(ctx, job, construct)
		if err == nil && any(runner) == nil {
			err = errors.New("the constructor returned nil")
		}
		if err != nil {
			return nil, fmt.Errorf("construct the handler of %s: %w", k.decl.Name, err)
		}
		return nil, runner.Run(ctx, job, args)
	})
}

// guarded calls a constructor and returns its panic as an error, which then also says
// where it happened.
func guarded[R any](ctx context.Context, job *Job, construct func(context.Context, *Job) (R, error)) (r R, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	return construct(ctx, job)
}
