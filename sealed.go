package stint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/failure"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/seal"
)

// Sealed keeps the arguments of a kind's jobs encrypted in the database, and with them their results
// and what their steps record. With JSON pointers only the parts of the arguments that these select
// are, so that the rest can be read and searched:
//
//	var Pay = stint.NewKind[Payment]("pay", stint.Sealed("/iban"))
//
// What a pointer selects may be absent, but [NewKind] panics if the type of the arguments has no member of that name. Handlers and who awaits a result see everything in clear, and
// need no change. Programs that enqueue such jobs, or run them, need a client with keys: see
// [Client.Seal]. A schedule has its arguments in clear: it can have a sealed kind only without what is to be sealed.
//
// Kind, queue, tags, URN, metadata, keys and limits stay readable, and so do error messages, log lines,
// progress, signals, questions and answers: do not put there what is to be secret.
//
// An idempotency key or a unique key of a sealed job is stored with a MAC of its arguments, which shows
// who reads the database that two jobs have equal ones. A limit by a pointer to what is sealed has a MAC for a key.
// [By] can only select what is not sealed, or a sealed part as a whole.
func Sealed(pointers ...string) Option {
	if len(pointers) == 0 {
		pointers = []string{wholeArgs}
	}
	return func(j *NewJob) { j.Sealed = slices.Clone(pointers) }
}

// wholeArgs is the JSON pointer to all arguments.
const wholeArgs = ""

// ErrNoKey says that something is sealed with a key that is not at hand.
var ErrNoKey = seal.ErrNoKey

// Seal returns a client with keys. It seals the jobs of kinds that are [Sealed], and opens what
// [Client.Job], [Client.Await] and the like return. An engine takes the keys of its client for its handlers:
//
//	keys, err := seal.NewRing(seal.Key{ID: "2026-11", Secret: secret})
//	client := stint.NewClient(store).Seal(keys)
//	e, err := engine.New(store, mux, engine.Config{Client: client})
//
// What cannot be opened is shown as it is stored. A job like that is left to another engine: it runs again after
// some seconds, uncharged, and after longer and longer, until one can open it; but what was forged fails.
func (c *Client) Seal(keys seal.Keys) *Client {
	return c.but(func(d *Client) { d.keys = keys; d.chain() })
}

// CheckKeys reports an error that matches [ErrNoKey] if the kind is sealed and the client has no keys.
func (c *Client) CheckKeys(d KindInfo) error {
	if d.Sealed == nil || c != nil && c.keys != nil {
		return nil
	}
	return fmt.Errorf("the kind %s is sealed, and the client has no keys (stint.Client.Seal): %w", d.Name, ErrNoKey)
}

// OpenResult opens the result of a job of the kind, as its attempts have it. One that is not sealed is
// returned as it is. The error matches [ErrNoKey] when the client does not have the key.
func (c *Client) OpenResult(ctx context.Context, kind string, result json.RawMessage) (json.RawMessage, error) {
	s := sealing{noKeys{}, kind}
	if c != nil && c.keys != nil {
		s.keys = c.keys
	}
	return s.open(ctx, boundTo(kind, "result", ""), result)
}

// boundTo names what something sealed is bound to. No kind or part has a line break.
func boundTo(kind, part, pointer string) string { return kind + "\n" + part + "\n" + pointer }

// checkSealed checks what the job says of sealing.
func (j NewJob) checkSealed() error {
	if j.Sealed == nil {
		return nil
	}
	for i, pointer := range j.Sealed {
		if pointer == wholeArgs && len(j.Sealed) == 1 {
			break
		}
		if err := checkPointer("sealed", pointer); err != nil {
			return err
		}
		for _, other := range j.Sealed[:i] {
			if within(pointer, other) || within(other, pointer) {
				return valid.Invalid("sealed", "%s and %s are one in the other", other, pointer)
			}
		}
	}
	if j.Unique == "" || j.Unique == notUnique {
		return nil
	}
	u, err := ParseUniqueness(j.Unique)
	for _, pointer := range u.By {
		for _, sealed := range j.Sealed {
			if pointer != sealed && within(pointer, sealed) {
				return valid.Invalid("unique", "what it is by, %s, is in what is sealed: seal other parts of the arguments, or just %s", pointer, pointer)
			}
		}
	}
	return err
}

// lackingMember is a pointer of which the type of the arguments has no member, which would seal nothing; empty if
// there is none that can be told.
func lackingMember(of reflect.Type, pointers []string) string {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(of).Implements(reflect.TypeFor[json.Marshaler]()) {
		return ""
	}
	names := map[string]bool{}
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names[cmp.Or(name, f.Name)] = f.IsExported()
	}
	for _, pointer := range pointers {
		if pointer == wholeArgs {
			continue
		}
		token, _, _ := strings.Cut(pointer[1:], "/")
		if !names[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)] {
			return pointer
		}
	}
	return ""
}

