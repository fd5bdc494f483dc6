package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/internal/steps"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// The steps of a later program: one of each sort.
var (
	shipped = steps.Must(schemaFiles)
	first   = len(shipped) // the newest version that there is

	addColumn = steps.Step{Version: first + 1, Oldest: 1, Text: `
		alter table stint.entries add column note text;
		create table stint.done (version integer);
		insert into stint.done values (2);`}
	buildIndex = steps.Step{Version: first + 2, Oldest: 1, Online: true, Text: `
		create index concurrently if not exists entries_note on stint.entries (note) where note is not null;`}
	raiseOldest = steps.Step{Version: first + 3, Oldest: first + 3, Text: `insert into stint.done values (4);`}
)

// program opens a database as a program that knows so many later steps.
func program(t testing.TB, url string, c Config, later ...steps.Step) (*Store, error) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	must(t, err)
	t.Cleanup(pool.Close)
	s, err := newSteps(t.Context(), pool, c, slices.Concat(shipped, later))
	if err != nil {
		return nil, err
	}
	s.pace.lock, s.pace.pause, s.pace.longest = 300*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond
	t.Cleanup(s.Close)
	return s, nil
}

// upgrader is such a program that looks at nothing until it migrates.
func upgrader(t testing.TB, url string, later ...steps.Step) *Store {
	t.Helper()
	s, err := program(t, url, Config{SkipCheck: true}, later...)
	must(t, err)
	return s
}

// migrating begins to migrate; the channel has the answer.
func migrating(s *Store) <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := s.Migrate(context.Background())
		answer <- err
	}()
	return answer
}

// traffic is jobs that are enqueued and done at full speed.
type traffic struct {
	t              *testing.T
	enqueued, done atomic.Int64
	longest        atomic.Int64 // enqueue, in nanoseconds
	over           chan struct{}
	producers      sync.WaitGroup
}

// produce enqueues from two places.
func produce(t *testing.T, s *Store) *traffic {
	tr := &traffic{t: t, over: make(chan struct{})}
	for range 2 {
		tr.producers.Go(func() {
			for {
				select {
				case <-tr.over:
					return
				default:
				}
				begun := time.Now()
				if _, err := stint.NewClient(s).Enqueue(context.Background(), stint.NewJob{Kind: "k"}); err != nil {
					t.Errorf("enqueue: %v", err)
					return
				}
				tr.longest.Store(max(tr.longest.Load(), int64(time.Since(begun))))
				tr.enqueued.Add(1)
			}
		})
	}
	return tr
}

// work runs an engine; the channel has what its Run returned.
func (tr *traffic) work(ctx context.Context, s *Store) <-chan error {
	mux := stint.NewMux()
	mux.Add(stint.KindInfo{Name: "k"}, func(context.Context, *stint.Job) (json.RawMessage, error) { tr.done.Add(1); return nil, nil })
	e, err := engine.New(s, mux, engine.Config{Slots: 8, OnEvent: func(ev event.Event) {
		if ev.Type == event.EventTrouble || ev.Type == event.EventBuried {
			tr.t.Errorf("an engine has trouble to %s: %v", ev.Doing, ev.Err)
		}
	}})
	must(tr.t, err)
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	return ran
}

// end ends the producers, and waits until what they enqueued is done.
func (tr *traffic) end() {
	tr.t.Helper()
	close(tr.over)
	tr.producers.Wait()
	wait(tr.t, "all jobs to be done", func() bool { return tr.done.Load() == tr.enqueued.Load() })
	tr.t.Logf("%d jobs; the longest enqueue took %v", tr.done.Load(), time.Duration(tr.longest.Load()))
}

// goesOn waits until more jobs were done than there were.
func (tr *traffic) goesOn(while string) {
	tr.t.Helper()
	from := tr.done.Load()
	wait(tr.t, "work to go on "+while, func() bool { return tr.done.Load() > from+100 })
}

func wait(t testing.TB, what string, true func() bool) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); !true(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}

// waitsForLock waits until the session that changes the schema waits for one.
func waitsForLock(t testing.TB, s *Store, statement string) (pid int) {
	t.Helper()
	wait(t, "a session to wait for its lock", func() bool {
		return s.pool.QueryRow(t.Context(), `select pid from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock' and query ilike '%'||$1||'%' and pid <> pg_backend_pid()`, statement).Scan(&pid) == nil
	})
	return pid
}

func version(t testing.TB, s *Store) int {
	t.Helper()
	info, err := s.Schema(t.Context())
	must(t, err)
	return info.Installed
}

func indexIs(t testing.TB, s *Store) (state string) {
	t.Helper()
	return value[string](t, s.pool, `select coalesce((select case when indisvalid then 'valid' else 'invalid' end
		from pg_index where indexrelid = to_regclass('stint.entries_note')), 'missing')`)
}

