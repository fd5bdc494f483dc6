package cron_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stint-go/stint/cron"
)

// What can be read is written so that it is read again, has words, and goes on
// strictly forward from anywhere, and comes to an end.
func FuzzParse(f *testing.F) {
	for i, e := range expressions {
		f.Add(e.text, int64(1_700_000_000+i*86_400), uint8(i))
	}
	for _, text := range []string{
		"@daily", "@every 90s", "every 1d12h", "function:x", "* 2 * 3 SUN#2", "0 0 31 2 *", "0 0 29W 2 */6", "? ?/7 LW,1W ? 7L",
		"0 0 L-3 * *", "1,,2 * * * *", "*/0 * * * *", "5-1 * * * *", "TZ=UTC * * * * *", "@reboot", "\x00", "0 0 1-31/31,*/2 JAN-12 0-7",
	} {
		f.Add(text, int64(1_735_650_000), uint8(1)) // the last day of a leap year
		f.Add(text, int64(-62_135_596_801), uint8(5))
		f.Add(text, int64(253_402_300_799), uint8(4))
		f.Add(text, int64(1<<62), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, second int64, in uint8) {
		r, err := cron.Parse(text)
		if err != nil {
			if !r.IsZero() {
				t.Fatalf("%q: there is an error, %v, and %q", text, err, r)
			}
			return
		}
		again, err := cron.Parse(r.String())
		if err != nil || again != r {
			t.Fatalf("%q is written as %q, and that read as %q, %v", text, r, again, err)
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var decoded cron.Recurrence
		if err := json.Unmarshal(b, &decoded); err != nil || decoded != r {
			t.Fatalf("%q is %s in JSON, and that %q, %v", text, b, decoded, err)
		}
		if r.Words() == "" || r.IsZero() || r.Validate() != nil {
			t.Fatalf("%q: words %q, zero %v, %v", text, r.Words(), r.IsZero(), r.Validate())
		}
		after := time.Unix(second, 0)
		zone, err := cron.Zone(zones[int(in)%len(zones)])
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			next, ok := r.Next(after, zone)
			if !ok {
				break
			}
			if !next.After(after) || next.Location() != zone {
				t.Fatalf("%q: after %s comes %s", text, after.In(zone), next)
			}
			// Nothing is between the two: from a little before it is found too.
			if before, ok := r.Next(next.Add(-time.Nanosecond), zone); r.String()[0] != 'e' && (!ok || !before.Equal(next)) {
				t.Fatalf("%q: %s is not what comes right before itself, but %s", text, next, before)
			}
			after = next
		}
	})
}

func FuzzJSON(f *testing.F) {
	for _, text := range []string{`"* * * * *"`, `""`, `null`, `5`, `{}`, `"\u0040daily"`, `"every 90s"`, `["@daily"]`, `"\ud800"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r cron.Recurrence
		if json.Unmarshal(data, &r) != nil {
			return
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%s is read as %q, which is not written: %v", data, r, err)
		}
		var again cron.Recurrence
		if err := json.Unmarshal(b, &again); err != nil || again != r {
			t.Fatalf("%s is read as %q, and %s as %q, %v", data, r, b, again, err)
		}
	})
}
