package sim

import (
	"time"

	"github.com/stint-go/stint"
)

// twist makes a drawn job odder. It has dice of its own, so that what was drawn
// before there were twists is drawn as ever; a new twist goes to the end. The
// whim is nil when the job is never cancelled.
func twist(d dice, job *stint.NewJob, a *args) *whim {
	var h *whim
	if d.chance(14) {
		h = newWhim(d)
		if (h.when == whenBegun || h.when == whenEnded) && d.chance(70) {
			a.Work, a.Deaf = d.between(0, 2*time.Second), d.chance(50)
		}
	}
	if d.chance(12) {
		a.Tx = true
		a.Blind, a.Shrug = d.chance(50), d.chance(10)
		a.Then = []string{"", "", "", "", "", "", thenError, thenError, thenPanic, thenGoexit, thenSnooze, thenCancel}[d.IntN(12)]
		if d.chance(20) {
			a.Early, a.Work = true, d.between(0, 200*time.Millisecond)
		}
	}
	if d.chance(8) {
		job.Kind = kept
		if d.chance(50) {
			a.Work = d.between(time.Second, 8*time.Second)
		}
	}
	return h
}
