package postgres

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/quick"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

func TestSQLAndGoComputeTheSameLane(t *testing.T) {
	s := newStore(t)
	conn := connect(t, s)
	same := func(queue, kind string, priority int8, part uint8) bool {
		queue, kind = valid.CleanText(queue, 255), valid.CleanText(kind, 255)
		p := []store.Part{store.PartNormal, store.PartFront, store.PartKind}[part%3]
		if p != store.PartKind {
			kind = ""
		}
		return value[store.LaneID](t, conn, `select stint.lane($1, $2, $3, $4)`, queue, int(priority), string(p), kind) ==
			store.LaneOf(queue, int(priority), p, kind).ID
	}
	for range 2 {
		if err := quick.Check(same, &quick.Config{MaxCount: 300}); err != nil {
			t.Error(err)
		}
		_, err := conn.Exec(t.Context(), `set standard_conforming_strings = off; set backslash_quote = off; set bytea_output = escape`)
		must(t, err)
	}
}

func TestSQLEnqueuesWithTheKindsDefaults(t *testing.T) {
	s := verified(t)
	w := storetest.NewWorker(t, s, "mail")
	policy := retry.Fixed(2, time.Second)
	must(t, s.Join(t.Context(), w.Info, []stint.KindInfo{{
		Name: "mail", Queue: "slow", Priority: 3, Retry: policy, Timeout: time.Minute, Tags: []string{"a", "b"}}}))
	plain := value[stint.ID](t, s.pool, `select stint.enqueue('mail')`)
	said := value[stint.ID](t, s.pool, `select stint.enqueue('mail', '{"to": 1}', queue => 'fast', priority => -1,
		retry => 'fixed:9:1m', timeout => '1 s', tags => '{b,c}', urn => 'u', source => 's', metadata => '{"m": 1}')`)
	late := value[stint.ID](t, s.pool, `select stint.enqueue('mail', run_at => now() + interval '1 day')`)
	past := value[stint.ID](t, s.pool, `select stint.enqueue('mail', run_at => '-infinity')`)
	check := func(id stint.ID, f func(j *stint.JobInfo) bool) {
		t.Helper()
		j, err := s.Job(t.Context(), id)
		must(t, err)
		if !f(j) {
			text, _ := json.Marshal(j)
			t.Errorf("job %d is %s", id, text)
		}
	}
	check(plain, func(j *stint.JobInfo) bool {
		return j.Queue == "slow" && j.Priority == 3 && j.Retry == policy.String() && j.Timeout.AsDuration() == time.Minute &&
			slices.Equal(j.Tags, []string{"a", "b"}) && string(j.Args) == "{}" && j.State == stint.Available
	})
	check(said, func(j *stint.JobInfo) bool {
		return j.Queue == "fast" && j.Priority == -1 && j.Retry == "fixed:9:1m" && j.Timeout.AsDuration() == time.Second &&
			slices.Equal(j.Tags, []string{"a", "b", "c"}) && j.URN == "u" && j.Source == "s" && j.Metadata != nil
	})
	check(late, func(j *stint.JobInfo) bool { return j.State == stint.Scheduled })
	check(past, func(j *stint.JobInfo) bool { return j.State == stint.Available })
	found, err := s.Jobs(t.Context(), store.Filter{Tag: "c"})
	if err != nil || len(found) != 1 || found[0].ID != said {
		t.Errorf("by tag %+v, error %v", found, err)
	}
	for _, e := range w.ClaimAll() {
		if e.ID == said && e.Retry != retry.Fixed(9, time.Minute) {
			t.Errorf("the policy in its text form is read as %v", e.Retry)
		}
	}
	w.Leave()
}

