package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/stint-go/stint"
)

// Jobs implements [stint.Inspector]. A page costs what it shows and what it
// has to pass over; the filters by tag, by urn, by correlation id and by every state but completed
// look only at jobs that may fit, so that a long history costs them nothing.
func (s *Store) Jobs(ctx context.Context, f stint.Filter) ([]stint.JobInfo, error) {
	text, args := jobsQuery(f)
	var jobs []stint.JobInfo
	err := s.read(ctx, func(c *conn) error {
		jobs = nil
		return c.query(text, args, func(q *stmt) error {
			jobs = append(jobs, stint.JobInfo{})
			return s.scanJob(c, q, &jobs[len(jobs)-1])
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return jobs, nil
}

// mayBe finds the jobs that may be in a state.
var mayBe = map[stint.State]string{
	stint.Available: `select ifnull(e.job, e.pos) from (` + frontiersSQL + `) f
		cross join stint_entries e indexed by stint_entries_lane on e.lane = f.lane and e.pos > f.frontier`,
	stint.Running: `select ifnull(e.job, e.pos) from stint_beats b
		cross join stint_claims c indexed by stint_claims_engine on c.engine = b.token and c.serial >= b.low
		cross join stint_entries e indexed by stint_entries_lane on e.lane = c.lane and e.pos > c.start and e.pos <= c.frontier
		where not exists (select 1 from stint_executions x where x.pos = e.pos)`,
	stint.Failed: `select ifnull(job, pos) from stint_executions indexed by stint_executions_rare
		where outcome <> 1 and outcome in (2, 5, 7) and final = 1`,
	stint.Cancelled: `select ifnull(job, pos) from stint_executions indexed by stint_executions_rare
		where outcome <> 1 and outcome = 6 and final = 1
		union all select job from stint_cancellations`,
}

// frontiersSQL is the lanes that have entries, each with its frontier.
const frontiersSQL = `
with recursive lanes (lane) as (
  select min(lane) from stint_entries where lane >= 0
  union all
  select (select min(e.lane) from stint_entries e where e.lane > l.lane) from lanes l where l.lane is not null
)
select l.lane, ifnull((select c.frontier from stint_claims c where c.lane = l.lane order by c.n desc limit 1), 0) as frontier
from lanes l where l.lane is not null`

const correlatedSQL = `
select pos from stint_entries where correlation = ?
union all
select pos from stint_entries where pos = ? and job is null and correlation is null and cast(pos as text) = ?`

func jobsQuery(f stint.Filter) (text string, args []any) {
	where := []string{"true"}
	add := func(condition string, value any) {
		where, args = append(where, condition), append(args, value)
	}
	if f.State != "" {
		add("j.state = ?", string(f.State))
	}
	if ids, ok := mayBe[f.State]; ok {
		where = append(where, "j.id in ("+ids+")")
	}
	if f.Kind != "" {
		add("j.kind = ?", f.Kind)
	}
	if f.Queue != "" {
		add("j.queue = ?", f.Queue)
	}
	if f.Tag != "" {
		add("j.id in (select job from stint_job_tags where tag = ?)", f.Tag)
	}
	if f.URN != "" {
		add("j.id in (select ifnull(job, pos) from stint_entries where urn = ?)", f.URN)
	}
	if f.Source != "" {
		add("(select b.source from stint_entries b where b.pos = j.id) = ?", f.Source)
	}
	if f.Correlation != "" {
		id, _ := strconv.ParseInt(f.Correlation, 10, 64) // 0 is nobody's
		where = append(where, "j.id in ("+correlatedSQL+")")
		args = append(args, f.Correlation, id, f.Correlation)
	}
	if f.Before != 0 {
		add("j.id < ?", int64(f.Before))
	}
	args = append(args, max(0, cmp.Or(f.Limit, 100)))
	page := " j where " + strings.Join(where, " and ") + " order by j.id desc limit ?"
	if f.State != stint.Scheduled && f.State != stint.Retrying && f.State != stint.Blocked {
		return "select " + jobColumns + " from stint_jobs" + page, args
	}
	// What waits is found without a look at the log.
	ids := "select j.id from (select job as id, why as state, kind, queue from stint_waiting" +
		" where job not in (select job from stint_cancellations))" + page
	return "select " + jobColumns + " from stint_jobs j where j.id in (" + ids + ") order by j.id desc", args
}
