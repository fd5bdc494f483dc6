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

// In delays the job, counted by the store's clock from the enqueue. Zero and
// less mean at once.
func In(d time.Duration) Option {
	return func(j *NewJob) { j.Delay, j.RunAt = max(0, d), time.Time{} }
}

// At delays the job until an instant of the store's clock. One in the past
// means at once.
func At(t time.Time) Option {
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
// with [ErrTimeout].
func Timeout(d time.Duration) Option { return func(j *NewJob) { j.Timeout = d } }

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

// Metadata attaches a JSON object beside the arguments.
func Metadata(object json.RawMessage) Option { return func(j *NewJob) { j.Metadata = object } }
