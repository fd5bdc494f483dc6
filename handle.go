package stint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
)

// Handle registers a function for a kind. Arguments that do not decode into A
// fail the attempt before the function is called.
func Handle[A any](m *Mux, k Kind[A], f func(ctx context.Context, job *Job, args A) error) *Registration {
	return handle(m, k, func(ctx context.Context, job *Job, args A) (json.RawMessage, error) { return nil, f(ctx, job, args) })
}

// HandleResult registers a function that returns a result. The result of a
// failed attempt is not kept.
func HandleResult[A, R any](m *Mux, k ResultKind[A, R], f func(ctx context.Context, job *Job, args A) (R, error)) *Registration {
	return handle(m, k.Kind, func(ctx context.Context, job *Job, args A) (json.RawMessage, error) {
		result, err := f(ctx, job, args)
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(result)
		if err != nil {
			// The work is done; another run would not make the result encodable.
			return nil, NoRetry(fmt.Errorf("encode the result: %w", err))
		}
		return raw, nil
	})
}

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
	return handle(m, k, func(ctx context.Context, job *Job, args A) (json.RawMessage, error) {
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

// guarded calls a constructor and returns its panic as an error.
func guarded[R any](ctx context.Context, job *Job, construct func(context.Context, *Job) (R, error)) (r R, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	return construct(ctx, job)
}

// handle registers a function that gets its arguments decoded. An untyped number becomes a
// [json.Number], never a float that lost digits.
func handle[A any](m *Mux, k Kind[A], f func(ctx context.Context, job *Job, args A) (json.RawMessage, error)) *Registration {
	return m.Add(k.decl, func(ctx context.Context, job *Job) (json.RawMessage, error) {
		var args A
		d := json.NewDecoder(bytes.NewReader(job.Args))
		d.UseNumber()
		if err := d.Decode(&args); err != nil && (k.decl.Sealed != nil || k.decl.Redacted != nil) {
			return nil, errors.New("decode the arguments: they are not what the handler expects") // the error may quote them
		} else if err != nil {
			return nil, fmt.Errorf("decode the arguments: %w", err)
		}
		return f(ctx, job, args)
	})
}
