// Package sample is what the runner of mutants is tried on.
package sample

// Larger returns the larger number.
func Larger(a, b int) int {
	if a > b {
		return a
	}
	return b
}
