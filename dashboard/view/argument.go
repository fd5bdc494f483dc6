package view

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// argument is the form of a text that means one argument: args.customer.id = 7.
var argument = regexp.MustCompile(`^args((?:\.[^.=\s]+)+)\s*=\s*(.+)$`)

// parseArgument reads a text that means one argument: the keys that lead to it, and what it is
// to be, with or without quotes.
func parseArgument(text string) (keys []string, value string, ok bool) {
	m := argument.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return nil, "", false
	}
	value = strings.TrimSpace(m[2])
	var quoted string
	if value[0] == '"' && json.Unmarshal([]byte(value), &quoted) == nil {
		value = quoted
	}
	return strings.Split(m[1][1:], "."), value, true
}

// holds returns what tells whether arguments fit a text: whether one of them is as the text says,
// or they contain it as they are written.
func holds(text string) func(args []byte) bool {
	keys, value, ok := parseArgument(text)
	if !ok {
		return func(args []byte) bool { return bytes.Contains(args, []byte(text)) }
	}
	return func(args []byte) bool {
		is, ok := at(args, keys)
		return ok && is == value
	}
}

// at is what stands where keys lead, as text, unless that is nothing, an array or an object. A number leads
// to an element of an array.
func at(args []byte, keys []string) (text string, ok bool) {
	for _, key := range keys {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		switch {
		case json.Unmarshal(args, &object) == nil:
			args = object[key]
		case json.Unmarshal(args, &list) == nil:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(list) {
				return "", false
			}
			args = list[i]
		default:
			return "", false
		}
	}
	switch args = bytes.TrimSpace(args); {
	case len(args) == 0 || args[0] == '{' || args[0] == '[':
		return "", false
	case args[0] == '"':
		err := json.Unmarshal(args, &text)
		return text, err == nil
	}
	return string(args), true
}
