package view

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-go/stint"
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
	return strings.Split(m[1][1:], "."), Unquoted(m[2]), true
}

// Unquoted is the value that a text compares with, which may be in quotes.
func Unquoted(value string) string {
	value = strings.TrimSpace(value)
	var quoted string
	if strings.HasPrefix(value, `"`) && json.Unmarshal([]byte(value), &quoted) == nil {
		return quoted
	}
	return value
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

// Retagged returns the tags of a job whose arguments were edited: one that says what an argument was, as those of
// [stint.Indexed] do, says what it is now, or is left out.
func Retagged(tags []string, was, is json.RawMessage) (now []string) {
	for _, tag := range tags {
		tag = strings.TrimSpace(tag)
		path, _, _ := strings.Cut(tag, "=")
		index := stint.Indexed("/" + pointed.Replace(path))
		kept := []string{tag}
		if slices.Equal(stint.KindInfo{}.Job(was, index).Tags, kept) {
			kept = stint.KindInfo{}.Job(is, index).Tags
		}
		for _, tag := range kept {
			if !slices.Contains(now, tag) {
				now = append(now, tag)
			}
		}
	}
	return now
}

// pointed makes of what leads to an argument the tokens of a JSON pointer.
var pointed = strings.NewReplacer("~", "~0", "/", "~1", ".", "/")

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
