package valid

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestJSONThatADatabaseRefusesIsRefusedBefore(t *testing.T) {
	for _, c := range []struct{ name, raw, problem string }{
		{"syntax", `{"a":}`, "malformed JSON at byte 6"},
		{"empty", ``, "malformed JSON"},
		{"two values", `1 2`, "malformed JSON"},
		{"NUL", `{"a":"x\u0000"}`, "NUL"},
		{"NUL in a key", `{"\u0000":1}`, "NUL"},
		{"high surrogate alone", `"\ud800"`, "surrogate"},
		{"high surrogate before text", `"\ud800abcdef"`, "surrogate"},
		{"high surrogate twice", `"\ud800\ud800"`, "surrogate"},
		{"low surrogate alone", `"\udc00"`, "surrogate"},
		{"invalid UTF-8", "\"\xff\"", "UTF-8"},
		{"exponent", `1e200000`, "exponent"},
		{"negative exponent", `[1E-1001]`, "exponent"},
		{"exponent beyond int", `1e99999999999999999999`, "exponent"},
		{"depth", strings.Repeat("[", 201) + strings.Repeat("]", 201), "deep"},
		{"size", `"` + strings.Repeat("x", 1000) + `"`, "limit"},
	} {
		err := JSON("args", json.RawMessage(c.raw), 1000)
		if err == nil || !strings.Contains(err.Error(), c.problem) || !strings.HasPrefix(err.Error(), "args: ") {
			t.Errorf("%s: the error is %v, want one about %s", c.name, err, c.problem)
		}
	}
	for _, raw := range []string{
		`{}`, `null`, `"\\u0000"`, `"\ud83d\ude00"`, `"true\" e5 \\"`, `[true,false]`, `1e1000`, `12345678901234567890123`,
		`"é"`, strings.Repeat("[", 200) + strings.Repeat("]", 200),
	} {
		if err := JSON("args", json.RawMessage(raw), 1000); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{}`, `"\ud800\udc00"`, `"\\\u0000"`, `[1e5,"e9"]`, `"\ud800`, `{"a":[1.5E+3]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if JSON("x", raw, 1<<20) != nil {
			return
		}
		// What passes must survive what PostgreSQL would do with it.
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			// Floats overflow before numerics do.
			d := json.NewDecoder(strings.NewReader(string(raw)))
			d.UseNumber()
			if err := d.Decode(&v); err != nil {
				t.Fatalf("%q passed and does not decode: %v", raw, err)
			}
		}
		var walk func(v any)
		walk = func(v any) {
			switch v := v.(type) {
			case string:
				if strings.ContainsRune(v, 0) {
					t.Fatalf("%q passed with a NUL", raw)
				}
			case []any:
				for _, e := range v {
					walk(e)
				}
			case map[string]any:
				for k, e := range v {
					walk(k)
					walk(e)
				}
			}
		}
		walk(v)
	})
}

func FuzzCleanText(f *testing.F) {
	f.Add("a\x00b\xffc", 3)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = max(0, min(limit, 100))
		for _, got := range []string{CleanText(s, limit), CleanHead(s, limit)} {
			if len(got) > limit || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
				t.Errorf("%q at most %d gave %q", s, limit, got)
			}
		}
	})
}
