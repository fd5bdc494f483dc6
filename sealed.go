package stint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/seal"
)

// Sealed keeps the arguments of a kind's jobs encrypted in the database, and with them their results
// and what their steps record. With JSON pointers only the parts of the arguments that these select
// are, so that the rest can be read and searched:
//
//	var Pay = stint.NewKind[Payment]("pay", stint.Sealed("/iban"))
//
// What a pointer selects may be absent, but [NewKind] panics if the type of the arguments has no member of that
// name. Handlers and who awaits a result see everything in clear, and need no change. Programs that enqueue such
// jobs, or run them, need a client with keys: see [Client.Seal]. A schedule has its arguments in clear: it can have
// a sealed kind only without what is to be sealed.
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

// OpenArgs opens what is sealed in the arguments of a job of the kind, as a store has them, and gets those that are kept
// outside. Any others are returned as they are. The error matches [ErrNoKey] when the client does not have the key.
func (c *Client) OpenArgs(ctx context.Context, kind string, args json.RawMessage) (json.RawMessage, error) {
	return c.opens(kind).openArgs(ctx, args)
}

// OpenStep does the same with what a step of a job of the kind recorded under a name.
func (c *Client) OpenStep(ctx context.Context, kind, name string, result json.RawMessage) (json.RawMessage, error) {
	return c.opens(kind).open(ctx, boundTo(kind, "step", name), result)
}

// OpenResult does the same with the result of a job of the kind, as its attempts have it.
func (c *Client) OpenResult(ctx context.Context, kind string, result json.RawMessage) (json.RawMessage, error) {
	return c.opens(kind).open(ctx, boundTo(kind, "result", ""), result)
}

// boundTo names what something sealed is bound to. No kind or part has a line break.
func boundTo(kind, part, pointer string) string { return kind + "\n" + part + "\n" + pointer }

// checkSealed checks what the job says of sealing.
func (j NewJob) checkSealed() error {
	if j.Sealed == nil {
		return nil
	}
	if err := checkParts("sealed", j.Sealed); err != nil {
		return err
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

// checkParts checks pointers to parts of the arguments, none of which is in another one.
func checkParts(field string, pointers []string) error {
	for i, pointer := range pointers {
		if pointer == wholeArgs && len(pointers) == 1 {
			return nil
		}
		if err := checkPointer(field, pointer); err != nil {
			return err
		}
		for _, other := range pointers[:i] {
			if within(pointer, other) || within(other, pointer) {
				return valid.Invalid(field, "%s and %s are one in the other", other, pointer)
			}
		}
	}
	return nil
}

// lackingMember is a pointer of which the type of the arguments has no member, which selects nothing; empty if
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
		if !names[unescaped(token)] {
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
	pointer, clear := job.InClear()
	switch {
	case !clear && (c.keys == nil || seal.Is(job.Args)):
		return nil // it was sealed before
	case c.keys == nil:
		return fmt.Errorf("the kind %s is sealed, its arguments are in clear%s, and the client has no keys (stint.Client.Seal): %w", job.Kind, at(pointer), ErrNoKey)
	case seal.Is(job.Args):
		return valid.Invalid("args", "they have something sealed, or a name like that, and are in clear%s", at(pointer))
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

// at says where something is.
func at(pointer string) string {
	if pointer == wholeArgs {
		return ""
	}
	return " at " + pointer
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
	token = unescaped(token)
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
