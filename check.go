package stint

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/valid"
)

// Bounds and defaults of jobs.
const (
	minPriority = -100
	maxPriority = 100
	maxTags     = 50 // on one job

	// DefaultQueue is the queue of jobs that name none.
	DefaultQueue = "default"

	// DefaultMaxLosses is how often a job may be lost with its engine before it
	// is given up.
	DefaultMaxLosses = 3
)

// maxLosses is the largest count of losses that stores have room for.
const maxLosses = 1000

// maxWait keeps times within what Go and every database can represent.
const maxWait = 100 * 365 * 24 * time.Hour

// Limits are the sizes that a client or an engine accepts. A zero field means
// the default.
type Limits struct {
	Args     int // bytes of arguments; default 1 MiB
	Metadata int // bytes of metadata; default 64 KiB
}

// Check returns the first thing that is invalid about the job, as an [InvalidError],
// or nil.
func (j NewJob) Check(l Limits) error {
	return cmp.Or(valid.Name("kind", j.Kind), j.checkOrder(), j.checkTimes(), j.checkLabels(), j.checkJSON(l), j.checkUnique(), j.checkLimits(), j.checkSealed(), j.checkRedacted(), j.checkIndexed())
}

func (j NewJob) checkOrder() error {
	if j.Queue != "" {
		if err := valid.Queue(j.Queue); err != nil {
			return err
		}
	}
	if j.Priority < minPriority || j.Priority > maxPriority {
		return valid.Invalid("priority", "%d is outside %d to %d", j.Priority, minPriority, maxPriority)
	}
	if err := j.Retry.Validate(); err != nil {
		return valid.Invalid("retry", "%v", err)
	}
	if n := j.MaxLosses; n != nil && (*n < 0 || *n > maxLosses) {
		return valid.Invalid("max losses", "%d is outside 0 to %d", *n, maxLosses)
	}
	return nil
}

// checkTimes checks the bounds of the job's times. Only the store knows whether a delay ends after
// the bound of the start.
func (j NewJob) checkTimes() error {
	if err := cmp.Or(checkLength("timeout", j.Timeout, time.Millisecond, math.MaxInt64), checkLength("delay", j.Delay, 0, maxWait)); err != nil {
		return err
	}
	if j.Delay > 0 && !j.RunAt.IsZero() {
		return valid.Invalid("run at", "a job has a delay or an instant, not both")
	}
	if err := cmp.Or(checkYear("run at", j.RunAt), checkLength("start within", j.StartWithin, time.Millisecond, maxWait)); err != nil {
		return err
	}
	if j.StartWithin > 0 && !j.StartBy.IsZero() {
		return valid.Invalid("start by", "a job begins by an instant or within a time, not both")
	}
	if err := checkYear("start by", j.StartBy); err != nil {
		return err
	}
	if !j.StartBy.IsZero() && j.RunAt.After(j.StartBy) {
		return valid.Invalid("start by", "the job is due only after that")
	}
	return nil
}

// checkLength checks a length of time, of which zero is none.
func checkLength(field string, d, least, most time.Duration) error {
	switch {
	case d < 0:
		return valid.Invalid(field, "%v is negative", d)
	case d > 0 && d < least:
		return valid.Invalid(field, "%v is shorter than a millisecond", d)
	case d > most:
		return valid.Invalid(field, "%v is more than a hundred years", d)
	}
	return nil
}

// checkYear checks an instant, of which the zero time is none.
func checkYear(field string, t time.Time) error {
	if !t.IsZero() && (t.Year() < 1900 || t.Year() > 9000) {
		return valid.Invalid(field, "the year %d is out of range", t.Year())
	}
	return nil
}

func (j NewJob) checkLabels() error {
	if len(j.Tags) > maxTags {
		return valid.Invalid("tags", "%d are more than %d", len(j.Tags), maxTags)
	}
	for i, tag := range j.Tags {
		if err := valid.Name("tags", tag); err != nil {
			return err
		}
		if slices.Contains(j.Tags[:i], tag) {
			return valid.Invalid("tags", "%q is there twice", tag)
		}
	}
	for _, label := range [...]struct{ field, name string }{
		{"urn", j.URN}, {"source", j.Source}, {"description", j.Description}, {"correlation", j.Correlation}, {"idempotency key", j.IdempotencyKey},
	} {
		if label.name == "" {
			continue
		}
		if err := valid.Name(label.field, label.name); err != nil {
			return err
		}
	}
	return nil
}

func (j NewJob) checkJSON(l Limits) error {
	if len(j.Args) > 0 {
		if err := valid.JSON("args", j.Args, cmp.Or(l.Args, maxArgs)); err != nil {
			return err
		}
	}
	if len(j.Metadata) > 0 {
		if err := valid.JSON("metadata", j.Metadata, cmp.Or(l.Metadata, 64<<10)); err != nil {
			return err
		}
		if !strings.HasPrefix(strings.TrimLeft(string(j.Metadata), " \t\r\n"), "{") {
			return valid.Invalid("metadata", "it must be a JSON object")
		}
	}
	return nil
}
