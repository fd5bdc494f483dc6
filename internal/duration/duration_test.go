package duration_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/internal/duration"
)

func TestDurationsAreReadAndWritten(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		text string
		want time.Duration
		back string
	}{
		{"0s", 0, "0s"},
		{"500ms", 500 * time.Millisecond, "500ms"},
		{"90s", 90 * time.Second, "1m30s"},
		{"1h30m", 90 * time.Minute, "1h30m"},
		{"1.5h", 90 * time.Minute, "1h30m"},
		{"0.1s", 100 * time.Millisecond, "100ms"},
		{"1h0.5s", time.Hour + 500*time.Millisecond, "1h500ms"},
		{"24h", day, "1d"},
		{"36h", day + 12*time.Hour, "1d12h"},
		{"2w", 14 * day, "2w"},
		{"1w3d", 10 * day, "10d"},
		{"1s1us1ns", time.Second + time.Microsecond + 1, "1s1us1ns"},
		{"9223372036854775807ns", math.MaxInt64, "106751d23h47m16s854ms775us807ns"},
	} {
		got, err := duration.Parse(tt.text)
		if err != nil || got != tt.want {
			t.Errorf("%s is %v, %v; want %v", tt.text, got, err, tt.want)
		}
		if s := duration.Format(tt.want); s != tt.back {
			t.Errorf("%v is written %s, want %s", tt.want, s, tt.back)
		}
	}
	if s := duration.Format(math.MinInt64); s != "-106751d23h47m16s854ms775us808ns" {
		t.Errorf("the most negative duration is written %s", s)
	}
}

func TestDurationMistakesCarryAHint(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "the duration is empty; write for example 90s or 1h30m"},
		{"30", `"30" has no unit; write 30s or 30m`},
		{"0", `"0" has no unit; write 0s or 0m`},
		{"1h30", `"1h30": 30 has no unit; write 30s or 30m`},
		{"-5m", `"-5m" is negative`},
		{"soon", `"soon" is not a duration; write for example 90s`},
		{"5min", `"5min" has the unknown unit "min"; the units are ms, s, m, h, d and w`},
		{"1 h", `has the unknown unit " h"`},
		{"30m1h", `"30m1h": 1h comes after m; units go from large to small, each once`},
		{"1m1m", "1m comes after m"},
		{"1.5h30m", "only the last number may have a fraction"},
		{".5h", "malformed number .5"},
		{"5.h", "malformed number 5."},
		{"1.2.3h", "malformed number 1.2.3"},
		{"0.1234567890123456789s", "more than 18 digits"},
		{"16000w", "is too long"},
		{"106751d24h", "is too long"},
		{"15250.9w", "is too long"},
		{"99999999999999999999s", "is too long"},
	} {
		if _, err := duration.Parse(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q gives %v, want an error that says %s", tt.text, err, tt.want)
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"90s", "1h30m", "1.5h", "2w", "1d1ms1ns", "30", "15250.2w"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := duration.Parse(text)
		if err != nil {
			return
		}
		if back, err := duration.Parse(duration.Format(d)); d < 0 || err != nil || back != d {
			t.Fatalf("%q is %v, written %s, read %v, %v", text, d, duration.Format(d), back, err)
		}
	})
}
