// Package redact takes parts of a JSON value out of what people see, and puts them back into what they edited. JSON
// pointers (RFC 6901) select the parts, "" all of the value. A name is taken in any case, since a Go handler reads
// TOKEN as token, too.
package redact

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Mark is the JSON value that stands in the place of what is redacted.
const Mark = `"[redacted]"`

var mark = json.RawMessage(Mark)

// Value returns the value with the mark in place of each part that is selected. What a pointer does not find is left out.
// Of a value that is no JSON nothing but the mark is returned.
func Value(value json.RawMessage, pointers []string) json.RawMessage {
	for _, pointer := range pointers {
		value = walk(value, nil, tokens(pointer), func(_, _ json.RawMessage) json.RawMessage { return mark })
	}
	return value
}

// Fill puts what stands in from at the same place in place of each mark that is selected. A mark for which there is
// nothing stays.
func Fill(value, from json.RawMessage, pointers []string) json.RawMessage {
	for _, pointer := range pointers {
		value = walk(value, from, tokens(pointer), func(part, from json.RawMessage) json.RawMessage {
			if from != nil && isMark(part) {
				return from
			}
			return part
		})
	}
	return value
}

// Marked returns the pointer of a part that is selected and is the mark; ok is false if there is none.
func Marked(value json.RawMessage, pointers []string) (pointer string, ok bool) {
	if !bytes.Contains(value, mark) {
		return "", false
	}
	for _, pointer := range pointers {
		found := false
		walk(value, nil, tokens(pointer), func(part, _ json.RawMessage) json.RawMessage {
			found = found || isMark(part)
			return part
		})
		if found {
			return pointer, true
		}
	}
	return "", false
}

func isMark(part json.RawMessage) bool { return string(bytes.TrimSpace(part)) == Mark }

// Overlap reports whether one of two pointers selects something in what the other one does, in any case, or the same.
func Overlap(a, b string) bool {
	x, y := tokens(a), tokens(b)
	for i := range min(len(x), len(y)) {
		if !strings.EqualFold(x[i], y[i]) {
			return false
		}
	}
	return true
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// tokens are the names that a pointer goes through.
func tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	all := strings.Split(pointer[1:], "/")
	for i := range all {
		all[i] = unescape.Replace(all[i])
	}
	return all
}

// walk replaces in a value each part that the tokens lead to by what a function makes of it and of what stands there in
// another value, nil for nothing.
func walk(value, beside json.RawMessage, tokens []string, by func(part, beside json.RawMessage) json.RawMessage) json.RawMessage {
	if len(tokens) == 0 {
		return by(value, beside)
	}
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return value
	}
	switch value[0] {
	case '{':
		var members, others map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil {
			return mark
		}
		_ = json.Unmarshal(beside, &others) // nothing stands beside what is no object
		found := false
		for name, member := range members {
			if strings.EqualFold(name, tokens[0]) {
				members[name], found = walk(member, others[name], tokens[1:], by), true
			}
		}
		if found {
			return encoded(members)
		}
	case '[':
		i, err := strconv.Atoi(tokens[0])
		if err != nil || i < 0 || strconv.Itoa(i) != tokens[0] {
			return value
		}
		var items, others []json.RawMessage
		if json.Unmarshal(value, &items) != nil {
			return mark
		}
		_ = json.Unmarshal(beside, &others)
		if i >= len(items) {
			return value
		}
		var other json.RawMessage
		if i < len(others) {
			other = others[i]
		}
		items[i] = walk(items[i], other, tokens[1:], by)
		return encoded(items)
	}
	return value
}

// encoded writes a value whose parts are JSON, with their characters as they are.
func encoded(value any) json.RawMessage {
	var b bytes.Buffer
	text := json.NewEncoder(&b)
	text.SetEscapeHTML(false)
	if text.Encode(value) != nil {
		return mark
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
