package postgres

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// grow fills the log with n jobs, most of them done: what a busy week leaves.
// The last hundredth is claimed and runs, as much again is available.
func grow(t testing.TB, s *Store, engine store.EngineID, n int) {
	t.Helper()
	exec(t, s, `
		insert into stint.entries (lane, queue, kind, args, urn, tags, correlation)
		select $1, 'default', case when i % 10 = 0 then 'rare' else 'k' end, '{}', 'urn:' || i, case when i % 1000 = 0 then '{t}'::text[] end,
		       case when i % 3 = 0 then (i / 100)::text end
		from generate_series(1, $2::int) i`, int64(normal), n)
	exec(t, s, `insert into stint.job_tags (tag, job) select 't', pos from stint.entries where tags is not null`)
	exec(t, s, `
		insert into stint.idempotency (key, job, fingerprint, expires) select 'key ' || i, i, '', now() + interval '1 day' from generate_series(1, $1::int) i`, n)
	exec(t, s, `
		insert into stint.claims (lane, n, nonce, engine, serial, xid, pos, positions)
		select $1::bigint, i, i, case when i > greatest(1, ($2 - $2 / 50) / 500) then $3::bigint else 1 end, i,
		       (select xid from stint.entries limit 1), i * 500,
		       (select array_agg(p) from generate_series(i * 500 - 499, i * 500) p)
		from generate_series(1, ($2::int - $2 / 100) / 500) i`, int64(normal), n, int64(engine))
	// The engine has been there for long, and worked on another lane before.
	claimedBefore(t, s, engine, 2, 1+n/10)
	exec(t, s, `
		insert into stint.executions (pos, nonce, engine, started, finished, attempt, slot, outcome, final)
		select p, 1, 1, f.at, f.at, 1, 1, case when p % 1000 = 0 then 2 else 1 end, true
		from generate_series(1, $1::int - $1 / 50) p cross join lateral (select now() - ($1 - $1 / 50 - p) * interval '1 s' as at) f`, n)
	exec(t, s, `
		insert into stint.steps (job, name, pos, began, ended, result)
		select i / 4, 'step ' || i % 4, i / 4, now(), now(), '{}' from generate_series(4, $1::int + 3) i`, n)
	// As a vacuum would, and the sums an engine.
	exec(t, s, `select brin_summarize_new_values('stint.executions_finished')`)
	exec(t, s, `update stint.summed set until = now() - interval '2 minutes'`)
	exec(t, s, `
		with job as (
		  insert into stint.entries (lane, queue, kind, args, due) select -1, 'default', 'k', '{}', now() + i * interval '1 s'
		  from generate_series(-50, $1::int / 20 - 50) i returning pos, due)
		insert into stint.waiting (job, due, body, why, attempt, priority, queue, kind)
		select pos, due, pos, 'scheduled', 1, 0, 'default', 'k' from job`, n)
	exec(t, s, `
		insert into stint.schedules (name, recurrence, zone, job, overlap, missed, next)
		select 's' || i, 'every 1h', 'UTC', '{}', true, 'one', now() + (i - 2) * interval '1 hour' from generate_series(1, $1::int / 50) i`, n)
}

// keepStatistics keeps autovacuum from gathering statistics, and so plans as they
// were made.
func keepStatistics(t testing.TB, s *Store) {
	t.Helper()
	for _, table := range []string{"entries", "claims", "executions", "waiting", "job_tags", "steps"} {
		exec(t, s, "alter table stint."+table+" set (autovacuum_enabled = off)")
	}
}

// claimedBefore adds claims of another lane that are over, from one number to another.
func claimedBefore(t testing.TB, s *Store, engine store.EngineID, from, to int) {
	t.Helper()
	exec(t, s, `
		insert into stint.claims (lane, n, nonce, engine, serial, xid, pos, positions)
		select 7, i, i, $1::bigint, -i, '3', 0, '{}' from generate_series($2::int, $3::int) i`, int64(engine), from, to)
}

// cost runs a statement in a transaction of its own, after others if there are
// any, and takes it back; it returns how many blocks it asked for, those of
// functions within included.
func cost(t testing.TB, conn *pgx.Conn, before, sql string, args ...any) int {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), before)
	must(t, err)
	text := value[[]byte](t, tx, "explain (analyze, buffers, format json) "+sql, args...)
	must(t, tx.Rollback(t.Context()))
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	must(t, json.Unmarshal(text, &plans))
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// A step of retention, with how long jobs are kept in microseconds.
const (
	retainJobs   = `select * from stint.retain_jobs('', 0, $1, $2, $3::bigint, null, jsonb_build_object('', jsonb_build_object('completed', $3, 'failed', $3, 'cancelled', $3)))`
	retainClaims = `select * from stint.retain_claims('', 0, 0, $1, $2, $3)`
	week         = int64(7 * 24 * time.Hour / time.Microsecond)
)