func TestSQLSaysByWhenAJobIsToBegin(t *testing.T) {
	s := verified(t)
	w := storetest.NewWorker(t, s, "code")
	must(t, s.Join(t.Context(), w.Info, []stint.KindInfo{{Name: "code", StartWithin: 90 * time.Second}}))
	for args, want := range map[string]time.Duration{
		`'code'`:                          90 * time.Second,
		`'code', delay => '1 h'`:          90 * time.Second,
		`'code', run_at => '-infinity'`:   90 * time.Second,
		`'code', start_within => '5 min'`: 5 * time.Minute,
		`'code', run_at => '2090-01-01', start_by => '2090-01-02'`: 24 * time.Hour,
		`'code', run_at => '2090-01-01', start_by => '2090-01-01'`: 0,
		`'other', delay => '1 h', start_within => '1 us'`:          time.Microsecond,
	} {
		j, err := s.Job(t.Context(), value[stint.ID](t, s.pool, `select stint.enqueue(`+args+`)`))
		if must(t, err); j.StartBy.Sub(j.Due) != want {
			t.Errorf("%s is to begin %v after it is due, want %v", args, j.StartBy.Sub(j.Due), want)
		}
	}
	past, err := s.Job(t.Context(), value[stint.ID](t, s.pool, `select stint.enqueue('code', start_by => '2001-01-01Z')`))
	if must(t, err); past.State != stint.Available || past.StartBy.Year() != 2001 {
		t.Errorf("it is %s, to begin by %v", past.State, past.StartBy)
	}
	none, err := s.Job(t.Context(), value[stint.ID](t, s.pool, `select stint.enqueue('other')`))
	if must(t, err); !none.StartBy.IsZero() {
		t.Errorf("it is to begin by %v, want no bound", none.StartBy)
	}
	w.Leave()
}

