package sim

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/store"
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

func (g *ground) journal(ctx context.Context) (all []note) {
	must(0, g.each(ctx, journalOrderSQL, func(rows *sql.Rows) error {
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
	}))
	return all
}

// standing is a schedule as the judge follows it through the journal.
type standing struct {
	note
	jobs []note // made, and not yet counted
}

// bookkeeping is the judge of schedules.
type bookkeeping struct {
	*judging
	calendar *calendar
	standing map[string]*standing
	ended    map[stint.ID]bool // jobs, so far
	made     map[stint.ID]bool
	seen     map[string]int // what happened to whom, how often
	funcs    *cron.Registry
}

// checkSchedules goes through all that ever happened to schedules: every occurrence
// that the recurrence says, while the schedule stood and was not paused, must have
// its one job or be accounted for.
func (j *judging) checkSchedules(ctx context.Context, w *world) {
	if w.calendar == nil {
		return
	}
	b := &bookkeeping{j, w.calendar, map[string]*standing{}, map[stint.ID]bool{}, map[stint.ID]bool{}, map[string]int{}, new(cron.Registry)}
	must(0, b.funcs.Register(beat, beats))
	for _, n := range w.ground.journal(ctx) {
		b.turn(n)
	}
	for name, s := range b.standing {
		b.nothingLeft(s, "at the end")
		if s.paused.IsZero() && !b.calendar.gone[name] {
			j.blame(name, "it was to be paused in the end")
		}
	}
	for what, n := range b.calendar.told {
		if b.seen[what] < n {
			j.Violations = append(j.Violations, fmt.Sprintf("somebody was told %d times that it is done, and it was done %d times: %s", n, b.seen[what], what))
		}
	}
	for _, id := range b.calendar.ids {
		if !b.made[id] {
			j.wrong(id, "somebody was told that he had it run, and no schedule made it")
		}
	}
}

func (j *judging) blame(name, format string, args ...any) {
	j.Violations = append(j.Violations, fmt.Sprintf("schedule %s: %s", name, fmt.Sprintf(format, args...)))
}

// turn takes in a line of the journal.
func (b *bookkeeping) turn(n note) {
	s := b.standing[n.name]
	switch {
	case n.what == "end":
		b.ended[n.pos] = true
	case n.what == "new":
		b.standing[n.name] = &standing{note: n}
		if s != nil || n.fired != 0 || !n.next.IsZero() || !within(b.calendar.declared, n.declared) || !n.after.Equal(n.declared) {
			b.blame(n.name, "nobody declared what is new: %+v", n)
		}
	case s == nil:
		b.blame(n.name, "something becomes of it (%s), and it is not there", n.what)
	case n.what == "job":
		b.job(s, n)
	case n.what == "gone":
		b.nothingLeft(s, "when it was removed")
		b.seen["removed "+n.name]++
		delete(b.standing, n.name)
	default:
		b.change(s, n)
		s.note, s.jobs = n, nil
	}
}

func (b *bookkeeping) nothingLeft(s *standing, when string) {
	if len(s.jobs) > 0 {
		b.wrong(s.jobs[0].pos, "it was made, and %s the schedule %s does not know of it", when, s.name)
	}
}

func (b *bookkeeping) job(s *standing, n note) {
	s.jobs = append(s.jobs, n)
	b.made[n.pos] = true
	switch {
	case n.nth != s.fired+int64(len(s.jobs)):
		b.wrong(n.pos, "it is number %d of %s, which has fired %d times", n.nth, s.name, s.fired)
	case n.occurrence.IsZero():
	case !s.paused.IsZero():
		b.wrong(n.pos, "%s fired it, and was paused", s.name)
	case !n.due.Equal(n.occurrence):
		b.wrong(n.pos, "it is of %v, and due at %v", n.occurrence, n.due)
	}
	if s.unique && s.lastJob != 0 && len(s.jobs) == 1 && !b.ended[s.lastJob] {
		b.wrong(n.pos, "%s is unique, and made it while job %d had not ended", s.name, s.lastJob)
	}
}

// change checks what became of a schedule.
func (b *bookkeeping) change(s *standing, n note) {
	counted := n.fired == s.fired && n.skipped == s.skipped && n.passed == s.passed && len(s.jobs) == 0
	sameTimes := n.recurrence == s.recurrence && n.zone == s.zone
	samePolicies := n.unique == s.unique && n.missed == s.missed
	s.what = n.what
	switch {
	case n == s.note: // declared twice
	case n.declared != s.declared || !sameTimes, !samePolicies && around(b.calendar.declared, n.declared) > 1: // two declare at the same instant
		switch {
		case !counted || !within(b.calendar.declared, n.declared):
			b.blame(n.name, "nobody declared what it is now: %+v, before %+v", n, s.note)
		case sameTimes && (n.next != s.next || n.after != s.after || n.ended != s.ended):
			b.blame(n.name, "declared again it has another next occurrence: %v, before %v", n.next, s.next)
		case !sameTimes && (!n.next.IsZero() || !n.ended.IsZero() || n.after.Before(s.after) || n.after.Before(n.declared)):
			b.blame(n.name, "declared with other times it keeps its next occurrence: %+v, before %+v", n, s.note)
		}
	case n.paused != s.paused:
		b.pause(s, n, counted)
	case !samePolicies:
		b.blame(n.name, "nobody declared what it is now: %+v, before %+v", n, s.note)
	case s.next.IsZero():
		b.planned(s, n, counted)
	case n.after == s.after && n.next == s.next:
		if n.fired != s.fired+1 || n.passed != s.passed || n.skipped != s.skipped || len(s.jobs) != 1 || !s.jobs[0].occurrence.IsZero() {
			b.blame(n.name, "it was run out of turn: %+v, before %+v, with %d jobs", n, s.note, len(s.jobs))
		}
	default:
		b.fired(s, n)
	}
}

