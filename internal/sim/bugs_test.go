package sim

import "testing"

// A simulator that cannot find a bug is worse than none, so each of these
// must be found within a few seeds.
func TestSimFindsPlantedBugs(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("it takes many seeds")
	}
	const within = 150 // a few are enough for most; claims of the buried are rare
	for _, bug := range Bugs {
		t.Run(string(bug), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(within) {
				if v := Run(t, 1000+seed, bug); len(v.Violations) > 0 {
					t.Logf("seed %d found it: %s", 1000+seed, v.Violations[0])
					return
				}
			}
			t.Errorf("%d seeds did not find it", within)
		})
	}
}
