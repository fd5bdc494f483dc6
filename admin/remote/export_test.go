package remote

// The tests of this package need not read much, nor have many jobs.
func init() { maxAnswer, jobsPage, idsPage, atOnce = 4<<20, 200, 700, 700 }
