package check

import (
	"bytes"
	"encoding/json"
	"math"
)

// parse reads one line. Starts and ends are nearly all of a log, so the plain
// form in which a [Writer] writes them is read directly; whatever looks
// otherwise is left to encoding/json, which decides what is right.
func (rec *record) parse(line []byte) error {
	keys, jobs := rec.Keys[:0], rec.Jobs[:0]
	*rec = record{Keys: keys, Jobs: jobs}
	if rec.scan(line) {
		return nil
	}
	*rec = record{Keys: keys, Jobs: jobs}
	return json.Unmarshal(line, rec)
}

// scan reads a flat object of plain strings and whole numbers without space,
// and gives up on anything else.
func (rec *record) scan(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte(`{"`))
	for ok {
		var name []byte
		if name, rest, ok = bytes.Cut(rest, []byte(`":`)); !ok || len(rest) == 0 {
			return false
		}
		if rest[0] == '"' {
			rest, ok = rec.scanText(name, rest[1:])
		} else {
			rest, ok = rec.scanNumber(name, rest)
		}
		if string(rest) == "}\n" {
			return ok
		}
		if ok {
			rest, ok = bytes.CutPrefix(rest, []byte(`,"`))
		}
	}
	return false
}

// scanText takes a string and its closing quote off the front.
func (rec *record) scanText(name, rest []byte) ([]byte, bool) {
	n := 0
	for n < len(rest) && rest[n] != '"' {
		if c := rest[n]; c < ' ' || c > '~' || c == '\\' {
			return rest, false
		}
		n++
	}
	if n == len(rest) {
		return rest, false
	}
	text, rest := rest[:n], rest[n+1:]
	switch string(name) {
	case "r":
		rec.R = known(text)
	case "how":
		rec.How = known(text)
	case "cause":
		rec.Cause = string(text)
	default:
		return rest, false
	}
	return rest, true
}

// known spares the common words an allocation each.
func known(text []byte) string {
	for _, word := range [...]string{"start", "end", string(OK), string(Error), string(Cancelled)} {
		if string(text) == word {
			return word
		}
	}
	return string(text)
}

// scanNumber takes a whole number off the front.
func (rec *record) scanNumber(name, rest []byte) ([]byte, bool) {
	n, v, negative := 0, int64(0), rest[0] == '-'
	if negative {
		rest = rest[1:]
	}
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		digit := int64(rest[n] - '0')
		if v > (math.MaxInt64-digit)/10 {
			return rest, false
		}
		v = v*10 + digit
		n++
	}
	if n == 0 || n > 1 && rest[0] == '0' {
		return rest, false
	}
	if negative {
		v = -v
	}
	switch string(name) {
	case "at":
		rec.At = Instant(v)
	case "n":
		rec.N = int(v)
	case "job":
		rec.Job = v
	case "pos":
		rec.Pos = v
	case "engine":
		rec.Engine = v
	case "attempt":
		rec.Attempt = int(v)
	case "slot":
		rec.Slot = int(v)
	default:
		return rest, false
	}
	return rest[n:], true
}
