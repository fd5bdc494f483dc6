package report

import (
	"context"
	"time"

	"github.com/stint-go/stint/store"
)

// MetricsWriter takes the metrics of engines: a store that keeps them, or a program
// that sends them somewhere.
type MetricsWriter interface {
	// WriteMetrics is given the newest figures of an engine, which take the
	// place of those before: counters count on from one call to the next. An
	// engine makes one call at a time, from a goroutine that does nothing else,
	// so that a writer which fails, panics or hangs holds up no work. After an
	// error it is called again, with newer figures.
	WriteMetrics(ctx context.Context, m Metrics) error
}

// MetricsKeeper is a store that keeps the metrics of engines. An engine that
// is made again, as when a process restarts, counts from 0 and is kept
// beside the old one: Instance and Since together tell them apart. What is kept
// of an engine that is gone goes five days after it was written.
type MetricsKeeper interface {
	MetricsWriter

	// EngineMetrics lists what is kept, the newest first.
	EngineMetrics(ctx context.Context) ([]Metrics, error)
}

// Metrics are what one engine has counted since it was made. They are for
// people and for monitoring: what became of a job is in its executions alone. Durations are nanoseconds in JSON.
type Metrics struct {
	Instance string         `json:"instance"`
	Engine   store.EngineID `json:"engine,string"` // of the current or last time in the roster; 0 before the first
	Since    time.Time      `json:"since"`         // when the counting began
	At       time.Time      `json:"at"`            // when this was read

	Listener ListenerMetrics `json:"listener"`
	Claimer  ClaimerMetrics  `json:"claimer"`
	Workers  WorkerMetrics   `json:"workers"`
	Finisher FinisherMetrics `json:"finisher"`
	Prefetch PrefetchMetrics `json:"prefetch"`
	Writer   WriterMetrics   `json:"writer"`

	Retention RetentionMetrics `json:"retention,omitzero"`

	Kinds map[string]Durations `json:"kinds,omitempty"` // how long attempts took, by kind

	// Missed are steps that jobs had recorded which completed without coming to them, and that no run of the
	// engine has called: the program seems to have them no more. There are a hundred at most.
	Missed []MissedStep `json:"missed_steps,omitempty"`
}

// MissedStep is a step that earlier runs recorded and that the run which completed did not come to.
type MissedStep struct {
	Kind string    `json:"kind"`
	Step string    `json:"step"` // its name, with # for each number
	Jobs int64     `json:"jobs"` // that completed so
	Last time.Time `json:"last"` // when the last of them did
}

// ListenerMetrics are about notifications.
type ListenerMetrics struct {
	Notifications int64 `json:"notifications"` // how often the store notified
	Reconnects    int64 `json:"reconnects"`    // how often listening began again
	Timeouts      int64 `json:"timeouts"`      // how often an idle engine looked because nothing was heard
}

// ClaimerMetrics are about taking work.
type ClaimerMetrics struct {
	Claims    int64     `json:"claims"`     // requests for entries that were answered
	Empty     int64     `json:"empty"`      // with none, of these
	Claimed   int64     `json:"claimed"`    // entries that were taken
	SlotWaits int64     `json:"slot_waits"` // how often there was no room to take more
	Returned  int64     `json:"returned"`   // entries that were handed back unstarted
	Took      Durations `json:"took"`       // a request
}

// WorkerMetrics are about attempts. One that was snoozed, or handed back by a
// stop, has run and is neither of the three that follow.
type WorkerMetrics struct {
	Slots     int64         `json:"slots"`               // how many may go on at once, now
	MaxSlots  int64         `json:"max_slots,omitempty"` // how many there may be, if the engine finds their number by itself
	SlotsWhy  string        `json:"slots_why,omitempty"` // why it has as many as it has: a sentence
	Running   int64         `json:"running"`             // now
	Run       int64         `json:"run"`                 // attempts that ended and are recorded
	Succeeded int64         `json:"succeeded"`           // of these
	Failed    int64         `json:"failed"`
	Cancelled int64         `json:"cancelled"`
	Working   time.Duration `json:"working"` // of all attempts together
}

// FinisherMetrics are about recording how attempts ended.
type FinisherMetrics struct {
	Outcomes int64     `json:"outcomes"` // that are recorded, of entries that were not begun as well
	Flushes  int64     `json:"flushes"`  // batches that these were recorded in
	Retries  int64     `json:"retries"`  // flushes that had to be tried again
	Took     Durations `json:"took"`     // a flush
}

// PrefetchMetrics are about what waits in the engine for a slot.
type PrefetchMetrics struct {
	Max   int64 `json:"max"`   // the most that ever waited after a claim
	Min   int64 `json:"min"`   // the least that waited when there was more to claim: how close slots came to starving
	Full  int64 `json:"full"`  // how often a claim filled it up
	Empty int64 `json:"empty"` // how often a slot found nothing
}

// RetentionMetrics are about the deletion of jobs that ended long ago, which one engine does for all.
type RetentionMetrics struct {
	Deleted int64 `json:"deleted"` // jobs

	// Clean is when nothing was left that should have been gone, nearly: as of then a pass came to
	// its end. Zero while another engine deletes. Kept is for how long the jobs are kept whose pass
	// is the latest.
	Clean time.Time     `json:"clean,omitzero"`
	Kept  time.Duration `json:"kept,omitempty"`
}

// Late is how much longer than [RetentionMetrics.Kept] jobs may have been there when
// the figures were read.
func (m Metrics) Late() time.Duration {
	if m.Retention.Clean.IsZero() {
		return 0
	}
	return m.At.Sub(m.Retention.Clean)
}

// WriterMetrics are about writing these figures to a [MetricsWriter].
type WriterMetrics struct {
	Reports int64     `json:"reports"` // figures that were to be written
	Writes  int64     `json:"writes"`  // and were
	Retries int64     `json:"retries"` // writes that failed and were tried again, or are to be by the next report
	Took    Durations `json:"took"`    // a write
}