func TestWorkGoesOnWhileASchemaIsUpgraded(t *testing.T) {
	s := verified(t)
	tr := produce(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	left := tr.work(ctx, s)
	hold := func() (release func()) {
		tx := begin(t, s)
		_, err := tx.Exec(t.Context(), `insert into stint.entries (lane, queue, kind, args) values (-1, 'q', 'k', '{}')`)
		must(t, err)
		return func() { must(t, tx.Rollback(t.Context())) }
	}
	next := upgrader(t, s.url(), addColumn, buildIndex, raiseOldest)

	// An alter table that waits for this transaction would stop everybody
	// behind it for as long.
	release := hold()
	answer := migrating(next)
	waitsForLock(t, s, "add column note")
	tr.goesOn("while a step waits for a long transaction")
	if v := version(t, s); v != first {
		t.Errorf("version %d was reached beside a lock", v)
	}
	reader := begin(t, s, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}) // it locks nothing, and an index has to wait for it
	value[int](t, reader, `select 1`)
	release()
	waitsForLock(t, s, "index concurrently")
	tr.goesOn("while an index waits for a long transaction")
	if v := version(t, s); v != first+1 {
		t.Errorf("the schema has version %d while the index is built", v)
	}
	must(t, reader.Rollback(t.Context()))
	must(t, <-answer)

	// The engine's program is too old now: it finishes what it has, and leaves.
	if v := version(t, s); v != first+3 || indexIs(t, s) != "valid" {
		t.Errorf("the schema has version %d, the index is %s", v, indexIs(t, s))
	}
	select {
	case err := <-left:
		must(t, err)
	case <-time.After(30 * time.Second):
		t.Fatal("an engine that is too old works on")
	}
	heir := tr.work(ctx, next)
	tr.goesOn("under a program that fits")
	tr.end()
	cancel()
	must(t, <-heir)
	if n := value[int](t, s.pool, `select count(*) from stint.jobs where state <> 'completed'`); n != 0 {
		t.Errorf("%d jobs are not completed", n)
	}
}

// An index whose building was cut off is there, costs every write, and serves
// nobody: "if not exists" would take it for built.
func TestAnUpgradeThatWasCutOffGoesOn(t *testing.T) {
	s := verified(t)
	reader := begin(t, s, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	value[int](t, reader, `select 1`)
	answer := migrating(upgrader(t, s.url(), addColumn, buildIndex))
	pid := waitsForLock(t, s, "index concurrently")
	exec(t, s, `select pg_terminate_backend($1)`, pid)
	if err := <-answer; err == nil || !strings.Contains(err.Error(), fmt.Sprintf("to version %d", first+2)) {
		t.Errorf("an upgrade whose session was ended says %v", err)
	}
	if v := version(t, s); v != first+1 || indexIs(t, s) != "invalid" {
		t.Fatalf("the schema has version %d, the index is %s", v, indexIs(t, s))
	}
	must(t, reader.Rollback(t.Context()))

	// Between two steps: the third is refused, and what came before stays.
	broken := raiseOldest
	broken.Text = `insert into stint.done values (4); select 1 / 0;`
	next := upgrader(t, s.url(), addColumn, buildIndex, broken)
	if _, err := next.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("to version %d", first+3)) {
		t.Errorf("a step that fails says %v", err)
	}
	if v := version(t, s); v != first+2 || indexIs(t, s) != "valid" {
		t.Errorf("the schema has version %d, the index is %s", v, indexIs(t, s))
	}
	must(t, <-migrating(upgrader(t, s.url(), addColumn, buildIndex, raiseOldest)))
	if did := value[string](t, s.pool, `select string_agg(version::text, ',' order by version) from stint.done`); did != "2,4" || version(t, s) != first+3 {
		t.Errorf("steps %s were done, and the schema has version %d", did, version(t, s))
	}
}

