package main

import (
	"bytes"
	"testing"

	"github.com/stint-go/stint"
)

func TestWhatMattersAndCouldNotBeLookedAtIsNoGoodHealth(t *testing.T) {
	find := func(severity stint.Severity, code, subject string) stint.Finding {
		return stint.Finding{Severity: severity, Code: code, Subject: subject}
	}
	for name, c := range map[string]struct {
		findings []stint.Finding
		ailing   bool
		text     string
	}{
		"nothing":     {nil, false, ""},
		"a problem":   {[]stint.Finding{find(stint.SeverityProblem, "x", "y")}, true, ""},
		"a warning":   {[]stint.Finding{find(stint.SeverityWarning, "x", "y")}, false, ""},
		"little":      {[]stint.Finding{find(stint.SeverityNote, stint.CodeNotLookedAt, "the server")}, false, ""},
		"what counts": {[]stint.Finding{find(stint.SeverityWarning, stint.CodeNotLookedAt, "a"), find(stint.SeverityWarning, stint.CodeNotLookedAt, "b")}, true, "not looked at: a, b; there may be more that is wrong\n"},
	} {
		var out bytes.Buffer
		(&app{out: &out}).showUnseen(unseen(c.findings))
		if got := ailing(c.findings); got != c.ailing || out.String() != c.text {
			t.Errorf("of %s, ailing is %v, and said is %q", name, got, out.String())
		}
	}
}
