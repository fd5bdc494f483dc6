package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

var (
	_ report.LiveStats     = (*Store)(nil)
	_ report.ActivityStats = (*Store)(nil)
)

// unclaimedSQL finds the jobs that no engine has claimed: what is ready, after the
// frontiers, and what waits. Due is null while a retry function is to decide.
const unclaimedSQL = `
select ifnull(e.job, e.pos) as job, ifnull(e.body, e.pos) as contents, e.queue, e.kind, e.priority, ifnull(e.due, e.created) as due, ifnull(e.limits, '') as limits
from (` + frontiersSQL + `) f
cross join stint_entries e indexed by stint_entries_lane on e.lane = f.lane and e.pos > f.frontier
where ifnull(e.job, e.pos) not in (select job from stint_cancellations)
union all
select w.job, w.body, w.queue, w.kind, w.priority, w.due, ifnull((select b.limits from stint_entries b where b.pos = w.body), '') from stint_waiting w
where w.job not in (select job from stint_cancellations)`

const (
	// fitsSQL has the conditions of an analytics filter on rows with job, queue and kind.
	fitsSQL = `where (?1 is null or queue = ?1) and (?2 is null or kind = ?2)
	and (?3 is null or exists (select 1 from stint_job_tags t where t.tag = ?3 and t.job = u.job))`

	queuedSQL = `select count(iif(due <= ?4, 1, null)), count(*) from (` + unclaimedSQL + `) u ` + fitsSQL
	// limitedSQL groups what is due by what may limit it, if there is anything that does.
	limitedSQL = `select queue, limits, count(*) from (` + unclaimedSQL + `) u ` + fitsSQL + ` and due <= ?4
	and (exists (select 1 from stint_limits) or exists (select 1 from stint_limit_pauses)) group by 1, 2 order by 3 desc limit ?5`
	heldNowSQL = `select u.token, count(*) from (` + openSQL + `) u ` + fitsSQL + ` group by 1`
	taggedSQL  = `select 1 from stint_job_tags where tag = ? and job = ?`
)

// Analyze implements [report.LiveStats]. The statements are of one transaction that
// reads, and so of one moment.
func (s *Store) Analyze(ctx context.Context, f report.AnalyticsFilter) (report.Analytics, error) {
	if err := f.Check(); err != nil {
		return report.Analytics{}, err
	}
	f.Span = cmp.Or(f.Span, report.MaxSpan)
	return reading(ctx, s, "analyze", func(c *conn) (report.Analytics, error) {
		a := report.Analytics{At: moment(f)}
		fits := []any{nilText(f.Queue), nilText(f.Kind), nilText(f.Tag)}
		err := c.query(queuedSQL, append(fits, micro(a.At)), func(q *stmt) error {
			a.Queued = q.ColumnInt64(0)
			a.Postponed = q.ColumnInt64(1) - a.Queued
			return nil
		})
		if err != nil {
			return a, err
		}
		if a.Limited, err = c.limited(a.At, fits); err != nil {
			return a, err
		}
		now, err := s.activity(c, a.At, f)
		a.Running, a.Zombies, a.AttemptFigures = now.Running, now.Zombies, now.AttemptFigures
		return a, err
	})
}

// Activity implements [report.ActivityStats].
func (s *Store) Activity(ctx context.Context, f report.AnalyticsFilter) (report.Activity, error) {
	if err := f.Check(); err != nil {
		return report.Activity{}, err
	}
	f.Span = cmp.Or(f.Span, report.MaxSpan)
	return reading(ctx, s, "analyze what runs", func(c *conn) (report.Activity, error) {
		return s.activity(c, moment(f), f)
	})
}

func (s *Store) activity(c *conn, at time.Time, f report.AnalyticsFilter) (report.Activity, error) {
	a := report.Activity{At: at}
	roster, err := s.roster(c)
	if err != nil {
		return a, err
	}
	err = c.query(heldNowSQL, []any{nilText(f.Queue), nilText(f.Kind), nilText(f.Tag)}, func(q *stmt) error {
		if lives(roster, store.EngineID(q.ColumnInt64(0))) {
			a.Running += q.ColumnInt64(1)
		} else {
			a.Zombies += q.ColumnInt64(1)
		}
		return nil
	})
	if err != nil {
		return a, err
	}
	var all ended
	err = c.ended(at, f, all.add)
	a.AttemptFigures = all.figures(f.Span)
	return a, err
}

