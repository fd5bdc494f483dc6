package retry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// object is a JSON object that is being taken apart field by field. The json
// package alone would let repeated fields pass, match names in any case, and
// say less about where a mistake is.
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

func invalidAt(path, bad string) error {
	if path != "" {
		bad = path + ": " + bad
	}
	return invalid(bad)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// readObject splits an object into its fields. The data is valid JSON.
func readObject(path string, data []byte) (*object, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, invalidAt(path, "want an object, got "+short(data))
	}
	o := &object{path: path, fields: make(map[string]json.RawMessage)}
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

// finish reports the first mistake. A field that nobody asked for goes first: it
// is often why another one is missing.
func (o *object) finish() error {
	for _, name := range o.order {
		// Of a policy that nobody knows, no field is known either.
		if !o.unknown && !slices.Contains(o.asked, name) {
			return invalidAt(o.path, fmt.Sprintf("%s has no field %q; it has %s", o.what, name, strings.Join(o.asked, ", ")))
		}
	}
	return o.err
}

func (o *object) fail(key, bad string) {
	o.failAt(invalidAt(join(o.path, key), bad))
}

func (o *object) failAt(err error) {
	if o.err == nil {
		o.err = err
	}
}

func (o *object) has(key string) bool {
	o.asked = append(o.asked, key)
	_, ok := o.fields[key]
	return ok
}

// take decodes a field that must be there, into what the type is called.
func (o *object) take(key, called string, into any) bool {
	if !o.has(key) {
		o.fail(key, "is missing")
		return false
	}
	value := o.fields[key]
	if string(value) == "null" || json.Unmarshal(value, into) != nil {
		o.fail(key, "want "+called+", got "+short(value))
		return false
	}
	return true
}

func (o *object) text(key string) (s string) {
	o.take(key, "text", &s)
	return s
}

func (o *object) number(key string) (n int) {
	o.take(key, "a whole number", &n)
	return n
}

func (o *object) fraction(key string) (f float64) {
	o.take(key, "a number", &f)
	return f
}

func (o *object) texts(key string) (list []string) {
	o.take(key, "an array of texts", &list)
	return list
}

func (o *object) duration(key string) time.Duration {
	var s string
	if !o.take(key, `a duration such as "90s"`, &s) {
		return 0
	}
	d, err := ParseDuration(s)
	if err != nil {
		o.fail(key, err.Error())
	}
	return d
}

func (o *object) policy(key string) Policy {
	var raw json.RawMessage
	if !o.take(key, "a policy", &raw) {
		return Policy{}
	}
	p, err := decode(join(o.path, key), raw, o.depth+1)
	if err != nil {
		o.failAt(err)
	}
	return p
}

// objects yields the objects of an array, each called what, and finishes them.
func (o *object) objects(key, what string) iter.Seq[*object] {
	return func(yield func(*object) bool) {
		var list []json.RawMessage
		if !o.take(key, "an array of objects", &list) {
			return
		}
		for i, raw := range list {
			item, err := readObject(fmt.Sprintf("%s[%d]", join(o.path, key), i), raw)
			if err != nil {
				o.failAt(err)
				return
			}
			item.what, item.depth = what, o.depth
			more := yield(item)
			if err := item.finish(); err != nil {
				o.failAt(err)
			}
			if !more {
				return
			}
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
