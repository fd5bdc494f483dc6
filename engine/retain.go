package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

const (
	// retainLeast is how many rows the first step of a pass looks at. The next ones look at more
	// while they take less than half of retainStep, up to retainMost, and at fewer when they take
	// longer: a step holds locks, and on SQLite all that is written waits for it.
	retainLeast = 2000
	retainMost  = 20_000
	retainStep  = 50 * time.Millisecond

	// retainBehind is how much later than usual a pass may end. One that is later makes no pauses
	// while it finds much to delete.
	retainBehind = 5 * time.Second

	// retainTurn is for how long a pass goes on. Where as many jobs grow old as it deletes it would
	// not end: what was too young when it came by would stay, and other passes have no turn.
	retainTurn = 10 * time.Second

	// retainEvery is how often jobs are deleted that have grown old since the last pass.
	retainEvery = time.Minute

	// retainWhole is how often a pass goes through everything, for jobs that ended late, and for
	// all that jobs leave behind; less often if it takes long.
	retainWhole = time.Hour

	// retainShare is how many times longer than a whole pass the pause between two of them is at
	// least.
	retainShare = 20

	// retainInVain is how many rows after a job that is too young a pass for one age reads without
	// deleting anything, before it ends. Where jobs ended long after they were appended, it would
	// read a whole backlog again every minute, and not come to what is behind it.
	retainInVain = 10_000

	// retainAgain is how many passes in turn begin at the same job that is too young, and end in
	// vain, before those after them pass it, and leave it to whole passes. Jobs that waited for
	// seconds only are old by then.
	retainAgain = 5

	// retainPatience bounds one step: far longer than it takes.
	retainPatience = time.Minute
)

// retains reports whether an engine deletes anything.
func retains(c *Config) bool { return c.Retention.Shortest() != store.Forever }

// retain deletes old jobs for all engines, while this one has the lease.
func (s *session) retain(ctx context.Context) {
	st, ok := s.store.(store.Retainer)
	if !ok {
		return
	}
	if s.retention == nil {
		s.retention = newRetention(s, st)
	}
	r := s.retention // how far it has come is true after the lease was lost, too
	r.note(0)
	defer s.meters.retains(0, time.Time{}, 0) // another engine goes on
	var summed time.Time                      // when nothing was left to sum up
	for ctx.Err() == nil {
		more, err := r.deleteOld(ctx)
		if err == nil {
			var left bool
			left, err = r.passAll(ctx)
			more = more || left
		}
		r.report()
		if errors.Is(err, store.ErrNotHeld) {
			return // the lease loop finds out by itself
		} else if err != nil {
			s.trouble(ctx, "delete old jobs", err)
		}
		switch {
		case !more:
			sleep(ctx, r.every)
		case time.Since(summed) > rollUpEvery && !s.sumUp(ctx):
			// Without pauses between its steps nobody else comes to the sums.
			summed = time.Now()
		}
	}
}

// retention goes through the store again and again.
type retention struct {
	*session
	store   store.Retainer
	every   time.Duration                      // how long it waits after a pass
	from    map[time.Duration]store.RetainMark // for each age, where the jobs begin that were too young
	stuck   map[time.Duration]stuck            // for each age, where passes ended in vain
	clean   map[time.Duration]time.Time        // for each age, when the last pass began that came to its end: what was old then is gone
	whole   wholePass
	deleted int // how many jobs since the last event
}

func newRetention(s *session, st store.Retainer) *retention {
	r := &retention{session: s, store: st, from: map[time.Duration]store.RetainMark{}, stuck: map[time.Duration]stuck{}, clean: map[time.Duration]time.Time{}}
	// What is kept for seconds is not to stay for minutes.
	r.every = min(retainEvery, max(s.config.Retention.Shortest()/2, store.MinRetention))
	for _, age := range s.config.Retention.Ages() {
		r.clean[age] = time.Now()
	}
	return r
}

// wholePass goes through everything, in turns with the passes for each age.
type wholePass struct {
	due   time.Time          // when the next one begins
	parts []store.RetainPart // those that are left
	from  store.RetainMark   // where the first of them goes on
	until store.Position     // where jobs end: what is after it no pass for an age has passed
	took  time.Duration
}

// stuck is a job that was too young in so many passes in turn that ended in vain.
type stuck struct {
	young  store.RetainMark
	passes int
}

// inVain returns where the next pass for an age begins after one that ended in vain.
func (r *retention) inVain(age time.Duration, young, next store.RetainMark) store.RetainMark {
	s := stuck{young, 1}
	if was := r.stuck[age]; was.young == young {
		s.passes += was.passes
	}
	if r.stuck[age] = s; s.passes < retainAgain {
		return young
	}
	return next
}

