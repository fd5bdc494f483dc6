package store

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
)

// Retainer deletes jobs that ended long ago.
type Retainer interface {
	// Retain does one step of what keeps a store from growing for ever, in a
	// transaction of its own, and says where the next step begins. It reads
	// and deletes about as much as the request's limit says, however much there
	// is.
	//
	// The age of a job counts from its final outcome, by the store's clock,
	// whichever outcome that was. It goes with all that is known of it, as when
	// a person deletes it ([Operator.Delete]): a job that has not ended is not
	// touched, and what an engine repeats does not bring it back. Its
	// idempotency key is forgotten when its age has passed too, and at least
	// 24 hours after the enqueue.
	//
	// Of what engines did those claims go of whose entries none is left; not a
	// lane's newest, from which it goes on, nor one that others point to or
	// that an engine may still name. So do the histories of engines which
	// ended before any job that is left. What people changed ([ChangeKeeper]) goes
	// after [ChangesKept], however long jobs are kept.
	//
	// [ErrNotHeld] when the request is under a lease that its engine does not
	// hold; then nothing was done. No other engine gets the lease before the
	// step has ended.
	Retain(ctx context.Context, r RetainStep) (Retained, error)
}

// RetainPart is one of the things to go through. The order matters: what jobs
// left behind is found when they are gone.
type RetainPart string

// The parts.
const (
	RetainJobs    RetainPart = "jobs"
	RetainClaims  RetainPart = "claims"
	RetainKeys    RetainPart = "keys"
	RetainEngines RetainPart = "engines"
	RetainChanges RetainPart = "changes"
)

// RetainParts are all of them, in their order.
var RetainParts = []RetainPart{RetainJobs, RetainClaims, RetainKeys, RetainEngines, RetainChanges}

// RetainStep says what one step is to do.
type RetainStep struct {
	Part  RetainPart
	From  RetainMark // where it begins; the zero value is the beginning
	Limit int        // how many rows to look at, at most
	Keep  Retention
	Under LeaseGuard // the lease under which that is done, if it is

	// Age confines the part of jobs to those that are kept for exactly so long;
	// zero means all. Whoever remembers where the last pass for each age came to
	// need not look at the same jobs again and again.
	Age time.Duration
}

// RetainMark is how far one part has come. What it holds is the store's
// business.
type RetainMark struct {
	Pos  Position
	Lane LaneID
	N    int64
}

// Retained is what one step did.
type Retained struct {
	Deleted int        // how many jobs, claims, keys, engines or changes
	Next    RetainMark // where the next step begins
	More    bool       // whether there is more to look at now; if not, what is behind Next is too young
	Young   RetainMark // where the first job is that is yet too young, if one was met; a later pass begins there
}

// DefaultRetention is how long a job is kept after it ended, unless somebody
// says otherwise.
const DefaultRetention = 5 * 24 * time.Hour

// Forever as a time to keep jobs means that they are never deleted.
const Forever time.Duration = math.MaxInt64

// KeepFor says how long jobs are kept after they ended, by how they ended. A time
// of zero says nothing; [Forever] is for ever. Parts of a microsecond do not count.
type KeepFor struct {
	All       time.Duration // those of which nothing else is said
	Completed time.Duration
	Failed    time.Duration // also those that were lost or expired
	Cancelled time.Duration
}

func (k *KeepFor) of(state stint.State) *time.Duration {
	switch state {
	case stint.Completed:
		return &k.Completed
	case stint.Failed:
		return &k.Failed
	case stint.Cancelled:
		return &k.Cancelled
	}
	return &k.All
}

// Retention says how long the jobs of each queue are kept after they ended. The
// zero value keeps all of them for [DefaultRetention].
//
// What is said of a queue wins over what is said of all, and what is said of a
// state over what is said of all states.
type Retention struct {
	KeepFor
	Queues map[string]KeepFor
}

// Of is how long a job of a queue is kept that ended in a state.
func (r Retention) Of(queue string, state stint.State) time.Duration {
	q := r.Queues[queue]
	for _, d := range []time.Duration{*q.of(state), q.All, *r.of(state), r.All} {
		if d != 0 {
			return d
		}
	}
	return DefaultRetention
}

