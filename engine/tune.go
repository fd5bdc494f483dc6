package engine

import (
	"math"
	"time"
)

// tuner finds how many slots an engine has use for, between two bounds. It climbs the hill of throughput
// by trials, as the thread pool of .NET does (Hellerstein, Morrison and Eilebrecht, Optimizing Concurrency
// Levels in the .NET ThreadPool, 2008): it measures at one number, tries another one, and keeps what does
// better. The first trials double the number, like the slow start of TCP; one that fails makes the next
// ones smaller and later, one that does not makes them larger. Trials of fewer slots follow those of more, so that an error is corrected.
//
// Throughput is not counted, since jobs of a second and of a millisecond come in any order. By Little's
// law it is the number of slots divided by how long a job holds one. So the tuner compares, for each kind,
// how long slots were held for each attempt that did not fail: the gradient of Netflix's
// concurrency-limits, but against the last number and not against the best time ever, which means nothing
// once a handler or what it calls has changed.
//
// It is a pure state machine: all that it knows comes with the samples. It belongs to one goroutine.
type tuner struct {
	min, max int

	n     int     // the number that did best
	trial int     // the number that is tried; n if none is
	reach float64 // the next trial is for this share more
	fewer bool    // or for fewer
	rest  time.Duration
	left  time.Duration // of the rest between two trials, in time with a backlog
	why   string        // of what it did last

	base window // the last one at n
	now  window // the one that goes on, at trial
}

func newTuner(least, most int) *tuner {
	return &tuner{min: least, max: most, n: least, trial: least, reach: firstReach, why: whyLeast}
}

// Why the number is what it is, for people.
const (
	whyLeast = "it starts with as many, and tries more when jobs wait and some have ended"
	whyTrial = "it tries whether they do better"
	whyMore  = "more slots did more"
	whyNot   = "more slots did no more"
	whyLate  = "with more slots the database took longer or failed"
	whyFull  = "the processor or the memory is in use"
	whyFewer = "fewer slots did as much"
	whyNeeds = "fewer slots did less"
	whyEnd   = "not all slots were in use"
)

const (
	firstReach, leastReach = 1.0, 0.25

	// A number is right if the last slots bring at least this share of what slots bring on average.
	worth = 0.5

	// A window is at least so long, as many times as long as a job, and as many jobs as there are slots and
	// one for each of a few; it ends when the standard error is this share of what the trial changes, or after
	// longestWindow, or longJobs times as long as a job.
	leastWindow   = 250 * time.Millisecond
	windowJobs    = 5
	leastRuns     = 16
	precision     = 1.0 / 12
	longestWindow = time.Minute
	longJobs      = 3 * windowJobs

	// A trial in which jobs do not end is over after this many times as long as the window before it.
	trialWindows = 4

	firstRest, longestRestOfTrials = 2 * time.Second, time.Minute

	// drift is how much longer or shorter jobs take at the same number before the rest ends.
	drift = 1.25

	// If a flush takes longer than this, and grows by more than the slots do, the database cannot do more.
	lateFlush = 50 * time.Millisecond
)

// sample is what happened since the sample before it, while the number did not change.
type sample struct {
	elapsed time.Duration
	kinds   map[string]spent // of attempts that began and ended within the window that goes on
	backlog bool             // all slots are taken, and more waits
	idle    bool             // there is nothing to do
	full    bool             // there is no processor time or memory for more

	flushes, retried int64 // of outcomes
	flushing         time.Duration
}

// spent is what attempts of a kind cost.
type spent struct {
	runs, good int     // attempts, or batches; jobs of these that did not fail
	held       float64 // for how many seconds altogether they held slots
	squares    float64 // the sum of the squares of that
}

func (c *spent) add(more spent) {
	c.runs, c.good, c.held, c.squares = c.runs+more.runs, c.good+more.good, c.held+more.held, c.squares+more.squares
}

// window is what was measured at one number.
type window struct {
	samples, idle, full int
	elapsed             time.Duration
	kinds               map[string]spent
	flushes, retried    int64
	flushing            time.Duration
}

func (w *window) add(s sample) {
	if w.samples++; s.full {
		w.full++
	}
	w.elapsed += s.elapsed
	w.flushes, w.retried, w.flushing = w.flushes+s.flushes, w.retried+s.retried, w.flushing+s.flushing
	if w.kinds == nil {
		w.kinds = map[string]spent{}
	}
	for kind, more := range s.kinds {
		c := w.kinds[kind]
		c.add(more)
		w.kinds[kind] = c
	}
}

// total returns the sum over all kinds, and how far off that may be: the standard error of what jobs held,
// as a share of it.
func (w *window) total() (all spent, off float64) {
	variance := 0.0
	for _, c := range w.kinds {
		all.add(c)
		variance += max(0, c.squares-c.held*c.held/float64(max(1, c.runs)))
	}
	if all.held == 0 {
		return all, math.Inf(1)
	}
	return all, math.Sqrt(variance) / all.held
}