// deleteOld deletes the jobs that have grown old since the last pass, and reports whether there
// are more.
func (r *retention) deleteOld(ctx context.Context) (more bool, err error) {
	for _, age := range r.config.Retention.Ages() {
		began := time.Now()
		next, left, err := r.pass(ctx, store.RetainStep{Part: store.RetainJobs, Age: age, From: r.from[age]}, r.clean[age].Add(r.every+retainBehind))
		if err != nil {
			return false, err
		}
		if r.from[age] = next; !left {
			r.clean[age] = began
		}
		more = more || left
	}
	return more, nil
}

// passAll goes on with the whole pass, if one is due, and reports whether there is more of it.
func (r *retention) passAll(ctx context.Context) (more bool, err error) {
	w := &r.whole
	if len(w.parts) == 0 && !time.Now().Before(w.due) {
		*w = wholePass{parts: store.RetainParts}
		for _, mark := range r.from {
			w.until = max(w.until, mark.Pos)
		}
	}
	for len(w.parts) > 0 {
		began, part := time.Now(), w.parts[0]
		w.from, more, err = r.pass(ctx, store.RetainStep{Part: part, From: w.from}, began.Add(retainBehind))
		if w.took += time.Since(began); err != nil {
			return false, err
		}
		if more && !(part == store.RetainJobs && w.from.Pos >= w.until) {
			return true, nil
		}
		w.parts, w.from = w.parts[1:], store.RetainMark{}
		w.due = time.Now().Add(max(retainWhole, retainShare*w.took))
	}
	return false, nil
}

// pass does one step after the other, with pauses as long as the steps, so that other work gets its
// turn, unless it goes on after a time when it is late. It returns where the next pass is to begin,
// and whether there is more to do at once. One for an age begins at the first job that is too
// young, or after those of them that are left to whole passes.
func (r *retention) pass(ctx context.Context, step store.RetainStep, late time.Time) (next store.RetainMark, more bool, err error) {
	step.Limit, step.Keep = retainLeast, r.config.Retention
	step.Under = store.LeaseGuard{Lease: store.LeaseRetention, Engine: r.token}
	var young store.RetainMark
	inVain := 0
	for turn := time.Now().Add(retainTurn); ; {
		began := time.Now()
		limit, cancel := context.WithTimeout(ctx, retainPatience)
		done, err := r.store.Retain(limit, step)
		cancel()
		if err != nil {
			return step.From, false, err
		}
		if step.Part == store.RetainJobs {
			r.deleted += done.Deleted
			r.note(done.Deleted)
		}
		if step.Age != 0 {
			young = cmp.Or(young, done.Young)
		}
		if step.From = done.Next; !done.More {
			return cmp.Or(young, done.Next), false, nil
		}
		if inVain += step.Limit; done.Deleted > 0 || young == (store.RetainMark{}) {
			inVain = 0
		}
		if inVain >= retainInVain {
			return r.inVain(step.Age, young, done.Next), false, nil
		}
		took := time.Since(began)
		if began.Before(late) || done.Deleted < step.Limit/2 {
			sleep(ctx, took)
		}
		if ctx.Err() != nil {
			return step.From, false, ctx.Err()
		}
		if time.Now().After(turn) {
			return cmp.Or(young, done.Next), true, nil
		}
		step.Limit = retainNext(step.Limit, took)
	}
}

// retainNext is how many rows the step after one that took so long looks at.
func retainNext(limit int, took time.Duration) int {
	switch {
	case took > retainStep:
		limit = int(int64(limit) * int64(retainStep) / int64(took))
	case took < retainStep/2:
		limit *= 2
	}
	return min(max(limit, retainLeast), retainMost)
}

// note counts deleted jobs, and how late the latest of all passes is.
func (r *retention) note(deleted int) {
	var clean time.Time
	var kept time.Duration
	for age, at := range r.clean {
		if due := at.Add(age / 10); clean.IsZero() || due.Before(clean.Add(kept/10)) {
			clean, kept = at, age
		}
	}
	r.meters.retains(deleted, clean, kept)
}

// report emits how many jobs were deleted.
func (r *retention) report() {
	if r.deleted > 0 {
		r.emit(event.Event{Type: event.EventRetained, Engine: r.token, Count: r.deleted})
		r.deleted = 0
	}
}

// rollUpEvery is how often each engine rolls up the statistics, unless another one did.
const rollUpEvery = time.Minute

// longestRollUp bounds one step, which may have much to read.
const longestRollUp = 5 * time.Minute

// rollUpStats keeps what has to be read for statistics small.
func (s *session) rollUpStats(ctx context.Context) {
	for sleep(ctx, spread(s.shared(rollUpEvery))) {
		for s.sumUp(ctx) && ctx.Err() == nil {
		}
	}
}

// sumUp does one step of that, and reports whether there is more to do.
func (s *session) sumUp(ctx context.Context) (more bool) {
	store, ok := s.store.(report.StatsStore)
	if !ok {
		return false
	}
	limit, cancel := context.WithTimeout(ctx, longestRollUp)
	defer cancel()
	more, err := store.SumUp(limit)
	if err != nil {
		s.trouble(ctx, "sum up statistics", err)
	}
	return more
}
