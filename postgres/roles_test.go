package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/internal/steps"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// staff is a database whose schema belongs to an owner, with a login for each
// of the script's roles. Roles are the whole server's, so the schema has a name
// of its own, after which they are called.
type staff struct {
	t      *testing.T
	url    string // of a superuser
	schema string
	admin  string // of one that is none, and may create roles
}

// rolesDir is where the pages are.
const rolesPage = "../docs/postgresql-roles.md"

func hire(t *testing.T, server *pgtest.Server, schema string) *staff {
	f := &staff{t: t, url: server.New(t), schema: schema}
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), f.url)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(context.Background())
		rows, _ := conn.Query(context.Background(), `select rolname from pg_roles where rolname ~ ('^' || $1 || '_')`, schema)
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Error(err)
		}
		for _, verb := range []string{"drop owned by ", "drop role "} {
			for _, name := range names {
				if _, err := conn.Exec(context.Background(), verb+name+map[bool]string{true: " cascade"}[verb == "drop owned by "]); err != nil {
					t.Error(err)
				}
			}
		}
	})
	f.as(f.url, "create role "+schema+"_admin login createrole password 'secret'")
	f.as(f.url, fmt.Sprintf("grant create on database %s to %s_admin", pgx.Identifier{f.database()}.Sanitize(), schema))
	f.admin = f.login("admin")
	f.script()
	for _, role := range []string{"owner", "engine", "producer", "caller", "worker", "viewer"} {
		f.as(f.admin, fmt.Sprintf("create role %s_my_%s login password 'secret' in role %[1]s_%[2]s", schema, role))
	}
	must(t, install(t.Context(), f.login("my_owner"), Config{Schema: schema}))
	f.script()
	return f
}

func (f *staff) database() string {
	u, err := url.Parse(f.url)
	must(f.t, err)
	return strings.TrimPrefix(u.Path, "/")
}

// login is the database's URL for a role.
func (f *staff) login(role string) string {
	u, err := url.Parse(f.url)
	must(f.t, err)
	u.User = url.UserPassword(f.schema+"_"+role, "secret")
	return u.String()
}

func (f *staff) script() {
	f.t.Helper()
	text, err := Roles(f.schema)
	must(f.t, err)
	f.as(f.admin, text)
}

// as runs statements that must work.
func (f *staff) as(url, text string) {
	f.t.Helper()
	conn := f.connect(url)
	defer conn.Close(f.t.Context())
	must(f.t, execMany(f.t.Context(), conn, f.in(text)))
}

// works is a worker by SQL that performs a job of the kind by-sql, and leaves.
func (f *staff) works(url string) {
	f.t.Helper()
	conn := f.connect(url)
	defer conn.Close(f.t.Context())
	one := func(text string, args []any, to ...any) {
		f.t.Helper()
		must(f.t, conn.QueryRow(f.t.Context(), f.in(text), args...).Scan(to...))
	}
	var worker int64
	var receipt, came string
	one(`select stint.worker_join('{by-sql}', queues => '{by-sql}')`, nil, &worker)
	one(`select receipt from stint.worker_claim($1)`, []any{worker}, &receipt)
	one(`select cardinality(cancel)::text from stint.worker_beat($1)`, []any{worker}, &came)
	one(`select stint.worker_finish($1, $2)`, []any{worker, receipt}, &came)
	f.as(url, fmt.Sprintf(`select stint.worker_leave(%d)`, worker))
	if came != "completed" {
		f.t.Errorf("the job of a worker by SQL is %s", came)
	}
}

