package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

var _ stint.Analyst = (*Store)(nil)

// unclaimedSQL are the jobs that nobody has claimed: what is ready, behind the
// frontiers, and what waits. Due is null while a retry function is to decide.
const unclaimedSQL = `
select ifnull(e.job, e.pos) as job, ifnull(e.body, e.pos) as contents, e.queue, e.kind, e.priority, ifnull(e.due, e.created) as due
from (` + frontiersSQL + `) f
cross join stint_entries e indexed by stint_entries_lane on e.lane = f.lane and e.pos > f.frontier
where ifnull(e.job, e.pos) not in (select job from stint_cancellations)
union all
select w.job, w.body, w.queue, w.kind, w.priority, w.due from stint_waiting w
where w.job not in (select job from stint_cancellations)`

const (
	// fitsSQL is what an analytics filter chooses of rows with job, queue and kind.
	fitsSQL = `where (?1 is null or queue = ?1) and (?2 is null or kind = ?2)
	and (?3 is null or exists (select 1 from stint_job_tags t where t.tag = ?3 and t.job = u.job))`

	queuedSQL  = `select count(iif(due <= ?4, 1, null)), count(*) from (` + unclaimedSQL + `) u ` + fitsSQL
	heldNowSQL = `select u.token, count(*) from (` + openSQL + `) u ` + fitsSQL + ` group by 1`
	taggedSQL  = `select 1 from stint_job_tags where tag = ? and job = ?`
)

// Analyze implements [stint.Analyst]. The statements are of one transaction that
// reads, and so of one moment.
func (s *Store) Analyze(ctx context.Context, f stint.AnalyticsFilter) (stint.Analytics, error) {
	if err := f.Check(); err != nil {
		return stint.Analytics{}, err
	}
	f.Span = cmp.Or(f.Span, stint.MaxSpan)
	var a stint.Analytics
	err := s.read(ctx, func(c *conn) error {
		a = stint.Analytics{At: moment(f)}
		fits := []any{nilText(f.Queue), nilText(f.Kind), nilText(f.Tag)}
		err := c.query(queuedSQL, append(fits, micro(a.At)), func(q *stmt) error {
			a.Queued = q.ColumnInt64(0)
			a.Postponed = q.ColumnInt64(1) - a.Queued
			return nil
		})
		if err != nil {
			return err
		}
		roster, err := s.roster(c)
		if err != nil {
			return err
		}
		err = c.query(heldNowSQL, fits, func(q *stmt) error {
			if lives(roster, stint.Token(q.ColumnInt64(0))) {
				a.Running += q.ColumnInt64(1)
			} else {
				a.Zombies += q.ColumnInt64(1)
			}
			return nil
		})
		if err != nil {
			return err
		}
		a.AttemptFigures, err = c.lately(a.At, f)
		return err
	})
	if err != nil {
		return stint.Analytics{}, fmt.Errorf("analyze: %w", err)
	}
	return a, nil
}

// moment is the instant that a filter is about.
func moment(f stint.AnalyticsFilter) time.Time {
	if f.At.IsZero() {
		f.At = time.Now()
	}
	return fromMicro(micro(f.At))
}

