package stint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/seal"
)

// UniqueScope says for how long a job holds its unique key.
type UniqueScope string

// The scopes.
const (
	UntilEnded   UniqueScope = "until-ended"   // until it has completed, failed or was cancelled
	UntilStarted UniqueScope = "until-started" // until an engine has claimed it, or it was cancelled
	Within       UniqueScope = "within"        // for a period from its enqueue
	Slot         UniqueScope = "slot"          // to the end of the calendar slot in which it was enqueued
)

// OnConflict says what happens to a job whose unique key another job holds.
type OnConflict string

// What can happen to it.
const (
	// Keep keeps the job that is there, and stores nothing.
	Keep OnConflict = "keep"

	// Replace cancels the job that is there, if no engine has begun it, and stores the new one.
	// Otherwise it is [Keep].
	Replace OnConflict = "replace"

	// ReplaceKeepTime is [Replace], and the new job is due when the old one was.
	ReplaceKeepTime OnConflict = "replace-keep-time"

	// Debounce is [Replace], and the new job is due no later than [Uniqueness.Latest] after the first of
	// those that replaced one another was enqueued: so each enqueue puts the job off by its delay, but not
	// for ever. Only for [UntilEnded] and [UntilStarted].
	Debounce OnConflict = "debounce"

	// CancelOld cancels the job that is there, and stores the new one. If the old one runs, it is
	// asked to stop, and the new one may begin before it has. Only for [UntilEnded].
	CancelOld OnConflict = "cancel-old"
)

// Uniqueness is what the text in [NewJob.Unique] says. [ParseUniqueness] reads it.
type Uniqueness struct {
	Scope  UniqueScope
	Period time.Duration // of Within, and the length of a Slot
	By     []string      // JSON pointers into the arguments, sorted; nil for all of them, empty for none
	Across string        // a name that stands for the kind: jobs of all kinds that say it share the keys
	OnConflict
	Latest time.Duration // of Debounce
}

const (
	notUnique = "none" // takes back what the kind says
	byNothing = "none" // as pointers: no argument counts
)

// UniqueOption is a detail of [UniqueUntilEnded] and the others.
type UniqueOption func(*Uniqueness)

// UniqueUntilEnded stores the job only if no other one of its unique key is unfinished.
//
//	var Reindex = stint.NewKind[Doc]("reindex", stint.UniqueUntilEnded(stint.By("/tenant", "/id")))
//
// The unique key is the kind and the arguments, or those that [By] selects, compared as JSON
// values: without By, jobs with other arguments are stored beside it. With By() no argument counts, so one
// job of the kind is unfinished at a time. A job that waits, is retried, snoozed or lost with its engine is unfinished. The
// [Receipt] says what happened. Each scope has keys of its own.
//
// Of the jobs of one batch with the same key, the first is stored and the others are duplicates of
// it; if one of them is to replace or cancel, nothing of the batch is stored.
//
// In a caller's transaction the key is taken when that commits: until then, other enqueues with
// the same key wait. See docs/unique.md.
func UniqueUntilEnded(opts ...UniqueOption) Option { return unique(UntilEnded, 0, opts) }

// UniqueUntilStarted is [UniqueUntilEnded] until an engine has claimed the job for the first time: what
// is retried, snoozed or lost has started. A job that is kept begins after the enqueue has committed, so
// it sees what that transaction wrote.
//
// In a caller's transaction only a job that waits for its time is kept. One that is ready or overdue may
// begin before the commit, so it stays as it is, and the new job is stored and has the key. With a delay
// such as a second, transactions that follow one another share a job.
func UniqueUntilStarted(opts ...UniqueOption) Option { return unique(UntilStarted, 0, opts) }

// UniqueWithin is [UniqueUntilEnded] for a period from the enqueue, by the store's clock, whether
// the job has ended or not.
func UniqueWithin(d time.Duration, opts ...UniqueOption) Option { return unique(Within, d, opts) }

// UniqueSlot is [UniqueUntilEnded] for a calendar slot of the length d: slots follow one another from
// 1970-01-01 00:00 UTC, so those of 24 hours are the days of UTC. What counts is the time of the
// enqueue, by the store's clock.
func UniqueSlot(d time.Duration, opts ...UniqueOption) Option { return unique(Slot, d, opts) }

// NotUnique stores the job whatever its kind says of uniqueness.
func NotUnique() Option { return func(j *NewJob) { j.Unique = notUnique } }

func unique(scope UniqueScope, d time.Duration, opts []UniqueOption) Option {
	u := Uniqueness{Scope: scope, Period: d, OnConflict: Keep}
	for _, opt := range opts {
		opt(&u)
	}
	text := u.String()
	return func(j *NewJob) { j.Unique = text }
}

// By makes a part of the arguments the unique key, in place of all of them. It is selected by JSON
// pointers (RFC 6901), such as "/tenant" and "/customer/id". The arguments must have all of them:
// otherwise a misspelt one would make every job of the kind a duplicate. Without a pointer no argument
// counts: By() makes every job of the kind a duplicate.
func By(pointers ...string) UniqueOption {
	return func(u *Uniqueness) { u.By = append(append([]string{}, u.By...), pointers...) }
}

