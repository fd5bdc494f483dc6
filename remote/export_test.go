package remote

import "time"

// The tests of this package need not read much, have many jobs, or wait for long.
func init() {
	maxAnswer, linesPage, jobsPage, idsPage, waitOnce = 4<<20, 2, 200, 700, 400*time.Millisecond
}
