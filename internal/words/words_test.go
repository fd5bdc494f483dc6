package words_test

import (
	"testing"
	"time"

	"github.com/stint-go/stint/internal/words"
)

func TestSizesAreInTheLargestUnitThatFits(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 3 << 30: "3.0 GiB", 5 << 40: "5.0 TiB", 1 << 60: "1048576.0 TiB",
	} {
		if got := words.Size(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}

// A time.Duration ends after 292 years; dates do not.
func TestDatesThatAreFarAwayAreSaidRight(t *testing.T) {
	now := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	for at, want := range map[string]string{
		"2900-01-01T08:00:00Z": "in 318894d", "8999-12-31T08:00:00Z": "in 2546872d", "1700-01-01T08:00:00Z": "119397d ago", "0001-01-02T08:00:00Z": "739943d ago",
		"2318-01-01T08:00:00Z": "in 106322d", "2026-11-25T08:00:30Z": "in 30s", "2026-11-25T07:59:00Z": "1m ago", "2026-11-25T08:00:00.5Z": "now",
	} {
		then, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := words.Ago(then, now); got != want {
			t.Errorf("%s is %q, want %q", at, got, want)
		}
	}
}