// Across shares the unique keys among all kinds that give the same name, which takes the place of the
// kind. The arguments count as without it: see [By].
func Across(name string) UniqueOption { return func(u *Uniqueness) { u.Across = name } }

func (c OnConflict) option(u *Uniqueness) { u.OnConflict = c }

// OrReplace is [Replace].
func OrReplace() UniqueOption { return Replace.option }

// OrReplaceKeepTime is [ReplaceKeepTime].
func OrReplaceKeepTime() UniqueOption { return ReplaceKeepTime.option }

// OrDebounce is [Debounce]. The delay of the job is for how long nobody must have enqueued another one, and
// latest is how long the job waits for that at most, from a millisecond to 100 years.
//
//	var Index = stint.NewKind[Doc]("index", stint.UniqueUntilStarted(stint.By("/id"), stint.OrDebounce(time.Minute)))
//
//	Index.Enqueue(ctx, client, doc, stint.Delay(5*time.Second))
func OrDebounce(latest time.Duration) UniqueOption {
	return func(u *Uniqueness) { u.OnConflict, u.Latest = Debounce, latest }
}

// OrCancelOld is [CancelOld].
func OrCancelOld() UniqueOption { return CancelOld.option }

// String is the text that [ParseUniqueness] reads: "until-ended,by=/tenant|/id,replace".
func (u Uniqueness) String() string {
	var b strings.Builder
	b.WriteString(string(u.Scope))
	if u.Scope.timed() {
		b.WriteString(":" + retry.FormatDuration(u.Period))
	}
	if u.By != nil {
		b.WriteString(",by=" + u.by())
	}
	if u.Across != "" {
		b.WriteString(",across=" + u.Across)
	}
	if u.OnConflict != Keep && u.OnConflict != "" {
		b.WriteString("," + string(u.OnConflict))
	}
	if u.OnConflict == Debounce {
		b.WriteString(":" + retry.FormatDuration(u.Latest))
	}
	return b.String()
}

// by is the text of the pointers; empty for all arguments.
func (u Uniqueness) by() string {
	if u.By != nil && len(u.By) == 0 {
		return byNothing
	}
	by := slices.Clone(u.By)
	slices.Sort(by)
	return strings.Join(slices.Compact(by), "|")
}

// timed reports whether a period belongs to the scope.
func (s UniqueScope) timed() bool { return s != UntilEnded && s != UntilStarted }

// ParseUniqueness reads until-ended, until-started, within:1h or slot:24h, and after commas, in any order,
// by=/tenant|/id or by=none, across=name, and keep, replace, replace-keep-time, debounce:1m or cancel-old. Errors
// are [InvalidError]s.
func ParseUniqueness(text string) (Uniqueness, error) {
	parts := strings.Split(text, ",")
	scope, period, timed := strings.Cut(parts[0], ":")
	u := Uniqueness{Scope: UniqueScope(scope)}
	switch u.Scope {
	case UntilEnded, UntilStarted:
		if timed {
			return u, valid.Invalid("unique", "%s has no period", scope)
		}
	case Within, Slot:
		var err error
		if u.Period, err = periodOf(scope, period); err != nil {
			return u, err
		}
	default:
		return u, valid.Invalid("unique", "%q is not until-ended, until-started, within:1h or slot:24h", parts[0])
	}
	for _, part := range parts[1:] {
		name, value, named := strings.Cut(part, "=")
		mode, latest, bounded := strings.Cut(part, ":")
		switch {
		case name == "by" && value == byNothing && u.By == nil:
			u.By = []string{}
		case name == "by" && named && u.By == nil:
			u.By = strings.Split(value, "|")
		case name == "across" && named && u.Across == "":
			if u.Across = value; valid.Name("across", value) != nil {
				return u, valid.Name("across", value)
			}
		case !named && u.OnConflict == "" && slices.Contains([]OnConflict{Keep, Replace, ReplaceKeepTime, CancelOld}, OnConflict(part)):
			u.OnConflict = OnConflict(part)
		case bounded && u.OnConflict == "" && OnConflict(mode) == Debounce:
			var err error
			if u.Latest, err = periodOf(mode, latest); err != nil {
				return u, err
			}
			u.OnConflict = Debounce
		default:
			return u, valid.Invalid("unique", "%q is not by=/id|/tenant, by=none, across=name, keep, replace, replace-keep-time, debounce:1m or cancel-old, each once", part)
		}
	}
	if u.OnConflict == "" {
		u.OnConflict = Keep
	}
	if u.OnConflict == CancelOld && u.Scope != UntilEnded {
		return u, valid.Invalid("unique", "cancel-old is for until-ended: what holds a key otherwise may have ended, or has not begun")
	}
	if u.OnConflict == Debounce && u.Scope.timed() {
		return u, valid.Invalid("unique", "debounce is for until-started and until-ended: a period has an end of its own")
	}
	for _, pointer := range u.By {
		if err := checkPointer("unique", pointer); err != nil {
			return u, err
		}
	}
	slices.Sort(u.By)
	u.By = slices.Compact(u.By)
	if len(text) > 1000 {
		return u, valid.Invalid("unique", "the text has %d bytes, more than 1000", len(text))
	}
	return u, nil
}

