package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

var _ report.StatsStore = (*Store)(nil)

const (
	// upsertSumsSQL adds to what is there, but replaces histograms. Fastest, longest and last
	// are null where all were lost.
	upsertSumsSQL = `
	insert into stint_stats as s (minutes, start, kind, queue, outcome, n, ran, total, fastest, longest, last, last_at, waited, took_by, waited_by)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	on conflict (minutes, start, kind, queue, outcome) do update set
	  n = s.n + excluded.n, ran = s.ran + excluded.ran, total = s.total + excluded.total, waited = s.waited + excluded.waited,
	  fastest = min(ifnull(s.fastest, excluded.fastest), ifnull(excluded.fastest, s.fastest)),
	  longest = max(ifnull(s.longest, excluded.longest), ifnull(excluded.longest, s.longest)),
	  last = iif(s.last_at is null or (excluded.last_at, excluded.last) > (s.last_at, s.last), excluded.last, s.last),
	  last_at = max(ifnull(s.last_at, excluded.last_at), ifnull(excluded.last_at, s.last_at)),
	  took_by = excluded.took_by, waited_by = excluded.waited_by`

	// histogramsSQL reads what upsertSumsSQL is to replace.
	histogramsSQL = `select took_by, waited_by from stint_stats where (minutes, start, kind, queue, outcome) = (?, ?, ?, ?, ?)`

	sumsSQL = `
	select start, kind, queue, outcome, n, ran, last, fastest, longest, total, last_at, waited, iif(?6, took_by, null), iif(?6, waited_by, null) from stint_stats
	where minutes = ?5 and start >= ?3 and start < ?4 and (?1 is null or kind = ?1) and (?2 is null or queue = ?2)`

	// forgetMinutesSQL forgets minutes that are too old, some of them.
	forgetMinutesSQL = `
	delete from stint_stats where (minutes, start, kind, queue, outcome) in (
	  select minutes, start, kind, queue, outcome from stint_stats where minutes = 1 and start < ? limit ?)`

	// erasuresSQL rises whenever an attempt is deleted.
	erasuresSQL = `select erased from stint_meta`
)

// sumTries is how often the sums are made apart from the writer, so that no other
// waits for them, before the writer makes them.
const sumTries = 3

// forgottenAtOnce bounds how many sums of minutes one step forgets.
const forgottenAtOnce = 10_000

// SumUp implements [report.StatsStore]. What has been recorded since the last
// mark is summed up in a transaction that only reads, and added by one that
// writes, unless another process was sooner, or deleted something meanwhile.
func (s *Store) SumUp(ctx context.Context) (more bool, err error) {
	for try := 1; ; try++ {
		sooner := false
		var next summing
		if try < sumTries {
			if err := s.read(ctx, func(c *conn) (err error) { next, err = c.summing(); return err }); err != nil {
				return false, fmt.Errorf("sum up: %w", err)
			}
		}
		err := s.write(ctx, func(c *conn) (bool, error) {
			now, err := c.standing()
			if sooner = err == nil && try < sumTries && now != next.standing; err != nil || sooner {
				return false, err
			}
			add := next
			if try == sumTries {
				if add, err = c.summing(); err != nil {
					return false, err
				}
			}
			more, err = c.addSums(add)
			return false, err
		})
		if err != nil {
			return false, fmt.Errorf("sum up: %w", err)
		}
		if !sooner {
			return more, nil
		}
	}
}

// standing decides whether sums that were made apart may still be added.
type standing struct{ mark, erased int64 }

// summing has what is to be added to the sums, and the mark that says so.
type summing struct {
	standing
	sums []report.Stats // by the minute
	next mark
}

func (c *conn) standing() (s standing, err error) {
	m, err := c.newestMark()
	if err != nil {
		return s, err
	}
	s.mark = m.n
	s.erased, err = oneRow(c, firstNumber[int64], erasuresSQL)
	return s, err
}

// summing sums up what was recorded after the newest mark.
func (c *conn) summing() (s summing, err error) {
	m, err := c.newestMark()
	if err == nil {
		s.standing, err = c.standing()
	}
	if err == nil {
		s.sums, err = c.sumsBehind(m, report.StatsFilter{Every: time.Minute})
	}
	if err == nil {
		s.next, err = c.here()
	}
	return s, err
}

