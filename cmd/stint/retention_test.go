package main

import (
	"strings"
	"testing"
)

func TestARetentionIsReadFromAFlagAndFromAFile(t *testing.T) {
	for text, want := range map[string]string{
		"5d": "5d", "forever": "forever", "failed=30d": "failed=30d", " failed = 30d , 2d": "2d,failed=30d",
		"mail:1h,mail:completed=90s,a:b=c:failed=forever": "a:b=c:failed=forever,mail:1h,mail:completed=1m30s",
	} {
		var r retentionValue
		if err := r.Set(text); err != nil || r.String() != want {
			t.Errorf("%q is read as %q, error %v; want %q", text, r.String(), err, want)
		}
		var again retentionValue
		if err := again.Set(r.String()); err != nil || again.String() != want {
			t.Errorf("%q is read again as %q, error %v", want, again.String(), err)
		}
	}
	for _, text := range []string{"", "5", "0s", "lost=5d", "running=5d", ":5d", "*:5d", "mail:", "=5d", "failed=", "failed=never"} {
		if err := new(retentionValue).Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for text, want := range map[string]string{
		"retention = \"3d\"": "3d",
		"[retention]\n\"*\" = \"forever\"\n\"a,b:failed\" = \"1h\"": "forever,a,b:failed=1h",
	} {
		f, err := parseSettings("f", []byte(text))
		if err != nil {
			t.Errorf("%q gives %v", text, err)
			continue
		}
		if got := f.known["retention"].Value.String(); got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"retention = 3", "retention = {}", "[retention]\nfailed = 3", "[retention]\nlost = \"3d\""} {
		if _, err := parseSettings("f", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%q gives %v", text, err)
		}
	}
}