// periodOf is the time that belongs to a part of the text.
func periodOf(of, text string) (time.Duration, error) {
	d, err := retry.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, valid.Invalid("unique", "%s needs a period, such as %s:1h", of, of)
	}
	return d.Truncate(time.Millisecond), checkLength("unique", d, time.Millisecond, maxWait)
}

// tidyUnique returns the text of a uniqueness as [Uniqueness.String] writes it, for equal ones to be equal:
// empty for none, and as it is if it is invalid.
func tidyUnique(text string) string {
	if text == "" || text == notUnique {
		return ""
	}
	if u, err := ParseUniqueness(text); err == nil {
		return u.String()
	}
	return text // NewJob.Check says why
}

// checkPointer reports what is wrong with a JSON pointer.
func checkPointer(field, pointer string) error {
	if !strings.HasPrefix(pointer, "/") || badEscape(pointer) {
		return valid.Invalid(field, "%q is no JSON pointer, such as /id", pointer)
	}
	return nil
}

// badEscape reports whether a ~ of a pointer begins no escape.
func badEscape(pointer string) bool {
	return strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(pointer), "~")
}

// checkUnique checks what the job says of uniqueness. The arguments are not known of a declaration.
func (j NewJob) checkUnique() error {
	if j.Unique == "" || j.Unique == notUnique {
		return nil
	}
	u, err := ParseUniqueness(j.Unique)
	if err == nil && len(j.Args) > 0 && json.Valid(j.Args) {
		_, err = u.Selected(j.Args)
	}
	return err
}

// Selected returns the part of the arguments that the unique key consists of, with the pointers as
// names: {"/id":7}. That is all of them if By is nil.
func (u Uniqueness) Selected(args json.RawMessage) (json.RawMessage, error) {
	if u.By == nil {
		return canonical(args), nil
	}
	var all any
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return nil, valid.Invalid("args", "%v", err)
	}
	if seal.Is(args) {
		all = seal.Comparable(all)
	}
	selected := map[string]any{}
	for _, pointer := range u.By {
		at, ok := pointed(all, pointer)
		if !ok {
			return nil, valid.Invalid("unique", "the arguments have nothing at %s", pointer)
		}
		selected[pointer] = at
	}
	return json.Marshal(selected)
}

// pointed returns what a JSON pointer selects; ok is false if that is nothing.
func pointed(of any, pointer string) (v any, ok bool) {
	for token := range strings.SplitSeq(pointer[1:], "/") {
		if of, ok = member(of, unescaped(token)); !ok {
			return nil, false
		}
	}
	return of, true
}

// unescaped is the name that a token of a JSON pointer stands for.
func unescaped(token string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(token) }

// member returns the value of a name or an index; ok is false if there is none.
func member(of any, token string) (v any, ok bool) {
	switch of := of.(type) {
	case map[string]any:
		v, ok = of[token]
		return v, ok
	case []any:
		i, err := strconv.Atoi(token)
		if err != nil || i < 0 || i >= len(of) || strconv.Itoa(i) != token {
			return nil, false
		}
		return of[i], true
	}
	return nil, false
}

// UniqueKey returns the job's unique key as stores keep it beside idempotency keys: no name of
// those begins with a control character. The job has passed [NewJob.Check].
//
// It is for stores whose database cannot compare JSON.
func (j NewJob) UniqueKey() (string, Uniqueness, error) {
	u, err := ParseUniqueness(j.Unique)
	if err != nil {
		return "", u, err
	}
	selected, err := u.Selected(j.Args)
	if err != nil {
		return "", u, err
	}
	of := "kind " + j.Kind
	if u.Across != "" {
		of = "across " + u.Across
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s", u.Scope, of, u.by(), selected))
	return "\x01" + hex.EncodeToString(sum[:]), u, nil
}

// Until returns when a job that is enqueued at some time stops holding its key, or until when it is
// put off under [Debounce], in microseconds since 1970; 0 if only its end tells.
func (u Uniqueness) Until(now int64) int64 {
	switch p := u.Period.Microseconds(); {
	case u.Scope == Within:
		return now + p
	case u.Scope == Slot:
		return (now/p + 1) * p
	case u.OnConflict == Debounce:
		return now + u.Latest.Microseconds()
	}
	return 0
}

// UniqueKey tells people what is unique of the job: {"/id":7}. It is nil if the job is not unique.
func (j JobInfo) UniqueKey() json.RawMessage {
	u, err := ParseUniqueness(j.Unique)
	if err != nil {
		return nil
	}
	selected, _ := u.Selected(j.Args)
	return selected
}
