package cron

import "math/bits"

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
