package engine

import (
	"sync"
	"sync/atomic"

	"github.com/stint-go/stint"
)

// untold are jobs with an attempt that is recorded, or about to be, and of whose
// end nobody was told. The record is what lets the next attempt begin, perhaps in
// this engine and at once; but listeners are to hear of the end before the next
// start.
type untold struct {
	some atomic.Int64 // how many there are: mostly none
	mu   sync.Mutex
	jobs map[stint.ID]chan struct{} // closed when it was told
}

// expect says that something will be told of a job.
func (u *untold) expect(job stint.ID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.jobs == nil {
		u.jobs = map[stint.ID]chan struct{}{}
	}
	if u.jobs[job] == nil {
		u.jobs[job] = make(chan struct{})
		u.some.Add(1)
	}
}

// told says that it was.
func (u *untold) told(job stint.ID) {
	if u.some.Load() == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.jobs[job]; c != nil {
		close(c)
		delete(u.jobs, job)
		u.some.Add(-1)
	}
}

// await waits until nothing is left to be told of a job, or for the end of the
// session, behind which nothing is told any more.
func (u *untold) await(job stint.ID, end <-chan struct{}) {
	if u.some.Load() == 0 {
		return
	}
	u.mu.Lock()
	c := u.jobs[job]
	u.mu.Unlock()
	if c == nil {
		return
	}
	select {
	case <-c:
	case <-end:
	}
}
