package engine

import (
	"sync"
	"sync/atomic"

	"github.com/stint-go/stint"
)

// endEvents tracks jobs with an attempt that is recorded, or about to be, and whose end was not
// reported yet. After the record the next attempt may start at once, perhaps in this engine; but
// listeners must get the end before the next start.
type endEvents struct {
	pending atomic.Int64 // how many jobs: mostly 0
	jobs    sync.Map     // by id a chan struct{}, closed when the end was reported
}

// expect notes that the end of a job's attempt will be reported.
func (u *endEvents) expect(job stint.ID) {
	if _, known := u.jobs.LoadOrStore(job, make(chan struct{})); !known {
		u.pending.Add(1)
	}
}

func (u *endEvents) sent(job stint.ID) {
	if u.pending.Load() == 0 {
		return
	}
	if c, known := u.jobs.LoadAndDelete(job); known {
		close(c.(chan struct{}))
		u.pending.Add(-1)
	}
}

// await waits until the end of a job's attempt is reported, or for the end of the session, after
// which nothing is reported.
func (u *endEvents) await(job stint.ID, end <-chan struct{}) {
	if u.pending.Load() == 0 {
		return
	}
	if c, known := u.jobs.Load(job); known {
		select {
		case <-c.(chan struct{}):
		case <-end:
		}
	}
}
