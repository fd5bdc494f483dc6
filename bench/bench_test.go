package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/store"
)

func TestMain(m *testing.M) {
	if os.Getenv(idleEnv) != "" { // a measurement under test began another process of its program
		contest.Main("bench", run)
		return
	}
	pgtest.Main(m)
}

// report is what --json prints.
type report struct {
	Measurement string
	Results     []contest.Result
	Settings    map[string]string
}

// measure runs a command line on a database.
func measure(t *testing.T, db, line string) report {
	t.Helper()
	var out, errs bytes.Buffer
	if err := run(t.Context(), append(strings.Fields(line), "--db", db, "--json"), &out, &errs); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, errs.String())
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("%s: %v: printed %s", line, err, out.String())
	}
	return r
}

// onEach runs a test on an SQLite file and on PostgreSQL, and finds out whether it
// leaves anything behind.
func onEach(t *testing.T, test func(t *testing.T, db string, postgres bool)) {
	t.Run("sqlite", func(t *testing.T) {
		dir := t.TempDir()
		test(t, filepath.Join(dir, "stint.db"), false)
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v were left behind, %v", left, err)
		}
	})
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.New(t)
		test(t, url, true)
		if n := ask(t, url, "select count(*) from pg_namespace where nspname like 'stint%'"); n != 0 {
			t.Errorf("%d schemas were left behind", n)
		}
	})
}

func ask(t *testing.T, url, question string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), question).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// has finds an entrant, and fails unless it has a figure above zero of each name.
func has(t *testing.T, r contest.Result, entrant string, figures ...string) contest.Standing {
	t.Helper()
	for _, s := range r.Standings {
		if s.Name != entrant {
			continue
		}
		for _, name := range figures {
			if s.Medians[name] <= 0 {
				t.Errorf("%s: %s has the figures %v, want %q", r.Bout, entrant, s.Medians, name)
			}
		}
		return s
	}
	t.Fatalf("%s: nobody is named %s", r.Bout, entrant)
	return contest.Standing{}
}

func TestABurnStandsBesideWhatIsDoneByHand(t *testing.T) {
	onEach(t, func(t *testing.T, db string, postgres bool) {
		r := measure(t, db, "burn -n 2000 --batch 300 --before 500 --waiting 300 --engines 2 --runs 2")
		figures := []string{contest.EnqueueRate, contest.WorkRate}
		if postgres {
			figures = append(figures, walPerJob, commitsPerJob)
		}
		for _, name := range []string{"stint", "by hand"} {
			if s := has(t, r.Results[0], name, figures...); len(s.Rounds[contest.WorkRate]) != 2 {
				t.Errorf("%s has the rounds %v, want two", name, s.Rounds)
			}
		}
		for name, want := range map[string]string{"jobs": "2000", "before": "500", "waiting": "300", "engines": "2", "runs": "2"} {
			if r.Settings[name] != want {
				t.Errorf("%s is told to be %q, want %s", name, r.Settings[name], want)
			}
		}
		if r.Settings["server_version"] == "" || r.Settings["go"] == "" || strings.Contains(r.Settings["db"], "://") {
			t.Errorf("it was measured with %v", r.Settings)
		}
	})
}

func TestSealedJobsStandBesideOthers(t *testing.T) {
	onEach(t, func(t *testing.T, db string, _ bool) {
		r := measure(t, db, "burn -n 300 --args 1000 --sealed")
		for _, name := range []string{"stint", "stint, sealed"} {
			has(t, r.Results[0], name, contest.EnqueueRate, contest.WorkRate)
		}
	})
}

func TestSlotsAreUsedWhileTheyHaveAJob(t *testing.T) {
	db := filepath.Join(t.TempDir(), "stint.db")
	r := measure(t, db, "burn -n 300 --engines 2 --slots 3 --work 1ms")
	s := has(t, r.Results[0], "stint", slotsUsed)
	if len(r.Results[0].Standings) != 1 || s.Medians[slotsUsed] > 100 {
		t.Errorf("slots were used for %v %% by %d", s.Medians[slotsUsed], len(r.Results[0].Standings))
	}
}

func TestUsageIsTheShareOfTheTimeOfAllSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := usage{work: 20 * time.Millisecond}
		u.job()
		if got := u.of(1); got != 1 {
			t.Errorf("one slot that always worked was used for %v of its time", got)
		}
		time.Sleep(40 * time.Millisecond)
		u.job()
		if one, four := u.of(1), u.of(4); one != 0.5 || four != 0.125 {
			t.Errorf("one slot that rested as long as it worked was used for %v of its time, and four for %v", one, four)
		}
	})
}

func TestClaimsOfOneJobEachAreMeasuredByThemselves(t *testing.T) {
	onEach(t, func(t *testing.T, db string, postgres bool) {
		r := measure(t, db, "burn -n 100 --engines 3 --one-by-one")
		has(t, r.Results[0], "stint", contest.WorkRate)
		if len(r.Results[0].Standings) != 1 {
			t.Error("claims of one job were compared with the limit")
		}
	})
}