func TestManyUpgradersDoEachStepOnce(t *testing.T) {
	s := verified(t)
	lock := connect(t, s)
	_, err := lock.Exec(t.Context(), `select pg_advisory_lock($1)`, migrateLock)
	must(t, err)
	reader := begin(t, s, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	value[int](t, reader, `select 1`)

	// They all know which version is there before the first may change it.
	var answers []<-chan error
	begin := func(u *Store) {
		u.pace.patience = -1 // there is nothing that they could not lock
		answers = append(answers, migrating(u))
		wait(t, "an upgrader to find the lock taken", func() bool {
			// Of these one is for opening, and two at most for the version.
			return u.pool.Stat().AcquireCount() >= 5 || len(answers[len(answers)-1]) > 0
		})
	}
	for range 4 {
		begin(upgrader(t, s.url(), addColumn, buildIndex, raiseOldest))
	}
	_, err = lock.Exec(t.Context(), `select pg_advisory_unlock($1)`, migrateLock)
	must(t, err)

	// An index that is built concurrently waits for every snapshot, and who
	// waits in a statement has one: so it is with another schema's installer.
	waitsForLock(t, s, "index concurrently")
	other := upgrader(t, s.url())
	other.schema, other.config.Schema = "other", "other"
	other.sql.load("other")
	begin(other)
	must(t, reader.Rollback(t.Context()))
	for _, answer := range answers {
		select {
		case err := <-answer:
			must(t, err)
		case <-time.After(30 * time.Second):
			t.Fatal("they wait for each other")
		}
	}
	if did := value[string](t, s.pool, `select string_agg(version::text, ',' order by version) from stint.done`); did != "2,4" {
		t.Errorf("steps %s were done", did)
	}
	if indexIs(t, s) != "valid" || version(t, s) != first+3 || version(t, other) != first {
		t.Errorf("the index is %s, the versions are %d and %d", indexIs(t, s), version(t, s), version(t, other))
	}
}

// An online step has no transaction for the lock that keeps others out.
func TestAnOnlineStepWaitsForWhoeverChangesASchema(t *testing.T) {
	s := newStore(t)
	must(t, <-migrating(upgrader(t, s.url(), addColumn)))
	lock := holds(t, s, "pg_advisory_lock", int64(migrateLock))
	answer := migrating(upgrader(t, s.url(), addColumn, buildIndex))
	time.Sleep(300 * time.Millisecond)
	if is := indexIs(t, s); is != "missing" || len(answer) > 0 {
		t.Errorf("beside another program that changes the schema the index is %s", is)
	}
	must(t, lock.Close(t.Context()))
	must(t, <-answer)
	if is := indexIs(t, s); is != "valid" {
		t.Errorf("behind it the index is %s", is)
	}
}

// An index that an upgrade built before it was cut off is not built again, whatever
// others are of no use.
func TestAnUpgradeKeepsTheIndexThatItBuilt(t *testing.T) {
	s := newStore(t)
	must(t, <-migrating(upgrader(t, s.url(), addColumn)))
	for _, text := range []string{
		`create index entries_note on stint.entries (note) where note is not null`,
		`create index other on stint.done (version)`, `create schema theirs`, `create table theirs.t (x text)`, `create index entries_note on theirs.t (x)`,
		`update pg_index set indisvalid = false where indexrelid in ('stint.other'::regclass, 'theirs.entries_note'::regclass)`,
	} {
		_, err := s.pool.Exec(t.Context(), text)
		must(t, err)
	}
	const oid = `select 'stint.entries_note'::regclass::oid::bigint`
	before := value[int64](t, s.pool, oid)
	must(t, <-migrating(upgrader(t, s.url(), addColumn, buildIndex)))
	if after := value[int64](t, s.pool, oid); after != before {
		t.Error("it was built again")
	}
}

func TestAStepThatFindsNoGapSaysWhoIsInTheWay(t *testing.T) {
	s := newStore(t)
	// Others have been in a transaction for longer: one holds what is not stint's, and
	// one only waits.
	elsewhere, waits := begin(t, s), begin(t, s)
	exec(t, s, `create table public.theirs ()`)
	_, err := elsewhere.Exec(t.Context(), `select from public.theirs`)
	must(t, err)
	value[int](t, waits, `select 1`)
	tx := begin(t, s)
	_, err = tx.Exec(t.Context(), `set application_name = 'a forgotten session'; select from stint.entries limit 1`, pgx.QueryExecModeSimpleProtocol)
	must(t, err)
	next := upgrader(t, s.url(), addColumn)
	ended := make(chan error, 1)
	go func() {
		_, err := waits.Exec(context.Background(), `lock table stint.entries in access exclusive mode`)
		ended <- err
	}()
	waitsForLock(t, s, "lock table stint.entries")
	next.pace.lock, next.pace.patience = 20*time.Millisecond, 100*time.Millisecond
	if _, err := next.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "a forgotten session") {
		t.Errorf("it says %v", err)
	}
	next.pace.patience = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() {
		_, err := next.Migrate(ctx)
		answer <- err
	}()
	waitsForLock(t, s, "add column note")
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("called off it says %v", err)
	}
	must(t, tx.Rollback(t.Context()))
	must(t, <-ended)
	must(t, waits.Rollback(t.Context()))
	if v := version(t, s); v != first {
		t.Errorf("the schema has version %d", v)
	}
}