func TestSQLRefusesWhatCanNeverBeRight(t *testing.T) {
	s := newStore(t)
	for args, want := range map[string]string{
		`''`: "is no name", `'a b '`: "is no name", `E'a\x07'`: "is no name", `null`: "is no name", `repeat('x', 256)`: "is no name",
		`'k', queue => '*'`:                                                         "means every queue",
		`'k', priority => 101`:                                                      "outside -100 to 100",
		`'k', run_at => now(), delay => '1 s'`:                                      "not both",
		`'k', run_at => 'infinity'`:                                                 "too late",
		`'k', delay => '-5 s'`:                                                      "delay: -00:00:05 is negative",
		`'k', delay => '10000 years'`:                                               "too late",
		`'k', timeout => '0 s'`:                                                     "timeout must be positive",
		`'k', timeout => '300 years'`:                                               "a timeout of 300 years is longer than 292 years",
		`'k', start_by => now(), start_within => '1 s'`:                             "not both",
		`'k', start_within => '0 s'`:                                                "start_within must be positive",
		`'k', start_within => '-1 s'`:                                               "start_within must be positive",
		`'k', start_by => 'infinity'`:                                               "no time for a job to begin by",
		`'k', start_by => '-infinity'`:                                              "no time for a job to begin by",
		`'k', start_within => '10000 years'`:                                        "no time for a job to begin by",
		`'k', delay => '1 h', start_by => now()`:                                    "only after the time to begin by",
		`'k', run_at => '2001-01-02', start_by => '2001-01-01'`:                     "only after the time to begin by",
		`'k', to_jsonb(repeat('x', 1048577))`:                                       "more than 1048576",
		`'k', (repeat('[', 201) || repeat(']', 201))::jsonb`:                        "args are nested more than 200 deep",
		`'k', (repeat('[{"a":', 101) || '1' || repeat('}]', 101))::jsonb`:           "args are nested more than 200 deep",
		`'k', metadata => (repeat('{"a":', 201) || '1' || repeat('}', 201))::jsonb`: "metadata is nested more than 200 deep",
		`'k', metadata => jsonb_build_object('a', repeat('x', 65536))`:              "more than 65536",
		`'k', description => E'two\nlines'`:                                         "no description",
		`'k', description => ''`:                                                    "no description",
		`'k', metadata => '3', description => 'a'`:                                  "must be a JSON object",
		`'k', metadata => '3'`:                                                      "must be a JSON object",
		`'k', retry => '3'`:                                                         "no retry policy",
		`'k', retry => 'fixed:2'`:                                                   "fixed:2 is no retry policy: as text it is like fixed:2:10s",
		`'k', retry => '[]'`:                                                        "it is a JSON object",
		`'k', retry => '"sometimes"'`:                                               "no retry policy",
		`'k', retry => '{"retries": 3}'`:                                            "no retry policy",
		`'k', tags => array(select i::text from generate_series(1, 51) i)`:          "more than 50",
		`'k', limits => '{1,2,3,4,5,6,7,8,9}'`:                                      "9 limits are more than 8",
		`'k', limits => '{""}'`:                                                     "no name or key of a limit",
		`'k', limits => '{a,a=x}'`:                                                  "there twice",
		`'k', limits => '{a=}'`:                                                     "no name or key",
		`'k', limits => '{NULL}'`:                                                   "no name or key",
		`'k', limits => array[E'a=b\nc']`:                                           "no name or key",
		`'k', limits => array['a=' || repeat('x', 256)]`:                            "no name or key",
		`'k', limits => array[repeat('l', 101)]`:                                    "is not the name of a limit",
		`'k', limits => '{0*a}'`:                                                    "is not the name of a limit",
		`'k', limits => '{1001*a}'`:                                                 "is not the name of a limit",
		`'k', limits => '{01*a}'`:                                                   "is not the name of a limit",
		`'k', limits => '{2*3*a}'`:                                                  "is not the name of a limit",
		`'k', limits => '{a*2}'`:                                                    "is not the name of a limit",
		`'k', limits => '{2*}'`:                                                     "no name or key",
		`'k', limits => '{a,2*a}'`:                                                  "there twice",
		`'k', limits => '{"a b"}'`:                                                  "is not the name of a limit",
		`'k', '{"a=b": 1}', limits => '{"a=b by /a=b"}'`:                            "is not the name of a limit",
		`'k', limits => '{"a by x"}'`:                                               "no JSON pointer",
		`'k', limits => '{"a by /x~2"}'`:                                            "no JSON pointer",
		`'k', limits => '{"a by /x"}'`:                                              "nothing at /x",
		`'k', '{"l": [1]}', limits => '{"a by /l/-1"}'`:                             "nothing at /l/-1",
		`'k', '{"l": [1]}', limits => '{"a by /l/00"}'`:                             "nothing at /l/00",
		`'k', '{"l": [1]}', limits => '{"a by /l"}'`:                                "not a string, whole number or boolean",
		`'k', '{"l": null}', limits => '{"a by /l"}'`:                               "not a string, whole number or boolean",
		`'k', '{"l": 1.5}', limits => '{"a by /l"}'`:                                "not a string, whole number or boolean",
		`'k', '{"l": 9223372036854775808}', limits => '{"a by /l"}'`:                "not a string, whole number or boolean",
		`'k', '{"l": ""}', limits => '{"a by /l"}'`:                                 "no name or key",
	} {
		_, err := s.pool.Exec(t.Context(), "select stint.enqueue("+args+")")
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "22023" || !strings.Contains(pg.Message, want) {
			t.Errorf("%s gives %v, want %q", args, err, want)
		}
	}
	if n := value[int](t, s.pool, `select count(*) from stint.entries`); n != 0 {
		t.Errorf("%d jobs were stored", n)
	}
}