func (f *staff) connect(url string) *pgx.Conn {
	f.t.Helper()
	conn, err := pgx.Connect(f.t.Context(), url)
	must(f.t, err)
	f.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (f *staff) in(text string) string {
	var q statements
	q.load(f.schema)
	return q.in(text)
}

// open opens the store as a role's login.
func (f *staff) open(role string) *Store {
	f.t.Helper()
	return openStore(f.t, f.login("my_"+role), Config{Schema: f.schema})
}

// refused runs statements, each of which the role must not be allowed.
func (f *staff) refused(role string, statements ...string) {
	f.t.Helper()
	conn := f.connect(f.login("my_" + role))
	defer conn.Close(f.t.Context())
	for _, text := range statements {
		err := execMany(f.t.Context(), conn, f.in(text))
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "42501" {
			f.t.Errorf("the %s may: %s: %v", role, text, err)
		}
	}
}

func TestEachRoleDoesItsWorkAndNothingElse(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, server *pgtest.Server) {
		f := hire(t, server, "crew")
		engine := f.open("engine")
		t.Cleanup(func() { storetest.Verify(t, engine) })
		b := &bench{t, engine, nil}

		producer := f.open("producer")
		enqueued := f.enqueue(producer)
		f.as(f.login("my_caller"), `select stint.enqueue('k', '{"secret": 1}', idempotency_key => 'c', tags => '{t}', retry => '"fixed:2:1s"')`)
		f.as(f.login("my_caller"), `select stint.enqueue('k', delay => '1 hour', priority => 5)`)
		// A worker by SQL performs what it is given, and no more.
		f.as(f.login("my_caller"), `select stint.enqueue('by-sql', queue => 'by-sql')`)
		f.works(f.login("my_worker"))
		enqueued++
		f.as(f.login("my_caller"), `select stint.add_to_flow((stint.enqueue_flow('{"kind": "f", "jobs": [{"kind": "k", "delay": "1 hour"}]}') -> 'id')::bigint, '[{"kind": "k", "delay": "1 hour"}]')`)
		enqueued += 5
		f.as(f.login("my_caller"), `select stint.signal(stint.enqueue('k', delay => '2 hours'), 'a', '1', 'once')`)
		later, err := stint.NewClient(producer).Enqueue(t.Context(), stint.NewJob{Kind: "k", Delay: 2 * time.Hour})
		must(t, errors.Join(err, stint.NewClient(producer).Signal(t.Context(), later, "a", 1)))
		enqueued += 2
		// Both may answer; there is nothing to be answered here.
		if err := stint.NewClient(producer).Answer(t.Context(), later, "q", stint.Answer{Choice: "yes", By: "ann"}); !errors.Is(err, stint.ErrNotAsked) {
			t.Errorf("a producer that answers gets %v", err)
		}
		f.as(f.login("my_caller"), fmt.Sprintf(`do $$ begin perform stint.answer(%d, 'q', 'yes'); exception when sqlstate 'ST013' then null; end $$`, later))

		// The engine works on all of it, and people act through its role.
		client := stint.NewClient(engine)
		id, err := client.Enqueue(t.Context(), stint.NewJob{Kind: "k", Delay: time.Hour})
		must(t, err)
		w := b.join()
		taken, now := w.ClaimAll(), time.Now()
		e := &taken[0]
		recorded, err := engine.RecordSteps(t.Context(), w.Info.Token, []store.StepRecord{
			{Claim: w.ClaimOf(e.Pos), Pos: e.Pos, Job: e.ID, Name: "s", Began: now, Ended: now, Result: []byte("1")},
		})
		if err != nil || string(recorded[0].Result) != "1" {
			t.Errorf("the engine records the step %v, error %v", recorded, err)
		}
		w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("no")}, taken...)
		_, err = engine.Cancel(t.Context(), []stint.ID{id}, "")
		must(t, err)
		_, err = engine.Delete(t.Context(), []stint.ID{id})
		must(t, err)
		_, err = engine.Promote(t.Context(), time.Time{}, 100)
		must(t, err)
		_, err = engine.Heartbeat(t.Context(), w.Info.Token, store.Heartbeat{Number: 1})
		must(t, err)
		_, err = engine.Pause(t.Context(), "q", "me", "")
		must(t, err)
		change, err := engine.BeginChange(t.Context(), store.NewChange{Way: store.WayCommand, Operation: "x"})
		must(t, err)
		must(t, engine.EndChange(t.Context(), change, ""))
		_, err = engine.Retain(t.Context(), store.RetainStep{Part: store.RetainChanges, Limit: 10})
		must(t, err)
		_, err = engine.Bury(t.Context(), store.Burial{Engine: w.Info.Token}, storetest.Judge)
		must(t, err)
		f.as(f.login("my_owner"), `update stint.meta set entries_oid = 1`) // as if it were restored
		must(t, f.open("engine").ready(t.Context()))

		viewer := f.open("viewer")
		jobs, err := viewer.Jobs(t.Context(), store.Filter{})
		must(t, err)
		counts, err := viewer.Counts(t.Context())
		must(t, err)
		all := 0
		for _, n := range counts {
			all += int(n)
		}
		shown, err := viewer.Job(t.Context(), jobs[0].ID)
		must(t, err)
		if len(jobs) != enqueued || all != enqueued || shown.Kind != "k" {
			t.Errorf("the viewer lists %d jobs and counts %d, want %d; one is %+v", len(jobs), all, enqueued, shown)
		}
		_, err = viewer.Kinds(t.Context())
		must(t, err)
		_, err = viewer.Engines(t.Context())
		must(t, err)
		if _, err := viewer.Jobs(t.Context(), store.Filter{Tag: "t", States: []stint.State{stint.Failed}}); err != nil {
			t.Error(err)
		}
		_, err = viewer.Stats(t.Context(), report.StatsFilter{Every: time.Minute})
		must(t, err)
		_, err = viewer.Errors(t.Context(), report.ErrorFilter{})
		must(t, err)
		if all, err := viewer.Steps(t.Context(), e.ID); err != nil || len(all) != 1 {
			t.Errorf("the viewer sees the steps %+v, error %v", all, err)
		}
		if all, err := viewer.Changes(t.Context(), store.ChangeFilter{}); err != nil || len(all) != 1 {
			t.Errorf("the viewer sees the changes %+v, error %v", all, err)
		}

		f.as(f.login("my_viewer"), `select outcome from stint.attempts`)
		f.as(f.login("my_viewer"), `select last_value from stint.change_numbers`) // as pg_dump does
		reads := []string{`select from stint.entries where args is not null`, `select from stint.jobs`, `select outcome from stint.attempts`, `select from stint.executions`, `select from stint.claims`,
			`select from stint.waiting`, `select from stint.idempotency`, `select from stint.job_tags`, `select from stint.engines`, `select from stint.changes`, `select from stint.steps`}
		acts := []string{
			`delete from stint.entries`, `update stint.entries set priority = 1`, `delete from stint.waiting`, `delete from stint.idempotency`, `update stint.policies set body = '{}'`,
			`insert into stint.executions (pos, nonce, engine, started, finished, attempt, slot, outcome, final) values (1, 0, 0, now(), now(), 1, 0, 1, true)`,
			`insert into stint.claims (lane, n, nonce, engine, serial, xid, pos, positions) values (1, 1, 1, 1, 1, '5', 5, '{1}')`,
			`insert into stint.steps (job, name, pos, began, ended, result) values (1, 's', 1, now(), now(), '1')`, `delete from stint.steps`,
			`insert into stint.engines select * from stint.engines`, `update stint.beats set drain = true`,
			`select stint.pause('q')`, `select stint.resume('q')`, `select stint.cancel(1)`, `select stint.erase('{1}')`, `select stint.again('{1}', null, null, false, false)`, `select stint.look_at_notes(0, 1, now())`,
			`update stint.meta set version = 9`, `truncate stint.entries`,
			`insert into stint.changes (way, operation) values ('api', 'x')`, `update stint.changes set by = 'somebody else'`, `delete from stint.changes`,
		}
		alters := []string{`alter table stint.entries add column x text`, `drop table stint.entries`, `create table stint.x ()`, "drop schema " + f.schema + " cascade", `create index on stint.entries (kind)`,
			`create or replace function stint.lane(text, integer, text, text) returns bigint language sql as 'select 1::bigint'`, `update stint.meta set version = 9`, `truncate stint.entries`}
		f.refused("engine", alters...)
		f.refused("producer", append(append(reads, acts...), alters...)...)
		f.refused("producer",
			// What would make an entry another's: its job, its contents, its place among the transactions.
			`insert into stint.entries (lane, job, body, queue, kind) values (1, 1, 1, 'q', 'k')`,
			`insert into stint.entries (lane, xid, queue, kind, args) values (1, '3', 'q', 'k', '{}')`,
			`select stint.record_steps(1, '{1}', '{1}', '{1}', '{1}', '{1}', '{s}', '{0}', '{0}', '{1}')`)
		const stores = `select stint.store_job(1, 'q', 0::smallint, 'k', '{}', null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, false)`
		f.refused("caller", append(append(reads, acts...), alters...)...)
		f.refused("caller", `select from stint.meta`, `select stint.lane('q', 0, 'normal')`, `select from stint.signals`, `select stint.take_keys('{a}', '{a}', '{1}')`, stores, `select nextval('stint.positions')`,
			`insert into stint.entries (lane, queue, kind, args) values (1, 'q', 'k', '{}')`)
		f.refused("worker", append(append(reads, acts...), alters...)...)
		f.refused("worker", `select stint.enqueue('k')`, `select from stint.meta`, `select stint.worker_held(1)`, `select stint.claim(1, 1, 1, 1, 1, 1, false, false)`, `select stint.signal(1, 'a')`)
		f.refused("viewer", append(acts, alters...)...)
		f.refused("viewer", `select stint.worker_join('{a}')`)
		f.refused("viewer", `select stint.enqueue('k')`, `select stint.signal(1, 'a')`, `select stint.answer(1, 'q', 'yes')`, `select stint.take_keys('{a}', '{a}', '{1}')`, stores, `select nextval('stint.positions')`)

		// What is missing is said with where it is to be had.
		if _, err := stint.NewClient(viewer).Enqueue(t.Context(), stint.NewJob{Kind: "k"}); !errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "stint migrate roles") {
			t.Errorf("an enqueue without the right says %v", err)
		}

		for role, want := range map[string]bool{"owner": false, "engine": false, "producer": false, "viewer": true} {
			if only, err := f.open(role).OnlyReads(t.Context()); err != nil || only != want {
				t.Errorf("the %s may only read: %v, error %v", role, only, err)
			}
		}
		if lacks, err := engine.LacksGrants(t.Context()); err != nil || lacks {
			t.Errorf("after the script grants are missing: %v, error %v", lacks, err)
		}

		// A later step's table is nobody's until the script was run again.
		owner := upgrader(t, f.login("my_owner"), steps.Step{Version: first + 1, Oldest: 1, Text: `create table stint.later (x text); create function stint.late() returns text language sql as 'select 1';`})
		owner.schema, owner.config.Schema = f.schema, f.schema
		owner.sql.load(f.schema)
		_, err = owner.Migrate(t.Context())
		must(t, err)
		f.refused("engine", `insert into stint.later values (1)`)
		if lacks, err := engine.LacksGrants(t.Context()); err != nil || !lacks {
			t.Errorf("after an upgrade grants are missing: %v, error %v", lacks, err)
		}
		f.script()
		f.as(f.login("my_engine"), `insert into stint.later values (stint.late())`)
		f.as(f.login("my_viewer"), `select x from stint.later`)
		f.refused("producer", `select x from stint.later`)
	})
}