// What a busy engine claimed and closed since its last beat is nobody's concern any more.
func TestWhatWasClosedSinceTheLastBeatCostsNothingToLookAt(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	w := b.join()
	claim := func(low int64, n int) []store.Entry {
		b.enqueue(n)
		c, err := w.TryClaim(t.Context(), store.ClaimRequest{Lane: normal, Max: n, Wait: true, Low: low})
		must(t, err)
		return c.Entries
	}
	old := claim(1, 1) // of long ago, and still running
	for range 60 {
		w.Complete(claim(1, 500)...)
	}
	conn, err := pgx.Connect(t.Context(), s.url())
	must(t, err)
	defer conn.Close(t.Context())
	look := func(running int) int {
		if n := value[int](b, conn, s.sql.in(`select count(*) from stint.claimed`)); n != running {
			t.Errorf("%d jobs run, it counts %d", running, n)
		}
		return cost(t, conn, "", s.sql.in(`select count(*) from stint.claimed`))
	}
	dear := look(1)
	w.Complete(old...)
	claim(62, 5) // which is its 62nd
	if got := look(5); got > 60 || dear < 300 {
		t.Errorf("it asks for %d blocks, and for %d where the engine promised nothing", got, dear)
	}
}

// What is due is grouped without reading what is not.
func TestWhatIsNotDueCostsNothingToGroup(t *testing.T) {
	s := verified(t)
	exec(t, s, `
		with job as (
		  insert into stint.entries (lane, queue, kind, args, due) select -1, 'default', 'k', '{}', now() + interval '1 year' + i * interval '1 s'
		  from generate_series(1, 20000) i returning pos, due)
		insert into stint.waiting (job, due, body, why, attempt, priority, queue, kind)
		select pos, due, pos, 'scheduled', 1, 0, 'default', 'k' from job`)
	conn, err := pgx.Connect(t.Context(), s.url())
	must(t, err)
	defer conn.Close(t.Context())
	dueBy := func() int { return cost(t, conn, "", s.sql.in(dueBySQL), "queue", nil, nil, nil, nil, nil, 50) }
	dueBy() // which reads catalogs
	if got := dueBy(); got > 100 {
		t.Errorf("it asks for %d blocks", got)
	}
}

// Whom a signal or the end of a job wakes is found without reading who else waits, also by plans that were made while few did.
func TestWhatWakesOneJobCostsTheSameHoweverManyWait(t *testing.T) {
	for _, few := range []int{0, 1, 10} {
		t.Run(fmt.Sprint(few), func(t *testing.T) {
			s := verified(t)
			keepStatistics(t, s)
			conn := connect(t, s)
			promote := func(after string) int {
				return cost(t, conn, `with jobs as (`+after+`) insert into stint.notes (jobs) select * from jobs`, s.sql.in(`select * from stint.promote('-infinity', 1000)`))
			}
			news := map[string]string{
				"a signal": `select array[min(job)] from stint.signals`,
				"the end of a job": `
					insert into stint.executions (pos, nonce, engine, started, finished, attempt, slot, outcome, final)
					select min(watch), 1, 1, now(), now(), 1, 1, 1, true from stint.waiting returning array[pos]`,
				"a cancellation": `insert into stint.cancellations (job) select max(job) from stint.waiting returning array[job]`,
			}
			for i := range 7 { // plans are made for what waits now, and stay
				waitForever(t, s, max(4, few))
				if i == 0 && few > 0 {
					exec(t, s, "analyze")
				}
				for _, after := range news {
					promote(after)
				}
			}
			waitForever(t, s, 50_000)
			for what, after := range news {
				promote(after) // which reads the catalogue as well
				if got := promote(after); got > 300 {
					t.Errorf("for %s it asks for %d blocks", what, got)
				}
			}
		})
	}
}

