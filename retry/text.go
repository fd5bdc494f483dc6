package retry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/words"
)

// Parse reads a policy as it is written on a command line:
//
//	none
//	default
//	fixed:RETRIES:WAIT                    fixed:2:1s
//	forever:WAIT                          forever:30s
//	exponential:RETRIES:FIRST             exponential:10:1m
//	exponential-within:TOTAL:FIRST        exponential-within:1025s:1s
//	timetable:YOUNGER=WAIT,…              timetable:5m=1m,1h=5m,24h=1h
//	function:NAME                         function:billing
//
// followed by any of jitter=FRACTION, max=DURATION, deadline=DURATION,
// faulty=ATTEMPTS, only=CLASS|CLASS… and except=CLASS|CLASS…, each after a comma:
//
//	exponential:10:1m,jitter=0.1,max=1h,deadline=1d,only=timeout|dns
//
// What begins with a brace is read as JSON, so Parse reads all that String
// writes. Errors wrap [ErrInvalid] and carry a hint.
func Parse(text string) (Policy, error) {
	if strings.HasPrefix(text, "{") {
		var p Policy
		err := p.UnmarshalJSON([]byte(text))
		return p, err
	}
	p := parseText(text)
	if err := p.Validate(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// MarshalText writes the same as String, for flags and configuration files.
func (p Policy) MarshalText() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return []byte(p.String()), nil
}

// UnmarshalText is Parse, for flags and configuration files.
func (p *Policy) UnmarshalText(text []byte) error {
	q, err := Parse(string(text))
	if err != nil {
		return err
	}
	*p = q
	return nil
}

// String returns the text form of Parse where there is one, which is so unless
// the policy is by_error or a name has one of the characters that separate, and
// else the JSON form. Parse reads both, so nothing is lost: for a policy without
// mistake, Parse(p.String()) == p.
func (p Policy) String() string {
	if p.bad != "" {
		return "invalid (" + p.bad + ")"
	}
	w := p.wire()
	if len(w.Cases) > 0 || strings.Contains(w.Name, ",") || strings.ContainsAny(string(p.only+p.except), ",|") {
		b, err := json.Marshal(w)
		if err != nil {
			return err.Error() // cannot happen: a wire is text and finite numbers
		}
		return string(b)
	}
	return w.text()
}

// Lines returns the policy for people: its text form, and of a policy that is by_error a line with its
// options and one for each class of errors, the last for all others. Parse does not read them.
func (p Policy) Lines() []string {
	w := p.wire()
	if p.bad != "" || len(w.Cases) == 0 {
		return []string{p.String()}
	}
	others := None()
	var lines []string
	for c := range p.rule.(byError).cases.all {
		if c.otherwise {
			others = c.then
		} else {
			lines = append(lines, c.class+": "+c.then.inLine())
		}
	}
	return slices.Concat([]string{w.text()}, lines, []string{"other errors: " + others.inLine()})
}

// inLine is the policy for people, as a part of a line.
func (p Policy) inLine() string {
	lines := p.Lines()
	if len(lines) == 1 {
		return lines[0]
	}
	return "(" + strings.Join(lines, "; ") + ")"
}

// text writes a policy without cases, whose names have no separators.
func (w *wire) text() string {
	rule := []string{w.Policy}
	if w.Retries != nil {
		rule = append(rule, strconv.Itoa(*w.Retries))
	}
	for _, arg := range []string{w.Wait, w.First, w.Name} {
		if arg != "" {
			rule = append(rule, arg)
		}
	}
	var options []string
	for i, row := range w.Rows {
		if text := row.Younger + "=" + row.Wait; i == 0 {
			rule = append(rule, text)
		} else {
			options = append(options, text)
		}
	}
	add := func(key, value, empty string) {
		if value != empty {
			options = append(options, key+"="+value)
		}
	}
	add("only", strings.Join(w.Only, "|"), "")
	add("except", strings.Join(w.Except, "|"), "")
	add("jitter", strconv.FormatFloat(w.Jitter, 'g', -1, 64), "0")
	add("max", w.Max, "")
	add("deadline", w.Deadline, "")
	add("faulty", strconv.Itoa(w.Faulty), "0")
	return strings.Join(append([]string{strings.Join(rule, ":")}, options...), ",")
}

// texts are the values of a policy that is written as text, by the names of their
// fields in JSON.
type texts struct {
	values map[string]string
	table  []string // the rows of a timetable
	bad    string   // the first mistake
}

// parseText reads the text form. A mistake is in the policy, with the text
// that has it.
func parseText(text string) Policy {
	t := texts{values: map[string]string{}}
	f := t.read(strings.Split(text, ","))
	if t.bad == "" {
		// If reading fails, the policy's own mistake is about a value that is not in the text.
		p := modify(f.build(&t), &t)
		if t.bad = cmp.Or(t.bad, p.bad); t.bad == "" {
			return p
		}
	}
	return Policy{bad: fmt.Sprintf("%q: %s", text, t.bad)}
}

// read finds the form of a policy, and splits what follows the name and the options.
func (t *texts) read(items []string) *form {
	name, args, hasArgs := strings.Cut(items[0], ":")
	f, options := formOf(name), items[1:]
	if f == nil || !f.inText {
		t.fail("there is no policy %q; there are %s", name, formNames(func(f form) bool { return f.inText }))
		return nil
	}
	var parts []string
	if hasArgs || name == "function" {
		parts = []string{args} // the name of a function may contain colons
	}
	switch {
	case name == "timetable":
		// A row starts with a digit and an option with a letter.
		for t.table = parts; len(options) > 0 && options[0] != "" && '0' <= options[0][0] && options[0][0] <= '9'; {
			t.table, options = append(t.table, options[0]), options[1:]
		}
	case len(f.args) > 1:
		parts = strings.Split(args, ":")
		fallthrough
	default:
		if len(parts) != len(f.args) {
			t.fail("write it as %s", f.example)
			return nil
		}
		for i, part := range parts {
			t.values[f.args[i]] = part
		}
	}
	for _, option := range options {
		key, value, _ := strings.Cut(option, "=")
		if !slices.Contains(modifiers, key) {
			t.fail("there is no option %q; there are %s", key, words.Listed(modifiers))
		} else if t.has(key) {
			t.fail("%s is given twice", key)
		}
		t.values[key] = value
	}
	return f
}

func (t *texts) fail(format string, args ...any) {
	if t.bad == "" {
		t.bad = fmt.Sprintf(format, args...)
	}
}

func (t *texts) has(key string) bool             { _, ok := t.values[key]; return ok }
func (t *texts) name(key string) string          { return t.values[key] }
func (t *texts) names(key string) []string       { return strings.Split(t.values[key], "|") }
func (t *texts) cases() []Case                   { return nil }
func (t *texts) duration(k string) time.Duration { return t.toDuration(t.values[k]) }

func (t *texts) number(key string) int {
	n, err := strconv.Atoi(t.values[key])
	switch {
	case err != nil && key == "faulty":
		t.fail("faulty %q is not a number of attempts; write for example faulty=3", t.values[key])
	case err != nil:
		t.fail("%s %q is not a whole number up to %d", key, t.values[key], MaxRetries)
	}
	return n
}

func (t *texts) fraction(key string) float64 {
	f, err := strconv.ParseFloat(t.values[key], 64)
	if err != nil {
		t.fail("%q is not a fraction; write for example 0.1", t.values[key])
	}
	return f
}

func (t *texts) toDuration(text string) time.Duration {
	d, err := ParseDuration(text)
	if err != nil {
		t.fail("%v", err)
	}
	return d
}

func (t *texts) rows() (rows []Row) {
	for _, item := range t.table {
		younger, wait, ok := strings.Cut(item, "=")
		if !ok {
			t.fail("row %q has no wait; write it as 5m=1m: while younger than 5m, wait 1m", item)
		}
		rows = append(rows, Row{Younger: t.toDuration(younger), Wait: t.toDuration(wait)})
	}
	return rows
}
