package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
)

var _ stint.Statistician = (*Store)(nil)

const (
	// upsertSumsSQL adds to what is there. Fastest, longest and last are null where
	// all were lost.
	upsertSumsSQL = `
	insert into stint_stats as s (hour, kind, queue, outcome, n, ran, total, fastest, longest, last, last_at, waited)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	on conflict (hour, kind, queue, outcome) do update set
	  n = s.n + excluded.n, ran = s.ran + excluded.ran, total = s.total + excluded.total, waited = s.waited + excluded.waited,
	  fastest = min(ifnull(s.fastest, excluded.fastest), ifnull(excluded.fastest, s.fastest)),
	  longest = max(ifnull(s.longest, excluded.longest), ifnull(excluded.longest, s.longest)),
	  last = iif(s.last_at is null or (excluded.last_at, excluded.last) > (s.last_at, s.last), excluded.last, s.last),
	  last_at = max(ifnull(s.last_at, excluded.last_at), ifnull(excluded.last_at, s.last_at))`

	sumsSQL = `
	select hour, kind, queue, outcome, n, ran, total, fastest, longest, last, last_at, waited from stint_stats
	where (?1 is null or kind = ?1) and (?2 is null or queue = ?2) and (?3 is null or hour >= ?3) and (?4 is null or hour < ?4)`

	// erasuresSQL rises whenever an attempt is deleted.
	erasuresSQL = `select erased from stint_meta`
)

// sumTries is how often the sums are made apart from the writer, so that nobody
// waits for them, before it is done by the writer.
const sumTries = 3

// SumUp implements [stint.Statistician]. What has been recorded since the last
// mark is summed up in a transaction that only reads, and added by one that
// writes, unless somebody else was sooner, or deleted something meanwhile.
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
			return false, c.addSums(add)
		})
		if err != nil {
			return false, fmt.Errorf("sum up: %w", err)
		}
		if !sooner {
			return false, nil
		}
	}
}

// standing tells whether sums that were made apart may still be added.
type standing struct{ mark, erased int64 }

// summing is what is to be added to the sums, and the mark that says so.
type summing struct {
	standing
	sums []stint.Stats
	next mark
}

func (c *conn) standing() (s standing, err error) {
	m, err := c.newestMark()
	if err != nil {
		return s, err
	}
	s.mark = m.n
	err = c.query(erasuresSQL, nil, func(q *stmt) error { s.erased = q.ColumnInt64(0); return nil })
	return s, err
}

// summing sums up what was recorded behind the newest mark.
func (c *conn) summing() (s summing, err error) {
	m, err := c.newestMark()
	if err == nil {
		s.standing, err = c.standing()
	}
	if err == nil {
		s.sums, err = c.sumsBehind(m, stint.StatsFilter{Hourly: true})
	}
	if err == nil {
		s.next, err = c.here()
	}
	return s, err
}

// sumsBehind are the sums of the attempts recorded behind a mark that fit.
func (c *conn) sumsBehind(m mark, f stint.StatsFilter) ([]stint.Stats, error) {
	type key struct {
		hour, outcome int64
		kind, queue   string
	}
	from, to := f.Hours()
	all := map[key]*stint.Sums{}
	err := c.attempts(m, func(a *attempt) error {
		hour := a.finished.Truncate(time.Hour)
		if f.Kind != "" && f.Kind != a.kind || f.Queue != "" && f.Queue != a.queue ||
			!from.IsZero() && hour.Before(from) || !to.IsZero() && !hour.Before(to) {
			return nil
		}
		k := key{hour.Unix(), int64(a.outcome), a.kind, a.queue}
		if !f.Hourly {
			k.hour = 0
		}
		sums := all[k]
		if sums == nil {
			sums = &stint.Sums{}
			all[k] = sums
		}
		if a.ran {
			sums.Ran(a.took, a.waited, a.finished)
		} else {
			sums.Lost()
		}
		return nil
	})
	var list []stint.Stats
	for k, sums := range all {
		row := stint.Stats{Kind: k.kind, Queue: k.queue, Outcome: stint.Outcome(k.outcome), Sums: *sums}
		if f.Hourly {
			row.Hour = time.Unix(k.hour, 0).UTC()
		}
		list = append(list, row)
	}
	return list, err
}

