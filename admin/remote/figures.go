package remote

import (
	"cmp"
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

// AnalyzeKinds implements [stint.Analyst].
func (s *Store) AnalyzeKinds(ctx context.Context, f stint.AnalyticsFilter) ([]stint.KindAnalytics, error) {
	return ask[[]stint.KindAnalytics](ctx, s, request{method: "GET", path: path("analytics", "kinds"), query: figures(f)})
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
	switch f.Every {
	case 0:
	case time.Hour:
		q.Set("every", "hour")
	case time.Minute:
		q.Set("every", "minute")
	default:
		return nil, f.Check()
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

// Errors implements [stint.ErrorAnalyst].
func (s *Store) Errors(ctx context.Context, f stint.ErrorFilter) (stint.ErrorReport, error) {
	q := url.Values{}
	set(q, "kind", f.Kind)
	set(q, "queue", f.Queue)
	setTime(q, "since", f.Since)
	return ask[stint.ErrorReport](ctx, s, request{method: "GET", path: path("errors"), query: q})
}

// changesPage is how many changes one request asks for.
var changesPage = 200

// Changes lists changes as [stint.ChangeKeeper] does. It is for operators.
func (s *Store) Changes(ctx context.Context, f stint.ChangeFilter) ([]stint.Change, error) {
	var all []stint.Change
	for left := cmp.Or(f.Limit, 100); left > 0; {
		q := url.Values{}
		set(q, "by", f.By)
		set(q, "operation", f.Operation)
		set(q, "subject", f.Subject)
		setTime(q, "since", f.At.From)
		setTime(q, "until", f.At.To)
		if f.Before != 0 {
			q.Set("before", strconv.FormatInt(f.Before, 10))
		}
		q.Set("limit", strconv.Itoa(min(left, changesPage)))
		p, err := ask[api.ChangePage](ctx, s, request{method: "GET", path: path("changes"), query: q})
		if err != nil {
			return nil, err
		}
		all = append(all, p.Changes...)
		if left -= len(p.Changes); p.Next == 0 || len(p.Changes) == 0 {
			break
		}
		f.Before = p.Next
	}
	return all, nil
}
