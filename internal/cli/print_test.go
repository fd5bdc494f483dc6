package cli

import "testing"

func TestOnlyEscapesOfWebPagesAreReplaced(t *testing.T) {
	for text, want := range map[string]string{
		`"\u003ca\u003E \u0026"`: `"<a> &"`,
		`"\\u003c"`:              `"\\u003c"`,
		`"\\\u003c"`:             `"\\<"`,
		`"\u0022\u2028\n"`:       `"\u0022\u2028\n"`,
	} {
		if got := string(plainJSON([]byte(text))); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}