// within reports whether a JSON pointer selects something in what another one does, or the same.
func within(pointer, of string) bool { return pointer == of || strings.HasPrefix(pointer, of+"/") }

// seal encrypts of a checked job what is to be.
func (c *Client) seal(ctx context.Context, job *NewJob) error {
	if job.Sealed == nil {
		return nil
	}
	if err := c.CheckKeys(KindInfo{Name: job.Kind, Sealed: job.Sealed}); err != nil {
		return err
	}
	if seal.Is(job.Args) {
		return valid.Invalid("args", "they have something sealed, or a name like that, and are to be sealed")
	}
	if err := c.sealLimits(ctx, job); err != nil {
		return err
	}
	compare := job.IdempotencyKey != "" || job.Unique != "" && job.Unique != notUnique
	for _, pointer := range job.Sealed {
		args, err := replaced(job.Args, pointer, func(plain json.RawMessage) (sealed json.RawMessage, err error) {
			mac := ""
			if compare {
				mac, err = seal.MAC(ctx, c.keys, job.comparedAs(pointer), canonical(plain))
			}
			if err != nil {
				return nil, err
			}
			return seal.Value(ctx, c.keys, boundTo(job.Kind, "args", pointer), plain, mac)
		})
		if err != nil {
			return err
		}
		job.Args = args
	}
	return nil
}

// comparedAs is what the MAC of a part of the arguments is bound to: the jobs among which equal ones are told.
func (j NewJob) comparedAs(pointer string) string {
	if u, err := ParseUniqueness(j.Unique); err == nil && u.Across != "" {
		return boundTo("", "across "+u.Across, pointer)
	}
	return boundTo(j.Kind, "args", pointer)
}

// InClear reports a part of the arguments that is to be sealed and is not, as a JSON pointer. Empty
// arguments have nothing to seal.
func (j NewJob) InClear() (pointer string, ok bool) {
	for _, pointer := range j.Sealed {
		clear := false
		_, err := replaced(j.Args, pointer, func(part json.RawMessage) (json.RawMessage, error) {
			clear = seal.KeyOf(part) == "" && (pointer != wholeArgs || string(canonical(part)) != string(noArgs))
			return part, nil
		})
		if clear || err != nil {
			return pointer, true
		}
	}
	return "", false
}

var errSealedLimit = valid.Invalid("limits", "what a limit is by in the arguments, which are sealed, is no key")

// sealLimits gives limits by something that is sealed its MAC for a key, which is the same in all kinds.
func (c *Client) sealLimits(ctx context.Context, job *NewJob) error {
	cloned := false
	for i, text := range job.Limits {
		cost, text := LimitCost(text)
		name, pointer, keyed := strings.Cut(text, by)
		if !keyed || !slices.ContainsFunc(job.Sealed, func(sealed string) bool { return within(pointer, sealed) }) {
			continue
		}
		key, err := NewJob{Args: job.Args, Limits: []string{text}}.LimitKeys()
		if err != nil {
			return errSealedLimit // which does not quote it
		}
		mac, err := seal.MAC(ctx, c.keys, "limit", json.RawMessage(key))
		if err != nil {
			return err
		}
		if !cloned {
			job.Limits, cloned = slices.Clone(job.Limits), true
		}
		job.Limits[i] = name + "=" + mac
		if cost > 1 {
			job.Limits[i] = strconv.Itoa(cost) + "*" + job.Limits[i]
		}
	}
	return nil
}

// replaced replaces what a JSON pointer selects, if there is anything. A name that differs from one of the pointer in
// its case only is an error, since a handler would take the one for the other.
func replaced(value json.RawMessage, pointer string, by func(json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	if value = bytes.TrimSpace(value); len(value) == 0 {
		return value, nil
	}
	if pointer == wholeArgs {
		return by(value)
	}
	token, rest, more := strings.Cut(pointer[1:], "/")
	if more {
		rest = "/" + rest
	}
	token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	switch value[0] {
	case '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(value, &members); err != nil {
			return nil, valid.Invalid("args", "%v", err)
		}
		for name := range members {
			if name != token && strings.EqualFold(name, token) {
				return nil, valid.Invalid("args", "they have %s, and what is sealed is %s", name, token)
			}
		}
		member, ok := members[token]
		if !ok {
			return value, nil
		}
		changed, err := replaced(member, rest, by)
		if err != nil {
			return nil, err
		}
		members[token] = changed
		return json.Marshal(members)
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			return nil, valid.Invalid("args", "%v", err)
		}
		i, err := strconv.Atoi(token)
		if err != nil || i < 0 || i >= len(items) || strconv.Itoa(i) != token {
			return value, nil
		}
		if items[i], err = replaced(items[i], rest, by); err != nil {
			return nil, err
		}
		return json.Marshal(items)
	}
	return value, nil
}

