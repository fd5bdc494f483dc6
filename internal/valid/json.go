// Package valid checks names and JSON, and cleans texts, so that every store can keep them.
package valid

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds on JSON that every store can keep. PostgreSQL's jsonb refuses NUL,
// lone surrogates and numbers of more than 131,072 digits; one such value in
// a batch would refuse the whole batch, each time it is tried.
const (
	maxDepth    = 200
	maxExponent = 1000
)

// JSON reports why raw cannot be stored as JSON, or nil: it must be one
// valid value of at most limit bytes, without NUL characters, nested at most
// 200 deep, its numbers' exponents within 1000.
func JSON(field string, raw json.RawMessage, limit int) error {
	if len(raw) > limit {
		return Invalid(field, "%d bytes are more than the limit of %d", len(raw), limit)
	}
	if !json.Valid(raw) {
		return Invalid(field, "%s", syntaxProblem(raw))
	}
	if !utf8.Valid(raw) {
		return Invalid(field, "the JSON is not UTF-8")
	}
	if problem := unstorable(raw); problem != "" {
		return Invalid(field, "%s", problem)
	}
	return nil
}

func syntaxProblem(raw json.RawMessage) string {
	var v any
	err := json.Unmarshal(raw, &v)
	if s, ok := err.(*json.SyntaxError); ok {
		return "malformed JSON at byte " + strconv.FormatInt(s.Offset, 10) + ": " + s.Error()
	}
	return "malformed JSON"
}

// unstorable walks valid JSON once and names what a database refuses.
func unstorable(raw []byte) string {
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; c {
		case '{', '[':
			if depth++; depth > maxDepth {
				return "nested more than " + strconv.Itoa(maxDepth) + " deep"
			}
		case '}', ']':
			depth--
		case '"':
			end, problem := walkString(raw, i+1)
			if problem != "" {
				return problem
			}
			i = end
		case 'e', 'E':
			// Outside strings the letter also stands in true and false.
			if i == 0 || raw[i-1] < '0' || raw[i-1] > '9' {
				continue
			}
			end := i + 1
			for end < len(raw) && strings.IndexByte("+-0123456789", raw[end]) >= 0 {
				end++
			}
			if n, err := strconv.Atoi(string(raw[i+1 : end])); err != nil || n > maxExponent || n < -maxExponent {
				return "a number's exponent is beyond " + strconv.Itoa(maxExponent)
			}
			i = end - 1
		}
	}
	return ""
}

// walkString returns where the string that begins at i ends.
func walkString(raw []byte, i int) (int, string) {
	for ; raw[i] != '"'; i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		switch r := hex4(raw[i+1:]); {
		case r == 0:
			return i, `a string holds the NUL character \u0000`
		case r >= 0xdc00 && r < 0xe000:
			return i, "a string holds half of a surrogate pair"
		case r >= 0xd800 && r < 0xdc00:
			if raw[i+5] != '\\' || raw[i+6] != 'u' {
				return i, "a string holds half of a surrogate pair"
			}
			if low := hex4(raw[i+7:]); low < 0xdc00 || low >= 0xe000 {
				return i, "a string holds half of a surrogate pair"
			}
			i += 6
		}
		i += 4
	}
	return i, ""
}

func hex4(b []byte) int {
	n, _ := strconv.ParseUint(string(b[:4]), 16, 32)
	return int(n)
}
