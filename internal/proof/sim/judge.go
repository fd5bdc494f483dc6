package sim

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// judging compares what was written down with what the database says.
type judging struct {
	*Verdict
	ledger     *store.Ledger
	told       map[stint.ID]told
	executions map[store.Position]*store.LedgerExecution
	lanes      map[store.Position]store.LaneID
	gone       map[stint.ID]bool // deleted
	history    *check.History
	steps      []check.Step
}

// told is a job as people see it, and what it was told to do.
type told struct {
	args
	info stint.JobInfo
}

func (w *world) judge(ctx context.Context) *Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, log := range w.logs {
		must(0, log.Close())
	}
	j := &judging{Verdict: &Verdict{trace: &w.trace, Violations: w.violations}, ledger: must(w.real.Audit(ctx)), told: w.told(ctx)}
	j.restore(ctx, w.ground)
	j.lanes = make(map[store.Position]store.LaneID, len(j.ledger.Entries))
	for _, e := range j.ledger.Entries {
		j.lanes[e.Pos] = e.Lane
	}
	j.executions = make(map[store.Position]*store.LedgerExecution, len(j.ledger.Executions))
	for i := range j.ledger.Executions {
		x := &j.ledger.Executions[i]
		j.executions[x.Pos] = x
	}
	j.compare(ctx, w)
	j.checkEnds(w)
	j.checkCancellations(w.cancels, w.operations, &w.erased)
	j.checkOperations(w.operations, &w.erased)
	j.checkDecisions(w)
	j.checkVisits(w)
	j.checkAnswersNow(w)
	j.checkSchedules(ctx, w)
	j.checkEffects(ctx, w)
	j.checkLimits(w)
	j.checkFlows(w)
	return j.Verdict
}

// wrong notes a violation, of a job's.
func (j *judging) wrong(job stint.ID, format string, args ...any) {
	j.Violations = append(j.Violations, fmt.Sprintf("job %d: %s", job, fmt.Sprintf(format, args...)))
	j.suspects = append(j.suspects, int64(job))
}

// compare has package check compare the two accounts.
func (j *judging) compare(ctx context.Context, w *world) {
	facts := storetest.Facts(j.ledger)
	if w.linked {
		must(0, w.ground.each(ctx, `select job, name, result from (select job, name, result from stint_steps union all select * from sim_gone_steps) where result is not null`, func(rows *sql.Rows) error {
			var s check.Step
			var result string
			err := rows.Scan(&s.Job, &s.Name, &result)
			s.Value = came(s.Name, []byte(result))
			j.steps = append(j.steps, s)
			return err
		}))
	}
	facts.Steps = j.steps
	for i := range facts.Jobs {
		job := &facts.Jobs[i]
		t := j.told[stint.ID(job.ID)]
		job.Key, job.ChargedMax, job.LossesMax = t.Key, t.Grant, stint.DefaultMaxLosses
		if t.Asks {
			job.ChargedMax += stint.DefaultMaxLosses // which the function is not asked about
		}
		if t.ticks() {
			job.Key = "" // they share it
			if from := t.info.Origin; from.Recovered == 0 {
				job.Schedule, job.Occurrence = t.Key, from.Occurrence
			}
		}
		job.AtOnce, job.Unique = allowed(t.info.Limits), t.Only
		job.CompletesItself, job.Kept, job.Recovers = t.Tx, t.info.Kind == kept, int64(t.info.Origin.Recovered)
	}
	j.history = must(check.Read(w.historyDir))
	j.Report = check.Compare(j.history, facts, check.Options{Drained: true, Clean: w.clean, Disturbances: w.disturbed})
	for _, broken := range j.Report.Violations {
		j.Violations = append(j.Violations, broken.String())
		if broken.Job != 0 {
			j.suspects = append(j.suspects, broken.Job)
		}
	}
}

// told reads what each job was told to do.
func (w *world) told(ctx context.Context) map[stint.ID]told {
	list := must(w.real.Jobs(ctx, store.Filter{Limit: 100 * jobs}))
	all := make(map[stint.ID]told, len(list))
	for i := range list {
		t := told{info: list[i]}
		if !t.info.IsFlow {
			must(0, json.Unmarshal(t.info.Args, &t.args))
		}
		all[t.info.ID] = t
	}
	return all
}