// What SQL makes of the limits of a job is what Go does, and so is the lane.
func TestSQLEnqueuesWithLimits(t *testing.T) {
	s := verified(t)
	w := storetest.NewWorker(t, s, "mail")
	must(t, s.Join(t.Context(), w.Info, []stint.KindInfo{{Name: "mail", Limits: []string{"smtp", "tenant by /in/0/tenant"}}}))
	const args = `{"in": [{"tenant": "acme ü"}], "n": -9223372036854775808, "t": true, "a/b~c": "x", "": "empty"}`
	for text, limits := range map[string][]string{
		`'mail', $1`: {"smtp", "tenant by /in/0/tenant"}, `'mail', $1, limits => '{}'`: nil, `'other', $1`: nil,
		`'mail', $1, limits => '{z,b=2,"b2 by /n",t by /t}'`:                          {"z", "b=2", "b2 by /n", "t by /t"},
		`'mail', $1, limits => '{"x by /a~1b~0c","e by /",a==}'`:                      {"x by /a~1b~0c", "e by /", "a=="},
		`'mail', $1, limits => '{3*smtp,"1000*t by /t",1*one,7*key=2*3,"5*q by /n"}'`: {"3*smtp", "1000*t by /t", "1*one", "7*key=2*3", "5*q by /n"},
		`'mail', $1, limits => '{ä,a,Z}', delay => '1 ms'`:                            {"ä", "a", "Z"},
		`'mail', $1, limits => '{u}', uniqueness => 'within:1h,by=/n'`:                {"u"},
	} {
		j := stint.NewJob{Kind: "mail", Args: json.RawMessage(args), Limits: limits}
		want, err := j.LimitKeys()
		must(t, err)
		id := value[stint.ID](t, s.pool, `select stint.enqueue(`+text+`)`, args)
		for range 2 { // the delayed one becomes ready
			time.Sleep(2 * time.Millisecond)
			must(t, errOf(s.Promote(t.Context(), time.Time{}, 10)))
		}
		lane := store.LimitedLane(stint.DefaultQueue, 0, store.PartNormal, "", want).ID
		got := value[store.LaneID](t, s.pool, `select lane from stint.entries where coalesce(job, pos) = $1 order by pos desc limit 1`, id)
		info, err := s.Job(t.Context(), id)
		must(t, err)
		if got != lane || strings.Join(info.Limits, "\n") != want {
			t.Errorf("%s has the limits %q and the lane %d, want %q and %d", text, info.Limits, got, want, lane)
		}
	}
}

func TestACallersSearchPathDoesNotReachIntoTheFunctions(t *testing.T) {
	s := newStore(t)
	conn := connect(t, s)
	for _, sql := range []string{
		`create schema evil`,
		`create function evil.coalesced(text, text) returns boolean language plpgsql as $$ begin raise 'reached'; end $$`,
		`create operator evil.= (leftarg = text, rightarg = text, procedure = evil.coalesced)`,
		`create operator evil.<> (leftarg = text, rightarg = text, procedure = evil.coalesced)`,
		`create function evil.clock_timestamp() returns timestamptz language plpgsql as $$ begin raise 'reached'; end $$`,
		`create function evil.btrim(text) returns text language plpgsql as $$ begin raise 'reached'; end $$`,
		`set search_path = evil, pg_catalog`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		must(t, err)
	}
	id := value[stint.ID](t, conn, `select stint.enqueue('k', delay => '1 ms', tags => '{t}')`)
	if j, err := s.Job(t.Context(), id); err != nil || j.Kind != "k" {
		t.Errorf("the job is %+v, error %v", j, err)
	}
}

func TestAnUnprivilegedOwnerCanInstallAndWork(t *testing.T) {
	s := newStore(t)
	name := "plain_" + strings.ToLower(strings.TrimLeft(rand.Text(), "0123456789"))
	exec(t, s, `drop schema stint cascade`)
	exec(t, s, `create role `+name)
	t.Cleanup(func() {
		s.pool.Exec(context.Background(), `drop owned by `+name)
		s.pool.Exec(context.Background(), `drop role `+name)
	})
	database := pgx.Identifier{value[string](t, s.pool, `select current_database()`)}.Sanitize()
	exec(t, s, `grant create on database `+database+` to `+name)
	must(t, setDefault(t.Context(), s.url(), "role", name))
	own := openStore(t, s.url())
	b := &bench{t, own, nil}
	b.enqueue(3)
	w := b.join()
	w.Complete(w.ClaimAll()...)
	w.Leave()
	if owner := value[string](t, own.pool, `select tableowner from pg_tables where tablename = 'entries'`); owner != name {
		t.Errorf("the schema belongs to %s", owner)
	}
}

// Who may make tables in another one's schema, and is no member of its owner, has them
// for himself.
func TestInAnotherOnesSchemaItIsInstalledWithTheRightsThatOneHas(t *testing.T) {
	s := newStore(t)
	name := "guest_" + strings.ToLower(strings.TrimLeft(rand.Text(), "0123456789"))
	exec(t, s, `drop schema stint cascade`)
	exec(t, s, `create schema stint`)
	exec(t, s, `create role `+name)
	t.Cleanup(func() {
		s.pool.Exec(context.Background(), `drop owned by `+name)
		s.pool.Exec(context.Background(), `drop role `+name)
	})
	exec(t, s, `grant all on schema stint to `+name)
	must(t, setDefault(t.Context(), s.url(), "role", name))
	own := openStore(t, s.url())
	if owner := value[string](t, own.pool, `select tableowner from pg_tables where schemaname = 'stint' and tablename = 'entries'`); owner != name {
		t.Errorf("the tables belong to %s", owner)
	}
}

