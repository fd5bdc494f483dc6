package stint

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/valid"
)

// Bounds and defaults of jobs.
const (
	MinPriority = -100
	MaxPriority = 100
	MaxTags     = 50 // on one job

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
	if err := valid.Name("kind", j.Kind); err != nil {
		return err
	}
	if j.Queue != "" {
		if err := valid.Queue(j.Queue); err != nil {
			return err
		}
	}
	if j.Priority < MinPriority || j.Priority > MaxPriority {
		return valid.Invalid("priority", "%d is outside %d to %d", j.Priority, MinPriority, MaxPriority)
	}
	if err := j.Retry.Validate(); err != nil {
		return valid.Invalid("retry", "%v", err)
	}
	if err := j.checkTimes(); err != nil {
		return err
	}
	if err := j.checkLabels(); err != nil {
		return err
	}
	if len(j.Args) > 0 {
		if err := valid.JSON("args", j.Args, cmp.Or(l.Args, 1<<20)); err != nil {
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

func (j NewJob) checkTimes() error {
	switch {
	case j.MaxLosses != nil && (*j.MaxLosses < 0 || *j.MaxLosses > maxLosses):
		return valid.Invalid("max losses", "%d is outside 0 to %d", *j.MaxLosses, maxLosses)
	case j.Timeout < 0:
		return valid.Invalid("timeout", "%v is negative", j.Timeout)
	case j.Timeout > 0 && j.Timeout < time.Millisecond:
		return valid.Invalid("timeout", "%v is shorter than a millisecond", j.Timeout)
	case j.Delay < 0:
		return valid.Invalid("delay", "%v is negative", j.Delay)
	case j.Delay > maxWait:
		return valid.Invalid("delay", "%v is more than a hundred years", j.Delay)
	case j.Delay > 0 && !j.RunAt.IsZero():
		return valid.Invalid("run at", "a job has a delay or an instant, not both")
	case !j.RunAt.IsZero() && (j.RunAt.Year() < 1900 || j.RunAt.Year() > 9000):
		return valid.Invalid("run at", "the year %d is out of range", j.RunAt.Year())
	}
	return j.checkStart()
}

// checkStart checks the bound of the job's start. Only the store knows whether a
// delay ends after it.
func (j NewJob) checkStart() error {
	switch {
	case j.StartWithin < 0:
		return valid.Invalid("start within", "%v is negative", j.StartWithin)
	case j.StartWithin > 0 && j.StartWithin < time.Millisecond:
		return valid.Invalid("start within", "%v is shorter than a millisecond", j.StartWithin)
	case j.StartWithin > maxWait:
		return valid.Invalid("start within", "%v is more than a hundred years", j.StartWithin)
	case j.StartWithin > 0 && !j.StartBy.IsZero():
		return valid.Invalid("start by", "a job begins by an instant or within a time, not both")
	case !j.StartBy.IsZero() && (j.StartBy.Year() < 1900 || j.StartBy.Year() > 9000):
		return valid.Invalid("start by", "the year %d is out of range", j.StartBy.Year())
	case !j.StartBy.IsZero() && j.RunAt.After(j.StartBy):
		return valid.Invalid("start by", "the job is due only after that")
	}
	return nil
}

func (j NewJob) checkLabels() error {
	if len(j.Tags) > MaxTags {
		return valid.Invalid("tags", "%d are more than %d", len(j.Tags), MaxTags)
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
