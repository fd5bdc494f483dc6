package retry

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
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

// parseText reads the text form. A mistake is in the policy, with the text
// that has it.
func parseText(text string) Policy {
	items := strings.Split(text, ",")
	name, args, hasArgs := strings.Cut(items[0], ":")
	options := items[1:]
	var p Policy
	if name == "timetable" {
		// A row starts with a digit and an option with a letter.
		var rows []string
		if hasArgs {
			rows = append(rows, args)
		}
		for len(options) > 0 && options[0] != "" && '0' <= options[0][0] && options[0][0] <= '9' {
			rows, options = append(rows, options[0]), options[1:]
		}
		p = parseTimetable(rows)
	} else {
		p = parseRule(name, args, hasArgs)
	}
	seen := make(map[string]bool)
	for _, option := range options {
		if p.bad != "" {
			break
		}
		key, value, _ := strings.Cut(option, "=")
		if p = p.parseOption(key, value); seen[key] {
			p = p.refused(key + " is given twice")
		}
		seen[key] = true
	}
	if p.bad != "" {
		p.bad = fmt.Sprintf("%q: %s", text, p.bad)
	}
	return p
}

// forms say how each policy is written, for hints.
var forms = map[string]string{
	"none":               "none",
	"default":            "default",
	"fixed":              "fixed:2:1s",
	"forever":            "forever:30s",
	"exponential":        "exponential:10:1m",
	"exponential-within": "exponential-within:1025s:1s",
	"function":           "function:name",
}

func parseRule(name, args string, hasArgs bool) Policy {
	if forms[name] == "" {
		return Policy{bad: fmt.Sprintf("there is no policy %q; there are none, default, fixed, forever, exponential, "+
			"exponential-within, timetable and function", name)}
	}
	if name == "function" {
		return Function(args) // the name may contain colons
	}
	var parts []string
	if hasArgs {
		parts = strings.Split(args, ":")
	}
	if len(parts) != strings.Count(forms[name], ":") {
		return Policy{bad: "write it as " + forms[name]}
	}
	var r reader
	var p Policy
	switch name {
	case "none":
		p = None()
	case "fixed":
		p = Fixed(r.number(parts[0]), r.duration(parts[1]))
	case "forever":
		p = Forever(r.duration(parts[0]))
	case "exponential":
		p = Exponential(r.number(parts[0]), r.duration(parts[1]))
	case "exponential-within":
		p = ExponentialWithin(r.duration(parts[0]), r.duration(parts[1]))
	}
	return r.or(p)
}

func parseTimetable(items []string) Policy {
	var r reader
	rows := make([]Row, len(items))
	for i, item := range items {
		younger, wait, ok := strings.Cut(item, "=")
		if !ok {
			return Policy{bad: fmt.Sprintf("row %q has no wait; write it as 5m=1m: while younger than 5m, wait 1m", item)}
		}
		rows[i] = Row{Younger: r.duration(younger), Wait: r.duration(wait)}
	}
	return r.or(Timetable(rows...))
}

func (p Policy) parseOption(key, value string) Policy {
	var r reader
	switch key {
	case "jitter":
		p = p.Jitter(r.fraction(value))
	case "max":
		p = p.MaxDelay(r.duration(value))
	case "deadline":
		p = p.Deadline(r.duration(value))
	case "faulty":
		p = p.Faulty(r.attempts(value))
	case "only":
		p = p.Only(strings.Split(value, "|")...)
	case "except":
		p = p.Except(strings.Split(value, "|")...)
	default:
		return p.refused(fmt.Sprintf("there is no option %q; there are jitter, max, deadline, faulty, only and except", key))
	}
	return r.or(p)
}

// reader reads values and keeps the first mistake, so that a policy is one
// expression.
type reader struct{ bad string }

func (r *reader) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		r.bad = cmp.Or(r.bad, fmt.Sprintf("retries %q is not a whole number up to %d", s, MaxRetries))
	}
	return n
}

func (r *reader) attempts(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		r.bad = cmp.Or(r.bad, fmt.Sprintf("faulty %q is not a number of attempts; write for example faulty=3", s))
	}
	return n
}

func (r *reader) fraction(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		r.bad = cmp.Or(r.bad, fmt.Sprintf("%q is not a fraction; write for example 0.1", s))
	}
	return f
}

func (r *reader) duration(s string) time.Duration {
	d, err := ParseDuration(s)
	if err != nil {
		r.bad = cmp.Or(r.bad, err.Error())
	}
	return d
}

// or returns the policy that was built from what was read, unless reading
// failed: then the policy's own complaint is about a value nobody wrote.
func (r *reader) or(p Policy) Policy {
	if r.bad != "" {
		p.bad = r.bad
	}
	return p
}
