package stint

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/stint-go/stint/retry"
)

// Option says something about a job that is enqueued, or about every job of a
// kind that is declared; what is said of the job wins.
type Option func(*NewJob)

// Delay delays the job, counted by the store's clock from the enqueue. Zero and
// less mean at once.
func Delay(d time.Duration) Option {
	return func(j *NewJob) { j.Delay, j.RunAt = max(0, d), time.Time{} }
}

// RunAt delays the job until an instant of the store's clock. One in the past
// means at once.
func RunAt(t time.Time) Option {
	return func(j *NewJob) { j.Delay, j.RunAt = 0, t }
}

// Queue puts the job into a queue.
func Queue(name string) Option { return func(j *NewJob) { j.Queue = name } }

// Priority orders jobs within their queue: lower first, -100 to 100,
// normally 0.
func Priority(p int) Option { return func(j *NewJob) { j.Priority = p } }

// Retry says what happens after a failure.
func Retry(p retry.Policy) Option { return func(j *NewJob) { j.Retry = p } }

// Timeout bounds each attempt: after it the handler's context is cancelled
// with [ErrTimeout]. Nobody can end a handler that takes no notice: it keeps its
// slot, and when that lasts the engine tells of it ([event.EventTrouble]).
func Timeout(d time.Duration) Option { return func(j *NewJob) { j.Timeout = d } }

// StartBy is the instant of the store's clock by which the job is to begin. Each
// attempt that would begin later, a retry too, is not begun: the job has failed
// for good then, as expired. What runs is not cut, for which there is [Timeout].
//
// An engine finds out when it comes to the job. So one that nobody comes to, as
// its queue is paused or no engine runs, is shown as available or scheduled until
// then. One in the past expires a job at once. The zero time means no bound.
func StartBy(t time.Time) Option {
	return func(j *NewJob) { j.StartBy, j.StartWithin = t, 0 }
}

// StartWithin is [StartBy] counted by the store's clock from when the job is
// due: from the enqueue, or from the date that [Delay] or [RunAt] give it. Zero means
// no bound. Of a kind it holds for each job that does not say its own.
func StartWithin(d time.Duration) Option {
	return func(j *NewJob) { j.StartBy, j.StartWithin = time.Time{}, d }
}

// MaxLosses is how often the job may be lost with an engine that died while
// it ran, by default [DefaultMaxLosses]. Zero means at most once.
func MaxLosses(n int) Option { return func(j *NewJob) { j.MaxLosses = &n } }

// Tag adds labels to those that the job has already.
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

// Correlation names what the job belongs to together with others. Jobs that
// its handler enqueues inherit it: see [WithCorrelation].
func Correlation(id string) Option { return func(j *NewJob) { j.Correlation = id } }

// IdempotencyKey makes repetitions harmless: of all enqueues under one key only
// the first stores a job, and the others are answered with its ID (see
// [Receipt]). So a producer that does not know whether its enqueue arrived
// enqueues again.
//
//	client.Enqueue(ctx, job, …)         // the connection breaks
//	client.Enqueue(ctx, job, …)         // the same job, stored once
//
// A key stands for a kind and its arguments, compared as JSON values: under the
// same key another kind or other arguments are refused, as a
// [KeyConflictError]. The rest (queue, times, tags) is what the first said.
//
// Keys are shared by all kinds and queues of a database, so begin them with what
// they are about: "invoice:42:reminder". They are 1 to 255 bytes, as names are. A
// key is remembered for at least a day, and for as long as its job is kept
// after it ended: see [store.Retention].
//
// In a caller's transaction the key is taken when that commits. Until it ends, others
// who enqueue under the same key wait for it. Two transactions that take the same
// two keys in opposite order wait for each other; PostgreSQL notices after
// a second and ends one with an error.
func IdempotencyKey(key string) Option { return func(j *NewJob) { j.IdempotencyKey = key } }

// Metadata attaches a JSON object beside the arguments.
func Metadata(object json.RawMessage) Option { return func(j *NewJob) { j.Metadata = object } }
