//go:build unix

package chaos_test

import (
	"testing"
	"time"

	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
)

// rights are all that anybody was given of the schema, and whose it is.
const rights = `
	select string_agg(what, e'\n' order by what) from (
	  select 'table ' || c.relname || ' of ' || c.relowner::regrole || ' ' || coalesce(c.relacl::text, '') from pg_class c where c.relnamespace = 'stint'::regnamespace and c.relkind in ('r', 'v', 'S')
	  union all select 'column ' || a.attrelid::regclass || '.' || a.attname || ' ' || a.attacl::text from pg_attribute a join pg_class c on c.oid = a.attrelid
	            where c.relnamespace = 'stint'::regnamespace and a.attacl is not null
	  union all select 'function ' || p.oid::regprocedure || ' of ' || p.proowner::regrole || ' ' || coalesce(p.proacl::text, '') from pg_proc p where p.pronamespace = 'stint'::regnamespace
	  union all select 'schema of ' || nspowner::regrole || ' ' || nspacl::text from pg_namespace where nspname = 'stint') all_of_it (what)`

// A dump is taken while a fleet works, and restored on another server; there
// other engines go on from it. One of the old engines left in good order behind the
// dump, and one was killed. What came behind the dump is lost, and nothing else.
func TestAFleetGoesOnFromADumpThatWasTakenUnderLoad(t *testing.T) {
	t.Parallel()
	atLength(t)
	major := pgtest.WithPrograms(t, "pg_dump", "pg_restore").Major
	old, fresh := pgtest.Start(t, pgtest.Options{Major: major}), pgtest.Start(t, pgtest.Options{Major: major})
	w := newWorld(t, old.New(t))
	roles, err := postgres.Roles("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Exec(t.Context(), roles); err != nil {
		t.Fatal(err)
	}

	stop := goOn(t, 2, every(50*time.Millisecond, w.client))
	leaves := w.Start(chaos.Worker{Name: "leaves", DB: w.url, Slots: 10})
	dies := w.Start(chaos.Worker{Name: "dies", DB: w.url, Slots: 10})
	w.enqueue("long", 0, 10, func(int) chaos.Args { return chaos.Args{Work: 3000} })
	w.until("they run and were announced", `select count(*) >= 10 from stint.jobs where begun`)
	path := old.Dump(databaseOf(t, w.url))
	time.Sleep(time.Second)
	stop()
	if err := leaves.Stop(); err != nil {
		t.Error(err)
	}
	dies.Kill()

	oldGround, given := w.ground, text(w, rights)
	w.url = fresh.New(t)
	for _, role := range []string{"owner", "engine", "producer", "caller", "viewer"} {
		fresh.Execute("create role stint_" + role + " nologin")
	}
	fresh.Restore(path, databaseOf(t, w.url))
	w.store, w.pool = w.connect(w.url)
	w.ground = chaos.NewGround(w.store, w.pool)
	if got := text(w, rights); got != given {
		t.Errorf("the restored database gives other rights:\n%s\nThey were:\n%s", got, given)
	}
	w.FailedOver(t.Context(), w.ground)(oldGround)

	l := w.load(2, 1, 0, 100*time.Millisecond)
	t.Logf("work resumed after %v", w.recovers())
	time.Sleep(time.Second)
	undone := l.end(time.Minute).Undone
	if undone.Jobs == 0 || undone.Claims == 0 || undone.Outcomes == 0 || undone.Runs == 0 {
		t.Errorf("not everything that can be lost was: %+v", undone)
	}
	if n := w.number(`select count(*) from stint.engine_history where why in ('stopped beating', 'its process was gone')`); n != 2 {
		t.Errorf("%d engines of before the dump were buried, not 2", n)
	}
}

// text reads one text.
func text(w *world, query string) (s string) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), query).Scan(&s); err != nil {
		w.t.Fatal(err)
	}
	return s
}
