package stint

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/stint-go/stint/retry"
)

// ID names a job for ever. It is drawn from the store's sequence of
// positions when the job is enqueued, is never reused, and is always positive.
type ID int64

// String is the decimal form, as the command line prints it.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// Position is a place in the log of ready work. A job has one for each time
// that it became ready; the first of a job that was ready at once is its ID.
type Position int64

// NewJob is a job on its way into a store: what a producer says about it.
// The zero value of every field but Kind means the kind's default.
//
// Most programs never build one by hand: [Kind.New] and the options of
// [Kind.Enqueue] do.
type NewJob struct {
	// Kind is the name of the type of job. Required.
	Kind string

	// Args are the arguments, any JSON value. Nil means {}.
	Args json.RawMessage

	// Queue is the named group of jobs that this one belongs to. Empty means
	// [DefaultQueue].
	Queue string

	// Priority orders the jobs of a queue: lower first, -100 to 100.
	Priority int

	// RunAt is the instant before which the job is not started. The zero
	// time and one in the past mean at once; the store's clock decides.
	RunAt time.Time

	// Delay is the same counted from the store's clock at the moment of the
	// enqueue, so that a producer whose clock is wrong is still right.
	// At most one of RunAt and Delay may be set.
	Delay time.Duration

	// Retry says what happens after a failure. It is stored with the job.
	// The zero value is [retry.Default].
	Retry retry.Policy

	// Timeout bounds each attempt. Zero means no bound.
	Timeout time.Duration

	// StartBy is the instant after which no attempt begins, retries included: a
	// job that did not begin by then, or would only be tried again behind it,
	// has failed for good, with the reason [ReasonExpired]. What runs by then
	// is not cut. The zero time means no bound; the store's clock decides.
	StartBy time.Time

	// StartWithin is the same counted from when the job is due by the store's
	// clock: from the enqueue, unless RunAt or Delay say otherwise. Zero means
	// no bound. At most one of StartBy and StartWithin may be set.
	StartWithin time.Duration

	// MaxLosses is how often the job may be lost with an engine that died
	// while it ran: with the last of these it has failed. Nil means
	// [DefaultMaxLosses]. Zero means at most once: it is announced before it
	// starts, and never runs again after a crash.
	MaxLosses *int

	// Tags are labels that jobs are found by, each at most once.
	Tags []string

	// URN names the thing that the job is about.
	URN string

	// Source says where the job came from.
	Source string

	// Metadata is context that travels beside the arguments: a JSON object,
	// or nil for none.
	Metadata json.RawMessage

	// Correlation names what the job belongs to together with others. Empty
	// means that of the job whose handler enqueues this one, or else the job's
	// own ID. See [WithCorrelation].
	Correlation string

	// IdempotencyKey makes repetitions of an enqueue harmless: see the option
	// [IdempotencyKey]. Empty means none.
	IdempotencyKey string
}

// Job is one job as its handler sees it: what was enqueued, and which attempt
// this is. A handler owns the value that it is given, apart from Args and
// Metadata, whose bytes must not be written to.
type Job struct {
	ID       ID
	Kind     string
	Args     json.RawMessage
	Queue    string
	Priority int
	Attempt  int // counts from 1; runs that were not charged do not count
	Losses   int // how often an engine died while it ran this job

	MaxLosses int // how often that may happen

	Retry    retry.Policy
	Timeout  time.Duration
	StartBy  time.Time // the instant after which no attempt begins, by the store's clock; zero for none
	Tags     []string
	URN      string
	Source   string
	Metadata json.RawMessage

	// Correlation is the same of all jobs that come from each other: what
	// their producer said, or else the first one's ID. It is never empty.
	Correlation string

	Provenance Provenance // what made it, when no producer did

	Created time.Time // when it was enqueued, by the store's clock
	Due     time.Time // when it was first due, by the store's clock
	Started time.Time // when this attempt began, by the store's clock
}

// Entry is one appearance of a job in the log of ready work: what an engine
// gets when it claims.
type Entry struct {
	Job
	Pos     Position
	Ready   time.Time // when this entry became ready, by the store's clock
	Suspect int       // how closely to watch it, since engines died with it in hand

	// Cancelled says that somebody cancelled the job: it is not to be begun.
	Cancelled bool
}

// ExpiredAt reports whether it is too late at an instant to begin an attempt of
// the job: see [NewJob.StartBy].
func (j *Job) ExpiredAt(t time.Time) bool { return !j.StartBy.IsZero() && t.After(j.StartBy) }

// State says where a job is in its life, as people see it. It is derived from
// the log, never stored.
type State string

// The states of a job. The last three are final.
const (
	Scheduled State = "scheduled" // waiting for its time
	Retrying  State = "retrying"  // failed, waiting for the next attempt
	Blocked   State = "blocked"   // waiting for something else
	Available State = "available" // ready, not yet claimed
	Running   State = "running"   // claimed by an engine
	Completed State = "completed"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// States lists every state, in the order of a job's life.
var States = []State{Scheduled, Retrying, Blocked, Available, Running, Completed, Failed, Cancelled}

// Final reports whether a job in this state stays in it for ever.
func (s State) Final() bool { return s == Completed || s == Failed || s == Cancelled }