// checkEnds checks that a job which ended badly had to: that it was not given
// up while its policy granted another attempt, nor cancelled unasked.
func (j *judging) checkEnds(w *world) {
	for _, x := range j.executions {
		if !x.Final {
			continue
		}
		a := j.told[x.Job].args
		switch x.Outcome {
		case stint.OutcomeCancelled:
			if a.Last != lastCancel && !w.wasAsked(x.Job) && !inherits(x.Reason) {
				j.wrong(x.Job, "it was cancelled, and nobody asked for that")
			}
		case stint.OutcomeLost:
			if n := j.losses(x.Job); n < stint.DefaultMaxLosses && (a.Grant == 0 || x.Attempt < a.Grant) {
				j.wrong(x.Job, "it was given up as lost after %d losses and %d attempts", n, x.Attempt)
			}
		case stint.OutcomeFailed:
			if n := j.charges(x); a.Last != lastGiveUp && n < a.Grant {
				j.wrong(x.Job, "it failed for good after %d attempts of %d", n, a.Grant)
			}
		}
	}
}

func (j *judging) losses(job stint.ID) int {
	n := 0
	for _, x := range j.executions {
		if x.Job == job && x.Outcome == stint.OutcomeLost {
			n++
		}
	}
	return n
}

// asideSQL has the database set aside what is deleted of jobs, as a part of
// the deletion. So the judge can ask of a deleted job all that it asks of
// others, for which it must have ended, and know what was left of it.
var asideSQL = []string{
	`create table sim_gone_entries (pos integer primary key, job integer, lane integer, attempt integer, losses integer,
	   created integer, queue text, kind text, args text, recovered integer, flow integer)`,
	`create trigger sim_entry_goes before delete on stint_entries begin
	   insert into sim_gone_entries values (old.pos, ifnull(old.job, old.pos), old.lane, old.attempt, old.losses,
	     old.created, old.queue, old.kind, old.args, old.recovered, old.flow);
	 end`,
	`create table sim_gone_executions (pos integer, job integer, attempt integer, nonce integer, engine integer,
	   outcome integer, final integer, started integer, finished integer, slot integer, reason text)`,
	`create trigger sim_execution_goes before delete on stint_executions begin
	   insert into sim_gone_executions values (old.pos, ifnull(old.job, old.pos), old.attempt, old.nonce, old.engine,
	     old.outcome, old.final, old.started, old.finished, ifnull(old.slot, 0), old.reason);
	 end`,
	`create table sim_gone_flows (flow integer)`,
	`create trigger sim_flow_goes before delete on stint_flows begin insert into sim_gone_flows values (old.flow); end`,
	`create table sim_gone_steps (job integer, name text, result text)`,
	`create trigger sim_step_goes before delete on stint_steps begin insert into sim_gone_steps values (old.job, old.name, old.result); end`,
	`create table sim_gone_needs (child integer, parent integer, wants integer)`,
	`create trigger sim_need_goes before delete on stint_needs begin
	   insert into sim_gone_needs values (old.child, old.parent, old.wants);
	 end`,
	`create table sim_gone_claims (lane integer, n integer, nonce integer, engine integer, serial integer, start integer, frontier integer)`,
	`create trigger sim_claim_goes before delete on stint_claims begin
	   insert into sim_gone_claims values (old.lane, old.n, old.nonce, old.engine, old.serial, old.start, old.frontier);
	 end`,
	`create table sim_gone_engines (token integer, ended integer)`,
	`create trigger sim_engine_goes before delete on stint_engine_history begin
	   insert into sim_gone_engines values (old.token, old.ended);
	 end`,
}

const (
	// As an audit reads them: what nobody could claim and has no outcome is no
	// entry.
	goneEntriesSQL = `
	select e.pos, e.job, e.lane, e.attempt, e.losses,
	       e.pos <= ifnull((select c.frontier from stint_claims c where c.lane = e.lane order by c.n desc limit 1), 0)
	from sim_gone_entries e
	where e.lane >= 0 or exists (select 1 from sim_gone_executions x where x.pos = e.pos)`

	goneClaimsSQL = `
	select c.lane, c.n, c.nonce, c.engine, c.serial, e.pos from sim_gone_entries e join (
	  select lane, n, nonce, engine, serial, start, frontier from stint_claims union all select * from sim_gone_claims) c
	  on c.lane = e.lane and e.pos > c.start and e.pos <= c.frontier`

	goneExecutionsSQL = `
	select pos, job, attempt, nonce, engine, outcome, final, started, finished, slot, ifnull(reason, '') from sim_gone_executions`

	goneEnginesSQL = `select token, ended from sim_gone_engines where ended is not null`

	goneNeedsSQL = `select child, parent, wants from sim_gone_needs`

	goneJobsSQL = `
	select pos, created, kind, ifnull(args, ''), ifnull(recovered, 0), ifnull(flow, 0), pos in (select flow from sim_gone_flows)
	from sim_gone_entries where pos = job`
)

