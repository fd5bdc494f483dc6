package check

import (
	"cmp"
	"slices"
	"time"
)

// Options say what the test did, and what it promises about the moment at
// which the accounts were taken.
type Options struct {
	// Drained says that the engines were let run until nothing was left to
	// do: every job must be final.
	Drained bool

	// Strangers allows jobs that nobody logged, such as those of schedules.
	Strangers bool

	// Clean are the engines that stopped in good order.
	Clean []int64

	// Deleted are the jobs that the test deleted, or tried to.
	Deleted []Deletion

	// Disturbances are all that the test did to processes, and only with
	// them can a loss or an overlap be explained.
	Disturbances []Disturbance

	// Bound is how long two runs may overlap after the second one began, or
	// after the first one's process was thawed or heeds its cancellation, if
	// that is later. Default 2 s.
	Bound time.Duration

	// Aftermath is how long a disturbance that is over still explains what
	// happened: a run that began later had nothing to do with it. Default 10 s,
	// which is more than any time to live by which somebody is buried.
	Aftermath time.Duration

	// Burials are those of which it is known when they were, by the clock of this
	// machine. They win over those of the facts, which the store's clock dates.
	Burials map[int64]time.Time

	// Failover is what was lost with a server that another one took the place
	// of. Nil when nothing was.
	Failover *Failover

	// Slack is how far the store's clock may be wrong: give it where the test
	// sets that clock.
	Slack time.Duration

	replaced Instant // when the server was, by one that may lack what had begun
}

func (o *Options) bound() time.Duration { return cmp.Or(o.Bound, 2*time.Second) }

func (o *Options) aftermath() time.Duration { return cmp.Or(o.Aftermath, 10*time.Second) }

// slack is how far the store's clock may be from this machine's.
func (o *Options) slack() time.Duration { return cmp.Or(o.Slack, time.Second) }

// Disturbance is something that a test did to a process, an engine, or, with
// neither named, to all of them.
type Disturbance struct {
	Does    Does
	Process string // by the name in the history
	Engine  int64  // or by the token
	From    Instant
	To      Instant // when that was over; 0 when it never was
}

// Deletion is a job that had ended and that a test deleted, with all that the
// database knew of it.
type Deletion struct {
	Job int64

	// At is when the database said that it was gone; 0 when the answer was
	// lost. Then it may be there or not.
	At Instant
}

// Does says what a disturbance does.
type Does string

// The disturbances.
const (
	Kills     Does = "killed"             // the process ended at From, with all of its handlers
	Freezes   Does = "frozen"             // it stood still and went on later
	CutsOff   Does = "cut off"            // it could not reach the database, and knew
	FailsOver Does = "failed over"        // the server that knew of its claim was replaced by one that did not: see [Failover]
	Deafens   Does = "deaf to its signal" // its handlers did not heed their cancellation until To
	Stops     Does = "told to stop"       // in good order: attempts under way are returned, and nothing else is explained
)

// hits reports whether the disturbance concerns a run.
func (d *Disturbance) hits(h *History, r *Run) bool {
	return d.Process == "" && d.Engine == 0 ||
		d.Process != "" && d.Process == h.Processes[r.Process].Name ||
		d.Engine != 0 && d.Engine == r.Engine
}

// reaches reports whether the disturbance may be why the engine of a run was
// buried: it began before, and one that is over leaves its marks on runs that
// began before, or soon after. The burial itself may come late, when there is
// nobody to do it.
func (d *Disturbance) reaches(h *History, r *Run, b burial, aftermath time.Duration) bool {
	return d.Does != Stops && d.hits(h, r) && d.From <= b.latest && (d.To == 0 || r.Start <= d.To.Add(aftermath))
}

// Compare holds the history of a test against the facts of its database. It
// sorts both in place, and fills in the engines that runs do not name.
func Compare(h *History, f *Facts, opt Options) *Report {
	if opt.Failover != nil {
		return opt.Failover.compare(h, f, opt)
	}
	opt.Bound = opt.bound()
	c := newChecker(h, f, opt)
	others, known := split(h.Enqueues)
	c.expect(others)
	c.engines()
	tell(f, known, h.Runs, func(s *story) {
		if c.deleted(s) {
			return
		}
		c.invariants(s)
		c.origin(s)
		c.drained(s)
		c.handlers(s)
		c.holds(s)
		c.ran(s)
	})
	c.limits()
	c.needs()
	c.flows(len(opt.Deleted) == 0)
	c.absent()
	c.whole(others)
	c.occurrences()
	c.kept()
	c.accepted()
	return c.report
}

// Invariants checks what must hold of a store at any moment, whatever
// happened to it. It sorts the facts in place. It returns nil when nothing is
// wrong, else the first [Shown] violations of each rule.
func Invariants(f *Facts) []Violation {
	c := newChecker(new(History), f, Options{})
	c.engines()
	tell(f, nil, nil, c.invariants)
	c.needs()
	c.flows(false)
	c.occurrences()
	c.kept()
	return c.report.Violations
}

// checker carries one comparison.
type checker struct {
	history *History
	facts   *Facts
	opt     Options
	report  *Report

	taken   []taking // by position
	roster  map[int64]bool
	clean   map[int64]bool
	gone    map[int64]Instant   // jobs that were deleted, or may have been: when that was answered, or 0
	others  map[string]*promise // the enqueues that were not committed, by key
	gates   map[gate][]held     // the runs under each
	members map[int64]*fate     // the jobs of flows, and the flows; nil when there are none
	runs    []int               // what [checker.match] works on, kept for the next story
	best    []int               // and its table
	strays  int                 // jobs that were deleted, or may have been, and that no enqueue is known of
}

func newChecker(h *History, f *Facts, opt Options) *checker {
	sortByJob(f, h)
	c := &checker{
		history: h, facts: f, opt: opt,
		report: &Report{Enqueues: len(h.Enqueues), Runs: len(h.Runs), Torn: h.Torn, Reruns: map[string]int{}},
		taken:  takings(f.Claims),
		roster: set(f.Roster),
		clean:  set(opt.Clean),
		gates:  map[gate][]held{},
		gone:   make(map[int64]Instant, len(opt.Deleted)),
	}
	for _, d := range opt.Deleted {
		c.gone[d.Job] = max(c.gone[d.Job], d.At)
	}
	c.strays = len(c.gone)
	if slices.ContainsFunc(f.Jobs, func(j Job) bool { return j.IsFlow }) {
		c.members = map[int64]*fate{}
	}
	return c
}

func set(tokens []int64) map[int64]bool {
	return index(tokens, func(t *int64) (int64, bool) { return *t, true })
}

// invariants checks what the facts say about one job.
func (c *checker) invariants(s *story) {
	c.identity(s)
	c.executions(s)
	c.place(s)
	c.key(s)
	c.attempts(s)
	for i := range s.entries {
		c.claim(&s.entries[i], s.done[i])
	}
	c.member(s)
}
