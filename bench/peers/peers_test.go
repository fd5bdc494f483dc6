package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// testServer is a server of the tests. Its disk counts for nothing here.
func testServer(t *testing.T) *server {
	t.Helper()
	s, err := openServer(t.Context(), testURL(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func testURL(t *testing.T) string {
	t.Helper()
	private := pgtest.Start(t, pgtest.Options{Fsync: true})
	return private.URL("postgres")
}

func TestEveryoneWorksEveryJobOnceAndKeepsItsHistory(t *testing.T) {
	s := testServer(t)
	for _, c := range []contestant{
		stintDefault, stintSingle(3), riverBest.contestant("River, tuned"), riverDefault.contestant("River, defaults"),
		rows("rows", 4, 500), rows("rows, one by one", 3, 1),
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := burnTurn(t.Context(), s, c, 100)
			if err != nil {
				t.Fatal(err)
			}
			if f["work/s"] <= 0 || f[walPerJob] <= 0 {
				t.Errorf("figures are %v", f)
			}
		})
	}
	var left int
	if err := s.ask(t.Context(), "select count(*) from pg_database where datname like 'stint_peers%'", &left); err != nil || left > 0 {
		t.Errorf("%d databases were left behind, %v", left, err)
	}
}

// The others need Node.js, and are left out.
func TestLimitsAreKept(t *testing.T) {
	for _, b := range limits(testServer(t), options{jobs: 1}) {
		f, err := b.Entrants[0].Turn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Log(b.Name, f)
		// On a busy machine a few starts come later than the last look at the clock, beside what is in time.
		for name, most := range map[string]float64{"most at once": 10, "most at once of a key": 1, "most in a second": 201 + 9} {
			if n, there := f[name]; there && (n < 1 || n > most) {
				t.Errorf("%s: %s: %v", b.Name, name, n)
			}
		}
	}
}

func TestEveryoneDoesEveryPartOfAWorkflowOnceAndKeepsItsHistory(t *testing.T) {
	o := options{workflows: 3, children: 5, rate: 20, span: 100 * time.Millisecond}
	for _, b := range durable(testServer(t), o) {
		for _, e := range b.Entrants {
			t.Run(b.Name+"/"+e.Name, func(t *testing.T) {
				f, err := e.Turn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, figure := range b.Figures {
					// Processor time is not known everywhere.
					if n, there := f[figure.Name]; n < 0 || !there && !strings.Contains(figure.Name, "CPU") {
						t.Errorf("%s: %v", figure.Name, n)
					}
				}
			})
		}
	}
}

func TestAPartThatIsDoneTwiceOrNotAtAllIsFound(t *testing.T) {
	p := newParts(2, 2)
	for workflow := range 2 {
		for part := range 2 {
			if err := p.once(); err == nil {
				t.Error("before all parts were done no error")
			}
			p.did(workflow, part)
		}
	}
	<-p.done
	if err := p.once(); err != nil {
		t.Error(err)
	}
	if p.did(1, 0); p.once() == nil || !strings.Contains(p.once().Error(), "part 0 of workflow 1 was done 2 times") {
		t.Errorf("the error is %v", p.once())
	}
}

func TestRunsAreCounted(t *testing.T) {
	all := []execution{{0, 0, 10}, {1, 5, 15}, {2, 10, 20}, {3, 14, 30}}
	if most := together(all, func(execution) int64 { return 0 }); most != 3 {
		t.Errorf("%d ran at once, want 3", most)
	}
	if most := together(all, func(e execution) int64 { return e.n % 2 }); most != 2 {
		t.Errorf("%d of a key ran at once, want 2", most)
	}
	if most := within(all, 10); most != 3 {
		t.Errorf("%d began within 10, want 3", most)
	}
	all[3].start = int64(2500 * time.Millisecond)
	if n := perWholeSecond(all); n != 1.5 {
		t.Errorf("%v began in a whole second, want 1.5", n)
	}
	all[3].start = 14
	if n := busy(all); n != 46.0/30 {
		t.Errorf("%v ran at once on the average, want %v", n, 46.0/30)
	}
}

func TestEveryoneStoresAUniqueJobOnce(t *testing.T) {
	s := testServer(t)
	for _, c := range []struct {
		contestant
		jobs string
	}{{stintUnique, "select count(*) from stint.jobs"}, {riverUnique.contestant("River"), "select count(*) from river_job"}} {
		err := c.on(t.Context(), s, func(q contest.Queue, db string) error {
			for range 2 {
				if _, err := askFor(t.Context(), q, 100); err != nil {
					return err
				}
			}
			conn, err := pgx.Connect(t.Context(), db)
			if err != nil {
				return err
			}
			defer conn.Close(context.WithoutCancel(t.Context()))
			var stored int
			if err := conn.QueryRow(t.Context(), c.jobs).Scan(&stored); err != nil || stored != 100 {
				t.Errorf("%s stored %d of 100 jobs, %v", c.name, stored, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAReportHasTheFiguresOfEachRoundAndWhatTheyWereMeasuredOn(t *testing.T) {
	var out, errs bytes.Buffer
	path := filepath.Join(t.TempDir(), "figures.csv")
	err := run(t.Context(), []string{"--db", testURL(t), "--only", "burn", "--against", "tuned|rows", "--jobs", "200", "--runs", "2", "--json", "--csv", path}, &out, &errs)
	if err != nil {
		t.Fatal(err)
	}
	var r contest.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Server["synchronous_commit"] != "on" || len(r.Results) != 1 || len(r.Results[0].Standings) != 3 {
		t.Fatalf("the report is %s", out.String())
	}
	for _, name := range []string{"go", "github.com/jackc/pgx/v5", "pg-boss", "bullmq"} {
		if r.Versions[name] == "" {
			t.Errorf("the report does not say which %s it was: %v", name, r.Versions)
		}
	}
	for _, standing := range r.Results[0].Standings {
		if n := len(standing.Rounds["work/s"]); n != 2 || standing.Settings == "" {
			t.Errorf("%s has %d rounds, settings %q", standing.Name, n, standing.Settings)
		}
	}
	if csv, err := os.ReadFile(path); err != nil || !strings.Contains(string(csv), "\nburn,\"River, tuned\",work/s,2,") {
		t.Errorf("the file has %s, %v", csv, err)
	}
}

func TestAServerOnWhichNothingIsDurableIsRefused(t *testing.T) {
	lax := pgtest.Start(t, pgtest.Options{})
	if _, err := openServer(t.Context(), lax.URL("postgres"), 0); err == nil || !strings.Contains(err.Error(), "fsync is off; both must be on") {
		t.Errorf("the error is %v", err)
	}
}

func TestMistakesOnTheCommandLineAreNamed(t *testing.T) {
	for line, want := range map[string]string{
		"--only burn,churn":              `--only: "churn" is none of burn, pinned, single, latency, unique, steps, children, hop, limit, keys, rate, tune`,
		"--db postgres:///x --major 15":  "--major is for a server that is started",
		"--major 8":                      "PostgreSQL 8",
		"--against (":                    "--against: error parsing regexp",
		"--runs 0":                       "--runs: 0 is less than 1",
		"--jobs -1":                      "--jobs: -1 is less than 1",
		"--duration 1s":                  "--duration: 1s is less than 5s",
		"--settle 1s":                    "--settle: 1s is less than 5s",
		"--rate 0":                       "--rate: 0 is not between 0 and 10000",
		"--span 1ms":                     "--span: 1ms is less than a second",
		"burn":                           `"burn" is no flag`,
		"--db mysql://here/db":           "--db: not a URL such as postgres://",
		"--db postgres://127.0.0.1:1/db": "--db: ",
	} {
		err := run(t.Context(), strings.Fields(line), &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", line, err, want)
		}
	}
}

func TestASeriesIsWrittenAsPlotAndFiguresByTheMedianOfEachSlice(t *testing.T) {
	r := &recording{}
	r.add("stint", []float64{100_000, 90_000})
	r.add("River, tuned", []float64{8000, 5000})
	r.add("stint", []float64{120_000, 80_000})
	r.add("stint", []float64{110_000, 10_000})
	path := filepath.Join(t.TempDir(), "pinned")
	if err := r.write(path); err != nil {
		t.Fatal(err)
	}
	csv, err := os.ReadFile(path + ".csv")
	if want := "seconds,\"River, tuned\",stint\n5,8000,110000\n10,5000,80000\n"; err != nil || string(csv) != want {
		t.Errorf("the CSV is %q, %v, want %q", csv, err, want)
	}
	for ending, want := range map[string]string{".svg": "Arial", ".json": `"seconds": 5`} {
		text, err := os.ReadFile(path + ending)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q, %v", ending, want, err)
		}
	}
}

// witness is a queue that looks at what is held open when jobs come, and takes
// none.
type witness struct {
	contest.Queue
	look func() error
}

var errSeen = errors.New("seen")

func (w witness) Enqueue(context.Context, int, int) error { return errors.Join(errSeen, w.look()) }

func TestOnlyAPinnedTurnHasASnapshotAndAWriterHeldOpenFromTheStart(t *testing.T) {
	s := testServer(t)
	for pin, want := range map[bool]int{true: 2, false: 0} {
		var held int
		w := witness{look: func() error {
			return s.ask(t.Context(), `
				select count(*) from pg_stat_activity
				where state = 'idle in transaction' and coalesce(backend_xid, backend_xmin) is not null`, &held)
		}}
		_, err := pinnedOne{stintDefault, pin}.steady(t.Context(), options{duration: slice}, w, s.url.String())
		if !errors.Is(err, errSeen) || held != want {
			t.Errorf("pinned %v: %d transactions were held open, want %d; %v", pin, held, want, err)
		}
	}
}