func (b *bookkeeping) pause(s *standing, n note, counted bool) {
	switch {
	case !counted:
		b.blame(n.name, "it fired when it was paused or resumed: %+v, before %+v", n, s.note)
	case s.paused.IsZero():
		b.seen["paused "+n.name]++
	default:
		b.seen["resumed "+n.name]++
		if !n.next.IsZero() || !n.after.Equal(s.after) && !within(b.calendar.resumed, n.after) || n.after.Before(s.after) {
			b.blame(n.name, "resumed it does not go on from then: %+v, before %+v", n, s.note)
		}
	}
}

// planned checks that the next occurrence was found of one that was declared or
// resumed.
func (b *bookkeeping) planned(s *standing, n note, counted bool) {
	if len(s.jobs) == 1 && s.jobs[0].occurrence.IsZero() && n.fired == s.fired+1 && n.next.IsZero() {
		return // it was run out of turn
	}
	after := s.after
	if s.last.After(after) {
		after = s.last
	}
	anchor := s.last
	if anchor.IsZero() {
		anchor = after
	}
	zone, rec := b.times(s)
	want, ok, err := b.funcs.Resume(rec, anchor, after, zone)
	if err != nil || !ok || !counted || !n.next.Equal(want) || !n.after.Equal(s.after) {
		b.blame(n.name, "behind %v comes %v, and it says %v, error %v", after, want, n.next, err)
	}
}

func (b *bookkeeping) times(s *standing) (*time.Location, cron.Recurrence) {
	zone, err := time.LoadLocation(s.zone)
	if err != nil {
		panic(err)
	}
	return zone, cron.MustParse(s.recurrence)
}

// fired checks a firing: each occurrence up to where the schedule is now has a job,
// or was skipped or missed by its policy.
func (b *bookkeeping) fired(s *standing, n note) {
	zone, rec := b.times(s)
	var all []time.Time
	next, ok, err := s.next, true, error(nil)
	for ok && err == nil && !next.After(n.after) {
		all = append(all, next.UTC())
		next, ok, err = b.funcs.Next(rec, next, zone)
	}
	jobs := make([]time.Time, len(s.jobs))
	for i := range s.jobs {
		jobs[i] = s.jobs[i].occurrence
	}
	made, left := n.fired-s.fired, n.skipped-s.skipped+n.passed-s.passed
	var missed stint.Missed
	_ = missed.UnmarshalText([]byte(s.missed))
	most := missed.Most()
	if s.unique {
		most = 1
	}
	switch {
	case err != nil || len(all) == 0 || !next.Equal(n.next):
		b.blame(n.name, "it goes from %v to %v, with %d occurrences behind it; next comes %v, error %v", s.next, n.next, len(all), next, err)
	case made != int64(len(jobs)) || made+left != int64(len(all)):
		b.blame(n.name, "of %d occurrences from %v on it counts %d that were fired and %d that were not; %d jobs were made", len(all), s.next, made, left, len(jobs))
	case len(jobs) > most:
		b.blame(n.name, "%d of %d occurrences were fired at once, and %d may be", len(jobs), len(all), most)
	case !slices.Equal(jobs, all[len(all)-len(jobs):]):
		b.blame(n.name, "of the occurrences %v it fired %v", all, jobs)
	case len(jobs) == 0:
		b.none(s, n, all[len(all)-1], missed)
	case !s.unique && missed != stint.MissedNone && len(jobs) < min(most, len(all)):
		b.blame(n.name, "of %d occurrences %d were fired, and %d are to be", len(all), len(jobs), min(most, len(all)))
	case missed == stint.MissedNone && s.jobs[0].created.Sub(jobs[0]) > store.MissedAfter+10*time.Second:
		b.wrong(s.jobs[0].pos, "%s made it %v late, and wants none that were missed", s.name, s.jobs[0].created.Sub(jobs[0]))
	}
}

// none checks that no job had to be made: as the last one had not ended by then,
// or none is wanted so late.
func (b *bookkeeping) none(s *standing, n note, newest time.Time, missed stint.Missed) {
	busy := s.unique && s.lastJob != 0 && !b.ended[s.lastJob]
	if !busy && missed != stint.MissedNone {
		b.blame(n.name, "the occurrence of %v was not fired, and nothing spoke against it: %+v, before %+v", newest, n, s.note)
	}
	if busy && n.skipped == s.skipped && missed != stint.MissedNone {
		b.blame(n.name, "the occurrence of %v is not counted as skipped", newest)
	}
}

// within tells whether an instant, as databases keep it, is in one of the times.
func within(spans []span, at time.Time) bool { return around(spans, at) > 0 }

// around counts the spans that an instant lies in.
func around(spans []span, at time.Time) (n int) {
	for _, s := range spans {
		if !at.Before(s.from.Truncate(time.Microsecond)) && !at.After(s.to) {
			n++
		}
	}
	return n
}
