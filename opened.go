package stint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stint-go/stint/internal/failure"
	"github.com/stint-go/stint/outside"
	"github.com/stint-go/stint/seal"
)

// sealing seals and opens for one kind, and puts what is large outside and gets it back. What is outside was sealed before.
type sealing struct {
	keys  seal.Keys
	kind  string
	seals bool   // what a run leaves
	blobs *blobs // nil for none
}

// opens is what opens values of a kind with what the client has.
func (c *Client) opens(kind string) sealing {
	s := sealing{keys: noKeys{}, kind: kind}
	if c != nil {
		s.blobs = c.blobs
		if c.keys != nil {
			s.keys = c.keys
		}
	}
	return s
}

// open opens a value that is outside or sealed as a whole, and returns any other as it is.
func (s sealing) open(ctx context.Context, bound string, value json.RawMessage) (json.RawMessage, error) {
	value, err := s.blobs.fetched(ctx, value)
	if err != nil || seal.KeyOf(value) == "" {
		return value, err
	}
	return seal.Open(ctx, s.keys, func(string) string { return bound }, value)
}

func (s sealing) openArgs(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	args, err := s.blobs.fetched(ctx, args)
	if err != nil {
		return nil, err
	}
	return seal.Open(ctx, s.keys, func(pointer string) string { return boundTo(s.kind, "args", pointer) }, args)
}

func (s sealing) seal(ctx context.Context, part, name string, value json.RawMessage) (json.RawMessage, error) {
	if value == nil {
		return nil, nil
	}
	if s.seals {
		var err error
		if value, err = seal.Value(ctx, s.keys, boundTo(s.kind, part, name), value, ""); err != nil {
			return nil, err
		}
	}
	return s.blobs.put(ctx, value)
}

// opened opens what a job shows, in a copy: all who wait for a job get the same one. What cannot be opened
// stays as it is stored.
func (c *Client) opened(ctx context.Context, job *JobInfo, err error) (*JobInfo, error) {
	if err != nil || c == nil || c.keys == nil && c.blobs == nil {
		return job, err
	}
	s, shown := c.opens(job.Kind), *job
	if args, err := s.openArgs(ctx, job.Args); err == nil {
		shown.Args = args
	}
	shown.Attempts = slices.Clone(job.Attempts)
	for i := range shown.Attempts {
		x := &shown.Attempts[i]
		if result, err := s.open(ctx, boundTo(s.kind, "result", ""), x.Result); err == nil {
			x.Result = result
		}
	}
	return &shown, ctx.Err()
}

// Bounds of the wait for an engine that can open a job.
const (
	openWait    = 10 * time.Second
	openWaitMax = 5 * time.Minute
)

// leftToOthers is what becomes of a run that cannot open something: the job waits for an engine that can,
// longer the longer it has waited. What was forged, or is not there, is never opened.
func leftToOthers(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.Is(err, seal.ErrForged), errors.Is(err, outside.ErrNotFound), errors.Is(err, outside.ErrChanged):
		return NoRetry(err)
	}
	wait := openWait
	if job := JobFrom(ctx); job != nil {
		wait = min(openWaitMax, max(openWait, job.Started.Sub(job.Due)/10))
	}
	wait = wait/2 + rand.N(wait)
	return errors.Join(&failure.Snooze{Wait: wait, Why: "left to an engine that can open it: " + err.Error()}, err)
}

// opening gives a handler everything in clear, outside of all middleware. Of a kind that is not sealed, or not any
// more, that is what an envelope shows to be sealed.
func opening(d KindInfo, h Handler) Handler {
	return func(ctx context.Context, job *Job) (json.RawMessage, error) {
		run := runFrom(ctx)
		if d.Sealed == nil && !run.hasBlobs() && !seal.Is(job.Args) && !outside.Is(job.Args) {
			return h(ctx, job)
		}
		if err := run.open(ctx, d, job); err != nil {
			return nil, leftToOthers(ctx, err)
		}
		return h(ctx, job)
	}
}

