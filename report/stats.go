package report

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
)

// StatsStore keeps statistics of all attempts that ever began, also those of jobs
// that were deleted. It keeps sums by the hour, and of the last two days by the
// minute, and reads the executions for what is not in them yet: so they are exact at
// any time, and cost the same however long the history is.
type StatsStore interface {
	// SumUp adds to the sums what has ended since, some of it at a time, and
	// reports whether there is more. Many may call it at once: one does it, and
	// the others find nothing to do. Nothing is lost while it is not called, but
	// reading costs more and more. It forgets the minutes that are older than
	// [MinutesKept], some of them at a time.
	SumUp(ctx context.Context) (more bool, err error)

	// Stats returns how attempts went, for each kind, queue and outcome, and for
	// each hour or minute when the filter asks for that; sorted by these, the time
	// first. All of it is of one moment. [stint.ErrInvalid] when the filter asks for
	// other spans.
	Stats(ctx context.Context, f StatsFilter) ([]Stats, error)

	// Unsummed counts the attempts that are not in the sums yet, up to so many.
	// Statistics that are not settled read them all, at some microseconds each; a
	// caller that asks often can find out here whether to ask for settled ones.
	Unsummed(ctx context.Context, most int) (int, error)
}

// StatsFilter says which attempts are meant: those that fit all of its fields. A
// zero field does not restrict.
type StatsFilter struct {
	Kind  string
	Queue string

	// From and To bound when an attempt ended. Whole hours of UTC are counted, or
	// whole minutes when each is told: the one that holds From is the first, and
	// the one that holds To is the first that is not meant, unless To is later than
	// its beginning. What ended up to a few minutes ago is in the sums as a rule; a
	// To before that spares reading executions.
	From, To time.Time

	// Every tells each hour by itself when it is [time.Hour], and each minute when
	// it is [time.Minute]; zero tells all of them together. Minutes are told of the
	// last two days only ([MinutesKept]): those that are older are left out, also
	// where the hours that they are in are told.
	Every time.Duration

	// Settled leaves out what is not in the sums yet: what ended in the last
	// minutes. So it costs the same however much does.
	Settled bool

	// Distributed also tells how durations are distributed.
	Distributed bool
}

// What ended is in the sums SummedBy later as a rule. Who has more than FewUnsummed attempts to read for the rest
// does without them, and asks for settled statistics of what was before.
const (
	SummedBy    = 4 * time.Minute
	FewUnsummed = 20_000
)

// MinutesKept is for how long a minute is told by itself, counted back from the
// store's clock. It holds the minute in which that time begins.
const MinutesKept = 48 * time.Hour

// FirstMinute is the first one that is told by itself at a moment.
func FirstMinute(now time.Time) time.Time { return now.Add(-MinutesKept).Truncate(time.Minute) }

// Check reports what is wrong with the filter, or nil.
func (f StatsFilter) Check() error {
	if f.Every != 0 && f.Every != time.Minute && f.Every != time.Hour {
		return valid.Invalid("every", "%v is neither a minute nor an hour", f.Every)
	}
	return nil
}

// Bounds are those of the whole hours or minutes that are meant, zero where there
// is none.
func (f StatsFilter) Bounds() (from, to time.Time) {
	span := cmp.Or(f.Every, time.Hour)
	from, to = f.From.Truncate(span), f.To.Truncate(span)
	if to.Before(f.To) {
		to = to.Add(span)
	}
	return from, to
}

// Stats are the attempts of a kind, in a queue, that ended in one way.
type Stats struct {
	Start   time.Time     `json:"start,omitzero"` // of the hour or minute; zero for all of them together
	Kind    string        `json:"kind"`
	Queue   string        `json:"queue"`
	Outcome stint.Outcome `json:"outcome"`
	Totals
}

// Totals are what attempts come to.
type Totals struct {
	// Attempts counts those that began: they ran, or were lost with their
	// engine. It is not known how long the latter took: they are not in Took.
	Attempts int64     `json:"attempts"`
	Took     Durations `json:"took"`

	// LastAt is when the last of those in Took ended. Of several that ended in
	// the same microsecond the longest counts as the last.
	LastAt time.Time `json:"last_at,omitzero"`

	Waited time.Duration `json:"waited"` // from when they were due to their starts, all together

	// How both are distributed, where the filter asks for it.
	TookBy   Histogram `json:"-"`
	WaitedBy Histogram `json:"-"`
}

// Distribution describes how long attempts took, and how long they had been due before; nil
// where the filter did not ask for it, or none ran. The percentiles are estimates: see
// [Histogram.Percentile]. None is shorter than the fastest attempt or longer than the longest.
func (s Totals) Distribution() (execution, latency *Percentiles) {
	if len(s.TookBy) == 0 {
		return nil, nil
	}
	execution, latency = s.TookBy.percentiles(), s.WaitedBy.percentiles()
	execution.Mean, latency.Mean = s.Took.Mean(), s.Waited/time.Duration(s.Took.Count)
	for _, d := range []*time.Duration{&execution.P50, &execution.P95, &execution.P99} {
		*d = min(max(*d, s.Took.Fastest), s.Took.Longest)
	}
	return execution, latency
}

