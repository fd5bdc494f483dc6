package stint

import (
	"strconv"
	"strings"
	"time"
)

// Missed says what becomes of occurrences that nobody fired in time: as no
// engine ran, or the database was away. The zero value is [MissedOne].
//
// An occurrence is missed when a later one is due as well, or when more than
// [MissedAfter] has passed since it was due.
type Missed int

const (
	// MissedOne runs the newest of them, once.
	MissedOne Missed = 0

	// MissedNone runs none of them.
	MissedNone Missed = -1

	// MaxMissed is the most that may run at once.
	MaxMissed = 1000
)

// MissedAfter is how late an occurrence may be before it counts as missed when
// it is the only one that is due.
const MissedAfter = time.Minute

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

// String is the form that [ParseMissed] reads.
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
		return Invalid("missed", "the bound of all is from 1 to %d", MaxMissed)
	}
	return nil
}

// ParseMissed reads one, none, or all:100.
func ParseMissed(text string) (Missed, error) {
	bound, all := strings.CutPrefix(text, "all:")
	n, err := strconv.Atoi(bound)
	switch {
	case text == "one":
		return MissedOne, nil
	case text == "none":
		return MissedNone, nil
	case text == "all":
		return 0, Invalid("missed", "all needs a bound, such as all:100")
	case !all || err != nil:
		return 0, Invalid("missed", "%q is not one, none or all:100", text)
	}
	m := MissedAll(n)
	return m, m.Check()
}

// MarshalText implements [encoding.TextMarshaler].
func (m Missed) MarshalText() ([]byte, error) { return []byte(m.String()), m.Check() }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *Missed) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMissed(string(text))
	return err
}