// open opens the arguments of a run, and seals what the run leaves: all of a kind that is sealed, and of another one
// what had something sealed.
func (a *Run) open(ctx context.Context, d KindInfo, job *Job) error {
	var client *Client
	if a != nil {
		client = a.Client
	}
	s := client.opens(job.Kind)
	stored, err := s.blobs.fetched(ctx, job.Args)
	if err != nil {
		return fmt.Errorf("open the arguments: %w", err)
	}
	args, err := s.openArgs(ctx, stored)
	_, none := s.keys.(noKeys)
	switch {
	case err != nil:
		return fmt.Errorf("open the arguments: %w", err)
	case none && d.Sealed != nil && a != nil && a.Steps != nil:
		return fmt.Errorf("seal what the run leaves: the engine's client has no keys: %w", ErrNoKey)
	}
	job.Args = args
	if s.seals = !none && (d.Sealed != nil || !bytes.Equal(args, stored)); !s.seals && s.blobs == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sealing = &s
	if a.Steps != nil {
		a.Steps = sealedSteps{a.Steps, &s}
	}
	return nil
}

// noKeys are the keys of who has none.
type noKeys struct{}

func (noKeys) Seal(context.Context, []byte, []byte) (string, []byte, error) { return "", nil, ErrNoKey }

func (noKeys) Open(_ context.Context, key string, _, _ []byte) ([]byte, error) {
	return nil, fmt.Errorf("%w: %q", ErrNoKey, key)
}

// hasBlobs reports whether the run puts what is large outside.
func (a *Run) hasBlobs() bool { return a != nil && a.Client != nil && a.Client.blobs != nil }

// isSealed reports whether the run has something that no error may quote.
func (a *Run) isSealed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sealing != nil && a.sealing.seals
}

// Bounds of the sealing of a result, which may ask a service after the run has ended.
const (
	sealTime = 30 * time.Second
	sealWait = 250 * time.Millisecond
)

// SealResult returns a result of the run as it is to be stored: sealed, if its kind is, and outside, if it is large. The work is done, so it asks
// keys that fail once more, for half a minute, also after ctx has ended.
func (a *Run) SealResult(ctx context.Context, result json.RawMessage) (json.RawMessage, error) {
	a.mu.Lock()
	s := a.sealing
	a.mu.Unlock()
	if s == nil || result == nil {
		return result, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sealTime)
	defer cancel()
	for wait := sealWait; ; wait *= 2 {
		sealed, err := s.seal(ctx, "result", "", result)
		if err == nil {
			return sealed, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, fmt.Errorf("seal the result: %w", err)
		}
	}
}

// sealedSteps keeps sealed what steps return. What they take and are answered is kept as it came.
type sealedSteps struct {
	StepKeeper
	*sealing
}

func (s sealedSteps) Recorded(ctx context.Context) ([]RecordedStep, error) {
	all, err := s.StepKeeper.Recorded(ctx)
	for i := range all {
		if err == nil {
			all[i].Result, err = s.openStep(ctx, all[i].Name, all[i].Result)
		}
	}
	return all, err
}

func (s sealedSteps) Record(ctx context.Context, tx Tx, name string, began time.Time, result json.RawMessage) (json.RawMessage, error) {
	sealed, err := s.seal(ctx, "step", name, result)
	if err != nil {
		return nil, fmt.Errorf("seal the result of the step: %w", err)
	}
	if sealed, err = s.StepKeeper.Record(ctx, tx, name, began, sealed); err != nil {
		return nil, err
	}
	return s.openStep(ctx, name, sealed)
}

func (s sealedSteps) openStep(ctx context.Context, name string, result json.RawMessage) (json.RawMessage, error) {
	opened, err := s.open(ctx, boundTo(s.kind, "step", name), result)
	if err != nil {
		return nil, leftToOthers(ctx, fmt.Errorf("open what the step %q recorded: %w", name, err))
	}
	return opened, nil
}
