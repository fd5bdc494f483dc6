package sim

import (
	"context"
	"database/sql"
	"time"

	"github.com/stint-go/stint"
)

// journalSQL has the database write down each state of a schedule, each job that
// one makes and the recorded end of each, in the order in which they come to be, as a part of the transactions
// that do so.
var journalSQL = []string{
	`create table sim_journal (seq integer primary key, what text, name text, recurrence text, zone text, missed text, overlap integer,
	   after integer, next integer, ended integer, paused integer, fired integer, skipped integer, passed integer, last_job integer,
	   last_occurrence integer, declared integer, pos integer, nth integer, occurrence integer, due integer, created integer)`,
	`create trigger sim_schedule_new after insert on stint_schedules begin ` + enterSQL("new", "new") + ` end`,
	`create trigger sim_schedule_set after update on stint_schedules begin ` + enterSQL("set", "new") + ` end`,
	`create trigger sim_schedule_gone after delete on stint_schedules begin ` + enterSQL("gone", "old") + ` end`,
	`create trigger sim_schedule_job after insert on stint_entries when new.schedule is not null and new.job is null begin
	   insert into sim_journal (what, name, pos, nth, occurrence, due, created)
	   values ('job', new.schedule, new.pos, new.nth, new.occurrence, new.due, new.created);
	 end`,
	`create trigger sim_schedule_end after insert on stint_executions when new.final = 1 begin
	   insert into sim_journal (what, name, pos) select 'end', e.schedule, e.pos from stint_entries e
	   where e.pos = ifnull(new.job, new.pos) and e.schedule is not null;
	 end`,
}

func enterSQL(what, row string) string {
	return `insert into sim_journal (what, name, recurrence, zone, missed, overlap, after, next, ended, paused, fired, skipped, passed,
	  last_job, last_occurrence, declared)
	values ('` + what + `', ` + row + `.name, ` + row + `.recurrence, ` + row + `.zone, ` + row + `.missed, ` + row + `.overlap, ` +
		row + `.after, ` + row + `.next, ` + row + `.ended, ` + row + `.paused, ` + row + `.fired, ` + row + `.skipped, ` + row + `.passed, ` +
		row + `.last_job, ` + row + `.last_occurrence, ` + row + `.declared);`
}

// note is a line of the journal.
type note struct {
	what, name               string
	recurrence, zone, missed string
	unique                   bool
	after, next, ended       time.Time
	paused, declared, last   time.Time // last occurrence
	fired, skipped, passed   int64
	lastJob                  stint.ID

	pos                      stint.ID
	nth                      int64
	occurrence, due, created time.Time
}

const journalOrderSQL = `
select what, name, ifnull(recurrence, ''), ifnull(zone, ''), ifnull(missed, ''), ifnull(overlap, 1), after, next, ended, paused, declared,
  last_occurrence, ifnull(fired, 0), ifnull(skipped, 0), ifnull(passed, 0), ifnull(last_job, 0), ifnull(pos, 0), ifnull(nth, 0), occurrence, due, created
from sim_journal order by seq`

func (g *ground) journal(ctx context.Context) (all []note, err error) {
	err = g.each(ctx, journalOrderSQL, func(rows *sql.Rows) error {
		var n note
		var overlap bool
		var at [9]sql.NullInt64
		err := rows.Scan(&n.what, &n.name, &n.recurrence, &n.zone, &n.missed, &overlap, &at[0], &at[1], &at[2], &at[3], &at[4],
			&at[5], &n.fired, &n.skipped, &n.passed, &n.lastJob, &n.pos, &n.nth, &at[6], &at[7], &at[8])
		for i, t := range []*time.Time{&n.after, &n.next, &n.ended, &n.paused, &n.declared, &n.last, &n.occurrence, &n.due, &n.created} {
			if at[i].Valid {
				*t = time.UnixMicro(at[i].Int64).UTC()
			}
		}
		n.unique = !overlap
		all = append(all, n)
		return err
	})
	return all, err
}