// sumsBehind are the sums of the attempts recorded after a mark that fit, by the
// minute.
func (c *conn) sumsBehind(m mark, f report.StatsFilter) ([]report.Stats, error) {
	from, to := f.Bounds()
	var sums minuteSums
	err := c.attempts(m, func(a *attempt) error {
		if f.Kind != "" && f.Kind != a.kind || f.Queue != "" && f.Queue != a.queue ||
			!from.IsZero() && a.finished.Before(from) || !to.IsZero() && !a.finished.Before(to) {
			return nil
		}
		sums.add(a)
		return nil
	})
	return sums.list(), err
}

// minuteSums are sums of attempts by the minute, kind, queue and outcome.
type minuteSums map[minuteKey]*report.Totals

type minuteKey struct {
	minute, outcome int64
	kind, queue     string
}

func (m *minuteSums) add(a *attempt) {
	k := minuteKey{a.finished.Truncate(time.Minute).Unix(), int64(a.outcome), a.kind, a.queue}
	if *m == nil {
		*m = minuteSums{}
	}
	sums := (*m)[k]
	if sums == nil {
		sums = &report.Totals{}
		(*m)[k] = sums
	}
	if a.ran {
		sums.Ran(a.took, a.waited, a.finished)
	} else {
		sums.Lost()
	}
}

func (m minuteSums) list() (list []report.Stats) {
	for k, sums := range m {
		list = append(list, report.Stats{Start: time.Unix(k.minute, 0).UTC(), Kind: k.kind, Queue: k.queue, Outcome: stint.Outcome(k.outcome), Totals: *sums})
	}
	return list
}

// addSums adds what was summed up, and forgets minutes that are too old;
// more says that there are more of those.
func (c *conn) addSums(s summing) (more bool, err error) {
	if err := c.addMinutes(s.sums); err != nil {
		return false, err
	}
	gone, err := c.exec(forgetMinutesSQL, micro(report.FirstMinute(time.Now())), forgottenAtOnce)
	if err != nil {
		return false, err
	}
	return gone == forgottenAtOnce, c.addMark(s.next, time.Now())
}

// addMinutes adds sums by the minute to those of the minutes and of their hours.
func (c *conn) addMinutes(sums []report.Stats) error {
	first := report.FirstMinute(time.Now())
	for _, row := range sums {
		if row.Start.Before(first) {
			continue
		}
		if err := c.upsertSums(time.Minute, row); err != nil {
			return err
		}
	}
	for _, row := range report.MergeStats(slices.Clone(sums), report.StatsFilter{Every: time.Hour, Distributed: true}) {
		if err := c.upsertSums(time.Hour, row); err != nil {
			return err
		}
	}
	return nil
}

// counts is a histogram as it is stored.
func counts(h report.Histogram) string {
	if h == nil {
		return "[]"
	}
	text, _ := json.Marshal(h) // numbers can be written
	return string(text)
}

func (c *conn) upsertSums(span time.Duration, row report.Stats) error {
	var fastest, longest, last, at any
	if row.Took.Count > 0 {
		fastest, longest, last, at = row.Took.Fastest.Microseconds(), row.Took.Longest.Microseconds(), row.Took.Last.Microseconds(), micro(row.LastAt)
	}
	key := []any{int64(span / time.Minute), micro(row.Start), row.Kind, row.Queue, int(row.Outcome)}
	there, err := readRows(c, func(t *report.Totals, q *stmt) error { return q.scan(&t.TookBy, &t.WaitedBy) }, histogramsSQL, key...)
	if err != nil {
		return err
	}
	for _, t := range there { // one, or none
		row.TookBy, row.WaitedBy = row.TookBy.Plus(t.TookBy), row.WaitedBy.Plus(t.WaitedBy)
	}
	_, err = c.exec(upsertSumsSQL, append(key, row.Attempts, row.Took.Count,
		row.Took.Total.Microseconds(), fastest, longest, last, at, row.Waited.Microseconds(),
		counts(row.TookBy), counts(row.WaitedBy))...)
	return err
}

