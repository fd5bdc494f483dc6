package retry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// wire is the JSON form. Its order of fields is the canonical one.
type wire struct {
	Policy   string     `json:"policy"`
	Retries  *int       `json:"retries,omitempty"` // 0 is written for the rules that have it
	Wait     string     `json:"wait,omitempty"`
	First    string     `json:"first,omitempty"`
	Rows     []wireRow  `json:"rows,omitempty"`
	Name     string     `json:"name,omitempty"`
	Cases    []wireCase `json:"cases,omitempty"`
	Else     *wire      `json:"else,omitempty"`
	Only     []string   `json:"only,omitempty"`
	Except   []string   `json:"except,omitempty"`
	Jitter   float64    `json:"jitter,omitempty"`
	Max      string     `json:"max,omitempty"`
	Deadline string     `json:"deadline,omitempty"`
	Faulty   int        `json:"faulty,omitempty"`
}

type wireRow struct {
	Younger string `json:"younger"`
	Wait    string `json:"wait"`
}

type wireCase struct {
	Class string `json:"class"`
	Then  *wire  `json:"then"`
}

// MarshalJSON writes the canonical form of the package comment. A policy with a
// mistake is not written: its error is that of Validate.
func (p Policy) MarshalJSON() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return json.Marshal(p.wire())
}

func (p Policy) wire() *wire {
	w := &wire{Only: p.only.names(), Except: p.except.names(), Jitter: p.jitter, Faulty: p.faulty}
	switch r := p.which().(type) {
	case none:
		w.Policy = "none"
	case fixed:
		w.Policy, w.Retries, w.Wait = "fixed", &r.n, FormatDuration(r.wait)
	case forever:
		w.Policy, w.Wait = "forever", FormatDuration(r.wait)
	case exponential:
		w.Policy, w.Retries, w.First = "exponential", &r.n, FormatDuration(r.first)
	case timetable:
		w.Policy = "timetable"
		for row := range r.rows.all {
			w.Rows = append(w.Rows, wireRow{FormatDuration(row.Younger), FormatDuration(row.Wait)})
		}
	case byError:
		w.Policy = "by_error"
		for c := range r.cases.all {
			if c.otherwise {
				w.Else = c.then.wire()
			} else {
				w.Cases = append(w.Cases, wireCase{c.class, c.then.wire()})
			}
		}
	case function:
		w.Policy, w.Name = "function", r.name
	}
	if p.max > 0 {
		w.Max = FormatDuration(p.max)
	}
	if p.deadline > 0 {
		w.Deadline = FormatDuration(p.deadline)
	}
	return w
}

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
		o, err := readObject(path, data, depth)
		if err != nil {
			return Policy{}, err
		}
		p = o.policy()
		if err := o.finish(); err != nil {
			return Policy{}, err
		}
	}
	if p.bad != "" {
		return Policy{}, invalidAt(path, p.bad)
	}
	return p, nil
}

func invalidAt(path, bad string) error {
	if path != "" {
		bad = path + ": " + bad
	}
	return invalid(bad)
}

// object is a JSON object that is read field by field. The json package alone would
// let repeated fields pass, match names in any case, and say less about where a
// mistake is.
type object struct {
	path    string
	what    string // which policy, or "a row": for messages
	unknown bool   // there is no such policy
	depth   int    // of policies
	fields  map[string]json.RawMessage
	order   []string // of the fields, so that messages do not vary
	asked   []string // what this object may have
	err     error    // the first mistake in a field
}

// readObject splits an object into its fields. The data is valid JSON.
func readObject(path string, data []byte, depth int) (*object, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, invalidAt(path, "want an object, got "+short(data))
	}
	o := &object{path: path, depth: depth, fields: make(map[string]json.RawMessage)}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return nil, invalidAt(path, err.Error())
		}
		name := key.(string) // the only kind of key in valid JSON
		if _, ok := o.fields[name]; ok {
			return nil, invalidAt(path, fmt.Sprintf("field %q is given twice", name))
		}
		o.fields[name] = value
		o.order = append(o.order, name)
	}
	return o, nil
}

