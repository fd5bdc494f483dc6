package stint

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/stint-go/stint/retry"
)

// Option sets a field of a job that is enqueued, or the default of all jobs of a kind.
// A job's own options override its kind's.
type Option func(*NewJob)

// Delay starts the job no earlier than d after the enqueue, by the store's clock. Zero
// means at once. A negative delay is refused, here as everywhere: what counts
// from a date that may be past is [RunAt]. Of Delay and RunAt the one that is said last counts, so that a job may say
// otherwise than its kind.
func Delay(d time.Duration) Option {
	return func(j *NewJob) { j.Delay, j.RunAt = d, time.Time{} }
}

// RunAt starts the job no earlier than t, by the store's clock. A time in the past
// means at once. It takes the place of a [Delay].
func RunAt(t time.Time) Option {
	return func(j *NewJob) { j.Delay, j.RunAt = 0, t }
}

// Queue puts the job into a queue.
func Queue(name string) Option { return func(j *NewJob) { j.Queue = name } }

// Priority orders jobs within their queue: lower first, -100 to 100,
// normally 0.
func Priority(p int) Option { return func(j *NewJob) { j.Priority = p } }

// Retry sets the policy after a failure.
func Retry(p retry.Policy) Option { return func(j *NewJob) { j.Retry = p } }

// Timeout bounds each attempt: after it the handler's context is cancelled
// with [ErrTimeout]. A handler that ignores its context cannot be ended: it keeps its
// slot, and after a while the engine reports it ([event.EventTrouble]).
//
// A flow is cancelled, with all of its jobs, when it has not ended after this time, counted from when it was enqueued,
// or retried. What waits is cancelled then, and what runs is asked to stop.
func Timeout(d time.Duration) Option { return func(j *NewJob) { j.Timeout = d } }

// StartBy is the time, by the store's clock, after which no attempt of the job begins, also
// no retry: the job fails then, as expired. An attempt that runs goes on; [Timeout]
// bounds that.
//
// The engine that claims the job finds out. Until then, for example while its queue is
// paused or no engine runs, the job is shown as available or scheduled. With a time in
// the past it expires at once. The zero time means no bound.
func StartBy(t time.Time) Option {
	return func(j *NewJob) { j.StartBy, j.StartWithin = t, 0 }
}

// StartWithin is [StartBy] counted by the store's clock from when the job is
// due: from the enqueue, or from the time that [Delay] or [RunAt] set. Zero means
// no bound. As a default of a kind it holds for each job without its own.
func StartWithin(d time.Duration) Option {
	return func(j *NewJob) { j.StartBy, j.StartWithin = time.Time{}, d }
}

// MaxLosses is how often the job may be lost with an engine that died while
// it ran, by default [DefaultMaxLosses]. Zero means at most once.
func MaxLosses(n int) Option { return func(j *NewJob) { j.MaxLosses = &n } }

// Tag adds labels to the job.
func Tag(tags ...string) Option {
	return func(j *NewJob) {
		for _, tag := range tags {
			if !slices.Contains(j.Tags, tag) {
				j.Tags = append(j.Tags, tag)
			}
		}
	}
}

// URN names the thing that the job is about.
func URN(urn string) Option { return func(j *NewJob) { j.URN = urn } }

// Source says where the job came from.
func Source(s string) Option { return func(j *NewJob) { j.Source = s } }

// Correlation sets an id that is the same for all jobs that belong together. Jobs that
// the job's handler enqueues inherit it: see [WithCorrelation].
func Correlation(id string) Option { return func(j *NewJob) { j.Correlation = id } }

// IdempotencyKey makes it safe to enqueue again: of all enqueues with one key only
// the first stores a job, and the others return its ID (see [Receipt]). So a producer
// that does not know whether its enqueue was stored repeats it.
//
//	client.Enqueue(ctx, job, …)         // the connection breaks
//	client.Enqueue(ctx, job, …)         // the same job, stored once
//
// A key stands for a kind and its arguments, compared as JSON values: under the
// same key another kind or other arguments are refused with a
// [KeyConflictError]. Queue, times, tags and the like are those of the first.
//
// All kinds and queues of a database share the keys, so begin a key with what it is
// about: "invoice:42:reminder". A key has 1 to 255 bytes. It is remembered for at
// least a day, and for as long as its job is kept after it ended: see
// [store.Retention].
//
// In a caller's transaction the key is taken when that commits. Until it ends, other
// enqueues with the same key wait for it. Two transactions that take the same
// two keys in opposite order wait for each other; PostgreSQL notices after
// a second and ends one with an error.
func IdempotencyKey(key string) Option { return func(j *NewJob) { j.IdempotencyKey = key } }

// Metadata stores a JSON object beside the arguments.
func Metadata(object json.RawMessage) Option { return func(j *NewJob) { j.Metadata = object } }
