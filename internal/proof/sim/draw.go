package sim

import (
	"encoding/json"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

// kinds are the types of jobs; not every engine knows all of them.
var kinds = []string{"alpha", "beta", "gamma"}

// kept is one more, whose handlers go on when their engine was buried.
const kept = "kept"

// args are what a job is told to do.
type args struct {
	Key   string        `json:"key"`             // its name in the history
	Work  time.Duration `json:"work,omitempty"`  // how long it is busy
	Deaf  bool          `json:"deaf,omitempty"`  // it does not heed its cancellation
	Fail  int           `json:"fail,omitempty"`  // attempts that fail
	By    string        `json:"by,omitempty"`    // how: by an error, or one of these
	Kill  int           `json:"kill,omitempty"`  // attempts that kill their process
	Naps  int           `json:"naps,omitempty"`  // how often it snoozes
	Last  string        `json:"last,omitempty"`  // how it ends at last: as done, or one of these
	Grant int           `json:"grant,omitempty"` // attempts that its policy grants; 0: it tries once, and again only when lost
	Tx    bool          `json:"tx,omitempty"`    // its handler completes it in a transaction of its own
	Early bool          `json:"early,omitempty"` // that is open while it works
	Blind bool          `json:"blind,omitempty"` // it does not heed its cancellation while it commits
	Shrug bool          `json:"shrug,omitempty"` // should that fail, it returns no error all the same
	Then  string        `json:"then,omitempty"`  // should it succeed, it returns this
	Asks  bool          `json:"asks,omitempty"`  // its policy asks a retry function, and counts no losses
}

// The ways in which a job can fail, but for an error, and end, but for success.
const (
	byPanic  = "panic"
	byGoexit = "goexit"

	lastCancel = "cancel"
	lastGiveUp = "give up"
)

// endless is more attempts than any job needs.
const endless = 1 << 20

// draw makes a job, and says whether people will do something about it.
func draw(seed Seed, key string) (job stint.NewJob, h *whim) {
	job, a := drawPlain(roll(seed.N, key, 0), key)
	if seed.Age < Plain {
		h = twist(roll(seed.N, key, 1), &job, &a)
	}
	if seed.Age < Twisted {
		h = twistMore(roll(seed.N, key, 2), &job, &a, h)
	}
	job.Args, _ = json.Marshal(a)
	return job, h
}

// drawPlain makes a job. Most are quick and do what they should; a fleet in
// which everything is odd would hardly move.
func drawPlain(d dice, key string) (stint.NewJob, args) {
	a := args{Key: key}
	if d.chance(40) {
		a.Work = d.between(0, 300*time.Millisecond)
	}
	if d.chance(12) {
		a.Work = d.between(time.Second, 8*time.Second)
		a.Deaf = d.chance(30)
	}
	if d.chance(25) {
		a.Fail, a.By = 1+d.IntN(3), []string{"", "", byPanic, byGoexit}[d.IntN(4)]
	}
	if d.chance(1) {
		a.Kill = 1 + d.IntN(4)
	}
	if d.chance(8) {
		a.Naps = 1 + d.IntN(2)
	}
	if d.chance(10) {
		a.Last = []string{lastCancel, lastGiveUp}[d.IntN(2)]
	}
	job := stint.NewJob{Kind: kinds[d.IntN(len(kinds))], Queue: stint.DefaultQueue}
	switch d.IntN(5) {
	case 0:
		n := 1 + d.IntN(3)
		job.Retry, a.Grant = retry.Fixed(n, d.between(10*time.Millisecond, 2*time.Second)), n+1
	case 1:
		job.Retry, a.Grant = retry.Exponential(3, 500*time.Millisecond).Jitter(0.3), 4
	case 2:
		job.Retry, a.Grant = retry.Forever(time.Second), endless
	case 3:
		job.Retry, a.Grant = retry.Timetable(retry.Row{Younger: time.Hour, Wait: 700 * time.Millisecond}), endless
	default:
		job.Retry, a.Grant = retry.Fixed(8, 100*time.Millisecond), 9
	}
	if d.chance(3) {
		job.Retry, a.Grant = retry.None(), 0
	}
	if d.chance(20) {
		job.Queue = "other"
	}
	if d.chance(20) {
		job.Priority = d.IntN(5) - 2
	}
	if d.chance(20) {
		job.Delay = d.between(time.Millisecond, 15*time.Second)
	}
	if d.chance(8) {
		job.Timeout = d.between(time.Second, 4*time.Second)
		job.Retry, a.Grant = retry.Fixed(2, time.Second), 3 // it may time out each time
	}
	return job, a
}

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

// twistMore makes it odder still, likewise.
func twistMore(d dice, job *stint.NewJob, a *args, h *whim) *whim {
	if d.chance(8) {
		job.Retry, a.Grant, a.Asks = retry.Function(judgement), bears, true
		if d.chance(70) {
			a.Fail = 1 + d.IntN(4)
		}
	}
	if h == nil && d.chance(8) {
		h = newWhim(d)
		h.does = []wish{itAgain, itGone, itGone}[d.IntN(3)]
		if h.does == itGone && d.chance(60) {
			h.when = whenEnded
		}
	}
	return h
}
