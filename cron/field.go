package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// field says what one of the five may hold.
type field struct {
	name      string
	low, high int
	names     []string // of low and what follows it
}

// The five fields, in their order.
var (
	minuteField  = field{name: "minute", high: 59}
	hourField    = field{name: "hour", high: 23}
	dayField     = field{name: "day of month", low: 1, high: 31}
	monthField   = field{name: "month", low: 1, high: 12, names: monthNames}
	weekdayField = field{name: "day of week", high: 7, names: weekdayNames}
)

var (
	monthNames   = []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}
	weekdayNames = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}
)

// parsed is what a list of plain items means.
type parsed struct {
	values set
	star   bool // it begins with a star
	spans  bool // an item goes from the lowest value to the highest, or all values are there
}

// parse reads a list. Items that are no values, ranges or steps are given to
// special, which tells whether it knows them.
func (f field) parse(text string, special func(item string) (known bool, err error)) (p parsed, err error) {
	p.star = text[0] == '*'
	for item := range strings.SplitSeq(text, ",") {
		if special != nil {
			known, err := special(item)
			if err != nil {
				return p, err
			}
			if known {
				continue
			}
		}
		low, high, step, err := f.item(item)
		if err != nil {
			return p, err
		}
		for n := low; n <= high; n += step {
			p.values |= 1 << n
		}
		p.spans = p.spans || low == f.low && high == f.high
	}
	p.spans = p.spans || p.values == span(f.low, f.high)
	return p, nil
}

// item reads one item of a list: a star, a value or a range, perhaps with a step.
func (f field) item(item string) (low, high, step int, err error) {
	if item == "" {
		return 0, 0, 0, f.wrong(": a value is missing beside a comma")
	}
	base, after, stepped := strings.Cut(item, "/")
	first, last, ranged := strings.Cut(base, "-")
	switch {
	case base == "*":
		low, high = f.low, f.top()
	case ranged:
		low, high, err = f.ends(first, last)
	default:
		low, err = f.value(base)
		if high = low; stepped {
			high = max(low, f.top())
		}
	}
	if err != nil {
		return 0, 0, 0, err
	}
	step = 1
	if stepped {
		step, err = f.step(after)
	}
	return low, high, step, err
}

// ends reads the two ends of a range.
func (f field) ends(first, last string) (low, high int, err error) {
	if low, err = f.value(first); err != nil {
		return 0, 0, err
	}
	if high, err = f.value(last); err != nil {
		return 0, 0, err
	}
	if last == "SUN" {
		high = 7 // FRI-SUN ends the week
	}
	if low > high {
		return 0, 0, f.wrong(": the range %s-%s goes backwards; write it as two, %s-%d,%d-%s", first, last, first, f.top(), f.low, last)
	}
	return low, high, nil
}

// top is the highest value, Sunday counted once: every second day from Monday on
// is not Sunday too.
func (f field) top() int {
	if f.high == 7 {
		return 6
	}
	return f.high
}

func (f field) value(text string) (int, error) {
	for i, name := range f.names {
		if text == name {
			return f.low + i, nil
		}
	}
	n, err := f.number(text)
	if err != nil {
		return 0, err
	}
	if n < f.low || n > f.high {
		return 0, f.wrong(" %s is not between %d and %d", text, f.low, f.high)
	}
	return n, nil
}

func (f field) step(text string) (int, error) {
	n, err := f.number(text)
	if err != nil {
		return 0, err
	}
	if n < 1 || n > f.top() {
		// A larger one would leave the first value alone: surely a slip.
		return 0, f.wrong(": the step %s is not between 1 and %d", text, f.top())
	}
	return n, nil
}

// number reads digits alone: Atoi would take a sign.
func (f field) number(text string) (int, error) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, f.wrong(" %q is not %s", text, f.wants())
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, f.wrong(" %s is not between %d and %d", text, f.low, f.high)
	}
	return n, nil
}

func (f field) wants() string {
	if len(f.names) == 0 {
		return "a number"
	}
	return fmt.Sprintf("a number or a name such as %s", f.names[1])
}

// wrong goes on after the field's name.
func (f field) wrong(format string, args ...any) error {
	return invalid(f.name + fmt.Sprintf(format, args...))
}

// A set has bit n for the value n of a field.
type set uint64

func (s set) has(n int) bool { return s>>n&1 != 0 }

// from returns the smallest value of at least n.
func (s set) from(n int) (int, bool) {
	rest := s >> n << n
	return bits.TrailingZeros64(uint64(rest)), rest != 0
}

// all yields the values in order.
func (s set) all(yield func(int) bool) {
	for n, ok := s.from(0); ok && yield(n); n, ok = s.from(n + 1) {
	}
}

// span is the set of all values from low to high.
func span(low, high int) set { return set(1)<<(high+1) - set(1)<<low }

func (s set) count() int { return bits.OnesCount64(uint64(s)) }

// ends are the lowest and the highest value.
func (s set) ends() (low, high int) {
	return bits.TrailingZeros64(uint64(s)), bits.Len64(uint64(s)) - 1
}

// every returns n if the values are every n-th from low to high and go on evenly
// after high, as every 15th minute does and every 7th does not, and otherwise 0.
// Days of the month never go on evenly, and nobody expects them to.
func (s set) every(low, high int) int {
	if s.count() < 2 {
		return 0
	}
	second, _ := s.from(low + 1)
	n := second - low
	var steps set
	for value := low; value <= high; value += n {
		steps |= 1 << value
	}
	if s != steps || low == 0 && (high+1)%n != 0 {
		return 0
	}
	return n
}