// Stats implements [report.StatsStore].
func (s *Store) Stats(ctx context.Context, f report.StatsFilter) ([]report.Stats, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	list, err := reading(ctx, s, "read the statistics", func(c *conn) (list []report.Stats, err error) {
		m, err := c.newestMark()
		if err != nil {
			return nil, err
		}
		// The clock is read after the snapshot begins, so that no minute is asked for
		// that is gone from it.
		if first := report.FirstMinute(time.Now()); f.Every == time.Minute && f.From.Before(first) {
			f.From = first
		}
		if !f.Settled {
			if list, err = c.sumsBehind(m, f); err != nil {
				return nil, err
			}
		}
		from, to := f.Bounds()
		low, high := int64(math.MinInt64), int64(math.MaxInt64)
		if !from.IsZero() {
			low = micro(from)
		}
		if !to.IsZero() {
			high = micro(to)
		}
		sums, err := fieldsOf[report.Stats](c, sumsSQL, nilText(f.Kind), nilText(f.Queue), low, high, int64(cmp.Or(f.Every, time.Hour)/time.Minute), flag(f.Distributed))
		return append(list, sums...), err
	})
	return report.MergeStats(list, f), err
}

// Unsummed implements [report.StatsStore].
func (s *Store) Unsummed(ctx context.Context, most int) (int, error) {
	return reading(ctx, s, "count what is not summed up", func(c *conn) (int, error) {
		m, err := c.newestMark()
		if err != nil {
			return 0, err
		}
		return oneRow(c, firstNumber[int], `select count(*) from (`+attemptsSQL+` limit ?3)`, m.lanes, m.open, most)
	})
}

const attemptsOfSQL = `
select x.pos, e.lane, x.finished, e.kind, e.queue, x.outcome, x.slot > 0, ifnull(x.job, x.pos), x.finished - x.started,
       max(0, x.started - ifnull(e.due, e.created))
from (select pos from stint_executions where pos in (select value from json_each(?1))
      union all select pos from stint_executions where job in (select value from json_each(?1))) p
cross join stint_executions x on x.pos = p.pos
cross join stint_entries e on e.pos = x.pos
where x.slot > 0 or x.outcome = 5`

// sumGone adds the attempts of jobs, an array, that are about to be deleted, where they are
// not in the sums yet. It is called before
// executions are deleted, in the same transaction.
func (c *conn) sumGone(jobs string, summed func(store.Position, int64) bool) error {
	var gone minuteSums
	err := c.query(attemptsOfSQL, []any{jobs}, func(q *stmt) error {
		if !summed(store.Position(q.ColumnInt64(0)), q.ColumnInt64(1)) {
			a := scanAttempt(q, 2)
			gone.add(&a)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.addMinutes(gone.list())
}

var _ report.MetricsKeeper = (*Store)(nil)

const (
	updateMetricsSQL = `update stint_metrics set engine = ?3, at = ?4, figures = ?5 where instance = ?1 and since = ?2`
	insertMetricsSQL = `insert into stint_metrics (instance, since, engine, at, figures) values (?, ?, ?, ?, ?)`
	oldMetricsSQL    = `delete from stint_metrics where at < ?`
	metricsSQL       = `select figures, at from stint_metrics order by at desc, instance`
)

// WriteMetrics implements [report.MetricsWriter]. The first figures of an engine
// also make room.
func (s *Store) WriteMetrics(ctx context.Context, m report.Metrics) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("keep the metrics of %s: %w", m.Instance, err)
	}
	_, err = writing(ctx, s, "keep the metrics of "+m.Instance, func(c *conn) (changed int64, wake bool, err error) {
		now := time.Now()
		row := []any{m.Instance, micro(m.Since), int64(m.Engine), micro(now), string(text)}
		if changed, err = c.exec(updateMetricsSQL, row...); err != nil || changed > 0 {
			return changed, false, err
		}
		if _, err := c.exec(insertMetricsSQL, row...); err != nil {
			return 0, false, err
		}
		changed, err = c.exec(oldMetricsSQL, micro(now.Add(-store.DefaultRetention)))
		return changed, false, err
	})
	return err
}

// EngineMetrics implements [report.MetricsKeeper].
func (s *Store) EngineMetrics(ctx context.Context) ([]report.Metrics, error) {
	return reading(ctx, s, "list metrics", func(c *conn) ([]report.Metrics, error) {
		return readRows(c, func(m *report.Metrics, q *stmt) error { return q.scan(m, &m.At) }, metricsSQL)
	})
}
