package cli

import (
	"errors"
	"strings"
	"testing"
)

func TestARetentionIsReadFromAFlagAndFromAFile(t *testing.T) {
	for text, want := range map[string]string{
		"5d": "5d", "forever": "forever", "failed=30d": "failed=30d", " failed = 30d , 2d": "2d,failed=30d",
		"mail:1h,mail:completed=90s,b:failed=forever": "b:failed=forever,mail:1h,mail:completed=1m30s",
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
		"[retention]\n\"a:b=c:failed\" = \"1h\"\n\"failed:*\" = \"2h\"": "a:b=c:failed=1h,failed:2h",
		"[retention]\n\"*\" = \"forever\"\n\"a,b:failed\" = \"1h\"":     "forever,a,b:failed=1h",
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

func TestARetentionThatCanBeReadInTwoWaysIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"failed:30d":                `"failed" is a state, but a queue is needed before the colon`,
		"5d, cancelled: 30d":        `"cancelled" is a state`,
		"completed:failed=1h":       `"completed" is a state`,
		"mail:1h:2h":                "more than one meaning",
		"a:b:failed=1h":             "more than one meaning",
		"failed=1h:completed=2h":    "more than one meaning",
		"failed=1h,failed=2h":       `"failed=2h": the time of failed is given already: 1h`,
		"5d,6d":                     `"6d": the time of all is given already: 5d`,
		"mail:1h,mail:*=2h":         `"mail:*=2h": the time of the queue mail is given already: 1h`,
		"mail:failed=1h, b:1h,b:1h": `"b:1h": the time of the queue b is given already`,
	} {
		if err := new(retentionValue).Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %s", text, err, want)
		}
	}
	var given retentionValue
	if err := errors.Join(given.Set("failed=1h"), given.Set("mail:1h")); err != nil {
		t.Fatal(err)
	}
	if given.Set("failed=2h") == nil {
		t.Error("a flag that is given again changes what it said")
	}
	_, errs, code := session(t, false, "config", "--retention", "failed:30d")
	if want := "stint: --retention: \"failed\" is a state, but a queue is needed before the colon\nhint: write failed=30d; a queue of this name can be set in the file of --config: [retention] and \"failed:*\" = \"30d\"\n"; code != exitUsage || errs != want {
		t.Errorf("exit code %d, %q, want %q", code, errs, want)
	}
}
