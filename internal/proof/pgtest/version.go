package pgtest

import (
	"cmp"
	"regexp"
	"strconv"
)

var versionPart = regexp.MustCompile(`\d+|[a-z]+`)

// compareVersions orders versions such as "15.14", "18beta1" and "18.4.0-beta.17" by their parts from left to right:
// numbers by value, words by the alphabet, and a word before a number, so that a beta comes before its release.
func compareVersions(a, b string) int {
	left, right := versionPart.FindAllString(a, -1), versionPart.FindAllString(b, -1)
	for i := range max(len(left), len(right)) {
		if c := compareParts(part(left, i), part(right, i)); c != 0 {
			return c
		}
	}
	return 0
}

// part returns the i-th part; a version that has ended goes on with zeros.
func part(parts []string, i int) string {
	if i < len(parts) {
		return parts[i]
	}
	return "0"
}

func compareParts(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	switch {
	case errX == nil && errY == nil:
		return cmp.Compare(x, y)
	case errX == nil:
		return 1
	case errY == nil:
		return -1
	default:
		return cmp.Compare(a, b)
	}
}