// enqueue does so in each way that the Go client knows, and counts.
func (f *staff) enqueue(s *Store) int {
	f.t.Helper()
	client, ctx := stint.NewClient(s), f.t.Context()
	jobs := []stint.NewJob{
		{Kind: "k", Tags: []string{"t"}, Queue: "other"},
		{Kind: "k", IdempotencyKey: "a", URN: "urn:1", Source: "s", Correlation: "c"},
		{Kind: "k", Delay: time.Hour, Retry: retry.Fixed(3, time.Second), StartWithin: time.Hour},
	}
	for _, j := range append(jobs, stint.NewJob{Kind: "k"}, stint.NewJob{Kind: "k", Retry: retry.Fixed(2, time.Minute)}) {
		_, err := client.Enqueue(ctx, j)
		must(f.t, err)
	}
	_, err := client.EnqueueMany(ctx, []stint.NewJob{{Kind: "k"}, {Kind: "k", Priority: 3}})
	must(f.t, err)
	if _, err := client.Enqueue(ctx, stint.NewJob{Kind: "other", IdempotencyKey: "a"}); !errors.Is(err, stint.ErrKeyConflict) {
		f.t.Errorf("another kind under a key gives %v", err)
	}
	if r, err := client.EnqueueReceipt(ctx, jobs[1]); err != nil || !r.Duplicate {
		f.t.Errorf("a repetition gives %+v, error %v", r, err)
	}
	must(f.t, pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := client.With(Tx(tx)).EnqueueMany(ctx, []stint.NewJob{{Kind: "k"}, {Kind: "k", IdempotencyKey: "b"}})
		return err
	}))
	db := stdlib.OpenDB(*s.pool.Config().ConnConfig)
	defer db.Close()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{})
	must(f.t, err)
	_, err = client.With(SQLTx(tx)).Enqueue(ctx, stint.NewJob{Kind: "k"})
	must(f.t, err)
	must(f.t, tx.Commit())
	f.as(f.login("my_producer"), `select stint.enqueue('k')`)
	return 5 + 2 + 2 + 1 + 1
}

