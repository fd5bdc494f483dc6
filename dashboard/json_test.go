package dashboard

import (
	"bytes"
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"testing"
)

var tags = regexp.MustCompile(`</?span[^>]*>`)

func FuzzMarkedJSONSaysWhatItWas(f *testing.F) {
	for _, seed := range []string{`{}`, `[]`, `""`, `{"a":[1,-2.5e+10,true,false,null,"\"\\\u0000<"],"b":{"c":""}}`, `12345678901234567890`, `{"k:":":"}`, `not json`, `{"a":1}{`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := string(marked(raw))
		bare := tags.ReplaceAllString(got, "")
		if strings.ContainsAny(bare, "<>") {
			t.Errorf("%q has markup of its own: %s", raw, got)
		}
		var want bytes.Buffer
		if json.Indent(&want, raw, "", "  ") != nil {
			return
		}
		if text := html.UnescapeString(bare); text != want.String() && !strings.Contains(text, `\x`) {
			t.Errorf("%q became %q", want.String(), text)
		}
	})
}