// limited counts the jobs that are due at a time and that a limit lets not start now.
func (c *conn) limited(at time.Time, fits []any) (int64, error) {
	groups, err := allRows(c, func(q *stmt) store.JobsUnder {
		return store.JobsUnder{Queue: q.name(0), Limits: q.name(1), Jobs: q.ColumnInt64(2)}
	}, limitedSQL, append(slices.Clone(fits), micro(at), store.MostUnder)...)
	if err != nil || len(groups) == 0 {
		return 0, err
	}
	roster, err := c.instances()
	if err != nil {
		return 0, err
	}
	var states []store.GateState
	for _, gate := range store.GatesUnder(groups) {
		state, err := c.gate(gate, roster)
		if err != nil {
			return 0, err
		}
		states = append(states, state)
	}
	return store.Limited(time.Now(), groups, states), nil
}

// moment is the instant that a filter is about.
func moment(f report.AnalyticsFilter) time.Time {
	if f.At.IsZero() {
		f.At = time.Now()
	}
	return fromMicro(micro(f.At))
}

// AnalyzeKinds implements [report.LiveStats].
func (s *Store) AnalyzeKinds(ctx context.Context, f report.AnalyticsFilter) ([]report.KindAnalytics, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	f.Span = cmp.Or(f.Span, report.MaxSpan)
	return reading(ctx, s, "analyze kinds", func(c *conn) (all []report.KindAnalytics, err error) {
		kinds := map[string]*ended{}
		err = c.ended(moment(f), f, func(x *attempt) {
			if kinds[x.kind] == nil {
				kinds[x.kind] = new(ended)
			}
			kinds[x.kind].add(x)
		})
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			all = append(all, report.KindAnalytics{Kind: kind, AttemptFigures: kinds[kind].figures(f.Span)})
		}
		return all, err
	})
}

// lives reports whether an engine lives, as far as can be seen.
func lives(roster []store.EngineInfo, token store.EngineID) bool {
	for _, e := range roster {
		if e.Token == token {
			return e.Held || !e.Gone && time.Since(e.Beat) <= e.TimeToLive
		}
	}
	return false
}

// ended calls do for each attempt that ran and ended in the time before an instant.
func (c *conn) ended(at time.Time, f report.AnalyticsFilter, do func(x *attempt)) error {
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

// ended has how long attempts took, and how long they had waited.
type ended struct{ took, waited []time.Duration }

func (e *ended) add(x *attempt) {
	e.took, e.waited = append(e.took, x.took), append(e.waited, x.waited)
}

// figures sorts what it has.
func (e *ended) figures(span time.Duration) report.AttemptFigures {
	n := int64(len(e.took))
	return report.AttemptFigures{Ended: n, PerSecond: float64(n) / span.Seconds(), Latency: report.PercentilesOf(e.waited), Execution: report.PercentilesOf(e.took)}
}

// fieldSQL has the value of a field of a job that is due (u) with its contents (b),
// and where else to look for it.
var fieldSQL = map[report.Field]struct{ value, from string }{
	report.FieldQueue:       {"u.queue", ""},
	report.FieldKind:        {"u.kind", ""},
	report.FieldPriority:    {"cast(u.priority as text)", ""},
	report.FieldURN:         {"b.urn", ""},
	report.FieldSource:      {"b.source", ""},
	report.FieldTag:         {"t.value", " left join json_each(b.tags) t"},
	report.FieldCorrelation: {"ifnull(b.correlation, cast(u.job as text))", ""},
}

// DueBy implements [report.LiveStats].
func (s *Store) DueBy(ctx context.Context, field report.Field, f report.AnalyticsFilter, limit int) ([]report.DueGroup, error) {
	if err := field.Check(); err != nil {
		return nil, err
	}
	say := fieldSQL[field]
	args := []any{nilText(f.Queue), nilText(f.Kind), nilText(f.Tag), micro(moment(f)), cmp.Or(limit, 100)}
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
	return reading(ctx, s, fmt.Sprintf("group what is due by %s", field), func(c *conn) ([]report.DueGroup, error) {
		return readRows(c, func(g *report.DueGroup, q *stmt) error {
			if !q.isNull(0) {
				g.Value = new(q.ColumnText(0))
			}
			g.Jobs = q.ColumnInt64(1)
			return nil
		}, text, args...)
	})
}
