package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

var _ report.Checker = (*Store)(nil)

// norms say from when on what is normal for a while is worth a word.
type norms struct {
	locked   time.Duration // by one writer
	wal      int64         // bytes; a checkpoint begins at 16 MB
	free     int64         // bytes left on the disk
	unused   int64         // bytes of the file that nothing is in
	look     time.Duration // one question
	problems int           // of those that a check of the pages lists
}

var problem, warning, note = report.SeverityProblem.Rule, report.SeverityWarning.Rule, report.SeverityNote.Rule

var usual = norms{locked: 2 * time.Second, wal: 256 << 20, free: 256 << 20, unused: 1 << 30, look: 5 * time.Second, problems: 20}

// examination is one run of Examine.
type examination struct {
	*Store
	normal norms
	deep   bool
	signs  report.Facts
}

// question is one thing to look at; its failure costs its own answer only.
type question struct {
	about  string
	tables bool // it reads stint's tables, which must be there in this version
	long   bool // it may take as long as the file is large
	ask    func(x *examination, ctx context.Context) error
}

var questions = []question{
	{"the file", false, false, (*examination).file},
	{"who writes", false, false, (*examination).writes},
	{"the pages of the file", false, true, (*examination).pages},
	{"the objects of the schema", true, false, (*examination).drift},
	{"places of engines", true, false, (*examination).standing},
	{"what is ready", true, false, (*examination).ready},
	{"what is undecided", true, false, (*examination).undecided},
	{"flows", true, false, (*examination).flows},
	{"what silent engines hold", true, false, (*examination).holds},
}

// Examine implements [report.Checker].
func (s *Store) Examine(ctx context.Context, e report.Options) (report.Facts, error) {
	return s.examine(ctx, e, usual)
}

func (s *Store) examine(ctx context.Context, e report.Options, n norms) (report.Facts, error) {
	x := &examination{Store: s, normal: n, deep: e.Deep}
	info, _ := s.Schema(ctx) // a schema that cannot be read is a finding elsewhere
	for _, q := range questions {
		if q.tables && info.Installed != info.Known {
			continue
		}
		if err := x.put(ctx, q); err != nil {
			x.notLookedAt(q.about, err)
		}
		if ctx.Err() != nil {
			return x.signs, ctx.Err()
		}
	}
	return x.signs, nil
}

// put asks one question.
func (x *examination) put(ctx context.Context, q question) error {
	if !q.long {
		limited, cancel := context.WithTimeout(ctx, x.normal.look)
		defer cancel()
		ctx = limited
	}
	return q.ask(x, ctx)
}

func (x *examination) find(rule report.Rule, subject string, figures map[string]any) {
	x.signs.Findings = append(x.signs.Findings, rule.With("path", x.path).Find(subject, figures))
}

func (x *examination) notLookedAt(about string, err error) {
	why := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		why = fmt.Sprintf("it took longer than %v", x.normal.look)
	}
	x.signs.Findings = append(x.signs.Findings, report.NotChecked(about, why, x.Advise(err)))
}

// Advise implements [report.Hinter].
func (s *Store) Advise(err error) string {
	for _, missing := range []string{"no such index", "no such table", "no such column"} {
		if err != nil && strings.Contains(err.Error(), missing) {
			return "create what is missing, which the findings schema_missing_object name, and look again"
		}
	}
	return "see whether the file can be read, and look again"
}

// backlogSQL counts what is ready of a lane after its frontier, up to a limit.
const backlogSQL = `
select r.queue, r.priority, r.kind, count(*), sum(ifnull(r.start_by < ?4, 0)), min(r.created), max(r.limits is not null), q.paused, q.by, q.why
from (select queue, priority, kind, start_by, created, limits from stint_entries indexed by stint_entries_lane
      where lane = ?1 and pos > ?2 order by pos limit ?3) r
left join stint_queues q on q.queue = r.queue
group by r.queue, r.priority, r.kind`

func (x *examination) ready(ctx context.Context) error {
	type lane struct{ ID, Frontier int64 }
	return x.read(ctx, func(c *conn) error {
		x.signs.Backlogs = nil
		lanes, err := fieldsOf[lane](c, frontiersSQL)
		for _, l := range lanes {
			if err == nil {
				var some []report.Backlog
				some, err = fieldsOf[report.Backlog](c, backlogSQL, l.ID, l.Frontier, report.BacklogLimit, micro(time.Now()))
				x.signs.Backlogs = append(x.signs.Backlogs, some...)
			}
		}
		return err
	})
}

// undecidedBacklogSQL goes through the partial index on what is undecided. A
// job failed when its last execution ended.
const undecidedBacklogSQL = `
select u.undecided, count(*), min((select x.finished from stint_executions x
  where x.pos = ifnull((select max(l.pos) from stint_executions l where l.job = u.job), u.job)))
from (select job, undecided from stint_waiting indexed by stint_waiting_undecided where undecided is not null order by job limit ?) u
group by u.undecided order by u.undecided`

func (x *examination) undecided(ctx context.Context) error {
	return x.read(ctx, func(c *conn) (err error) {
		x.signs.Undecided, err = fieldsOf[report.UndecidedBacklog](c, undecidedBacklogSQL, report.BacklogLimit)
		return err
	})
}

const (
	flowFactsSQL = `
	select count(f.flow), count(*) - count(f.flow)
	from (select job from stint_waiting indexed by stint_waiting_watch where watch is not null order by watch limit ?) w left join stint_flows f on f.flow = w.job`
	notedSQL = `select ifnull(min(n.at), 0) from (select at from stint_notes order by job limit ?) n`
)

// flows counts what waits for others. There are few notes, unless nobody looks at them.
func (x *examination) flows(ctx context.Context) error {
	return x.read(ctx, func(c *conn) error {
		err := c.query(flowFactsSQL, []any{report.FlowsLimit}, func(q *stmt) error {
			x.signs.Flows = report.FlowFacts{Open: q.ColumnInt(0), Blocked: q.ColumnInt(1)}
			return nil
		})
		if err != nil {
			return err
		}
		noted, err := oneRow(c, firstNumber[int64], notedSQL, report.BacklogLimit)
		if noted > 0 {
			x.signs.Flows.Noted = fromMicro(noted)
		}
		return err
	})
}

// holdsSQL begins at the bound that the engine's last beat told.
const holdsSQL = `
select count(*) from (
  select 1 from stint_beats b
  cross join stint_claims c indexed by stint_claims_engine on c.engine = b.token and c.serial >= b.low
  cross join stint_entries e indexed by stint_entries_lane on e.lane = c.lane and e.pos > c.start and e.pos <= c.frontier
  where b.token = ? and not exists (select 1 from stint_executions x where x.pos = e.pos)
  limit ?)`

func (x *examination) holds(ctx context.Context) error {
	engines, err := x.Engines(ctx)
	if err != nil {
		return err
	}
	x.signs.Holds = map[store.EngineID]int{}
	return x.read(ctx, func(c *conn) error {
		for _, e := range engines {
			if !e.Silent(time.Now()) {
				continue
			}
			n, err := oneRow(c, firstNumber[int], holdsSQL, int64(e.Token), report.HoldsLimit)
			if err != nil {
				return err
			}
			x.signs.Holds[e.Token] = n
		}
		return nil
	})
}