// Ran adds an attempt that took so long, and was due that long before it
// started.
func (s *Totals) Ran(took, waited time.Duration, ended time.Time) {
	one := Totals{Attempts: 1, LastAt: ended, Waited: waited}
	one.Took.Add(took)
	s.add(one)
	s.TookBy.Add(took)
	s.WaitedBy.Add(waited)
}

// Lost adds an attempt that was lost with its engine.
func (s *Totals) Lost() { s.Attempts++ }

// add adds others to them.
func (s *Totals) add(o Totals) {
	later := o.Took.Count > 0 && (s.Took.Count == 0 || o.LastAt.After(s.LastAt) || o.LastAt.Equal(s.LastAt) && o.Took.Last > s.Took.Last)
	if s.Took.merge(o.Took); later {
		s.Took.Last, s.LastAt = o.Took.Last, o.LastAt
	}
	s.Attempts += o.Attempts
	s.Waited += o.Waited
	s.TookBy, s.WaitedBy = s.TookBy.Plus(o.TookBy), s.WaitedBy.Plus(o.WaitedBy)
}

// MergeStats merges the rows of the same span, kind, queue and outcome, and sorts by
// these: for stores. The spans are those that the filter
// asks for, and the rows may be of shorter ones.
func MergeStats(all []Stats, f StatsFilter) []Stats {
	for i := range all {
		if all[i].Start = all[i].Start.Truncate(f.Every); f.Every == 0 {
			all[i].Start = time.Time{}
		}
		if !f.Distributed {
			all[i].TookBy, all[i].WaitedBy = nil, nil
		}
	}
	slices.SortFunc(all, func(a, b Stats) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Outcome, b.Outcome))
	})
	var merged []Stats
	for _, s := range all {
		if n := len(merged) - 1; n >= 0 && merged[n].Start.Equal(s.Start) && merged[n].Kind == s.Kind && merged[n].Queue == s.Queue && merged[n].Outcome == s.Outcome {
			merged[n].add(s.Totals)
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}

// KindStats are the attempts of a kind, in all queues.
type KindStats struct {
	Start time.Time `json:"start,omitzero"` // of the hour or minute; zero for all of them together
	Kind  string    `json:"kind"`
	Totals
	Outcomes map[stint.Outcome]int64 `json:"outcomes"` // how many attempts ended how

	// From an attempt's start to its end, and from when it was due to its start: estimates, see
	// [Totals.Distribution].
	Execution *Percentiles `json:"execution,omitempty"`
	Latency   *Percentiles `json:"latency,omitempty"`
}

// Succeeded and Failed count attempts, whether their jobs were tried again or
// not. Lost ones are neither.
func (s KindStats) Succeeded() int64 { return s.Outcomes[stint.OutcomeCompleted] }
func (s KindStats) Failed() int64    { return s.Outcomes[stint.OutcomeFailed] }

// StatsByKind merges the rows of each kind, by name. Hours and minutes
// are kept apart where they are separate.
func StatsByKind(all []Stats) []KindStats {
	type key struct {
		start int64
		kind  string
	}
	kinds := map[key]*KindStats{}
	for _, s := range all {
		k := key{s.Start.Unix(), s.Kind}
		sum := kinds[k]
		if sum == nil {
			sum = &KindStats{Start: s.Start, Kind: s.Kind, Outcomes: map[stint.Outcome]int64{}}
			kinds[k] = sum
		}
		sum.add(s.Totals)
		sum.Outcomes[s.Outcome] += s.Attempts
	}
	list := make([]KindStats, 0, len(kinds))
	for _, k := range slices.SortedFunc(maps.Keys(kinds), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.kind, b.kind))
	}) {
		sum := *kinds[k]
		sum.Execution, sum.Latency = sum.Distribution()
		list = append(list, sum)
	}
	return list
}

// Durations sum up how long something took that happened many times. The zero
// value is of something that never happened.
type Durations struct {
	Count   int64         `json:"count"`
	Last    time.Duration `json:"last"`
	Fastest time.Duration `json:"fastest"`
	Longest time.Duration `json:"longest"`
	Total   time.Duration `json:"total"`
}

// Mean is the total by the count, or 0.
func (d Durations) Mean() time.Duration {
	if d.Count == 0 {
		return 0
	}
	return d.Total / time.Duration(d.Count)
}

// Add counts one more.
func (d *Durations) Add(took time.Duration) {
	if d.Count == 0 || took < d.Fastest {
		d.Fastest = took
	}
	d.Count++
	d.Last, d.Longest, d.Total = took, max(d.Longest, took), d.Total+took
}

// merge adds others. Which was the last only the caller knows.
func (d *Durations) merge(o Durations) {
	if o.Count > 0 && (d.Count == 0 || o.Fastest < d.Fastest) {
		d.Fastest = o.Fastest
	}
	d.Count += o.Count
	d.Longest, d.Total = max(d.Longest, o.Longest), d.Total+o.Total
}

// MarshalJSON adds the mean.
func (d Durations) MarshalJSON() ([]byte, error) {
	type plain Durations
	return json.Marshal(struct {
		plain
		Mean time.Duration `json:"mean"`
	}{plain(d), d.Mean()})
}