// waitForever stores jobs of which every other one awaits a signal, and the rest the one before, by a need and a call.
// The first has its signal.
func waitForever(t *testing.T, s *Store, n int) {
	t.Helper()
	exec(t, s, `
		with job as (
		  insert into stint.entries (lane, queue, kind, args) select -1, 'default', 'k', '{}' from generate_series(1, $1) i returning pos),
		signals as (
		  insert into stint.signals (job, name, value) select min(pos), 'a', '1' from job),
		needs as (
		  insert into stint.needs (child, parent, wants) select pos, pos - 1, 1 from job where pos % 2 = 0),
		calls as (
		  insert into stint.steps (job, name, pos, began, ended, question, until)
		  select pos, 'x', pos, now(), now(), jsonb_build_object('job', pos - 1), now() + interval '1 hour' from job where pos % 2 = 0)
		insert into stint.waiting (job, due, body, why, attempt, priority, queue, kind, awaits, watch, seen, verdict)
		select pos, now() + interval '1 hour' + pos * interval '1 second', pos, 'blocked', 1, 0, 'default', 'k', '{"x": "a"}'::jsonb, null, null, null from job where pos % 2 = 1
		union all
		select pos, null, pos, 'blocked', 1, 0, 'default', 'k', null, pos - 1, 0, 0 from job where pos % 2 = 0`, n)
}

// TestHotStatementsCostTheSameWhateverTheSize counts blocks, not time, with
// and without statistics.
func TestHotStatementsCostTheSameWhateverTheSize(t *testing.T) {
	for _, n := range []int{0, 1000, large()} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			pgtest.Each(t, func(t *testing.T, server *pgtest.Server) { bounded(t, server, n) })
		})
	}
}

// large is a size at which a plan that reads everything cannot hide.
func large() int {
	if os.Getenv("STINT_PG_MAJORS") != "" && !testing.Short() {
		return 1_000_000
	}
	return 100_000
}

// hotStatement is one that may ask for so many blocks.
type hotStatement struct {
	name  string
	limit int
	sql   string
	args  []any
}

// hotStatements are those of the way of a job, and what is done again and again
// beside it.
func hotStatements(s *Store, engine store.EngineID, id stint.ID, n int) []hotStatement {
	return []hotStatement{
		{"frontier", 30, `select * from stint.frontier($1)`, []any{normal}},
		{"sight", 60, `select * from stint.sight($1)`, []any{normal}},
		{"look", 120, s.sql.look, []any{[]int64{int64(normal)}, []bool{false}}},
		{"claim", 250, `select * from stint.claim($1, 1000000, 0, 1, $2, 10, true, false)`, []any{engine, normal}},
		{"fetch", 100, s.sql.fetch, []any{[]int64{int64(id), int64(id) + 1, int64(id) + 5}}},
		{"promote", 900, `select * from stint.promote('-infinity', 10)`, nil},
		{"cancel what waits", 600, `select stint.cancel_waiting(array(select job from stint.waiting order by job desc limit 10))`, nil},
		{"look at notes", 600, `select * from stint.look_at_notes(0, 1000, now())`, nil},
		{"finish", 120, `select stint.finish($1, '{7,7}', array[1, $3::bigint], array[1, $3::bigint], $2::bigint[], null, '{1,1}', '{1,1}', '{1,1}', '{1,1}', '{0,0}', '{1,1}', '{t,t}',
		   null, null, null, null, null, null, null, null, null, null, null, null, null)`, []any{engine, []int64{int64(id), int64(n) + 7}, 2 + n/10}},
		{"record steps", 120, s.sql.in(`select * from stint.record_steps($1, array[7, $3::bigint], array[$2::bigint, 1], array[$2::bigint, 1], array[$4::bigint, 1], array[$4::bigint, 1],
		   '{b,a}', '{1,1}', '{0,0}', '{1,2}')`), []any{engine, 2 + n/10, normal, n - n/100 - 1}},
		{"steps", 30, s.sql.in(stepsSQL), []any{int64(n) / 8}},
		{"due schedules", 60, s.sql.due, []any{[]string{}, []string{}, time.Now(), 200}},
		{"the next schedule", 60, s.sql.due, []any{[]string{}, []string{}, time.Now().AddDate(100, 0, 0), 1}},
		{"take keys", 200, `select * from stint.take_keys('{key 5,new}', '{"",a}', '{1,2}')`, nil},
		{"retain young jobs", 3_500, retainJobs, []any{0, 500, week}},
		{"retain old jobs", 20_000, retainJobs, []any{0, 500, 1}},
		{"retain old jobs in the middle", 20_000, retainJobs, []any{int64(id), 500, 1}},
		{"retain young claims", 100, retainClaims, []any{0, 500, week}},
		{"retain old claims", 9_000, retainClaims, []any{0, 500, 1}},
		{"retain keys", 100, `select * from stint.retain_keys('', 0, 500, $1, '{"": {"completed": 1}}')`, []any{week}},
		{"retain engines", 100, `select * from stint.retain_engines('', 0, 0, 500, $1)`, []any{week}},
		{"held", 100, s.sql.in(heldSQL), []any{engine, 2_000_000, int64(math.MaxInt64), []int64{}}},
		{"undecided", 100, s.sql.in(undecidedSQL), []any{[]string{"f", "g"}, 0, 100}},
		{"acquire", 100, `select stint.acquire('x', $1, 1000000)`, []any{engine}},
		{"job by id", 100, `select * from stint.jobs where id = $1`, []any{id}},
		{"engines that are gone", 100, s.sql.in(formerSQL), []any{nil, time.Now().Add(-24 * time.Hour), "", 50}},
		{"what was lost with an engine", 400, s.sql.in(lostSQL), []any{engine}},
		{"open questions", 400, s.sql.in(questionsSQL), []any{int64(math.MaxInt64), 100}},
	}
}