// complete reports whether the window says enough of n slots for a trial that reaches so far.
func (w *window) complete(n int, reach float64) bool {
	all, off := w.total()
	if all.good == 0 || all.runs < max(n, leastRuns) {
		return false
	}
	mean := time.Duration(all.held / float64(all.runs) * float64(time.Second))
	return w.elapsed >= max(leastWindow, windowJobs*mean) && (off <= precision*reach || w.elapsed >= max(longestWindow, longJobs*mean))
}

// speed returns how much faster slots got through the jobs of w than through those of before, kind by
// kind: 1 for as fast, and how far off that may be. Without a kind in common it is 0.
func (w *window) speed(before *window) (speed, off float64) {
	was, is := 0.0, 0.0
	for kind, c := range w.kinds {
		if b := before.kinds[kind]; b.good > 0 {
			was, is = was+float64(c.good)*b.held/float64(b.good), is+c.held
		}
	}
	if is == 0 {
		return 0, 0
	}
	_, one := before.total()
	_, other := w.total()
	return was / is, was / is * math.Hypot(one, other)
}

// late reports whether the database failed, or took more than so many times as long as before.
func (w *window) late(before *window, times float64) bool {
	mean := func(w *window) time.Duration { return w.flushing / time.Duration(max(1, w.flushes)) }
	return w.retried > 0 || mean(w) > lateFlush && float64(mean(w)) > times*float64(mean(before))
}

// decide takes the next sample and returns how many slots there are from now on. If that is another number,
// or fresh is true, a window begins: attempts that began before do not count.
//
// Without a backlog the number stays what it is: then nothing can be told of it, and it costs nothing.
func (t *tuner) decide(s sample) (n int, fresh bool) {
	if !s.backlog {
		if t.now.idle++; s.idle || t.now.idle > 2+t.now.samples/5 {
			if t.trial != t.n {
				t.trial, t.left, t.why = t.n, firstRest, whyEnd
			}
			t.now = window{}
			return t.n, true
		}
		return t.trial, false
	}
	t.now.add(s)
	switch tries := t.trial != t.n; {
	case tries && t.now.elapsed > max(trialWindows*t.base.elapsed, time.Second) && !t.now.complete(t.trial, t.step()):
		t.back(whyNot)
	case !t.now.complete(t.trial, t.step()):
		t.left = max(0, t.left-s.elapsed)
		if all, _ := t.now.total(); all.good > 0 || t.now.elapsed < longestWindow {
			return t.trial, false
		}
		// What fails for so long says nothing of what comes after it.
	case tries:
		t.judge()
	default:
		t.left = max(0, t.left-s.elapsed)
		t.settle()
	}
	t.now = window{}
	return t.trial, true
}

// step returns what share of the slots the next trial, or the one that goes on, changes.
func (t *tuner) step() float64 {
	if t.fewer {
		return min(t.reach, 2*leastReach)
	}
	return t.reach
}

// settle notes a window at n, and begins a trial after the rest.
func (t *tuner) settle() {
	if t.base.kinds != nil {
		if speed, off := t.now.speed(&t.base); speed-off > drift || speed > 0 && speed+off < 1/drift {
			t.left, t.rest, t.reach, t.fewer = 0, 0, firstReach, speed < 1
		}
	}
	t.base = t.now
	if t.left > 0 {
		return
	}
	full := 2*t.now.full > t.now.samples
	if t.n == t.min {
		t.fewer = false
	} else if t.n == t.max || full {
		t.fewer = true
	}
	switch {
	case t.fewer:
		t.trial = max(t.min, min(t.n-1, int(float64(t.n)/(1+t.step()))))
	case full:
		t.pause(whyFull)
		return
	default:
		t.trial = min(t.max, max(t.n+1, int(float64(t.n)*(1+t.step()))))
	}
	if t.trial != t.n { // the bounds may be the same
		t.why = whyTrial
	}
}

// judge ends a trial.
func (t *tuner) judge() {
	speed, off := t.now.speed(&t.base)
	ratio := float64(t.trial) / float64(t.n)
	// Not to try more again for a while costs little, to have too few for a while much: fewer must be certain.
	if t.fewer || off > 2*precision*t.step() {
		speed -= off
	}
	enough := ratio*speed >= 1+worth*(ratio-1)
	switch {
	case t.fewer && enough:
		t.keep(whyFewer)
	case t.fewer:
		t.back(whyNeeds)
	case t.now.late(&t.base, ratio):
		t.back(whyLate)
	case 2*t.now.full > t.now.samples:
		t.back(whyFull)
	case enough:
		t.keep(whyMore)
	default:
		t.back(whyNot)
	}
}

// keep goes on with the number that was tried, and in the same direction at once.
func (t *tuner) keep(why string) {
	if !t.fewer {
		t.reach = min(firstReach, 2*t.reach)
	}
	t.n, t.base, t.why = t.trial, t.now, why
	t.rest, t.left = 0, 0
}

// back ends a trial that did no better. The next one is for the other direction.
func (t *tuner) back(why string) {
	if !t.fewer {
		t.reach = max(leastReach, t.reach/2)
	}
	t.trial, t.fewer = t.n, !t.fewer
	t.pause(why)
}

// pause puts the next trial off.
func (t *tuner) pause(why string) {
	t.why = why
	t.rest = min(max(firstRest, 2*t.rest), longestRestOfTrials)
	t.left = t.rest
}
