package cron

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stint-go/stint/internal/duration"
	"github.com/stint-go/stint/internal/named"
)

const functionPrefix = "function:"

// macros are the names for expressions, without synonyms.
var macros = map[string]string{
	"@HOURLY":  "0 * * * *",
	"@DAILY":   "0 0 * * *",
	"@WEEKLY":  "0 0 * * SUN",
	"@MONTHLY": "0 0 1 * *",
	"@YEARLY":  "0 0 1 1 *",
}

var synonyms = map[string]string{
	"@MIDNIGHT": "@DAILY",
	"@ANNUALLY": "@YEARLY",
}

// Parse reads a recurrence: a cron expression of five fields or its macro as in
// the package comment, an interval ("every 90s", with durations from w to ms
// such as 1d12h), or "function:" and a name. What would never happen, as the
// 31st of February, is refused. Errors wrap [ErrInvalid] and say which field is
// wrong and how.
func Parse(text string) (Recurrence, error) {
	if len(text) > maxText {
		return Recurrence{}, invalidf("the text has %d bytes; the longest has %d", len(text), maxText)
	}
	if name, ok := strings.CutPrefix(strings.TrimSpace(text), functionPrefix); ok {
		return valid(Function(name))
	}
	// Fields, not Split: between the fields of a crontab is any space.
	words := strings.Fields(strings.ToUpper(text))
	if len(words) == 0 {
		return Recurrence{}, invalid(`the text is empty; write for example "30 2 * * *" or "every 90s"`)
	}
	switch first := words[0]; {
	case first == "EVERY" || first == "@EVERY":
		return parseEvery(strings.Fields(text)[1:])
	case strings.HasPrefix(first, "TZ=") || strings.HasPrefix(first, "CRON_TZ="):
		return Recurrence{}, invalidf("%s: the time zone is no part of the text; set it beside the text", strings.Fields(text)[0])
	case first[0] == '@':
		return parseMacro(words)
	}
	return parseFields(words)
}

// MustParse is Parse for texts in the source: it panics where Parse has an error.
func MustParse(text string) Recurrence {
	r, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return r
}

func parseEvery(args []string) (Recurrence, error) {
	if len(args) != 1 {
		return Recurrence{}, invalidf("an interval is written with one duration, as in %q", "every 90s")
	}
	d, err := duration.Parse(args[0])
	if err != nil {
		return Recurrence{}, invalidf("interval: %v", err)
	}
	return valid(Every(d))
}

// valid makes a mistake in what was built one of the text.
func valid(r Recurrence) (Recurrence, error) {
	if err := r.Validate(); err != nil {
		return Recurrence{}, err
	}
	return r, nil
}

func parseMacro(words []string) (Recurrence, error) {
	name := words[0]
	if other, ok := synonyms[name]; ok {
		name = other
	}
	fields, ok := macros[name]
	if !ok || len(words) > 1 {
		return Recurrence{}, invalidf("there is no %s; there are @hourly, @daily, @weekly, @monthly, @yearly and @every 90s",
			strings.ToLower(strings.Join(words, " ")))
	}
	r, err := parseFields(strings.Fields(fields))
	if err != nil {
		return r, err
	}
	c := r.rule.(calendar)
	c.source = strings.ToLower(name)
	return Recurrence{rule: c}, nil
}

// MarshalText writes what String returns, so that a Recurrence is a string in
// JSON and configuration files; the zero value is the empty string. One with a
// mistake is not written: its error is that of Validate.
func (r Recurrence) MarshalText() ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return []byte(r.String()), nil
}

// UnmarshalText is Parse, and reads the empty text as the zero value.
func (r *Recurrence) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*r = Recurrence{}
		return nil
	}
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}

// ErrInvalid is what every error about a malformed recurrence is, whether it was
// built, decoded or parsed: the mistake of whoever wrote it.
var ErrInvalid = errors.New("invalid recurrence")

// invalid is a mistake that says by itself what it is about.
type invalid string

func (e invalid) Error() string        { return "cron: " + string(e) }
func (e invalid) Is(target error) bool { return target == ErrInvalid }

func invalidf(format string, args ...any) error { return invalid(fmt.Sprintf(format, args...)) }

// maxText is the length of the longest text, in bytes. All minutes written out
// in a list have 169.
const maxText = 1000

// checkName returns the problem of the name of a function, or nothing. Space at an end
// would be lost in a text.
func checkName(name string) string {
	const what = "the name of the function"
	switch bad := named.Check(what, name); {
	case name == "":
		return bad + "; write for example function:full-moon"
	case bad == "" && strings.TrimSpace(name) != name:
		return fmt.Sprintf("%s %q has space around it", what, name)
	default:
		return bad
	}
}
