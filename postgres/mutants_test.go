package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/stint-go/stint/internal/pgtest"
)

// trap is a way in which a store like this one lost or doubled jobs, or stood
// still. Its check says what went wrong, nil when nothing did.
type trap struct {
	name  string
	check func(b *bench) error
}

// mutant is the schema or a statement with the mend of a trap taken out. The
// trap's check must notice.
type mutant struct {
	name    string
	trap    string
	replace []string // pairs of old and new text of the schema
	store   func(q *statements)
}

// TestNoTrapIsOpen runs each trap's check on the store as it is.
func TestNoTrapIsOpen(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, server *pgtest.Server) {
		for _, trap := range traps {
			t.Run(trap.name, func(t *testing.T) {
				t.Parallel()
				open := func(url string) *Store { return openStore(t, url) }
				if err := trap.ask(&bench{t, open(installed.On(t, server)), open}); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// TestEachTrapHasItsMend takes the mends out, one at a time.
func TestEachTrapHasItsMend(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(traps, func(trap trap) bool { return trap.name == m.trap })
			if i < 0 {
				t.Fatalf("there is no trap %q", m.trap)
			}
			open := func(url string) *Store { return m.open(t, url) }
			if err := traps[i].ask(&bench{t, open(pgtest.New(t)), open}); err == nil {
				t.Errorf("without its mend, nothing fails: %s", m.trap)
			} else {
				t.Logf("as it should be: %v", err)
			}
		})
	}
}

// open installs the schema of the mutant in an empty database.
func (m mutant) open(t *testing.T, url string) *Store {
	t.Helper()
	s := openStore(t, url, Config{SkipCheck: true})
	text, err := s.PrintSchema(0)
	must(t, err)
	for i := 0; i < len(m.replace); i += 2 {
		if n := strings.Count(text, m.replace[i]); n != 1 {
			t.Fatalf("the schema has %d times: %s", n, m.replace[i])
		}
		text = strings.Replace(text, m.replace[i], m.replace[i+1], 1)
	}
	_, err = connect(t, s).PgConn().Exec(t.Context(), text).ReadAll()
	must(t, err)
	if m.store != nil {
		m.store(&s.sql)
	}
	return s
}

var mutants = []mutant{
	{
		name: "isolation is not looked at", trap: "Claims refuse every isolation but read committed",
		replace: []string{"  ok boolean;\nbegin\n  if current_setting('transaction_isolation') <> 'read committed' then", "  ok boolean;\nbegin\n  if false then"},
	},
	{
		name: "the frontier is read before the lock", trap: "A claim that waited for the lane reads what was claimed meanwhile",
		replace: []string{
			"  if p_wait then\n", "  select l.n, l.xid, l.pos, null::integer as pending, null::bigint as listed into f from stint.frontier(p_lane) l;\n  if p_wait then\n",
			"into f from stint.claims c where c.lane = p_lane\n", "into was from stint.claims c where c.lane = p_lane\n",
		},
	},
	{
		name: "the fence comes behind the lane lock", trap: "A burial in progress does not stop the lane for others",
		replace: []string{
			"  ok := stint.fence(p_engine);\n  if p_wait", "  if p_wait",
			"younger than the lock.\n", "\n  ok := stint.fence(p_engine);\n",
		},
	},
	{
		name: "the fence takes no lock", trap: "A burial does not miss a claim in flight",
		replace: []string{"  ok := pg_advisory_xact_lock_shared(p_engine) is null;\n", ""},
	},
	{
		name: "the fence reads the row before it has the lock", trap: "A claim that waited for a burial finds itself buried",
		replace: []string{
			"  ok := pg_advisory_xact_lock_shared(p_engine) is null;\n", "",
			"is not in the roster', p_engine using errcode = 'ST002';\n  end if;", "is not in the roster', p_engine using errcode = 'ST002';\n  end if;\n  perform pg_advisory_xact_lock_shared(p_engine);",
		},
	},
	{
		name: "the fence locks the row", trap: "Overlapping fences leave no mark on the roster's row",
		replace: []string{"perform from stint.engines where token = p_engine;", "perform from stint.engines where token = p_engine for key share;"},
	},
	{
		name: "rows of transactions in progress are read", trap: "The uncommitted rows of a bulk load do not cost each claim",
		replace: []string{"      where pg_visible_in_snapshot(p.xid, (select s from snapshot))\n", ""},
	},
	{
		name: "no jump when all was taken", trap: "What was stepped over is not stepped over again",
		replace: []string{"new_xid := pg_snapshot_xmax(snap); new_pos := 0;",
			"new_xid := coalesce(fresh_xid[fresh], f.xid); new_pos := coalesce(fresh_pos[fresh], f.pos);"},
	},
	{
		name: "settling is never asked for", trap: "What was stepped over is not stepped over again",
		replace: []string{"if stint.steps() - began > 100 then", "if false then"},
	},
	{
		name: "pending is written again and again", trap: "An unchanged list of open transactions is pointed to",
		replace: []string{"if pend_xid = was.pending_xid and pend_pos = was.pending_pos then", "if false then"},
	},
	{
		name: "what was cut short is forgotten", trap: "Late rows come over several claims, each once",
		replace: []string{" or o.xid >= late_xid[p_max]", ""},
	},
	{
		name: "what was taken of it is forgotten", trap: "Late rows come over several claims, each once",
		replace: []string{"case when o.xid = late_xid[p_max] then late_pos[p_max] else o.pos end", "o.pos"},
	},
	{
		name: "what is in progress is forgotten", trap: "Late rows come over several claims, each once",
		replace: []string{"select x, 0 from pg_snapshot_xip(snap) as x where x >= f.xid and x < new_xid", "select x, 0 from pg_snapshot_xip(snap) as x where false"},
	},
	{
		name: "the snapshot is another statement's", trap: "What commits while a claim reads is not lost",
		replace: []string{"    same := (", "    perform pg_sleep(0.02);\n    snap := pg_current_snapshot();\n    same := ("},
	},
	{
		name: "what was pending is believed to be so for ever", trap: "Late rows come though claims before pointed to their list",
		replace: []string{"same := (f.listed is null or stint.unseen(snap, f.pending) < xid8send(f.xid)) is true;", "same := true;"},
	},
	{
		name: "what is in progress is not looked for in the range just passed", trap: "Late rows come over several claims, each once",
		replace: []string{"if same and (stint.unseen(snap, coalesce(f.pending, 0) + 1) < xid8send(new_xid)) is not true then", "if same then"},
	},
	{
		name: "the snapshot is another statement's, where the list is read", trap: "What commits while a claim reads is not lost",
		replace: []string{"      into snap, late_xid, late_pos, fresh_xid, fresh_pos;", "      into snap, late_xid, late_pos, fresh_xid, fresh_pos;\n    perform pg_sleep(0.02);\n    snap := pg_current_snapshot();"},
	},
	{
		name: "claims are made in any transaction", trap: "A claim in a transaction that wrote before is refused",
		replace: []string{"if pg_current_xact_id_if_assigned() is not null then", "if false then"},
	},
	{
		name: "claims are found by their number", trap: "The newest claim is found past those of other lanes",
		replace: []string{"  primary key (lane, n),\n", "  primary key (n, lane),\n"},
	},
	{
		name: "claims are numbered by a sequence that sessions cache", trap: "Claims of several sessions follow each other",
		replace: []string{
			"create table stint.claims (", "create sequence stint.claim_numbers cache 100;\ncreate table stint.claims (",
			"  n := f.n + 1;\n", "  n := nextval('stint.claim_numbers');\n",
		},
	},
	{
		name: "the number of a claim is not unique", trap: "A stale frontier is a unique violation",
		replace: []string{"  primary key (lane, n),\n", "  primary key (lane, n, nonce),\n"},
	},
	{
		name: "the nonce is not compared", trap: "An outcome counts for the claim that it came from only",
		replace: []string{"select c.nonce = k.nonce and c.engine = p_engine from", "select c.engine = p_engine from"},
	},
	{
		name: "the claims are asked for where nobody waits for the answer", trap: "An outcome counts for the claim that it came from only",
		replace: []string{
			"  perform from unnest(c_lane, c_n, c_nonce) as k(lane, n, nonce)\n", "  perform from (with gone as materialized (select 1 / (k.n - k.n) from unnest(c_lane, c_n, c_nonce) as k(lane, n, nonce)\n",
			"c.n = k.n) is not true;\n", "c.n = k.n) is not true) select 1) as unused where false;\n",
		},
	},
	{
		name: "the claim's engine is not compared", trap: "An outcome counts for the engine that claimed the entry only",
		replace: []string{"select c.nonce = k.nonce and c.engine = p_engine from", "select c.nonce = k.nonce from"},
	},
	{
		name: "outcomes are recorded without the fence", trap: "The buried record nothing, neither by a flush nor in a handler's transaction",
		replace: []string{"  ok := stint.fence(p_engine);\n  -- After a failover", "  -- After a failover"},
	},
	{
		name: "an outcome that is there is an error", trap: "Repeating a batch in part adds no second successor",
		replace: []string{"      on conflict do nothing\n      returning x.pos, x.finished\n", "      returning x.pos, x.finished\n"},
	},
	{
		name: "every successor is written", trap: "Repeating a batch in part adds no second successor",
		replace: []string{"where s.why is null and (whole or s.pos = any (done))", "where s.why is null"},
	},
	{
		name: "SQL enqueues any depth", trap: "A job that SQL enqueues keeps no list of jobs from being shown",
		replace: []string{"@.type() == \"array\" || @.type() == \"object\"", `1 == 2`},
	},
	{
		name: "a delay counts from the transaction's start, in SQL", trap: "A delay counts from the enqueue",
		replace: []string{"clock  timestamptz := clock_timestamp(); -- a delay", "clock  timestamptz := now(); -- a delay"},
	},
	{
		name: "a delay counts from the transaction's start, in Go", trap: "A delay counts from the enqueue",
		store: func(q *statements) { q.schedule = strings.ReplaceAll(q.schedule, "clock_timestamp()", "now()") },
	},
	{
		name: "promotion goes by the order of the ids", trap: "Promoted jobs are claimed in the order of their due times",
		replace: []string{"from gone g order by g.due, g.job\n", "from gone g order by g.job\n"},
	},
	{
		name: "claims do not look for cancellations", trap: "A job that is cancelled while it is promoted does not run",
		replace: []string{"  any_cancelled boolean := true;", "  any_cancelled boolean := false;"},
	},
	{
		name: "promotion waits for locked rows", trap: "Promotion passes over what somebody holds",
		replace: []string{"    for update skip locked\n", "    for update\n"},
	},
	{
		name: "a policy's number is believed", trap: "A policy that the database lost travels with the job",
		store: func(q *statements) {
			q.enqueue = strings.Replace(q.enqueue, "array_agg(p.id order", "array_agg(d.id order", 1)
		},
	},
	{
		name: "no barrier", trap: "A claim survives the server's death",
		replace: []string{"    written := pg_logical_emit_message(true, 'stint', '');\n", "    null;\n"},
	},
	{
		name: "claims are as durable as others", trap: "What an engine was told survives the server's death, also where nobody else waits for the disk",
		replace: []string{"    perform stint.durable();\n    written", "    written"},
	},
	{
		name: "outcomes are as durable as others", trap: "What an engine was told survives the server's death, also where nobody else waits for the disk",
		replace: []string{"  perform stint.durable();\n  perform from", "  perform from"},
	},
	{
		name: "nobody waits for the disk", trap: "What an engine was told survives the server's death, also where nobody else waits for the disk",
		replace: []string{"current_setting('synchronous_commit') = 'off' then pg_catalog.set_config", "current_setting('synchronous_commit') = '' then pg_catalog.set_config"},
	},
	{
		name: "a claim brings its contents along", trap: "An engine that stops reading holds neither lane nor fence",
		store: func(q *statements) {
			q.claim = strings.Replace(q.claim, "select n, positions from stint.claim(", "select c.n, c.positions, f.args from stint.claim(", 1) +
				" c left join stint.fetch(c.positions) f on true"
		},
	},
	{
		name: "the holder of a key is read in the statement that waited for it", trap: "A key whose first holder commits meanwhile is answered with that job",
		store: func(q *statements) {
			before, rest, _ := strings.Cut(q.keyed, "taken as materialized (")
			_, after, _ := strings.Cut(rest, "), job as materialized")
			q.keyed = before + `added as (
				insert into stint.idempotency (key, job, fingerprint, expires)
				select key, id, fingerprint, now() + interval '1 day' from draft order by key on conflict do nothing returning key, job
			), taken as materialized (
				select key, job, true as fresh, true as same from added
				union all select o.key, o.job, false, true from stint.idempotency o join draft using (key)
			), job as materialized` + after
		},
	},
	{
		name: "a key that is not found is given up", trap: "A key that is forgotten while somebody asks for it is taken anew",
		replace: []string{"    exit when not missing;", "    exit;"},
	},
	{
		name: "the forgotten row of a key is believed", trap: "A key that was forgotten behind the caller's snapshot is that of the job that is stored under it",
		replace: []string{"order by i.xmax = 0 desc limit 1", "order by i.xmax = 0 limit 1"},
	},
	{
		name: "a conflict gives back the forgotten row too", trap: "A conflict under a key that was forgotten behind the caller's snapshot leaves his transaction as it was",
		replace: []string{"where k.key = any (taken) and k.job = any (p_jobs);", "where k.key = any (taken);"},
	},
	{
		name: "keys are taken in the order of the batch", trap: "Batches with the same keys in another order do not wait for each other crosswise",
		replace: []string{"select distinct on (a.key) a.key, a.job", "select a.key, a.job", "order by a.key, a.i\n", "order by a.i\n"},
	},
	{
		name: "a repetition touches the key", trap: "Nobody waits for a transaction that only repeated a key",
		replace: []string{"on conflict do nothing returning key)", "on conflict (key) do update set expires = excluded.expires returning key)"},
	},
	{
		name: "a claim at once takes its own end for the frontier", trap: "A claim that was outrun while it took its key does not move the frontier back",
		store: func(q *statements) {
			q.now = strings.Replace(q.now, "greatest(f.xid, e.xid), case when f.xid > e.xid then f.pos else e.pos end", "e.xid, e.pos", 1)
		},
	},
	{
		name: "a claim at once fences before it takes its key", trap: "Who waits for a key holds up neither the lane nor a burial",
		replace: []string{"  select t.job, t.same into k\n", "  perform stint.fence(token) from stint.engines;\n  select t.job, t.same into k\n"},
	},
	{
		name: "keys are forgotten by their age", trap: "A key is remembered for as long as its job is kept",
		replace: []string{"select k.key, case when e.pos is not null then", "select k.key, case when false then"},
	},
	{
		name: "keys are kept for ever", trap: "A key is remembered for as long as its job is kept",
		replace: []string{"where k.key = t.key and coalesce(t.until <= clock, true) returning 1", "where false returning 1"},
	},
	{
		name: "a lease is judged by the roster of the statement that waited", trap: "Who joined and took a lease while another one waited for it keeps it",
		replace: []string{
			"until he commits.\n  perform from stint.leases l where l.name = p_name for update;", `until he commits.
  has := null;
  select l.engine into has from stint.leases l where l.name = p_name and l.expires > clock_timestamp()
    and exists (select from stint.engines e where e.token = l.engine) for update of l;`,
			"would lose the lease that he holds.\n  has := stint.holder(p_name);", "would lose the lease that he holds.",
		},
	},
	{
		name: "what is done under a lease does not lock it", trap: "What is done under a lease ends before another engine has it",
		replace: []string{"  perform from stint.leases l where l.name = p_name for share;\n", ""},
	},
	{
		name: "retention deletes claims that others point to", trap: "What was in progress is claimed, whatever retention deleted meanwhile",
		replace: []string{"if found and not (c.pending and coalesce(later = c.n, false))", "if found"},
	},
	{
		name: "retention deletes the newest claim", trap: "A lane's claims go on behind the newest, whatever retention deleted",
		replace: []string{"if found and not (c.pending", "if not (c.pending"},
	},
	{
		name: "retention deletes claims that engines may name", trap: "A claim is there as long as its engine may name it",
		replace: []string{"where g.token = c.engine and b.low <= c.serial)", "where false)"},
	},
	{
		name: "retention notes nobody who may repeat", trap: "What retention deleted is not brought back by an engine that repeats it",
		replace: []string{"       or (select c.made from stint.claims c where c.engine = o.engine and c.serial >= b.low order by c.serial limit 1) < o.finished + interval '10 minutes'\n", ""},
	},
	{
		name: "retention notes everybody", trap: "Engines pay nothing for the retention of what they recorded long ago",
		replace: []string{"where o.finished > clock - interval '10 minutes'\n", "where o.finished > '-infinity'\n"},
	},
	{
		name: "frontiers are found upwards", trap: "Dead claims are not stepped over to find a lane's frontier",
		replace: []string{
			"  at bigint := 9223372036854775807;\n", "  at bigint := -2;\n",
			"where c.lane <= at order by c.lane desc, c.n desc limit 1;", "where c.lane > at order by c.lane limit 1;",
			"    at := at - 1;\n", "",
		},
	},
	{
		name: "sums wait for no transaction", trap: "What a transaction records that began before the sums went on is in them",
		replace: []string{"(pg_snapshot_xmin(pg_current_snapshot()) > m.xid or m.xid >= pg_current_xact_id())", "true"},
	},
	{
		name: "what is recorded late is left to the sums", trap: "What is recorded long after it ended is in the sums",
		replace: []string{"    perform stint.sum_late(done);", "    null;"},
	},
	{
		name: "retention ends where the clock was ahead", trap: "What came while the clock was ahead keeps nothing behind it",
		replace: []string{" and r.created < ahead;", ";"},
	},
	{
		name: "retention goes back to where the clock was ahead", trap: "What came while the clock was ahead keeps nothing behind it",
		replace: []string{"elsif young is null and r.created < ahead then", "elsif young is null then"},
	},
	{
		name: "retention counts what has an entry", trap: "What has no entry ends no pass",
		replace: []string{"left join stint.entries e on e.pos = x.pos order by x.pos", "join stint.entries e on e.pos = x.pos order by x.pos"},
	},
	{
		name: "late is what the clock says", trap: "What is recorded when the clock was set back is in the sums",
		replace: []string{"greatest(clock - stint.sum_lag(), m.until, m.aim)", "clock - stint.sum_lag()"},
	},
	{
		name: "who records late does not wait for whoever sums up", trap: "Who records late waits for whoever sums up, and is counted once",
		replace: []string{"from stint.summed m for share;\n  perform stint.add_sums('-infinity'", "from stint.summed m;\n  perform stint.add_sums('-infinity'"},
	},
	{
		name: "what is deleted is not summed up", trap: "An attempt is in the sums when its job is deleted before they come to it",
		replace: []string{"  perform stint.sum_gone(gone);\n", ""},
	},
	{
		name: "who deletes sums up last", trap: "Who deletes and waits for the sums holds no engine up",
		replace: []string{
			"  perform stint.sum_gone(gone);\n", "",
			"  delete from stint.executions x where x.pos = any (gone);", "  perform stint.sum_gone(gone);\n  delete from stint.executions x where x.pos = any (gone);",
		},
	},
	{
		name: "a step of the sums is as long as it may be", trap: "A step of the sums ends soon, however much there is to sum up",
		replace: []string{"slice interval := interval '10 seconds';", "slice interval := p_step;"},
	},
	{
		name: "who sums up waits for whoever does", trap: "Who sums up while somebody else does finds nothing to do",
		replace: []string{"from stint.summed for update skip locked;", "from stint.summed for update;"},
	},
	{
		name: "changes stay for ever", trap: "Changes go when they are old, some at a time, and young ones stay",
		replace: []string{"and c.at < clock_timestamp() - interval '90 days'", "and false"},
	},
	{
		name: "young changes go too", trap: "Changes go when they are old, some at a time, and young ones stay",
		replace: []string{"and c.at < clock_timestamp() - interval '90 days'", "and true"},
	},
	{
		name: "minutes stay for ever", trap: "Minutes that are not told any more go, some at a time, and hours stay",
		replace: []string{"where o.minutes = 1 and o.start < first", "where false"},
	},
	{
		name: "all minutes go at once", trap: "Minutes that are not told any more go, some at a time, and hours stay",
		replace: []string{"many  constant integer := 10000;", "many  constant integer := 100000;"},
	},
	{
		name: "hours go like minutes", trap: "Minutes that are not told any more go, some at a time, and hours stay",
		replace: []string{"where o.minutes = 1 and o.start < first", "where o.start < first"},
	},
}
