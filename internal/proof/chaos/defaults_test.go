//go:build unix

package chaos_test

import (
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
)

// as makes a role with these defaults, and returns the URL by which it logs in.
func (w *world) as(defaults ...string) string {
	w.t.Helper()
	u, err := url.Parse(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	database := strings.TrimPrefix(u.Path, "/")
	role := pgx.Identifier{database}.Sanitize() // it has the database's name
	statements := []string{"create role " + role + " login superuser password 'fleet'"}
	for _, d := range defaults {
		statements = append(statements, "alter role "+role+" in database "+role+" set "+d)
	}
	for _, s := range statements {
		if _, err := w.pool.Exec(w.t.Context(), s); err != nil {
			w.t.Fatal(err)
		}
	}
	u.User = url.UserPassword(database, "fleet")
	return u.String()
}

// open opens a database that may refuse the first times.
func (w *world) open(url string) *chaos.Ground {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		g, err := chaos.Open(w.t.Context(), url)
		if err == nil {
			w.t.Cleanup(g.Close)
			return g
		}
		if time.Now().After(end) {
			w.t.Fatal(err)
		}
	}
}

// decoys are named like what stint has, and found sooner by who does not say
// whose he means.
const decoys = `
	create schema decoy;
	create table decoy.entries (pos bigint); create table decoy.claims (lane bigint); create table decoy.executions (pos bigint);
	create table decoy.engines (token bigint); create table decoy.beats (token bigint); create table decoy.waiting (job bigint);
	create table decoy.jobs (id bigint); create table decoy.meta (version int); create table decoy.leases (name text);
	create function decoy.fence(bigint) returns boolean language sql as 'select false';
	create function decoy.lane(text, integer, text) returns bigint language sql as 'select 0::bigint';
	create function decoy.unfinished(bigint[]) returns table (pos bigint, i bigint) language sql as 'select 0::bigint, 0::bigint';
	create function decoy.frontiers() returns table (lane bigint) language sql as 'select 0::bigint';`

// What is set for a role or a database, for the sake of other programs, holds for
// stint's sessions too.
func TestDefaultsThatHurtOthersDoNotHurtAFleet(t *testing.T) {
	for name, defaults := range few(1, maps.All(map[string][]string{
		"repeatable read, no search path": {"default_transaction_isolation = 'repeatable read'", "search_path = ''"},
		"serializable, odd plans": {
			"default_transaction_isolation = serializable", "default_transaction_deferrable = on",
			"plan_cache_mode = force_custom_plan", "enable_indexscan = off", "enable_nestloop = off",
		},
		"short timeouts":                        {"statement_timeout = '100ms'", "lock_timeout = '10ms'", "idle_in_transaction_session_timeout = '100ms'"},
		"decoys, generic plans":                 {"search_path = decoy, public", "plan_cache_mode = force_generic_plan", "enable_seqscan = off", "work_mem = '64kB'"},
		"little memory, and no files beside it": {"work_mem = '64kB'", "maintenance_work_mem = '1MB'", "temp_file_limit = 0"},
		"odd texts, commits that nobody awaits": {
			"timezone = 'Asia/Kathmandu'", "datestyle = 'SQL, DMY'", "intervalstyle = sql_standard", "bytea_output = escape",
			"standard_conforming_strings = off", "extra_float_digits = -15", "array_nulls = off", "transform_null_equals = on",
			"synchronous_commit = off",
		},
	})) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.New(t))
			if _, err := w.pool.Exec(t.Context(), decoys); err != nil {
				t.Fatal(err)
			}
			ground := w.ground
			w.url = w.as(defaults...)
			w.ground = w.open(w.url)
			l := w.load(2, 2, patient, 200*time.Millisecond)
			w.ground = ground // who judges has no such defaults
			w.works()
			w.until("it has done something", `select count(*) > 100 from stint.executions where outcome = 1`)
			l.end(time.Minute)
			if n := w.number(`select count(*) from stint.engine_history`); n != len(l.keepers) {
				t.Errorf("%d engines joined as %d", len(l.keepers), n)
			}
		})
	}
}

// A role that may only read can enqueue nothing, and says so.
func TestARoleThatOnlyReadsIsToldSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	store, err := postgres.Open(t.Context(), w.as("default_transaction_read_only = on"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	jobs, intent := w.intend("refused", 0, 1, quick)
	_, err = enqueueIn(t.Context(), store, nil, false, jobs)
	if err == nil || !strings.Contains(err.Error(), "read-only transaction") {
		t.Errorf("the answer is %v", err)
	}
	intent.RolledBack()
	t.Log(w.Judge(t.Context(), w.ground), err)
}
