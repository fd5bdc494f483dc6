package seal

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-go/stint/internal/valid"
)

// mark is the only member of what is sealed.
const mark = "$sealed"

// envelope is a sealed value as it is stored: its ciphertext in base64, the id of its key, and its MAC.
type envelope struct {
	C []byte
	K string
	M string
}

// json writes it with the ciphertext that is given. The names are sorted as PostgreSQL's jsonb sorts them.
func (e envelope) json(sealed []byte) json.RawMessage {
	key, _ := json.Marshal(e.K) // a string can be encoded
	all := make([]byte, 0, encoding.EncodedLen(len(sealed))+len(key)+len(e.M)+40)
	all = append(all, `{"`+mark+`":{"c":"`...)
	all = encoding.AppendEncode(all, sealed)
	all = append(append(all, `","k":`...), key...)
	if e.M != "" {
		all = append(append(append(all, `,"m":"`...), e.M...), '"')
	}
	return append(all, "}}"...)
}

var encoding = base64.RawURLEncoding

// macLen is how much of a MAC is kept, in bytes.
const macLen = 16

// Is reports whether a JSON value has anything that is sealed.
func Is(value json.RawMessage) bool { return bytes.Contains(value, []byte(`"`+mark+`"`)) }

// Value seals one value. What it is bound to names the kind and the place. Where equal values have to
// be told, mac is that of [MAC]; otherwise it is empty.
func Value(ctx context.Context, keys Keys, bound string, plain json.RawMessage, mac string) (json.RawMessage, error) {
	key, sealed, err := keys.Seal(ctx, plain, []byte(bound))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	if err := valid.Name("key", key); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return envelope{K: key, M: mac}.json(sealed), nil
}

// MAC returns what is the same for equal values that are bound to the same, as text. The value is written as
// all equal ones are. It needs a [Comparer].
func MAC(ctx context.Context, keys Keys, bound string, plain json.RawMessage) (string, error) {
	c, ok := keys.(Comparer)
	if !ok {
		return "", fmt.Errorf("seal: %w", valid.Invalid("args", "they are sealed by keys that cannot compare values (seal.Comparer), which idempotency keys, unique keys and limits by arguments need"))
	}
	sum, err := c.MAC(ctx, slices.Concat([]byte(bound), []byte{'\n'}, plain))
	if err == nil && len(sum) < macLen {
		err = fmt.Errorf("the MAC has %d bytes, fewer than %d", len(sum), macLen)
	}
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	return encoding.EncodeToString(sum[:macLen]), nil
}

// Open opens all that is sealed in a JSON value, of whatever depth. Where in the value
// something is belongs to what it is bound to, as a JSON pointer, empty for the whole.
func Open(ctx context.Context, keys Keys, bound func(pointer string) string, value json.RawMessage) (json.RawMessage, error) {
	if !Is(value) {
		return value, nil
	}
	return open(ctx, keys, bound, "", bytes.TrimSpace(value))
}

func open(ctx context.Context, keys Keys, bound func(string) string, at string, value json.RawMessage) (json.RawMessage, error) {
	if e, ok := enveloped(value); ok {
		sealed, err := encoding.AppendDecode(nil, e.C)
		if err != nil {
			return nil, ErrForged
		}
		return keys.Open(ctx, e.K, sealed, []byte(bound(at)))
	}
	if !Is(value) {
		return value, nil
	}
	switch value[0] {
	case '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(value, &members); err != nil {
			return nil, err
		}
		for name, member := range members {
			opened, err := open(ctx, keys, bound, at+"/"+escape(name), member)
			if err != nil {
				return nil, err
			}
			members[name] = opened
		}
		return json.Marshal(members)
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			return nil, err
		}
		for i, item := range items {
			opened, err := open(ctx, keys, bound, at+"/"+strconv.Itoa(i), item)
			if err != nil {
				return nil, err
			}
			items[i] = opened
		}
		return json.Marshal(items)
	}
	return value, nil // a text that quotes the mark
}

// escape writes a name as a part of a JSON pointer (RFC 6901).
func escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// enveloped reads a sealed value; ok is false if it is none.
func enveloped(value json.RawMessage) (e envelope, ok bool) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || value[0] != '{' {
		return e, false
	}
	if e, ok = asWritten(value); ok {
		return e, true
	}
	if !Is(value) {
		return e, false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil || len(members) != 1 || members[mark] == nil {
		return e, false
	}
	var said struct{ C, K, M string }
	err := json.Unmarshal(members[mark], &said)
	return envelope{[]byte(said.C), said.K, said.M}, err == nil && said.K != "" && said.C != ""
}

// asWritten reads a sealed value as json and PostgreSQL write it, for a fraction of what it costs to read any
// JSON; ok is false if it is written otherwise.
func asWritten(value []byte) (e envelope, ok bool) {
	ok = true
	literal := func(text string) {
		value = bytes.TrimLeft(value, " ")
		rest, found := bytes.CutPrefix(value, []byte(text))
		value, ok = rest, ok && found
	}
	text := func() []byte {
		literal(`"`)
		text, rest, found := bytes.Cut(value, []byte(`"`))
		value, ok = rest, ok && found && len(text) > 0 && bytes.IndexByte(text, '\\') < 0
		return text
	}
	literal(`{`)
	literal(`"` + mark + `"`)
	literal(`:`)
	literal(`{`)
	literal(`"c"`)
	literal(`:`)
	e.C = text()
	literal(`,`)
	literal(`"k"`)
	literal(`:`)
	e.K = string(text())
	if bytes.HasPrefix(value, []byte(`,`)) {
		literal(`,`)
		literal(`"m"`)
		literal(`:`)
		e.M = string(text())
	}
	literal(`}`)
	literal(`}`)
	if !ok || len(value) > 0 {
		return envelope{}, false
	}
	return e, true
}

// KeyOf is the id of the key that a value is sealed with as a whole; empty if it is not.
func KeyOf(value json.RawMessage) string {
	if e, ok := enveloped(value); ok {
		return e.K
	}
	return ""
}

// Comparable leaves in a decoded JSON value only what is the same for equal values of what is
// sealed: the MAC, if there is one. It changes the value.
func Comparable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if e, ok := v[mark].(map[string]any); ok && len(v) == 1 && len(e) == 3 {
			_, c := e["c"].(string)
			_, k := e["k"].(string)
			if m, ok := e["m"].(string); ok && c && k {
				return map[string]any{mark: map[string]any{"m": m}}
			}
		}
		for name := range v {
			v[name] = Comparable(v[name])
		}
	case []any:
		for i := range v {
			v[i] = Comparable(v[i])
		}
	}
	return v
}