func TestAnOldProgramWorksOnANewerSchemaThatAllowsIt(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	b.enqueue(1)
	if _, err := program(t, s.url(), Config{}, addColumn); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "run the migration") {
		t.Errorf("a newer program opens a schema with jobs: %v", err)
	}
	must(t, <-migrating(upgrader(t, s.url(), addColumn, buildIndex)))
	again := openStore(t, s.url())
	old := &bench{t, again, nil}
	old.enqueue(2, stint.Delay(time.Microsecond))
	_, err := again.Promote(t.Context(), time.Time{}, 10)
	must(t, err)
	w := old.join()
	w.Complete(w.ClaimAll()...)
	w.Leave()

	must(t, <-migrating(upgrader(t, s.url(), addColumn, buildIndex, raiseOldest)))
	want := fmt.Sprintf("has version %d and needs programs of version %d or newer; this one knows version %d", first+3, first+3, first)
	if _, err := Open(t.Context(), s.url()); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), want) {
		t.Errorf("a program that is too old opens it: %v", err)
	}
	asked, err := program(t, s.url(), Config{Upgrade: true}, addColumn, buildIndex, raiseOldest)
	must(t, err)
	storetest.Verify(t, asked)
}

func TestOpeningUpgradesWhatHoldsNoJobsOrWhenAsked(t *testing.T) {
	s := newStore(t)
	if _, err := program(t, s.url(), Config{NoInstall: true}, addColumn); !errors.Is(err, store.ErrSchema) {
		t.Errorf("a program that must leave it as it is: %v", err)
	}
	_, err := program(t, s.url(), Config{}, addColumn)
	must(t, err)
	(&bench{t, s, nil}).enqueue(1)
	if _, err := program(t, s.url(), Config{}, addColumn, buildIndex); !errors.Is(err, store.ErrSchema) {
		t.Errorf("a schema with jobs: %v", err)
	}
	_, err = program(t, s.url(), Config{Upgrade: true}, addColumn, buildIndex)
	must(t, err)
	if v := version(t, s); v != first+2 {
		t.Errorf("the schema has version %d", v)
	}
}

// An empty database gets in one transaction what others get in steps.
func TestInstallingAndUpgradingLeadToTheSameSchema(t *testing.T) {
	all := []steps.Step{addColumn, buildIndex, raiseOldest}
	upgraded := newStore(t)
	must(t, <-migrating(upgrader(t, upgraded.url(), all...)))
	installed, err := program(t, pgtest.New(t), Config{}, all...)
	must(t, err)
	const shape = `select string_agg(c.relname || ' ' || coalesce(pg_get_indexdef(c.oid), a.attname || ' ' || format_type(a.atttypid, a.atttypmod)), e'\n' order by c.relname, a.attnum)
		from pg_class c join pg_attribute a on a.attrelid = c.oid where c.relnamespace = 'stint'::regnamespace and a.attnum > 0`
	if a, b := value[string](t, upgraded.pool, shape), value[string](t, installed.pool, shape); a != b {
		t.Errorf("upgraded it is\n%s\ninstalled\n%s", a, b)
	}
	if v := version(t, installed); v != first+3 || indexIs(t, installed) != "valid" {
		t.Errorf("installed, the schema has version %d, the index is %s", v, indexIs(t, installed))
	}
}

// What an engine that lost its place cannot get again, it need not ask for
// until somebody stops it.
func TestAnEngineThatIsTooOldToJoinAgainSaysSoAndEnds(t *testing.T) {
	s := newStore(t)
	mux := stint.NewMux()
	mux.Add(stint.KindInfo{Name: "k"}, func(context.Context, *stint.Job) (json.RawMessage, error) { return nil, nil })
	joined := make(chan struct{}, 1)
	e, err := engine.New(s, mux, engine.Config{TimeToLive: time.Second, OnEvent: func(ev event.Event) {
		if ev.Type == event.EventJoined {
			joined <- struct{}{}
		}
	}})
	must(t, err)
	ran := make(chan error, 1)
	go func() { ran <- e.Run(t.Context()) }()
	<-joined
	must(t, execMany(t.Context(), connect(t, s), `delete from stint.engines; delete from stint.beats; update stint.meta set version = 99, oldest = 99`))
	select {
	case err := <-ran:
		if !errors.Is(err, store.ErrSchema) {
			t.Errorf("its Run returned %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it goes on trying to join")
	}
}

// What else stands in the schema, or in another one under a name that stint has, is
// no installation.
func TestASchemaThatHoldsSomethingElseIsInstalledInto(t *testing.T) {
	url := pgtest.New(t)
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), `create schema stint; create table stint.other (); create schema theirs; create table theirs.meta ()`)
	must(t, err)
	must(t, install(t.Context(), url, Config{}))
	b := &bench{t, openStore(t, url), nil}
	b.enqueue(1)
	w := b.join()
	w.Complete(w.One())
}
