package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// flagValues are the flags that read more than a text or a number, each empty.
func flagValues() map[string]pflag.Value {
	return map[string]pflag.Value{
		"address":    addresses("9070").in(new(string)),
		"ages":       new(retentionValue),
		"instant":    instants.in(new(time.Time)),
		"moment":     timeBounds.in(new(timeBound)),
		"dashboard":  dashboardAddresses.in(new(string)),
		"duration":   durations.in(new(time.Duration)),
		"every":      intervals.in(new(time.Duration)),
		"log-sql":    sqlLogs.in(new(sqlLog)),
		"missed":     missedRules.in(new(stint.Missed)),
		"names":      nameList(new([]string), "queues"),
		"poll":       polls.in(new(pollRange)),
		"recurrence": recurrences.in(new(cron.Recurrence)),
		"retry":      retryPolicies.in(new(retry.Policy)),
		"size":       sizes.in(new(int64)),
		"slots":      new(slotsValue),
		"states":     listValue[stint.State]{new([]stint.State), "states", oneOf(store.States...)},
		"wait":       waits.in(new(time.Duration)),
	}
}

// FuzzFlags makes sure that what a flag reads is written so that the flag reads
// it as the same: that is what stint config shows, and what people paste.
func FuzzFlags(f *testing.F) {
	for kind, texts := range map[string][]string{
		"address":    {":9070", "127.0.0.1:0", "[::1]:70000", "a:b:c", "localhost"},
		"ages":       {"5d", "mail:1h,failed=forever", "mail:completed=1h", "a=1h=2h", "completed:1h", "x y:1w"},
		"dashboard":  {"off", ":7070"},
		"duration":   {"0s", "1w2d", "-1h", "1e3s", "9223372036854775807ns", "-9223372036854775808ns"},
		"every":      {"off", "1s", "999ms"},
		"log-sql":    {"all", "5ms", "0s"},
		"missed":     {"one", "all:7"},
		"names":      {"a,b, a", "a,,b", "\x00"},
		"poll":       {"1s", "1s..5s", "5s..1s", "..", "1ms..1ms"},
		"recurrence": {"0 9 * * 1", "every 5m", "@daily"},
		"retry":      {"fixed:2:10s", "{}", "none"},
		"size":       {"512MiB", "1.5GB", "1000.5kB", "0.9kB", "8388608TiB", "nanMiB", "infKB", "0x1pkB", "1_0kB", "9007199254740993kB"},
		"slots":      {"50", "mail=4,*=20", "a=b=3", "a=0", "99999999999999999999", " 7 ", "a=4,a=5", "+5", "auto", "auto:8..200", "auto:9..8"},
		"states":     {"failed, completed", "x", "running,running"},
		"wait":       {"forever", "5s", "-5s"},
	} {
		for _, text := range texts {
			f.Add(kind, text)
		}
	}
	f.Fuzz(func(t *testing.T, kind, text string) {
		v, again := flagValues()[kind], flagValues()[kind]
		if v == nil {
			return
		}
		if err := v.Set(text); err != nil {
			if !strings.Contains(err.Error(), " ") || len(err.Error()) > 8*len(text)+1000 {
				t.Errorf("--%s %q is refused by %q", kind, text, err)
			}
			return
		}
		written := v.String()
		if written == "" {
			return // the zero value, which is not shown
		}
		if err := again.Set(written); err != nil || again.String() != written {
			t.Errorf("--%s %q is shown as %q, which is read as %q: %v", kind, text, written, again, err)
		}
	})
}

// FuzzInstants makes sure that a time of day is the next moment when clocks show
// it, or nearly where they jump, and that an instant is read as it is written.
func FuzzInstants(f *testing.F) {
	for _, text := range []string{"2026-03-01T09:00:00+01:00", "2026-03-01 09:00", "2026-03-01", "09:00", "23:59:59", "02:30", "24:00", "0:0", "2026-02-30", "9999-12-31 23:59", "+1h"} {
		for _, now := range []int64{1_772_000_000, 1_774_746_000 /* before clocks go forward */, 1_792_890_000 /* and back */, 0, 253_402_300_799} {
			f.Add(text, now)
		}
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, at int64) {
		if at < 0 || at > 253_402_300_799 {
			return
		}
		now := time.Unix(at, 0).In(zone)
		got, err := parseInstant(text, now)
		if err != nil {
			return
		}
		if len(text) <= len("15:04:05") && strings.Count(text, ":") > 0 && !strings.Contains(text, "-") {
			if !got.After(now) || got.Sub(now) > 25*time.Hour {
				t.Errorf("%q is %v at %v", text, got, now)
			}
			return
		}
		if again, err := parseInstant(got.Format(time.RFC3339Nano), now); err != nil || !again.Equal(got) {
			t.Errorf("%q is %v, which is read as %v: %v", text, got, again, err)
		}
	})
}

// FuzzPrefixes makes sure that a trusted proxy is one address or a few, and never
// all.
func FuzzPrefixes(f *testing.F) {
	for _, text := range []string{"10.0.0.5", "10.0.0.0/8", "::1", "fe80::1%eth0", "::ffff:10.0.0.5", "::ffff:10.0.0.0/104", "0.0.0.0/0", "::/0", "::ffff:0:0/96", "10.0.0.5/33", "", "010.0.0.1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePrefix(text)
		if err != nil {
			return
		}
		if !p.IsValid() || p.Bits() == 0 {
			t.Errorf("%q is %v", text, p)
		}
		if again, err := parsePrefix(p.String()); err != nil || again != p {
			t.Errorf("%q is %v, which is read as %v: %v", text, p, again, err)
		}
	})
}