// A schema that a superuser installed goes over to the owner, and back to the
// names that most have. Whoever works meanwhile goes on, whatever he has locked and
// wants to lock.
func TestTheScriptTakesOverWhatWasInstalledBefore(t *testing.T) {
	s := newStore(t)
	f := &staff{t: t, url: s.url(), schema: "stint"}
	f.admin = f.url
	rows, err := s.pool.Query(t.Context(), `
		select oid::regclass::text from pg_class where relnamespace = 'stint'::regnamespace and relkind = 'r' order by ctid desc`)
	must(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	works, err := s.pool.Begin(t.Context())
	must(t, err)
	must(t, execMany(t.Context(), works.Conn(), "lock table "+tables[0]+" in row exclusive mode"))
	text, err := Roles("")
	must(t, err)
	admin, script := f.connect(f.admin), make(chan error, 1)
	go func() { script <- execMany(t.Context(), admin, text) }()
	eventuallyTrue(t, "the script waits for a table", func() bool {
		return value[bool](t, s.pool, `select exists (select from pg_locks where not granted and relation = $1::regclass)`, tables[0])
	})
	must(t, execMany(t.Context(), works.Conn(), "lock table "+strings.Join(tables, ", ")+" in row exclusive mode"))
	must(t, works.Commit(t.Context()))
	must(t, <-script)
	f.script()
	t.Cleanup(func() {
		for _, role := range []string{"owner", "engine", "producer", "caller", "worker", "viewer"} {
			for _, verb := range []string{"drop owned by ", "drop role "} {
				if _, err := s.pool.Exec(context.Background(), verb+"stint_"+role+map[bool]string{true: " cascade"}[verb == "drop owned by "]); err != nil {
					t.Error(err)
				}
			}
		}
	})
	if n := value[int](t, s.pool, `
		select (select count(*) from pg_class where relnamespace = 'stint'::regnamespace and relkind in ('r', 'v', 'S') and relowner <> 'stint_owner'::regrole)
		     + (select count(*) from pg_proc where pronamespace = 'stint'::regnamespace and proowner <> 'stint_owner'::regrole)
		     + (select count(*) from pg_type where typnamespace = 'stint'::regnamespace and typtype = 'd' and typowner <> 'stint_owner'::regrole)`); n != 0 {
		t.Errorf("%d objects are not the owner's", n)
	}
	b := &bench{t, s, nil}
	b.enqueue(1)
	w := b.join()
	w.Complete(w.ClaimAll()...)
	w.Leave()
	if _, err := Roles("No"); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("a name that is none gives %v", err)
	}
}