// AnalyzeKinds implements [stint.Analyst].
func (s *Store) AnalyzeKinds(ctx context.Context, f stint.AnalyticsFilter) ([]stint.KindAnalytics, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	f.Span = cmp.Or(f.Span, stint.MaxSpan)
	var all []stint.KindAnalytics
	err := s.read(ctx, func(c *conn) error {
		all = nil
		kinds := map[string]*ended{}
		err := c.ended(moment(f), f, func(x *attempt) {
			if kinds[x.kind] == nil {
				kinds[x.kind] = new(ended)
			}
			kinds[x.kind].add(x)
		})
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			all = append(all, stint.KindAnalytics{Kind: kind, AttemptFigures: kinds[kind].figures(f.Span)})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("analyze kinds: %w", err)
	}
	return all, nil
}

// lives tells whether an engine does, as far as anybody can see.
func lives(roster []stint.EngineInfo, token stint.Token) bool {
	for _, e := range roster {
		if e.Token == token {
			return e.Held || !e.Gone && time.Since(e.Beat) <= e.TimeToLive
		}
	}
	return false
}

// lately tells how the attempts of the time before an instant went.
func (c *conn) lately(at time.Time, f stint.AnalyticsFilter) (stint.AttemptFigures, error) {
	var all ended
	err := c.ended(at, f, all.add)
	return all.figures(f.Span), err
}

// ended calls do for each attempt that ran and ended in the time before an instant.
func (c *conn) ended(at time.Time, f stint.AnalyticsFilter, do func(x *attempt)) error {
	from := at.Add(-f.Span)
	m, err := c.markBefore(from)
	if err != nil {
		return err
	}
	return c.attempts(m, func(x *attempt) error {
		if !x.ran || !x.finished.After(from) || x.finished.After(at) || f.Queue != "" && f.Queue != x.queue || f.Kind != "" && f.Kind != x.kind {
			return nil
		}
		if f.Tag != "" {
			if tagged, err := c.found(taggedSQL, f.Tag, int64(x.job)); err != nil || !tagged {
				return err
			}
		}
		do(x)
		return nil
	})
}

// ended is how long attempts took, and how long they had waited.
type ended struct{ took, waited []time.Duration }

func (e *ended) add(x *attempt) {
	e.took, e.waited = append(e.took, x.took), append(e.waited, x.waited)
}

// figures sorts what it has.
func (e *ended) figures(span time.Duration) stint.AttemptFigures {
	n := int64(len(e.took))
	return stint.AttemptFigures{Ended: n, PerSecond: float64(n) / span.Seconds(), Latency: spread(e.waited), Execution: spread(e.took)}
}

// spread describes durations, which it sorts.
func spread(all []time.Duration) (s stint.Spread) {
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
	return stint.Spread{Mean: time.Duration(mean) * time.Microsecond, P50: rank(50), P95: rank(95), P99: rank(99)}
}

// fieldSQL is what a field says of a job that is due (u) with its contents (b),
// and where else to look for it.
var fieldSQL = map[stint.Field]struct{ value, from string }{
	stint.FieldQueue:       {"u.queue", ""},
	stint.FieldKind:        {"u.kind", ""},
	stint.FieldPriority:    {"cast(u.priority as text)", ""},
	stint.FieldURN:         {"b.urn", ""},
	stint.FieldSource:      {"b.source", ""},
	stint.FieldTag:         {"t.value", " left join json_each(b.tags) t"},
	stint.FieldCorrelation: {"ifnull(b.correlation, cast(u.job as text))", ""},
}

// DueBy implements [stint.Analyst].
func (s *Store) DueBy(ctx context.Context, field stint.Field, f stint.AnalyticsFilter, limit int) ([]stint.DueGroup, error) {
	if err := field.Check(); err != nil {
		return nil, err
	}
	at := f.At
	if at.IsZero() {
		at = time.Now()
	}
	say := fieldSQL[field]
	args := []any{nilText(f.Queue), nilText(f.Kind), nilText(f.Tag), micro(at), cmp.Or(limit, 100)}
	in, keys := field.Path()
	if in != "" {
		say.value = "b." + in
		for _, key := range keys {
			args = append(args, key)
			say.value += fmt.Sprintf(" -> ?%d", len(args))
		}
		// The text of a string, and of anything else as it is written; null is none.
		say.value = "iif(json_type(" + say.value + ") = 'text', (" + say.value + ") ->> '$', nullif(" + say.value + ", 'null'))"
	}
	text := `select ` + say.value + `, count(*) from (select * from (` + unclaimedSQL + `) u ` + fitsSQL + ` and u.due <= ?4) u
	  cross join stint_entries b` + say.from + `
	  where b.pos = u.contents
	  group by 1 order by 2 desc, 1 limit ?5`
	var groups []stint.DueGroup
	err := s.read(ctx, func(c *conn) error {
		groups = nil
		return c.query(text, args, func(q *stmt) error {
			g := stint.DueGroup{Jobs: q.ColumnInt64(1)}
			if !q.isNull(0) {
				g.Value = new(q.ColumnText(0))
			}
			groups = append(groups, g)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("group what is due by %s: %w", field, err)
	}
	return groups, nil
}
