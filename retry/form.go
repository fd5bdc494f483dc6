package retry

import (
	"slices"
	"time"

	"github.com/stint-go/stint/internal/duration"
	"github.com/stint-go/stint/internal/words"
)

// source has the values of a policy that is read, by the names of their fields in JSON:
// an [object], or [texts]. It keeps the first mistake, so that a policy is one expression.
type source interface {
	has(key string) bool
	number(key string) int
	fraction(key string) float64
	duration(key string) time.Duration
	name(key string) string
	names(key string) []string
	rows() []Row
	cases() []Case
}

// form is how a policy is written.
type form struct {
	name           string
	args           []string // the fields that stand between colons in the text form
	example        string   // of the text form, for hints
	inJSON, inText bool
	build          func(source) Policy
}

// forms are all of them, in the order of messages.
var forms = []form{
	{"none", nil, "none", true, true, func(source) Policy { return None() }},
	{"default", nil, "default", true, true, func(source) Policy { return Default() }},
	{"fixed", []string{"retries", "wait"}, "fixed:2:1s", true, true, func(s source) Policy {
		return Fixed(s.number("retries"), s.duration("wait"))
	}},
	{"forever", []string{"wait"}, "forever:30s", true, true, func(s source) Policy { return Forever(s.duration("wait")) }},
	{"exponential", []string{"retries", "first"}, "exponential:10:1m", true, true, func(s source) Policy {
		return Exponential(s.number("retries"), s.duration("first"))
	}},
	{"exponential-within", []string{"total", "first"}, "exponential-within:1025s:1s", false, true, func(s source) Policy {
		return ExponentialWithin(s.duration("total"), s.duration("first"))
	}},
	{"timetable", nil, "timetable", true, true, func(s source) Policy { return Timetable(s.rows()...) }},
	{"by_error", nil, "", true, false, func(s source) Policy { return ByError(s.cases()...) }},
	{"function", []string{"name"}, "function:name", true, true, func(s source) Policy { return Function(s.name("name")) }},
}

// formOf returns the form of a name, or nil.
func formOf(name string) *form {
	if i := slices.IndexFunc(forms, func(f form) bool { return f.name == name }); i >= 0 {
		return &forms[i]
	}
	return nil
}

// formNames lists those that are written in a way.
func formNames(in func(form) bool) string {
	var names []string
	for _, f := range forms {
		if in(f) {
			names = append(names, f.name)
		}
	}
	return words.Listed(names)
}

// modifiers are the fields that every policy may have.
var modifiers = []string{"jitter", "max", "deadline", "faulty", "only", "except"}

func modify(p Policy, s source) Policy {
	if s.has("only") {
		p = p.Only(s.names("only")...)
	}
	if s.has("except") {
		p = p.Except(s.names("except")...)
	}
	if s.has("jitter") {
		p = p.Jitter(s.fraction("jitter"))
	}
	if s.has("max") {
		p = p.MaxDelay(s.duration("max"))
	}
	if s.has("deadline") {
		p = p.Deadline(s.duration("deadline"))
	}
	if s.has("faulty") {
		p = p.Faulty(s.number("faulty"))
	}
	return p
}

// Duration is a [time.Duration] that is text in JSON: FormatDuration writes it, and
// ParseDuration reads it.
type Duration time.Duration

// AsDuration returns it to calculate with.
func (d Duration) AsDuration() time.Duration { return time.Duration(d) }

// String writes it as FormatDuration does.
func (d Duration) String() string { return duration.Format(time.Duration(d)) }

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	read, err := duration.Parse(string(text))
	*d = Duration(read)
	return err
}

// ParseDuration reads a duration as people write it: numbers with the units w,
// d, h, m, s and ms (and us, ns) from large to small, such as 90s, 1h30m, 2w or
// 1.5h. A day has 24 hours. A number without a unit and a negative one are refused.
// Errors carry a hint.
func ParseDuration(s string) (time.Duration, error) { return duration.Parse(s) }

// FormatDuration writes a duration as ParseDuration reads it, exactly and in
// one way: 1m30s, 1d12h, 2w. Weeks are used where nothing remains, since 10d is
// easier to read than 1w3d. A negative one has a sign.
func FormatDuration(d time.Duration) string { return duration.Format(d) }
