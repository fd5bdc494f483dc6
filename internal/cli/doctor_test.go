package cli

import (
	"bytes"
	"testing"

	"github.com/stint-go/stint/report"
)

func TestWhatMattersAndCouldNotBeLookedAtIsNoGoodHealth(t *testing.T) {
	find := func(severity report.Severity, code, subject string) report.Finding {
		return report.Finding{Severity: severity, Code: code, Subject: subject}
	}
	for name, c := range map[string]struct {
		findings []report.Finding
		ailing   bool
		text     string
	}{
		"nothing":     {nil, false, ""},
		"a problem":   {[]report.Finding{find(report.SeverityProblem, "x", "y")}, true, ""},
		"a warning":   {[]report.Finding{find(report.SeverityWarning, "x", "y")}, false, ""},
		"little":      {[]report.Finding{find(report.SeverityNote, report.CodeNotChecked, "the server")}, false, ""},
		"what counts": {[]report.Finding{find(report.SeverityWarning, report.CodeNotChecked, "a"), find(report.SeverityWarning, report.CodeNotChecked, "b")}, true, "not checked: a, b; there may be more problems\n"},
	} {
		var out bytes.Buffer
		(&app{out: &out}).showUnseen(unseen(c.findings))
		if got := ailing(c.findings); got != c.ailing || out.String() != c.text {
			t.Errorf("of %s, ailing is %v, and said is %q", name, got, out.String())
		}
	}
}