// costs runs statements and, when it is said how they are planned, holds them
// to their limits.
func costs(t *testing.T, conn *pgx.Conn, statements []hotStatement, planned string) {
	t.Helper()
	for _, q := range statements {
		began := time.Now()
		got := cost(t, conn, "", q.sql, q.args...)
		if planned == "" {
			continue
		}
		if t.Logf("%s: %s: %d blocks, %v", planned, q.name, got, time.Since(began)); got > q.limit {
			t.Errorf("%s: %s asks for %d blocks, more than %d", planned, q.name, got, q.limit)
		}
	}
}

func bounded(t *testing.T, server *pgtest.Server, n int) {
	s := openStore(t, installed.On(t, server))
	w := (&bench{t, s, nil}).join()
	id := stint.ID(n / 2)
	hot := hotStatements(s, w.Info.Token, id, n)
	keepStatistics(t, s)
	claimedBefore(t, s, w.Info.Token, 1, 1)
	claimedBefore(t, s, w.Info.Token, 2+n/10, 2+n/10)
	early := connect(t, s)
	for range 7 {
		costs(t, early, hot, "")
	}
	grow(t, s, w.Info.Token, n)
	exec(t, s, `
		insert into stint.claims (lane, n, nonce, engine, serial, xid, pos, positions)
		select 7, 1000000000, 1, $1, 2000000, '3', 0, array_agg(p.pos) from (select pos from stint.entries order by pos desc limit 5) p having count(*) > 0`, int64(w.Info.Token))
	exec(t, s, `update stint.engine_history set lost_at = array(select pos from stint.executions order by pos desc limit 5)`)
	exec(t, s, `
		insert into stint.engine_history (token, instance, host, pid, version, joined, ended, why, swept)
		select i, 'i', 'h', 1, 'v', now() - interval '2 days', now() - i * interval '1 minute', 'left', true from generate_series(1, 20000) i`)
	exec(t, s, `
		insert into stint.steps (job, name, pos, began, ended, question, until)
		select job, 'ask', job, now(), now(), '{}', now() + interval '1 hour' from stint.waiting order by job desc limit 20`)
	exec(t, s, `update stint.waiting set undecided = 'f', due = null, why = 'retrying' where job in (select job from stint.waiting order by job limit 5)`)
	costs(t, early, hot, "") // which reads the catalogue as well
	costs(t, early, hot, "planned when there was nothing")
	for _, statistics := range []bool{false, true} {
		if statistics {
			exec(t, s, "analyze")
		}
		conn := connect(t, s)
		plans := fmt.Sprint("statistics ", statistics)
		costs(t, conn, hot, "") // which reads the catalogue as well
		for range 6 {           // beyond the runs after which a plan may become generic
			costs(t, conn, hot, plans)
		}
		for _, q := range []string{
			`order by id desc limit 50`,
			`where id < 77777777 order by id desc limit 50`,
		} {
			start := time.Now()
			got := cost(t, conn, pageSQL, "select * from stint.jobs j "+q)
			if t.Logf("statistics %v: %s: %d blocks, %v", statistics, q, got, time.Since(start)); got > 30_000 {
				t.Errorf("statistics %v: %s asks for %d blocks", statistics, q, got)
			}
		}
		// What people ask of the work as a whole costs what waits, runs and
		// ended lately.
		for _, q := range []struct {
			name string
			sql  string
			args []any
		}{
			{"analytics", analyticsSQL, []any{nil, nil, nil, nil, time.Minute}},
			{"activity", activitySQL, []any{nil, nil, nil, nil, time.Minute}},
			{"analytics of kinds", kindFiguresSQL, []any{nil, nil, nil, nil, time.Minute}},
			{"analytics of a tag", analyticsSQL, []any{nil, "k", "t", nil, time.Minute}},
			{"due by", dueBySQL, []any{"args", []string{"n"}, nil, nil, nil, nil, 50}},
			{"stats", statsSQL, []any{nil, nil, nil, nil, 60, true, false, true}},
			{"stats by the minute", statsSQL, []any{nil, nil, time.Now().Add(-time.Hour), nil, 1, true, false, true}},
			{"settled stats", statsSQL, []any{nil, nil, nil, nil, 1, true, true, false}},
			{"what is not summed up", `select stint.unsummed($1)`, []any{1000}},
			{"a step of the sums", `select stint.add_sums(now() - interval '2 minutes', now())`, nil},
		} {
			start := time.Now()
			got := cost(t, conn, "", q.sql, q.args...)
			if t.Logf("statistics %v: %s: %d blocks, %v", statistics, q.name, got, time.Since(start)); got > 3000+n/4 {
				t.Errorf("statistics %v: %s asks for %d blocks", statistics, q.name, got)
			}
		}
		{
			start := time.Now()
			got := cost(t, conn, pageSQL, errorsSQL, "k", nil, nil, 5*report.MaxErrors+1, report.MaxErrors+1)
			if t.Logf("statistics %v: errors: %d blocks, %v", statistics, got, time.Since(start)); got > 3000+n/50 {
				t.Errorf("statistics %v: errors ask for %d blocks", statistics, got)
			}
		}
		// What the doctor asks ends at a limit for each lane and each engine.
		for _, q := range []struct {
			name, sql string
			limit     int
		}{{"backlog", backlogSQL, report.BacklogLimit}, {"undecided", undecidedBacklogSQL, report.BacklogLimit}, {"holds", holdsSQL, report.HoldsLimit}} {
			start := time.Now()
			got := cost(t, conn, walkSQL, q.sql, q.limit)
			if t.Logf("statistics %v: %s: %d blocks, %v", statistics, q.name, got, time.Since(start)); got > 2*report.BacklogLimit {
				t.Errorf("statistics %v: the doctor's %s asks for %d blocks", statistics, q.name, got)
			}
		}
		state := func(all ...stint.State) []stint.State { return all }
		for _, f := range []store.Filter{
			{Limit: 50}, {Tag: "t", Limit: 20}, {URN: "urn:5"}, {URN: "urn:5*"}, {Tag: "t", URN: "urn:5"},
			{Correlation: "5"}, {Correlation: id.String(), Limit: 20}, {Correlation: "5", States: state(stint.Completed, stint.Failed)},
			{Correlation: "5", States: state(stint.Scheduled), Source: "s", Before: id},
			{States: state(stint.Failed), Limit: 20}, {States: state(stint.Failed), Before: id, Kind: "k", Limit: 20},
			{States: state(stint.Scheduled), Limit: 20}, {States: state(stint.Retrying)}, {States: state(stint.Cancelled)},
			{States: state(stint.Failed, stint.Cancelled, stint.Retrying), Limit: 20}, {States: state(stint.Scheduled, stint.Retrying), Limit: 20},
			{Outcome: stint.OutcomeLost}, {Class: "c"}, {Error: "e", Outcome: stint.OutcomeFailed}, {Outcome: stint.OutcomeFailed, Limit: 20},
			{States: state(stint.Completed), Limit: 20}, {States: state(stint.Completed), Before: id, Limit: 20}, {States: state(stint.Running), Limit: 20},
			{States: state(stint.Available), Limit: 20}, {States: state(stint.Available, stint.Running, stint.Failed), Kind: "k", Before: id, Limit: 20},
			{Kind: "none", After: id, Before: id + 1000}, {Queue: "none", After: id, Before: id + 500}, {States: state(stint.Completed), Kind: "none", After: id, Before: id + 1000},
			{Attempts: 1, Limit: 20}, {Longer: store.LongAttempt, Limit: 20}, {Longer: time.Minute, Kind: "k", Before: id, Limit: 20},
		} {
			most := 8_000
			if slices.Contains(f.States, stint.Running) {
				most = 100_000 // all that engines hold is looked at, and here they hold a lot
			}
			for _, columns := range []string{jobColumns, "j.id"} {
				text, args := jobsQuery(columns, f, true)
				start := time.Now()
				got := cost(t, conn, pageSQL, text, args...)
				if t.Logf("statistics %v: %s %v: %d blocks, %v", statistics, text[strings.Index(text, " from "):], args, got, time.Since(start)); got > most {
					t.Errorf("statistics %v: %+v asks for %d blocks", statistics, f, got)
				}
			}
		}
	}
}
