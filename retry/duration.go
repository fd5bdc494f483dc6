package retry

import (
	"time"

	"github.com/stint-go/stint/internal/duration"
)

// ParseDuration reads a duration as people write it: numbers with the units w,
// d, h, m, s and ms (and us, ns) from large to small, such as 90s, 1h30m, 2w or
// 1.5h. A day has 24 hours. A number without a unit is refused, for nobody
// knows what was meant, and so is a negative one. Errors carry a hint.
func ParseDuration(s string) (time.Duration, error) { return duration.Parse(s) }

// FormatDuration writes a duration as ParseDuration reads it, exactly and in
// one way: 1m30s, 1d12h, 2w. Weeks are used where nothing remains, since 10d is
// easier to read than 1w3d. A negative one gets a sign, for people to see.
func FormatDuration(d time.Duration) string { return duration.Format(d) }