// restore adds to the ledger what was deleted, but for what is there still,
// which is wrong.
func (j *judging) restore(ctx context.Context, g *ground) {
	j.gone = map[stint.ID]bool{}
	must(0, g.each(ctx, goneJobsSQL, func(rows *sql.Rows) error {
		var t told
		var created int64
		var text string
		if err := rows.Scan(&t.info.ID, &created, &t.info.Kind, &text, &t.info.Origin.Recovered, &t.info.Flow, &t.info.IsFlow); err != nil {
			return err
		}
		t.info.Created = time.UnixMicro(created)
		j.gone[t.info.ID] = true
		if _, there := j.told[t.info.ID]; there {
			j.wrong(t.info.ID, "it was deleted, and people see it")
		}
		var err error
		if !t.info.IsFlow {
			err = json.Unmarshal([]byte(text), &t.args)
		}
		j.told[t.info.ID] = t
		return err
	}))
	j.checkRemains()
	j.restoreRows(ctx, g)
}

// checkRemains checks that nothing is left of what was deleted.
func (j *judging) checkRemains() {
	for _, e := range j.ledger.Entries {
		if j.gone[e.Job] {
			j.wrong(e.Job, "it was deleted, and its entry %d is there", e.Pos)
		}
	}
	for _, x := range j.ledger.Executions {
		if j.gone[x.Job] {
			j.wrong(x.Job, "it was deleted, and an execution at %d is there", x.Pos)
		}
	}
	for _, w := range j.ledger.Waiting {
		if j.gone[w.Job] {
			j.wrong(w.Job, "it was deleted, and waits")
		}
	}
}

func (j *judging) restoreRows(ctx context.Context, g *ground) {
	l := j.ledger
	must(0, g.each(ctx, goneEntriesSQL, func(rows *sql.Rows) error {
		var e store.LedgerEntry
		err := rows.Scan(&e.Pos, &e.Job, &e.Lane, &e.Attempt, &e.Losses, &e.Behind)
		l.Entries = append(l.Entries, e)
		return err
	}))
	must(0, g.each(ctx, goneClaimsSQL, func(rows *sql.Rows) error {
		var gone store.LedgerClaim
		var pos store.Position
		err := rows.Scan(&gone.Lane, &gone.N, &gone.Nonce, &gone.Engine, &gone.Serial, &pos)
		i := slices.IndexFunc(l.Claims, func(c store.LedgerClaim) bool { return c.Lane == gone.Lane && c.N == gone.N })
		if i < 0 {
			i, l.Claims = len(l.Claims), append(l.Claims, gone)
		}
		l.Claims[i].Positions = append(l.Claims[i].Positions, pos)
		return err
	}))
	must(0, g.each(ctx, goneNeedsSQL, func(rows *sql.Rows) error {
		var n store.FlowNeed
		err := rows.Scan(&n.Child, &n.Parent, &n.Wants)
		l.Needs = append(l.Needs, n)
		return err
	}))
	must(0, g.each(ctx, goneEnginesSQL, func(rows *sql.Rows) error {
		var token store.EngineID
		var ended int64
		err := rows.Scan(&token, &ended)
		l.Buried[token] = time.UnixMicro(ended)
		return err
	}))
	ended := map[stint.ID]stint.State{}
	must(0, g.each(ctx, goneExecutionsSQL, func(rows *sql.Rows) error {
		var x store.LedgerExecution
		var started, finished int64
		err := rows.Scan(&x.Pos, &x.Job, &x.Attempt, &x.Nonce, &x.Engine, &x.Outcome, &x.Final, &started, &finished, &x.Slot, &x.Reason)
		x.Started, x.Finished = time.UnixMicro(started), time.UnixMicro(finished)
		l.Executions = append(l.Executions, x)
		if x.Final {
			t := j.told[x.Job]
			t.info.Reason = x.Outcome.FinalReason(x.Reason)
			j.told[x.Job] = t
			ended[x.Job] = x.Outcome.State()
		}
		return err
	}))
	for i := range l.Needs {
		if n := &l.Needs[i]; j.gone[n.Parent] {
			n.Parent = -n.Parent // perhaps before it was decided what comes of that, so nothing is known of it
		}
	}
	slices.SortFunc(l.Entries, func(a, b store.LedgerEntry) int { return cmp.Compare(a.Pos, b.Pos) })
	for id := range j.gone {
		is := j.told[id].info
		l.Jobs = append(l.Jobs, store.LedgerJob{ID: id, State: ended[id], Flow: is.Flow, IsFlow: is.IsFlow, Recovered: is.Origin.Recovered})
	}
}
