package sim

import "testing"

// A simulator that cannot find a bug is worse than none, so each of these
// must be found within some seeds, nearly always the first.
func TestSimFindsPlantedBugs(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("it takes many seeds")
	}
	const within = 400 // a few are enough for most; claims of the buried are rare
	for _, bug := range Bugs {
		t.Run(string(bug), func(t *testing.T) {
			t.Parallel()
			for n := range uint64(within) {
				if !bug.fits(Seed{N: 1000 + n}) {
					continue
				}
				if v := Run(t, Seed{N: 1000 + n}, bug); len(v.Violations) > 0 {
					t.Logf("seed %d found it: %s", 1000+n, v.Violations[0])
					return
				}
			}
			t.Errorf("%d seeds did not find it", within)
		})
	}
}
