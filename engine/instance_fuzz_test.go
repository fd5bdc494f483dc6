package engine

import (
	"fmt"
	"testing"
)

// FuzzStat makes sure that a process's name, which may look like the rest of its
// stat, does not change when it is said to have started: by that it is believed to
// be dead. Texts of other kinds are errors at worst.
func FuzzStat(f *testing.F) {
	for _, name := range []string{"stint", "a b", ") S 1 2 3", "(((", "))) Z", "\n", ""} {
		f.Add(name, int64(4711))
	}
	f.Fuzz(func(t *testing.T, name string, started int64) {
		_, _ = parseStat([]byte(name))
		if started < 0 {
			return
		}
		for state, want := range map[string]int64{"S": started, "R": started, "Z": -1, "X": -1} {
			stat := fmt.Sprintf("12 (%s) %s 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %d 9 10 18446744073709551615\n", name, state, started)
			if got, err := parseStat([]byte(stat)); err != nil || got != want {
				t.Errorf("%q: got %d, %v", stat, got, err)
			}
		}
	})
}