func TestASteadyLoadIsComparedWithNothingHeld(t *testing.T) {
	onEach(t, func(t *testing.T, db string, postgres bool) {
		line := "steady --pin-horizon --compare --duration 2s --every 1s --batch 10 --backlog 20 -n 300"
		if postgres {
			line += " --open-writers 3"
		}
		r := measure(t, db, line).Results[0]
		has(t, r, "by hand", contest.WorkRate)
		for _, name := range []string{"stint", "stint, nothing held"} {
			s := has(t, r, name, contest.WorkRate, "last", "median")
			if m := s.Medians; m["least"] > m["median"] || m["least"] > m["last"] || len(s.Rounds["interval 2"]) != 1 {
				t.Errorf("%s has the figures %v, rounds %v", name, m, s.Rounds)
			}
		}
	})
}

func TestWhatIsHeldOpenIsOpenWhileItIsMeasuredAndMissedWhenItEnds(t *testing.T) {
	url := pgtest.New(t)
	b := &bench{settings: settings{db: url, engines: 1}, errs: io.Discard}
	const writing = "select count(*) from pg_stat_activity where datname = current_database() and state = 'idle in transaction' and backend_xid is not null"
	err := b.on(t.Context(), func(s *site) error {
		return holding{pin: true, writers: 2}.during(t.Context(), s, func() error {
			if n := ask(t, url, writing); n != 3 {
				t.Errorf("%d transactions that wrote are open, want 3", n)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
	err = b.on(t.Context(), func(s *site) error {
		return holding{writers: 2}.during(t.Context(), s, func() error {
			ask(t, url, strings.Replace(writing, "count(*)", "count(pg_terminate_backend(pid))", 1))
			return nil
		})
	})
	if err == nil || !strings.Contains(err.Error(), "a write transaction that was held open ended") {
		t.Errorf("the error is %v", err)
	}
}

func TestLatencyStandsBesideTheFloor(t *testing.T) {
	onEach(t, func(t *testing.T, db string, postgres bool) {
		r := measure(t, db, "latency --rate 100 --duration 300ms").Results[0]
		for _, name := range []string{"floor", "enqueue to start", "enqueue itself"} {
			has(t, r, name, "p50 ms", "p99 ms", "max ms")
		}
		late := has(t, r, "scheduled, late", "max ms")
		if ms := late.Medians["p50 ms"]; ms < -1 || ms > 5000 {
			t.Errorf("scheduled jobs are %v ms late", ms)
		}
	})
}

func TestJobsBeginAfterThoseThatTheyNeed(t *testing.T) {
	onEach(t, func(t *testing.T, db string, postgres bool) {
		r := measure(t, db, "flows --jobs 50 --rounds 1").Results[0]
		for _, name := range []string{"enqueue to start", "end to start in a chain", "last end to start of the join"} {
			if ms := has(t, r, name, "p50 ms", "p99 ms", "max ms").Medians["p50 ms"]; ms <= 0 {
				t.Errorf("%s took %v ms", name, ms)
			}
		}
	})
}

// ahead is a store whose clock is wrong, and takes its time.
type ahead struct {
	store.Store
	by   time.Duration
	asks int
}

func (a *ahead) Now(context.Context) (time.Time, error) {
	if a.asks++; a.asks != 3 {
		time.Sleep(2 * time.Millisecond) // only the third answer is quick
	}
	return time.Now().Add(a.by), nil
}

func TestTheStoresClockIsComparedByItsFastestAnswer(t *testing.T) {
	c, err := readClock(t.Context(), &ahead{by: time.Hour})
	if err != nil || c.unknown >= time.Millisecond || (c.offset-time.Hour).Abs() > c.unknown {
		t.Errorf("of a clock that is an hour ahead it says %+v, %v", c, err)
	}
	const ms = time.Millisecond
	if got, want := (clock{20 * ms, 1 * ms}).mean(clock{24 * ms, 2 * ms}), (clock{22 * ms, 4 * ms}); got != want {
		t.Errorf("between two moments it says %+v, want %+v", got, want)
	}
}

func TestSingleEnqueuesStandBesideBareInserts(t *testing.T) {
	onEach(t, func(t *testing.T, db string, postgres bool) {
		for _, line := range []string{"single --producers 3 --duration 100ms", "single --producers 2 --duration 100ms --asleep"} {
			r := measure(t, db, line).Results[0]
			has(t, r, "bare insert", callRate, "p50 ms")
			if s := has(t, r, "enqueue", callRate, "p50 ms", "p99 ms"); s.Medians["p50 ms"] > s.Medians["p99 ms"] {
				t.Errorf("the figures are odd: %v", s.Medians)
			}
		}
	})
}

func TestTwoCallsTakeTurnsAndTheFirstTurnDoesNotCount(t *testing.T) {
	var calls, turns [2]int
	last := -1
	call := func(which int) insert {
		return func(_ context.Context, producer int) error {
			if calls[which]++; last != which {
				last = which
				turns[which]++
			}
			time.Sleep(time.Millisecond)
			return nil
		}
	}
	all, err := alternate(t.Context(), 1, 100*time.Millisecond, call(0), call(1))
	if err != nil {
		t.Fatal(err)
	}
	if turns != [2]int{slicePairs + 1, slicePairs + 1} {
		t.Errorf("turns were %v, want %d each", turns, slicePairs+1)
	}
	for i, f := range all {
		if f[callRate] <= 0 || f[callRate] > 1000 || f["p50 ms"] < 1 {
			t.Errorf("call %d has the figures %v", i, f)
		}
	}
	broken := errors.New("broken")
	if _, err := alternate(t.Context(), 2, time.Second, func(context.Context, int) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("of a call that fails it says %v", err)
	}
}

func TestTheLimitIsMeasuredOfBothHalves(t *testing.T) {
	onEach(t, func(t *testing.T, db string, postgres bool) {
		has(t, measure(t, db, "limit -n 3000 --batch 300").Results[0], "by hand", contest.EnqueueRate, contest.WorkRate, bothRate)
	})
}

func TestPagesAreMeasuredByThemselvesAndBesideWork(t *testing.T) {
	onEach(t, func(t *testing.T, db string, postgres bool) {
		r := measure(t, db, "pages -n 300 --before 20 --waiting 10 --runs 2 --rounds 2 --watch 100ms --tabs 2").Results
		for _, page := range []string{"/", "/jobs?state=available", "/kinds/load_noop"} {
			has(t, r[0], page, "p50 ms")
		}
		if n := len(r[0].Standings); n != 28 {
			t.Errorf("there are %d pages, want 26 and two of the newest job", n)
		}
		beside := r[len(r)-1]
		has(t, beside, "pages open", bothRate)
		has(t, beside, "none open", bothRate)
		if postgres != (len(r) == 3) {
			t.Errorf("there were %d bouts", len(r))
		}
	})
}

func TestASignalLeavesNothingBehind(t *testing.T) {
	onEach(t, func(t *testing.T, db string, postgres bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		err := run(ctx, []string{"latency", "--duration", "1h", "--db", db}, io.Discard, io.Discard)
		if err == nil || err.Error() != "interrupted; nothing was left behind" {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestWhatIsPrintedForPeopleHasRatiosAndSettings(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"burn", "-n", "200", "--db", filepath.Join(t.TempDir(), "x.db")}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`\n +stint +[0-9,.]+ `, `\n +by hand +[0-9,.]+ +×[0-9.]+ `, `database SQLite, synchronous=FULL, .*, jobs 200, `} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("printed %s, want %s", out.String(), want)
		}
	}
	if strings.Contains(out.String(), "WAL") {
		t.Error("a file was said to have a server")
	}
}

func TestMistakesOnTheCommandLineAreNamed(t *testing.T) {
	for line, want := range map[string]string{
		"churn":                                 `there is no measurement "churn"`,
		"burn -n 0":                             "it is not between 1 and 1000000000",
		"burn x":                                `"x" is no flag`,
		"burn --rate 3":                         "flag provided but not defined: -rate",
		"burn --work 1h":                        "it is not between 0s and 1m0s",
		"burn --one-by-one --slots 2":           "--one-by-one is one job at a time",
		"burn --one-by-one --work 1ms":          "--work is not for it",
		"burn --one-by-one --sealed":            "--sealed is not for it",
		"burn --open-writers 3":                 "--open-writers is for PostgreSQL",
		"burn --compare":                        "there is nothing to compare with",
		"steady --duration 1s --every 2s":       "--every 2s is longer",
		"steady --batch 100 --backlog 99":       "--backlog 99 is less than the 100",
		"single --producers 0":                  "it is not between 1 and 10000",
		"latency --scheduled 1":                 "it is not between 0 and 0.9",
		"latency --rate NaN":                    "it is not between 0.001 and 100000",
		"pages --watch 10ms":                    "it is not between 100ms and 1h0m0s",
		"burn --db postgres://127.0.0.1:1/x":    "connect",
		"burn --db " + os.DevNull + "/stint.db": "not a directory",
	} {
		err := run(t.Context(), strings.Fields(line), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", line, err, want)
		}
	}
}

func TestEachMeasurementHasDefaultsThatCanBe(t *testing.T) {
	for _, m := range measurements {
		b := &bench{name: m.name, errs: io.Discard}
		f, err := b.parse(m, nil)
		if err == nil {
			err = b.check()
		}
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		for field := range strings.FieldsSeq(m.flags) {
			if name, _, _ := strings.Cut(field, "="); f.Lookup(name) == nil {
				t.Errorf("%s: there is no flag %s", m.name, name)
			}
		}
	}
}