// sealing seals and opens for one kind.
type sealing struct {
	keys seal.Keys
	kind string
}

// open opens a value that is sealed as a whole, and returns any other as it is.
func (s sealing) open(ctx context.Context, bound string, value json.RawMessage) (json.RawMessage, error) {
	if seal.KeyOf(value) == "" {
		return value, nil
	}
	return seal.Open(ctx, s.keys, func(string) string { return bound }, value)
}

func (s sealing) openArgs(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	return seal.Open(ctx, s.keys, func(pointer string) string { return boundTo(s.kind, "args", pointer) }, args)
}

func (s sealing) seal(ctx context.Context, part, name string, value json.RawMessage) (json.RawMessage, error) {
	if value == nil {
		return nil, nil
	}
	return seal.Value(ctx, s.keys, boundTo(s.kind, part, name), value, "")
}

// opened opens what a job shows. What cannot be opened stays as it is stored.
func (c *Client) opened(ctx context.Context, job *JobInfo, err error) (*JobInfo, error) {
	if err != nil || c == nil || c.keys == nil {
		return job, err
	}
	s := sealing{c.keys, job.Kind}
	if args, err := s.openArgs(ctx, job.Args); err == nil {
		job.Args = args
	}
	for i := range job.Attempts {
		x := &job.Attempts[i]
		if result, err := s.open(ctx, boundTo(s.kind, "result", ""), x.Result); err == nil {
			x.Result = result
		}
	}
	return job, ctx.Err()
}

// Bounds of the wait for an engine that can open a job.
const (
	openWait    = 10 * time.Second
	openWaitMax = 5 * time.Minute
)

// leftToOthers is what becomes of a run that cannot open something: the job waits for an engine that can,
// longer the longer it has waited. What was forged is never opened.
func leftToOthers(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.Is(err, seal.ErrForged):
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
		if d.Sealed == nil && !seal.Is(job.Args) {
			return h(ctx, job)
		}
		if err := runFrom(ctx).open(ctx, d, job); err != nil {
			return nil, leftToOthers(ctx, err)
		}
		return h(ctx, job)
	}
}

// open opens the arguments of a run, and seals what the run leaves: all of a kind that is sealed, and of another one
// what had something sealed.
func (a *Run) open(ctx context.Context, d KindInfo, job *Job) error {
	s := sealing{noKeys{}, d.Name}
	if a != nil && a.Client != nil && a.Client.keys != nil {
		s.keys = a.Client.keys
	}
	args, err := s.openArgs(ctx, job.Args)
	_, none := s.keys.(noKeys)
	switch {
	case err != nil:
		return fmt.Errorf("open the arguments: %w", err)
	case none && d.Sealed != nil && a != nil && a.Steps != nil:
		return fmt.Errorf("seal what the run leaves: the engine's client has no keys: %w", ErrNoKey)
	case none, d.Sealed == nil && bytes.Equal(args, job.Args):
		return nil
	}
	job.Args = args
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

// isSealed reports whether the run has something that no error may quote.
func (a *Run) isSealed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sealing != nil
}

// Bounds of the sealing of a result, which may ask a service after the run has ended.
const (
	sealTime = 30 * time.Second
	sealWait = 250 * time.Millisecond
)

// SealResult returns a result of the run as it is to be stored: sealed, if its kind is. The work is done, so it asks
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

// stepKeeper is what keeps steps: [Run.Steps].
type stepKeeper interface {
	Recorded(ctx context.Context) ([]RecordedStep, error)
	Record(ctx context.Context, tx Tx, name string, began time.Time, result json.RawMessage) (json.RawMessage, error)
	Take(ctx context.Context, step, signal string, until time.Time) (json.RawMessage, error)
	Ask(ctx context.Context, step string, q Question) (RecordedStep, error)
	Now() time.Time
	Err() error
}

// sealedSteps keeps sealed what steps return. What they take and are answered is kept as it came.
type sealedSteps struct {
	stepKeeper
	*sealing
}

func (s sealedSteps) Recorded(ctx context.Context) ([]RecordedStep, error) {
	all, err := s.stepKeeper.Recorded(ctx)
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
	if sealed, err = s.stepKeeper.Record(ctx, tx, name, began, sealed); err != nil {
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
