package retry

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// UnmarshalJSON reads the form of the package comment, or a string with that of
// Parse. It is strict: fields that a policy does not have are refused, as are
// repeated ones, wrong types and values out of range, so that a slip in a
// policy written by hand does not become another policy. Errors wrap
// [ErrInvalid] and say where. As usual null changes nothing.
func (p *Policy) UnmarshalJSON(data []byte) error {
	if !json.Valid(data) {
		return invalid("malformed JSON")
	}
	data = bytes.TrimSpace(data)
	if string(data) == "null" {
		return nil
	}
	q, err := decode("", data, 1)
	if err != nil {
		return err
	}
	*p = q
	return nil
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

// decode reads valid JSON that stands at path, depth policies deep.
func decode(path string, data []byte, depth int) (Policy, error) {
	if depth > maxDepth {
		// Before reading on, for JSON may nest deeper than a stack is high.
		return Policy{}, invalidAt(path, fmt.Sprintf("policies are nested deeper than %d", maxDepth))
	}
	var p Policy
	if data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return Policy{}, invalidAt(path, err.Error())
		}
		p = parseText(text)
	} else {
		o, err := readObject(path, data)
		if err != nil {
			return Policy{}, err
		}
		o.depth = depth
		p = o.modified(o.rule())
		if err := o.finish(); err != nil {
			return Policy{}, err
		}
	}
	if p.bad != "" {
		return Policy{}, invalidAt(path, p.bad)
	}
	return p, nil
}

func (o *object) rule() Policy {
	o.what = o.text("policy")
	switch o.what {
	case "none":
		return None()
	case "default":
		return Default()
	case "fixed":
		return Fixed(o.number("retries"), o.duration("wait"))
	case "forever":
		return Forever(o.duration("wait"))
	case "exponential":
		return Exponential(o.number("retries"), o.duration("first"))
	case "timetable":
		return o.timetable()
	case "by_error":
		return o.byError()
	case "function":
		return Function(o.text("name"))
	}
	o.unknown = true
	if o.what == "" {
		o.fail("policy", "is empty") // or missing, which has been said
	} else {
		o.fail("policy", fmt.Sprintf("is %q; there are none, default, fixed, forever, exponential, timetable, by_error and function", o.what))
	}
	return Policy{}
}

func (o *object) timetable() Policy {
	var rows []Row
	for row := range o.objects("rows", "a row") {
		rows = append(rows, Row{Younger: row.duration("younger"), Wait: row.duration("wait")})
	}
	if len(rows) == 0 {
		o.fail("rows", "is empty")
	}
	return Timetable(rows...)
}

func (o *object) byError() Policy {
	var cases []Case
	for c := range o.objects("cases", "a case") {
		cases = append(cases, On(c.text("class"), c.policy("then")))
	}
	if len(cases) == 0 {
		o.fail("cases", "is empty")
	}
	if o.has("else") {
		cases = append(cases, Otherwise(o.policy("else")))
	}
	return ByError(cases...)
}

func (o *object) modified(p Policy) Policy {
	if o.has("only") {
		p = p.Only(o.texts("only")...)
	}
	if o.has("except") {
		p = p.Except(o.texts("except")...)
	}
	if o.has("jitter") {
		p = p.Jitter(o.fraction("jitter"))
	}
	if o.has("max") {
		p = p.MaxDelay(o.duration("max"))
	}
	if o.has("deadline") {
		p = p.Deadline(o.duration("deadline"))
	}
	if o.has("faulty") {
		p = p.Faulty(o.number("faulty"))
	}
	return p
}
