package remote

import "time"

// The tests of this package need not read much, have many jobs, or wait for long.
func init() {
	maxAnswer, linesPage, jobsPage, idsPage, waitOnce = 4<<20, 2, 200, 700, 400*time.Millisecond
}

// WaitOnce sets how long one request waits, until the function that it returns is called.
func WaitOnce(d time.Duration) (reset func()) {
	was := waitOnce
	waitOnce = d
	return func() { waitOnce = was }
}