// finalStates are those that a job ends in.
var finalStates = []stint.State{stint.Completed, stint.Failed, stint.Cancelled}

// Ages are the times that jobs are kept for, the shortest first, each once and
// without [Forever].
func (r Retention) Ages() []time.Duration {
	var ages []time.Duration
	for _, rule := range r.Rules() {
		if rule.Age != Forever {
			ages = append(ages, rule.Age)
		}
	}
	slices.Sort(ages)
	return slices.Compact(ages)
}

// Shortest is the first of [Retention.Ages], or [Forever].
func (r Retention) Shortest() time.Duration {
	return append(r.Ages(), Forever)[0]
}

// MinRetention is the shortest time that [Retention.Check] lets jobs be kept for:
// whoever waits for one must get to see how it ended.
const MinRetention = time.Second

// Check reports what is wrong, or nil.
func (r Retention) Check() error {
	for _, queue := range slices.Sorted(maps.Keys(r.Queues)) {
		if err := valid.Queue(queue); err != nil {
			return err
		}
	}
	for _, line := range r.Lines() {
		if d := *line.kept.of(line.state); d < MinRetention {
			return valid.Invalid("retention", "%v of %s is shorter than %v", d, line.Name, MinRetention)
		}
	}
	return nil
}

// Set says one thing more, by its name: a state, "*" for all of them, or either
// after a queue and a colon; "mail:completed", "mail:*". The text is a duration
// or "forever".
func (r *Retention) Set(name, text string) error {
	queue, state, ofQueue := "", name, false
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		queue, state, ofQueue = name[:i], name[i+1:], true
		if err := valid.Queue(queue); err != nil {
			return err
		}
	}
	if state != "*" && !slices.Contains(finalStates, stint.State(state)) {
		return valid.Invalid("retention", "%q is no state that a job ends in: write completed, failed, cancelled or *", state)
	}
	d, err := parseKept(text)
	if err != nil {
		return err
	}
	if !ofQueue {
		*r.of(stint.State(state)) = d
		return nil
	}
	kept := r.Queues[queue]
	*kept.of(stint.State(state)) = d
	if r.Queues == nil {
		r.Queues = map[string]KeepFor{}
	}
	r.Queues[queue] = kept
	return nil
}

func parseKept(text string) (time.Duration, error) {
	if text == "forever" {
		return Forever, nil
	}
	d, err := retry.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%w, or forever", err)
	}
	if d < MinRetention {
		return 0, valid.Invalid("retention", "%s is shorter than %v", text, MinRetention)
	}
	return d, nil
}

// RetentionLine is one thing that is said.
type RetentionLine struct {
	Name string // as [Retention.Set] takes it
	Text string

	kept  *KeepFor
	state stint.State
}

// Lines lists what is said, what is said of all queues first.
func (r Retention) Lines() []RetentionLine {
	var lines []RetentionLine
	add := func(prefix string, kept KeepFor) {
		for _, state := range append([]stint.State{"*"}, finalStates...) {
			d := *kept.of(state)
			if d == 0 {
				continue
			}
			text := "forever"
			if d != Forever {
				text = retry.FormatDuration(d)
			}
			lines = append(lines, RetentionLine{prefix + string(state), text, &kept, state})
		}
	}
	add("", r.KeepFor)
	for _, queue := range slices.Sorted(maps.Keys(r.Queues)) {
		add(queue+":", r.Queues[queue])
	}
	return lines
}

// RetentionRule is one line of a table that stores compare jobs with.
type RetentionRule struct {
	Queue string // "" for every queue that has no rule
	State stint.State
	Age   time.Duration // [Forever] for never
}

// Rules are what a retention comes to: for each queue that something is said
// of, and for all others, one rule for each state.
func (r Retention) Rules() []RetentionRule {
	var rules []RetentionRule
	for _, queue := range append([]string{""}, slices.Sorted(maps.Keys(r.Queues))...) {
		for _, state := range finalStates {
			rules = append(rules, RetentionRule{queue, state, r.Of(queue, state)})
		}
	}
	return rules
}