func (o *object) policy() Policy {
	o.what = take[string](o, "policy", "text")
	if f := formOf(o.what); f != nil && f.inJSON {
		return modify(f.build(o), o)
	}
	o.unknown = true
	if o.what == "" {
		o.fail("policy", "is empty") // or missing, which was reported before
	} else {
		o.fail("policy", fmt.Sprintf("is %q; there are %s", o.what, formNames(func(f form) bool { return f.inJSON })))
	}
	return Policy{}
}

// finish reports the first mistake. An unknown field goes first: it is often the
// reason why another one is missing.
func (o *object) finish() error {
	for _, name := range o.order {
		// Of an unknown policy no field is known either.
		if !o.unknown && !slices.Contains(o.asked, name) {
			return invalidAt(o.path, fmt.Sprintf("%s has no field %q; it has %s", o.what, name, strings.Join(o.asked, ", ")))
		}
	}
	return o.err
}

func (o *object) at(key string) string { return strings.TrimPrefix(o.path+"."+key, ".") }

func (o *object) fail(key, bad string) { o.failWith(invalidAt(o.at(key), bad)) }

func (o *object) failWith(err error) {
	if o.err == nil {
		o.err = err
	}
}

func (o *object) has(key string) bool {
	o.asked = append(o.asked, key)
	_, ok := o.fields[key]
	return ok
}

// take decodes a field that must be there; called is what messages call its type.
func take[T any](o *object, key, called string) (value T) {
	if !o.has(key) {
		o.fail(key, "is missing")
	} else if raw := o.fields[key]; string(raw) == "null" || json.Unmarshal(raw, &value) != nil {
		o.fail(key, "want "+called+", got "+short(raw))
	}
	return value
}

func (o *object) number(key string) int       { return take[int](o, key, "a whole number") }
func (o *object) fraction(key string) float64 { return take[float64](o, key, "a number") }
func (o *object) name(key string) string      { return take[string](o, key, "text") }
func (o *object) names(key string) []string   { return take[[]string](o, key, "an array of texts") }

func (o *object) duration(key string) time.Duration {
	failed := o.err != nil
	text := take[string](o, key, `a duration such as "90s"`)
	if o.err != nil && !failed {
		return 0
	}
	d, err := ParseDuration(text)
	if err != nil {
		o.fail(key, err.Error())
	}
	return d
}

func (o *object) rows() (rows []Row) {
	o.each("rows", "a row", func(row *object) {
		rows = append(rows, Row{Younger: row.duration("younger"), Wait: row.duration("wait")})
	})
	return rows
}

func (o *object) cases() (cases []Case) {
	o.each("cases", "a case", func(c *object) {
		cases = append(cases, On(c.name("class"), c.then("then")))
	})
	if o.has("else") {
		cases = append(cases, Otherwise(o.then("else")))
	}
	return cases
}

// then reads a policy inside of this one.
func (o *object) then(key string) Policy {
	raw := take[json.RawMessage](o, key, "a policy")
	if len(raw) == 0 {
		return Policy{}
	}
	p, err := decode(o.at(key), raw, o.depth+1)
	if err != nil {
		o.failWith(err)
	}
	return p
}

// each reads the objects of an array, which may not be empty. What is the name of one.
func (o *object) each(key, what string, read func(*object)) {
	list := take[[]json.RawMessage](o, key, "an array of objects")
	if len(list) == 0 {
		o.fail(key, "is empty")
	}
	for i, raw := range list {
		item, err := readObject(fmt.Sprintf("%s[%d]", o.at(key), i), raw, o.depth)
		if err != nil {
			o.failWith(err)
			return
		}
		item.what = what
		read(item)
		if err := item.finish(); err != nil {
			o.failWith(err)
		}
	}
}

// short shows the beginning of a value.
func short(data []byte) string {
	if len(data) > 40 {
		return strings.ToValidUTF8(string(data[:40]), "") + "…"
	}
	return string(data)
}
