package stint

import (
	"strconv"
	"strings"

	"github.com/stint-go/stint/internal/valid"
)

// Missed is a [ScheduleOption] that says what becomes of occurrences that were not fired
// in time, because no engine ran or the database was away: [MissedOne], which is the
// default, [MissedNone] or [MissedAll].
//
// An occurrence is missed when a later one is due as well, or when more than
// [store.MissedAfter] has passed since it was due.
type Missed int

const (
	// MissedOne runs the newest of them, once.
	MissedOne Missed = 0

	// MissedNone runs none of them.
	MissedNone Missed = -1

	// MaxMissed is the most that may run at once.
	MaxMissed = 1000
)

// MissedAll runs all of them, in their order, but no more than the newest n: 1
// to [MaxMissed].
func MissedAll(n int) Missed {
	if n < 1 {
		return -2 // which Check refuses
	}
	return Missed(n)
}

// Most is how many occurrences may run that are due at once.
func (m Missed) Most() int { return max(1, int(m)) }

// String returns one, none, or all:100.
func (m Missed) String() string {
	switch {
	case m == MissedOne:
		return "one"
	case m == MissedNone:
		return "none"
	default:
		return "all:" + strconv.Itoa(int(m))
	}
}

// Check reports what is wrong with it, or nil.
func (m Missed) Check() error {
	if m < MissedNone || m > MaxMissed {
		return valid.Invalid("missed", "the bound of all is from 1 to %d", MaxMissed)
	}
	return nil
}

// MarshalText implements [encoding.TextMarshaler].
func (m Missed) MarshalText() ([]byte, error) { return []byte(m.String()), m.Check() }

// UnmarshalText reads what String returns. Errors are [InvalidError]s.
func (m *Missed) UnmarshalText(text []byte) error {
	bound, all := strings.CutPrefix(string(text), "all:")
	n, err := strconv.Atoi(bound)
	switch {
	case string(text) == "one":
		*m = MissedOne
	case string(text) == "none":
		*m = MissedNone
	case string(text) == "all":
		return valid.Invalid("missed", "all needs a bound, such as all:100")
	case !all || err != nil:
		return valid.Invalid("missed", "%q is not one, none or all:100", text)
	case MissedAll(n).Check() != nil:
		return MissedAll(n).Check()
	default:
		*m = MissedAll(n)
	}
	return nil
}