// The page says how to remove the roles, with the schema or without.
func TestRolesAreRemovedAsThePageSays(t *testing.T) {
	page, err := os.ReadFile(rolesPage)
	must(t, err)
	_, text, _ := strings.Cut(string(page), "\n## Remove the roles\n")
	_, text, _ = strings.Cut(text, "```sql\n")
	text, _, _ = strings.Cut(text, "```")
	reassign, drop, found := strings.Cut(text, "\n")
	if !found || !strings.HasPrefix(reassign, "reassign owned by stint_owner to app;") || strings.Count(drop, "\n") != 2 {
		t.Fatalf("the page says %q", text)
	}
	pgtest.Each(t, func(t *testing.T, server *pgtest.Server) {
		for schema, keeps := range map[string]bool{"kept": true, "left": false} {
			f := hire(t, server, schema)
			s := f.open("engine")
			(&bench{t, s, nil}).enqueue(1)
			said := strings.NewReplacer("stint_", schema+"_", "to app;", "to "+schema+"_admin;")
			if keeps {
				f.as(f.url, said.Replace(reassign))
			}
			f.as(f.url, said.Replace(drop))
			super := openStore(t, f.url, Config{Schema: schema})
			counts, err := super.Counts(t.Context())
			must(t, err)
			if keeps != (counts[stint.Available] == 1) {
				t.Errorf("with the schema kept, %v, the jobs are %v", keeps, counts)
			}
			if has, err := super.HasRoles(t.Context()); err != nil || has {
				t.Errorf("there are roles still, error %v", err)
			}
			if _, err := s.Counts(t.Context()); err == nil {
				t.Error("a login has its rights still")
			}
		}
	})
}

func TestThePageOfRolesNamesThemAll(t *testing.T) {
	page, err := os.ReadFile(rolesPage)
	must(t, err)
	for _, role := range []string{"stint_owner", "stint_engine", "stint_producer", "stint_caller", "stint_worker", "stint_viewer"} {
		if !strings.Contains(string(page), "`"+role+"`") {
			t.Errorf("%s is not on the page", role)
		}
	}
}
