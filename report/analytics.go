package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/valid"
)

// LiveStats reports figures of the work that waits, runs and ended lately.
type LiveStats interface {
	// Analyze returns what waits, what runs, and how attempts went lately, all
	// of one moment. It costs what waits, what runs and what ended in the
	// minute; a long history costs nothing. [stint.ErrInvalid] when the filter asks
	// for another span.
	Analyze(ctx context.Context, f AnalyticsFilter) (Analytics, error)

	// AnalyzeKinds returns how the attempts of each kind went lately, sorted by kind;
	// a kind of which none ended is left out. It costs what ended in the minute.
	// [stint.ErrInvalid] when the filter asks for another span.
	AnalyzeKinds(ctx context.Context, f AnalyticsFilter) ([]KindAnalytics, error)

	// DueBy groups the jobs that are queued by what one of their fields says:
	// the largest groups first, then by value, at most limit of them; 0 means
	// 100. A job that has several tags is in several groups.
	DueBy(ctx context.Context, field Field, f AnalyticsFilter, limit int) ([]DueGroup, error)
}

// ActivityStats reports the figures of [LiveStats] that stay cheap however much waits.
type ActivityStats interface {
	// Activity returns what Analyze does of what runs and of how attempts went lately. It
	// costs that, and what waits costs nothing.
	Activity(ctx context.Context, f AnalyticsFilter) (Activity, error)
}

// AnalyticsFilter says which jobs are meant: those that fit all of its fields.
// A zero field does not restrict.
type AnalyticsFilter struct {
	Queue string // where the job is, or the attempt was
	Kind  string
	Tag   string

	// At is the instant by which jobs are due or not, and at which the minute
	// ends that is looked at; by default now, by the store's clock. What is
	// claimed is claimed now, whatever this says. A store may have to read its
	// whole history for an instant that is long past.
	At time.Time

	// Span is how much time before At the figures of attempts cover, up to [MaxSpan];
	// 0 is that. With many attempts a shorter time says as much.
	Span time.Duration
}

// MaxSpan is the longest time that the figures of attempts cover, and the default.
const MaxSpan = time.Minute

// Check reports what is wrong with the filter, or nil.
func (f AnalyticsFilter) Check() error {
	if f.Span < 0 || f.Span > MaxSpan {
		return valid.Invalid("span", "%v is not between 0 and %v", f.Span, MaxSpan)
	}
	return nil
}

// Analytics are the figures of a moment.
type Analytics struct {
	At time.Time `json:"at"`

	Queued    int64 `json:"queued"`    // due and not claimed
	Limited   int64 `json:"limited"`   // of these, the jobs that a limit lets not start now; of the 10,000 queues and limits with the most jobs
	Postponed int64 `json:"postponed"` // not yet due, or without a date while a retry function is to decide
	Running   int64 `json:"running"`   // claimed by engines that live, whether begun or not
	Zombies   int64 `json:"zombies"`   // orphaned: held by engines that died, and not yet taken over

	AttemptFigures
}

// Activity are the figures of a moment without what waits: see [Analytics].
type Activity struct {
	At      time.Time
	Running int64
	Zombies int64

	AttemptFigures
}

// KindAnalytics are the figures of a kind.
type KindAnalytics struct {
	Kind string `json:"kind"`
	AttemptFigures
}

// AttemptFigures describe attempts that ended in the last minute, or in the span
// that was asked for. They cover attempts that ran: not those that were returned,
// cancelled or expired before they began, nor those that were lost with their
// engine, since it is not known when they ended.
type AttemptFigures struct {
	Ended     int64   `json:"ended"` // how many
	PerSecond float64 `json:"per_second"`

	Latency   Percentiles `json:"latency"`   // from the time that an attempt was due to its start
	Execution Percentiles `json:"execution"` // from its start to its end
}

// Percentiles describes how durations are distributed; all are 0 if there is none. A
// percentile is the smallest one that so many percent of them do not exceed:
// the one at rank ⌈n·p/100⌉, and so always one that occurred. The mean is rounded
// down to the microsecond.
type Percentiles struct {
	Mean time.Duration `json:"mean"`
	P50  time.Duration `json:"p50"`
	P95  time.Duration `json:"p95"`
	P99  time.Duration `json:"p99"`
}

// PercentilesOf describes durations, which it sorts.
func PercentilesOf(all []time.Duration) (s Percentiles) {
	if len(all) == 0 {
		return s
	}
	slices.Sort(all)
	rank := func(p int) time.Duration { return all[(len(all)*p+99)/100-1] }
	total := time.Duration(0)
	for _, d := range all {
		total += d
	}
	mean := total.Microseconds() / int64(len(all))
	return Percentiles{Mean: time.Duration(mean) * time.Microsecond, P50: rank(50), P95: rank(95), P99: rank(99)}
}

// DueGroup counts the queued jobs with the same value of a field. Value is nil for
// those without one.
type DueGroup struct {
	Value *string `json:"value"`
	Jobs  int64   `json:"jobs"`
}

// Field names what jobs are grouped by: one of the words below, or a path into
// their JSON, such as args.customer or metadata.region.code. What is found there
// counts as text; an object or array is as the store writes it.
type Field string

// Fields of a job.
const (
	FieldQueue       Field = "queue"
	FieldKind        Field = "kind"
	FieldPriority    Field = "priority"
	FieldURN         Field = "urn"
	FieldSource      Field = "source"
	FieldTag         Field = "tag"
	FieldCorrelation Field = "correlation" // of a job that was given none, its ID
)

// Fields are those that have a name of their own.
var Fields = []Field{FieldQueue, FieldKind, FieldPriority, FieldURN, FieldSource, FieldTag, FieldCorrelation}

// Path is where a field is that lies in a job's JSON: in its args or its
// metadata, and the keys that lead there. It is empty for the others.
func (f Field) Path() (in string, keys []string) {
	in, rest, ok := strings.Cut(string(f), ".")
	if !ok || in != "args" && in != "metadata" {
		return "", nil
	}
	return in, strings.Split(rest, ".")
}

// Check reports what is wrong with the name of a field, or nil.
func (f Field) Check() error {
	if slices.Contains(Fields, f) {
		return nil
	}
	in, keys := f.Path()
	if in == "" {
		return valid.Invalid("field", "%q is none of %s, args.KEY and metadata.KEY", f, joined(Fields))
	}
	for _, key := range keys {
		if err := valid.Name("field", key); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
	}
	return nil
}

func joined(fields []Field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}
