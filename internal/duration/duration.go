// Package duration reads and writes durations as people do: 90s, 1h30m, 2w.
//
// It is one package because retry policies and recurrences, which know nothing
// of each other, are to be written alike.
package duration

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// units go from large to small, as they stand in a duration.
var units = []struct {
	name string
	size time.Duration
}{
	{"w", week}, {"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second},
	{"ms", time.Millisecond}, {"us", time.Microsecond}, {"ns", time.Nanosecond},
}

var errTooLong = errors.New("is too long; the longest is about 292 years")

// Parse reads a duration as people write it: numbers with the units w,
// d, h, m, s and ms (and us, ns) from large to small, such as 90s, 1h30m, 2w or
// 1.5h. A day has 24 hours. A number without a unit is refused, for nobody
// knows what was meant, and so is a negative one. Errors carry a hint.
func Parse(s string) (time.Duration, error) {
	if s == "" {
		return 0, errors.New("the duration is empty; write for example 90s or 1h30m")
	}
	if s[0] == '-' {
		return 0, fmt.Errorf("%q is negative; write for example 90s or 1h30m", s)
	}
	var total time.Duration
	unit := -1 // index of the last unit read
	for rest := s; rest != ""; {
		number, name, after := cutTerm(rest)
		i, err := unitAfter(unit, number, name)
		if err != nil {
			if number+name == s {
				return 0, fmt.Errorf("%q %w", s, err)
			}
			return 0, fmt.Errorf("%q: %s %w", s, number+name, err)
		}
		if after != "" && strings.Contains(number, ".") {
			return 0, fmt.Errorf("%q: only the last number may have a fraction", s)
		}
		d, err := times(number, units[i].size)
		if err == nil && d > math.MaxInt64-total {
			err = errTooLong
		}
		if err != nil {
			return 0, fmt.Errorf("%q %w", s, err)
		}
		total, unit, rest = total+d, i, after
	}
	return total, nil
}

// cutTerm cuts a number and what follows it up to the next number.
func cutTerm(s string) (number, name, after string) {
	isNumber := func(r rune) bool { return '0' <= r && r <= '9' || r == '.' }
	name = strings.TrimLeftFunc(s, isNumber)
	number = s[:len(s)-len(name)]
	if i := strings.IndexFunc(name, isNumber); i >= 0 {
		name, after = name[:i], name[i:]
	}
	return number, name, after
}

// unitAfter finds the unit, which has to be smaller than the last one: 30m1h is
// more likely a slip than a wish.
func unitAfter(last int, number, name string) (int, error) {
	switch {
	case number == "":
		return 0, errors.New("is not a duration; write for example 90s or 1h30m")
	case name == "":
		return 0, fmt.Errorf("has no unit; write %[1]ss or %[1]sm", number)
	}
	for i, u := range units {
		if u.name != name {
			continue
		}
		if i <= last {
			return 0, fmt.Errorf("comes after %s; units go from large to small, each once", units[last].name)
		}
		return i, nil
	}
	return 0, fmt.Errorf("has the unknown unit %q; the units are ms, s, m, h, d and w", name)
}

// times multiplies without floating point, so that 0.1s is exact.
func times(number string, unit time.Duration) (time.Duration, error) {
	whole, fraction, dotted := strings.Cut(number, ".")
	if whole == "" || dotted && fraction == "" || strings.Contains(fraction, ".") {
		return 0, fmt.Errorf("has the malformed number %s", number)
	}
	n, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || n > uint64(math.MaxInt64/unit) {
		return 0, errTooLong
	}
	d := time.Duration(n) * unit
	if !dotted {
		return d, nil
	}
	if len(fraction) > 18 {
		return 0, fmt.Errorf("has more than 18 digits after the point")
	}
	f, _ := strconv.ParseUint(fraction, 10, 64)
	hi, lo := bits.Mul64(f, uint64(unit))
	part, _ := bits.Div64(hi, lo, uint64(math.Pow10(len(fraction)))) // below one unit
	if time.Duration(part) > math.MaxInt64-d {
		return 0, errTooLong
	}
	return d + time.Duration(part), nil
}

// Format writes a duration as Parse reads it, exactly and in
// one way: 1m30s, 1d12h, 2w. Weeks are used where nothing remains, since 10d is
// easier to read than 1w3d. A negative one gets a sign, for people to see.
func Format(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var b []byte
	left := uint64(d)
	if d < 0 {
		b, left = append(b, '-'), -left
	}
	for _, u := range units {
		size := uint64(u.size)
		if left < size || u.size == week && left%size != 0 {
			continue
		}
		b = append(strconv.AppendUint(b, left/size, 10), u.name...)
		left %= size
	}
	return string(b)
}
