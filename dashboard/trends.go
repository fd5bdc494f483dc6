package dashboard

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint/report"
)

// trends are how long the attempts of each kind took lately and before.
type trends map[string]trend

// trend is how long the attempts of a kind took that ended in the last hour, and in the same
// hour of the day before; and in the whole hour of UTC in which the middle of it was a week before.
type trend struct{ Now, Yesterday, LastWeek pastTimes }

// pastTimes are percentiles of run times, and of how many they are.
type pastTimes struct {
	report.Percentiles
	Count int64
}

// What is called slower: half as slow again, of so many attempts at least.
const (
	muchSlower  = 1.5
	enoughToSay = 20
)

// Slower is by what factor the 95th percentile is longer now than it was; 0 where too few
// attempts ended to say so.
func (t trend) Slower(than pastTimes) float64 {
	if t.Now.Count < enoughToSay || than.Count < enoughToSay || than.P95 == 0 {
		return 0
	}
	return float64(t.Now.P95) / float64(than.P95)
}

// SlowerInWords says it where it is much; else it is empty.
func (t trend) SlowerInWords(than pastTimes) string {
	if f := t.Slower(than); f >= muchSlower {
		return fmt.Sprintf("%.1f× slower", f)
	}
	return ""
}

// trendsOf reads them.
func (f *figures) trendsOf(ctx context.Context) (trends, error) {
	lately, err := f.stats(ctx, report.StatsFilter{Every: time.Minute, Distributed: true}, time.Hour)
	if err != nil {
		return nil, err
	}
	all := trends{}
	add := func(stats []report.Stats, to func(t *trend) *pastTimes) {
		for _, k := range report.StatsByKind(report.MergeStats(stats, report.StatsFilter{Distributed: true})) {
			if k.Execution != nil {
				t := all[k.Kind]
				*to(&t) = pastTimes{*k.Execution, k.Took.Count}
				all[k.Kind] = t
			}
		}
	}
	add(lately.Stats, func(t *trend) *pastTimes { return &t.Now })
	past := report.StatsFilter{Every: time.Minute, Distributed: true, Settled: true, From: lately.End.Add(-day - time.Hour), To: lately.End.Add(-day)}
	stats, err := f.store.Stats(ctx, past)
	if err != nil {
		return nil, err
	}
	add(stats, func(t *trend) *pastTimes { return &t.Yesterday })
	past.Every, past.From = time.Hour, lately.End.Add(-7*day-time.Hour/2).Truncate(time.Hour)
	past.To = past.From.Add(time.Hour)
	if stats, err = f.store.Stats(ctx, past); err != nil {
		return nil, err
	}
	add(stats, func(t *trend) *pastTimes { return &t.LastWeek })
	return all, nil
}
