package remote

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/api"
)

// Now implements [stint.Clock]: it is the time by the clock of the server's database,
// or else by the server's own.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	c, err := ask[api.Clock](ctx, s, request{method: "GET", path: path("clock")})
	return c.Now, err
}

// Analyze implements [stint.Analyst].
func (s *Store) Analyze(ctx context.Context, f stint.AnalyticsFilter) (stint.Analytics, error) {
	return ask[stint.Analytics](ctx, s, request{method: "GET", path: path("analytics"), query: figures(f)})
}

// DueBy implements [stint.Analyst]; a limit is 10,000 at most.
func (s *Store) DueBy(ctx context.Context, field stint.Field, f stint.AnalyticsFilter, limit int) ([]stint.DueGroup, error) {
	if err := field.Check(); err != nil {
		return nil, err
	}
	q := figures(f)
	q.Set("by", string(field))
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return ask[[]stint.DueGroup](ctx, s, request{method: "GET", path: path("analytics", "due"), query: q})
}

func figures(f stint.AnalyticsFilter) url.Values {
	q := url.Values{}
	set(q, "queue", f.Queue)
	set(q, "kind", f.Kind)
	set(q, "tag", f.Tag)
	setTime(q, "at", f.At)
	return q
}

// KindStats tells how the attempts of each kind went: what [stint.StatsByKind] makes
// of [stint.Statistician].
func (s *Store) KindStats(ctx context.Context, f stint.StatsFilter) ([]stint.KindStats, error) {
	q := url.Values{}
	set(q, "kind", f.Kind)
	set(q, "queue", f.Queue)
	setTime(q, "since", f.From)
	setTime(q, "until", f.To)
	if f.Hourly {
		q.Set("hourly", "true")
	}
	return ask[[]stint.KindStats](ctx, s, request{method: "GET", path: path("stats"), query: q})
}

// Diagnose says what is wrong with the server's store, as [stint.Diagnose] does there.
// Deep is what [stint.Examination] says; who may not ask for it is refused.
func (s *Store) Diagnose(ctx context.Context, deep bool) ([]stint.Finding, error) {
	q := url.Values{}
	if deep {
		q.Set("deep", "true")
	}
	return ask[[]stint.Finding](ctx, s, request{method: "GET", path: path("doctor"), query: q})
}