func TestSQLEnqueuesWithTheCallersTransaction(t *testing.T) {
	s := verified(t)
	rung, stop := listening(t, s)
	gone, quiet, loud := begin(t, s), begin(t, s), begin(t, s)
	value[int64](t, gone, `select stint.enqueue('k')`)
	must(t, gone.Rollback(t.Context()))
	value[int64](t, quiet, `select stint.enqueue('k', quiet => true)`)
	_, err := quiet.Exec(t.Context(), `prepare transaction 'sql'`)
	must(t, err)
	_, err = quiet.Conn().Exec(t.Context(), `commit prepared 'sql'`)
	must(t, err)
	select {
	case <-rung:
		t.Error("it rang for what rolled back, or for a quiet enqueue")
	case <-time.After(50 * time.Millisecond):
	}
	value[int64](t, loud, `select stint.enqueue('k')`)
	must(t, loud.Commit(t.Context()))
	select {
	case <-rung:
	case <-time.After(patience):
		t.Error("it did not ring")
	}
	if n := value[int](t, s.pool, `select count(*) from stint.jobs where state = 'available'`); n != 2 {
		t.Errorf("%d jobs are available, want 2", n)
	}
	stop()
}

// TestTheCountsOfStatesAddUpAtAnyMoment reads the view while jobs move through
// all of it. Nothing is enqueued meanwhile, so the sum must not change.
func TestTheCountsOfStatesAddUpAtAnyMoment(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	const n = 600
	b.enqueue(n / 2)
	b.enqueue(n/2, stint.Delay(time.Millisecond))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			w := b.join()
			for i := 0; ; i++ {
				select {
				case <-stop:
					w.Leave()
					return
				default:
				}
				if _, err := s.Promote(t.Context(), past, 20); err != nil {
					t.Error(err)
				}
				entries, err := w.TryClaimAll(t.Context(), 7)
				if err != nil {
					t.Error(err)
				}
				var done []store.Completion
				for k, e := range entries {
					end := []store.Result{completed, returned, {Outcome: stint.OutcomeSnoozed}, {Outcome: stint.OutcomeCancelled}}[(k+i)%4]
					done = append(done, w.Conclude(e, end))
				}
				if _, err := w.TryFinish(t.Context(), done...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for until := time.Now().Add(time.Second); time.Now().Before(until); {
		counts, err := s.Counts(t.Context())
		must(t, err)
		sum := int64(0)
		for _, c := range counts {
			sum += c
		}
		if sum != n {
			t.Fatalf("there are %d jobs, want %d: %v", sum, n, counts)
		}
	}
	close(stop)
	wg.Wait()
}

func TestASecondStartTakesNoLockThatStopsWork(t *testing.T) {
	s := newStore(t)
	tx := begin(t, s)
	for _, sql := range []string{
		`lock table stint.entries, stint.claims, stint.executions, stint.waiting, stint.engines, stint.meta in exclusive mode`,
	} {
		_, err := tx.Exec(t.Context(), sql)
		must(t, err)
	}
	_, err := tx.Exec(t.Context(), `select pg_advisory_xact_lock($1)`, migrateLock)
	must(t, err)
	b := &bench{t, s, nil}
	if err := b.soon("opening", func(ctx context.Context) error {
		again, err := Open(ctx, s.url())
		if err == nil {
			again.Close()
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// A policy that the program cannot read would be the default one without a
// word: SQL refuses what Go refuses, and nothing else.
func TestSQLRefusesThePoliciesThatGoRefuses(t *testing.T) {
	s := newStore(t)
	for _, text := range []string{
		`"none"`, `"default"`, `"fixed:2:10s"`, `"forever:1h30m"`, `"exponential:10:1m,jitter=0.1,max=1h,deadline=1d"`, `"function:a b:c"`,
		`"exponential-within:1025s:1s"`, `"timetable:5m=1m,1h=5m"`, `"timetable:5m=1m,jitter=1"`, `"fixed:2:1.5s,only=timeout|no rows,except=a"`, `"forever:1s,faulty=3"`,
		`{"policy":"none"}`, `{"policy":"default","jitter":0.5}`, `{"policy":"fixed","retries":0,"wait":"0s"}`, `{"policy":"forever","wait":"30s","faulty":1}`,
		`{"policy":"exponential","retries":10,"first":"1m","only":["timeout"],"except":["*net.OpError"],"jitter":1,"max":"1h","deadline":"1d"}`,
		`{"policy":"timetable","rows":[{"younger":"5m","wait":"1m"},{"younger":"1h","wait":"5m"}]}`, `{"policy":"function","name":"billing"}`,
		`{"policy":"by_error","cases":[{"class":"a","then":"none"},{"class":"b","then":{"policy":"fixed","retries":1,"wait":"1s"}}],"else":"default"}`,

		`3`, `true`, `[]`, `{}`, `""`, `"sometimes"`, `"fixed"`, `"fixed:2"`, `"fixed:2:10"`, `"fixed:-1:1s"`, `"none:1"`, `"fixed:1:1s,jitter"`, `"fixed:1:1s,wait=1s"`,
		`"none,"`, `"function:"`, `"timetable:5m"`, `"fixed:1:1s,only="`, `"fixed:1:1s,only=errors.errorString"`, `"fixed:1:1s,except=a|*fmt.wrapError"`, `"none,faulty=0"`,
		`{"policy":"sometimes"}`, `{"policy":3}`, `{"policy":null}`, `{"policy":"none","wait":"1s"}`, `{"policy":"fixed","retries":3}`,
		`{"policy":"fixed","retries":"3","wait":"1s"}`, `{"policy":"fixed","retries":1.5,"wait":"1s"}`, `{"policy":"fixed","retries":-1,"wait":"1s"}`,
		`{"policy":"fixed","retries":3,"wait":60}`, `{"policy":"fixed","retries":3,"wait":"60"}`, `{"policy":"fixed","retries":3,"wait":"-1s"}`,
		`{"policy":"fixed","retries":2147483648,"wait":"1s"}`, `{"policy":"timetable","rows":[]}`, `{"policy":"timetable","rows":[{"younger":"1m"}]}`,
		`{"policy":"timetable","rows":[{"younger":"1m","wait":"1m","x":1}]}`, `{"policy":"timetable","rows":[3]}`, `{"policy":"by_error","cases":[]}`,
		`{"policy":"by_error","cases":[{"then":"none"}]}`, `{"policy":"by_error","cases":[{"class":"a","then":"nothing"}]}`,
		`{"policy":"by_error","cases":[{"class":"errors.errorString","then":"none"}]}`, `{"policy":"by_error","cases":[{"class":"a","then":"none"}],"else":null}`,
		`{"policy":"none","only":[]}`, `{"policy":"none","only":"a"}`, `{"policy":"none","except":["a",""]}`, `{"policy":"none","only":["errors.errorString"]}`,
		`{"policy":"none","jitter":2}`, `{"policy":"none","jitter":"0.1"}`, `{"policy":"none","max":"x"}`, `{"policy":"none","faulty":0}`, `{"policy":"function","name":""}`,
	} {
		var p retry.Policy
		refused := json.Unmarshal([]byte(text), &p) != nil
		problem := value[*string](t, s.pool, `select stint.policy_problem($1)`, text)
		if refused != (problem != nil) {
			t.Errorf("Go refuses %s: %v; in SQL the problem is %v", text, refused, deref(problem))
		}
		_, err := s.pool.Exec(t.Context(), `select stint.enqueue('k', retry => $1)`, text)
		if refused != (err != nil) {
			t.Errorf("Go refuses %s: %v; an enqueue gives %v", text, refused, err)
		}
		var plain string // as on the command line
		if json.Unmarshal([]byte(text), &plain) == nil {
			_, err := s.pool.Exec(t.Context(), `select stint.enqueue('k', retry => $1)`, plain)
			if refused != (err != nil) {
				t.Errorf("Go refuses %s: %v; an enqueue with %s gives %v", text, refused, plain, err)
			}
		}
	}
}

// A policy may be nested as deep as the program reads one, and what is no policy at all
// is told how one looks.
func TestSQLRefusesPoliciesThatAreNestedTooDeepAndSaysHowOneLooks(t *testing.T) {
	s := newStore(t)
	nested := `"none"`
	for depth, refused := 2, false; !refused; depth++ {
		nested = `{"policy":"by_error","cases":[{"class":"a","then":` + nested + `}],"else":{"policy":"none"}}`
		refused = json.Unmarshal([]byte(nested), new(retry.Policy)) != nil
		if problem := value[*string](t, s.pool, `select stint.policy_problem($1)`, nested); refused != (problem != nil) {
			t.Errorf("Go refuses %d: %v; in SQL the problem is %v", depth, refused, deref(problem))
		}
	}
	for _, text := range []string{`3`, `[]`, `null`} {
		if problem := value[string](t, s.pool, `select stint.policy_problem($1)`, text); !strings.HasPrefix(problem, "it is a JSON object") {
			t.Errorf("of %s it says %q", text, problem)
		}
	}
}

// A policy that is stored is referred to, and no other one is.
func TestSQLFindsThePolicyOfAJobAmongThoseThatAreStored(t *testing.T) {
	s := verified(t)
	client := stint.NewClient(s)
	for n := range 3 {
		_, err := client.Enqueue(t.Context(), stint.NewJob{Kind: "go", Retry: retry.Fixed(n, time.Second)})
		must(t, err)
	}
	conn := connect(t, s)
	for n := range 4 { // of which nobody stored the last
		body, err := json.Marshal(retry.Fixed(n, time.Second))
		must(t, err)
		id := value[int64](t, conn, `select stint.enqueue('sql', retry => $1)`, string(body))
		got, err := s.Fetch(t.Context(), []store.Position{store.Position(id)})
		must(t, err)
		if stored := value[bool](t, conn, `select policy is not null from stint.entries where pos = $1`, id); got[0].Retry != retry.Fixed(n, time.Second) || stored != (n < 3) {
			t.Errorf("policy %d is %v, stored: %v", n, got[0].Retry, stored)
		}
	}
}

// Of a job that waits for its next attempt the view has the last one, whatever other jobs
// came to.
func TestTheViewHasTheLastAttemptOfAJobThatIsToBeTriedAgain(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	ids := b.enqueue(2)
	w := b.join()
	for n := range 3 { // the second job fails behind the first
		_, err := s.Retry(t.Context(), ids, stint.RerunOptions{})
		must(t, err)
		for i, e := range w.ClaimAll() {
			x := w.Conclude(e, store.Result{Outcome: stint.OutcomeFailed, Err: fmt.Errorf("error %d of %d", n, i)})
			x.Result = json.RawMessage(fmt.Sprintf(`"%d of %d"`, n, i))
			_, err := w.TryFinish(t.Context(), x)
			must(t, err)
		}
	}
	for i, id := range ids {
		j, err := s.Job(t.Context(), id)
		must(t, err)
		if j.State != stint.Retrying || len(j.Attempts) != 3 {
			t.Fatalf("the job is %+v", j)
		}
		last := j.Attempts[2]
		if !j.Started.Equal(last.Started) || !j.Finished.Equal(last.Finished) {
			t.Errorf("it is shown from %v to %v, want %v to %v", j.Started, j.Finished, last.Started, last.Finished)
		}
		got := value[string](t, s.pool, `select (result #>> '{}') || ', ' || (error ->> 'message') from stint.jobs where id = $1`, id)
		if want := fmt.Sprintf("2 of %d, error 2 of %[1]d", i); got != want {
			t.Errorf("the view says %q, want %q", got, want)
		}
	}
}

// What somebody cancelled is not among what is to be done, also where nobody came to end
// it yet.
func TestWhatIsMarkedIsNotCountedAsUnclaimed(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	ids := append(b.enqueue(2), b.enqueue(2, stint.Delay(time.Hour))...)
	exec(t, s, `insert into stint.cancellations (job) values ($1), ($2)`, ids[0], ids[2])
	if got, want := value[[]stint.ID](t, s.pool, `select array_agg(job order by job) from stint.unclaimed`), []stint.ID{ids[1], ids[3]}; !slices.Equal(got, want) {
		t.Errorf("unclaimed are %v, want %v", got, want)
	}
}

// What was late when a claim passed is claimed in parts: each is said to be where it is,
// wherever it is asked for.
func TestWhatIsClaimedOfLateTransactionsIsSaidWhereverItIsLookedFor(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	w := b.join()
	other := store.LaneOf("other", 0, store.PartNormal, "").ID
	var late []stint.ID
	var open []pgx.Tx
	for range 2 {
		tx := begin(t, s)
		open, late = append(open, tx), append(late, b.enqueueIn(Tx(tx), 2)...)
		late = append(late, b.enqueueIn(Tx(tx), 2, stint.Queue("other"))...)
	}
	// What another engine has closed says nothing of this one's claims.
	busy := storetest.NewWorker(t, s, "k")
	busy.Info.Token = math.MaxInt64
	must(t, busy.TryJoin(t.Context()))
	b.enqueue(1, stint.Queue("busy"))
	c, err := busy.TryClaim(t.Context(), store.ClaimRequest{Lane: store.LaneOf("busy", 0, store.PartNormal, "").ID, Max: 1, Wait: true, Low: 100})
	must(t, err)
	busy.Complete(c.Entries...)
	available, running := []stint.ID{}, slices.Concat(b.enqueue(1), b.enqueue(1, stint.Queue("other")))
	w.Claim(normal, 10)
	w.Claim(other, 10)
	available = append(append(available, b.enqueue(1)...), b.enqueue(1, stint.Queue("never claimed"))...)
	check := func(when string) {
		t.Helper()
		slices.Sort(available)
		slices.Sort(running)
		for state, want := range map[stint.State][]stint.ID{stint.Available: available, stint.Running: running} {
			got, err := s.Find(t.Context(), store.Filter{States: []stint.State{state}})
			must(t, err)
			if slices.Reverse(got); !slices.Equal(got, want) {
				t.Errorf("%s are listed as %s %v, want %v", when, state, got, want)
			}
			for _, id := range want {
				if j, err := s.Job(t.Context(), id); err != nil || j.State != state {
					t.Errorf("%s job %d is %+v, error %v, want %s", when, id, j, err, state)
				}
			}
		}
		if got := value[[]stint.ID](t, s.pool, `select array_agg(job order by job) from stint.unclaimed`); !slices.Equal(got, available) {
			t.Errorf("%s are unclaimed %v, want %v", when, got, available)
		}
		if got := value[[]stint.ID](t, s.pool, `select array_agg(job order by job) from stint.claimed`); !slices.Equal(got, running) {
			t.Errorf("%s are claimed %v, want %v", when, got, running)
		}
	}
	check("while they are open")
	for _, tx := range open {
		must(t, tx.Commit(t.Context()))
	}
	available = append(available, late...)
	check("when they are committed")
	for _, l := range []store.LaneID{normal, other, other} {
		for _, e := range w.Claim(l, 1) {
			running = append(running, e.ID)
			available = slices.DeleteFunc(available, func(id stint.ID) bool { return id == e.ID })
		}
	}
	check("when some of them were claimed")
}

// The patterns that names are held against do not depend on how the session reads a backslash.
func TestNamesAreTheSameWhateverASessionTakesABackslashFor(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	conn := connect(t, s)
	_, err := conn.Exec(t.Context(), `set standard_conforming_strings = off; set escape_string_warning = off`)
	must(t, err)
	if !value[bool](t, conn, `select stint.pause('sales')`) || !value[bool](t, conn, `select stint.resume('sales')`) {
		t.Error("the queue sales was not paused and resumed")
	}
	if id := value[stint.ID](t, conn, `select stint.enqueue('sales', queue => 'sales', tags => '{s}')`); id == 0 {
		t.Error("nothing was enqueued")
	}
}