func (c *conn) addSums(s summing) error {
	for _, row := range s.sums {
		if err := c.upsertSums(row); err != nil {
			return err
		}
	}
	return c.addMark(s.next, time.Now())
}

func (c *conn) upsertSums(row stint.Stats) error {
	var fastest, longest, last, at any
	if row.Took.Count > 0 {
		fastest, longest, last, at = row.Took.Fastest.Microseconds(), row.Took.Longest.Microseconds(), row.Took.Last.Microseconds(), micro(row.LastAt)
	}
	_, err := c.exec(upsertSumsSQL, micro(row.Hour), row.Kind, row.Queue, int(row.Outcome), row.Attempts, row.Took.Count,
		row.Took.Total.Microseconds(), fastest, longest, last, at, row.Waited.Microseconds())
	return err
}

// Stats implements [stint.Statistician].
func (s *Store) Stats(ctx context.Context, f stint.StatsFilter) ([]stint.Stats, error) {
	from, to := f.Hours()
	args := []any{nilText(f.Kind), nilText(f.Queue), nilTime(from), nilTime(to)}
	var list []stint.Stats
	err := s.read(ctx, func(c *conn) error {
		m, err := c.newestMark()
		if err != nil {
			return err
		}
		if list, err = c.sumsBehind(m, f); err != nil {
			return err
		}
		return c.query(sumsSQL, args, func(q *stmt) error {
			row := scanStats(q)
			if !f.Hourly {
				row.Hour = time.Time{}
			}
			list = append(list, row)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the statistics: %w", err)
	}
	return stint.MergeStats(list), nil
}

func scanStats(q *stmt) stint.Stats {
	us := func(col int) time.Duration { return time.Duration(q.ColumnInt64(col)) * time.Microsecond }
	s := stint.Stats{Hour: q.time(0), Kind: q.name(1), Queue: q.name(2), Outcome: stint.Outcome(q.ColumnInt(3))}
	s.Attempts, s.Took.Count, s.Took.Total, s.Took.Fastest, s.Took.Longest = q.ColumnInt64(4), q.ColumnInt64(5), us(6), us(7), us(8)
	s.Took.Last, s.LastAt, s.Waited = us(9), q.time(10), us(11)
	return s
}

// nilTime binds null for a time that was not set.
func nilTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return micro(t)
}

const attemptOfSQL = `
select x.pos, e.lane, x.finished, e.kind, e.queue, x.outcome, x.slot > 0, ifnull(x.job, x.pos), x.finished - x.started,
       max(0, x.started - ifnull(e.due, e.created))
from (select pos from stint_executions where pos = ?1 union select pos from stint_executions where job = ?1) p
cross join stint_executions x on x.pos = p.pos
cross join stint_entries e on e.pos = x.pos
where x.slot > 0 or x.outcome = 5`

// sumGone adds the attempts of a job that is about to be deleted, where they are
// not in the sums yet. Whoever deletes executions calls it in the same
// transaction, before.
func (c *conn) sumGone(id stint.ID, summed func(stint.Position, int64) bool) error {
	return c.query(attemptOfSQL, []any{int64(id)}, func(q *stmt) error {
		if summed(stint.Position(q.ColumnInt64(0)), q.ColumnInt64(1)) {
			return nil
		}
		a := scanAttempt(q, 2)
		row := stint.Stats{Hour: a.finished.Truncate(time.Hour), Kind: a.kind, Queue: a.queue, Outcome: a.outcome}
		if a.ran {
			row.Ran(a.took, a.waited, a.finished)
		} else {
			row.Lost()
		}
		return c.upsertSums(row)
	})
}
