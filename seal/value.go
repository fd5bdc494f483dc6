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

// envelope is how a sealed value is stored. The names are sorted as PostgreSQL's jsonb sorts them.
type envelope struct {
	C string `json:"c"`
	K string `json:"k"`
	M string `json:"m,omitempty"`
}

var encoding = base64.RawURLEncoding

// macLen is how much of a MAC is kept, in bytes.
const macLen = 16

// Is reports whether a JSON value has anything that is sealed.
func Is(value json.RawMessage) bool { return bytes.Contains(value, []byte(`"`+mark+`"`)) }

// Value seals one value. What it is bound to names the kind and the place. Where equal values have to
// be told, which needs a [Comparer], compare is the value as all equal ones are written; otherwise nil.
func Value(ctx context.Context, keys Keys, bound string, plain, compare json.RawMessage) (json.RawMessage, error) {
	key, sealed, err := keys.Seal(ctx, plain, []byte(bound))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	if err := valid.Name("key", key); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	e := envelope{C: encoding.EncodeToString(sealed), K: key}
	if compare != nil {
		if e.M, err = MAC(ctx, keys, bound, compare); err != nil {
			return nil, err
		}
	}
	return json.Marshal(map[string]envelope{mark: e})
}

// MAC returns what is the same for equal values, bound to their place, as text.
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
	return open(ctx, keys, bound, "", value)
}

func open(ctx context.Context, keys Keys, bound func(string) string, at string, value json.RawMessage) (json.RawMessage, error) {
	if e, ok := enveloped(value); ok {
		sealed, err := encoding.DecodeString(e.C)
		if err != nil {
			return nil, errForged
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
	if len(value) == 0 || value[0] != '{' || !Is(value) {
		return e, false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil || len(members) != 1 || members[mark] == nil {
		return e, false
	}
	return e, json.Unmarshal(members[mark], &e) == nil && e.K != "" && e.C != ""
}

// KeyOf is the id of the key that a value is sealed with as a whole; empty if it is not.
func KeyOf(value json.RawMessage) string {
	e, _ := enveloped(value)
	return e.K
}

// Comparable leaves in a decoded JSON value only what is the same for equal values of what is
// sealed: the MAC, if there is one. It changes the value.
func Comparable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if e, ok := v[mark].(map[string]any); ok && len(v) == 1 && e["m"] != nil {
			return map[string]any{mark: map[string]any{"m": e["m"]}}
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
