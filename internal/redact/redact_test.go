package redact_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stint-go/stint/internal/redact"
)

func TestWhatIsSelectedIsShownAsAMarkAndNothingElseChanges(t *testing.T) {
	for _, c := range []struct {
		value, want string
		pointers    []string
	}{
		{`{"token":"s3cret","n":12345678901234567890}`, `{"n":12345678901234567890,"token":"[redacted]"}`, []string{"/token"}},
		{`{"TOKEN":"a","Token":"b","token":null}`, `{"TOKEN":"[redacted]","Token":"[redacted]","token":"[redacted]"}`, []string{"/token"}},
		{`{"token":"a","token":"b"}`, `{"token":"[redacted]"}`, []string{"/token"}},
		{`{"a/b":{"~":[1,{"x":{"y":2}}]}}`, `{"a/b":{"~":[1,{"x":"[redacted]"}]}}`, []string{"/a~1b/~0/1/x"}},
		{` {"n": "<a>&"}`, `{"n": "<a>&"}`, []string{"/token", "/m/0"}},
		{`{"n":"<a>&","token":1}`, `{"n":"<a>&","token":"[redacted]"}`, []string{"/token"}},
		{`[1,2]`, `[1,"[redacted]"]`, []string{"/1", "/2", "/01", "/-1"}},
		{`{"card":{"number":"4","cvc":1},"token":[]}`, `{"card":{"cvc":"[redacted]","number":"[redacted]"},"token":"[redacted]"}`, []string{"/card/number", "/card/cvc", "/token"}},
		{`"s3cret"`, `"[redacted]"`, []string{""}},
		{`"s3cret"`, `"s3cret"`, []string{"/token"}},
		{`{"token":`, `"[redacted]"`, []string{"/token"}},
		{`[1,`, `"[redacted]"`, []string{"/1"}},
		{``, ``, []string{"/token"}},
	} {
		if got := redact.Value(json.RawMessage(c.value), c.pointers); string(got) != c.want {
			t.Errorf("%s without %q is %s, want %s", c.value, c.pointers, got, c.want)
		}
	}
}

func TestAMarkIsFilledWithWhatStoodAtItsPlaceOnly(t *testing.T) {
	const from = `{"token":"s3cret","card":{"number":4,"cvc":7},"list":[1,2]}`
	all := []string{"/token", "/card/number", "/list/1", "/more"}
	for value, want := range map[string]string{
		`{"token":"[redacted]","card":{"number":"[redacted]","cvc":8}}`: `{"card":{"cvc":8,"number":4},"token":"s3cret"}`,
		`{"token":"new","other":"[redacted]"}`:                          `{"other":"[redacted]","token":"new"}`,
		`{"list":[0, "[redacted]"]}`:                                    `{"list":[0,2]}`,
		`{"list":["[redacted]"]}`:                                       `{"list":["[redacted]"]}`,
		`{"more":"[redacted]","card":"[redacted]"}`:                     `{"card":"[redacted]","more":"[redacted]"}`,
	} {
		if got := redact.Fill(json.RawMessage(value), json.RawMessage(from), all); string(got) != want {
			t.Errorf("%s is filled to %s, want %s", value, got, want)
		}
	}
	if got := redact.Fill(json.RawMessage(redact.Mark), json.RawMessage(from), []string{""}); string(got) != from {
		t.Errorf("the whole is filled to %s", got)
	}
	for value, want := range map[string]string{
		`{"a":1,"token": "[redacted]" }`: "/token", `{"Token":"[redacted]"}`: "/token", `{"note":"[redacted]"}`: "", `{"token":["[redacted]"]}`: "", `{}`: "",
	} {
		if got, ok := redact.Marked(json.RawMessage(value), all); got != want || ok != (want != "") {
			t.Errorf("the mark in %s is found at %q, %v", value, got, ok)
		}
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{{"/a", "/a", true}, {"/a/b", "/A", true}, {"", "/a", true}, {"/a", "/ab", false}, {"/a/b", "/a/c", false}, {"/a~1b", "/a/b", false}} {
		if redact.Overlap(c.a, c.b) != c.want || redact.Overlap(c.b, c.a) != c.want {
			t.Errorf("%s and %s overlap: %v", c.a, c.b, !c.want)
		}
	}
}

func FuzzValue(f *testing.F) {
	f.Add([]byte(`{"token":"CANARY","n":[{"x":1}]}`))
	f.Add([]byte(`{"ToKen":["CANARY"],"token":{"token":"CANARY"}}`))
	f.Add([]byte(`[{"token":"CANARY"}]`))
	f.Fuzz(func(t *testing.T, value []byte) {
		if !json.Valid(value) {
			return
		}
		got := redact.Value(value, []string{"/token"})
		if !json.Valid(got) {
			t.Fatalf("%s without the token is %s", value, got)
		}
		var of struct{ Token json.RawMessage } // as a handler would read it
		if json.Unmarshal(got, &of) == nil && of.Token != nil && !bytes.Equal(of.Token, []byte(redact.Mark)) {
			t.Errorf("%s without the token has the token %s", value, of.Token)
		}
		if back := redact.Fill(got, value, []string{"/token"}); !json.Valid(back) {
			t.Errorf("%s is filled to %s", got, back)
		}
	})
}
