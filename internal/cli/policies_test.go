package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

var (
	errGone = errors.New("gone")
	gone    = retry.ErrorClass("gone", errGone)
)

// policies are what people may say, in each of the forms, and what follows from
// the first failure of a job with errGone.
var policies = []struct {
	text   string // of the command line; empty where only JSON can say it
	policy retry.Policy
	json   string
	want   string // the wait, or why it is final
}{
	{"none", retry.None(), `{"policy":"none"}`, "no retries"},
	{"default", retry.Default(), `{"policy":"exponential","retries":10,"first":"1m"}`, "1m"},
	{"fixed:2:10s", retry.Fixed(2, 10*time.Second), `{"policy":"fixed","retries":2,"wait":"10s"}`, "10s"},
	{"fixed:1:10s", retry.Fixed(1, 10*time.Second), `{"policy":"fixed","retries":1,"wait":"10s"}`, "10s faulty"},
	{"fixed:0:10s", retry.Fixed(0, 10*time.Second), `{"policy":"fixed","retries":0,"wait":"10s"}`, "retries exhausted"},
	{"forever:30s", retry.Forever(30 * time.Second), `{"policy":"forever","wait":"30s"}`, "30s"},
	{"exponential:3:1s", retry.Exponential(3, time.Second), `{"policy":"exponential","retries":3,"first":"1s"}`, "1s"},
	{"exponential-within:1025s:1s", retry.ExponentialWithin(1025*time.Second, time.Second), `{"policy":"exponential","retries":10,"first":"1s"}`, "1s"},
	{"timetable:5m=1m,1h=5m", retry.Timetable(retry.Row{Younger: 5 * time.Minute, Wait: time.Minute}, retry.Row{Younger: time.Hour, Wait: 5 * time.Minute}),
		`{"policy":"timetable","rows":[{"younger":"5m","wait":"1m"},{"younger":"1h","wait":"5m"}]}`, "1m"},
	{"function:billing", retry.Function("billing"), `{"policy":"function","name":"billing"}`, "billing decides"},
	{"fixed:2:10s,only=gone|timeout", retry.Fixed(2, 10*time.Second).Only(gone, "timeout"),
		`{"policy":"fixed","retries":2,"wait":"10s","only":["gone","timeout"]}`, "10s"},
	{"fixed:2:10s,only=timeout", retry.Fixed(2, 10*time.Second).Only("timeout"),
		`{"policy":"fixed","retries":2,"wait":"10s","only":["timeout"]}`, "error not retriable"},
	{"fixed:2:10s,except=gone", retry.Fixed(2, 10*time.Second).Except(gone),
		`{"policy":"fixed","retries":2,"wait":"10s","except":["gone"]}`, "error not retriable"},
	{"fixed:2:10s,jitter=0.5", retry.Fixed(2, 10*time.Second).Jitter(0.5),
		`{"policy":"fixed","retries":2,"wait":"10s","jitter":0.5}`, "7s500ms"},
	{"fixed:2:10s,max=3s", retry.Fixed(2, 10*time.Second).MaxDelay(3 * time.Second),
		`{"policy":"fixed","retries":2,"wait":"10s","max":"3s"}`, "3s"},
	{"fixed:2:1h,deadline=30m", retry.Fixed(2, time.Hour).Deadline(30 * time.Minute),
		`{"policy":"fixed","retries":2,"wait":"1h","deadline":"30m"}`, "policy gave no date"},
	{"forever:30s,faulty=1", retry.Forever(30 * time.Second).Faulty(1),
		`{"policy":"forever","wait":"30s","faulty":1}`, "30s faulty"},
	{"", retry.ByError(retry.On("timeout", retry.None()), retry.On(gone, retry.Forever(time.Minute)), retry.Otherwise(retry.Default())),
		`{"policy":"by_error","cases":[{"class":"timeout","then":{"policy":"none"}},{"class":"gone","then":{"policy":"forever","wait":"1m"}}],` +
			`"else":{"policy":"exponential","retries":10,"first":"1m"}}`, "1m"},
	{"", retry.ByError(retry.On("timeout", retry.Default())),
		`{"policy":"by_error","cases":[{"class":"timeout","then":{"policy":"exponential","retries":10,"first":"1m"}}]}`, "error not retriable"},
}

// TestAPolicyIsTheSameWhicheverWayItCame says each policy in each way that
// there is, on both stores: it is stored once, and does the same.
func TestAPolicyIsTheSameWhicheverWayItCame(t *testing.T) {
	stores := map[string]func(t *testing.T) (s storetest.Store, url string, count func(sql string) int){
		"sqlite": func(t *testing.T) (storetest.Store, string, func(string) int) {
			file := filepath.Join(t.TempDir(), "jobs.db")
			s, err := sqlite.Open(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s, file, func(sql string) int { return countSQLite(t, file, strings.ReplaceAll(sql, "stint.", "stint_")) }
		},
		"postgres": func(t *testing.T) (storetest.Store, string, func(string) int) {
			url := pgtest.New(t)
			s, err := postgres.Open(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			return s, url, func(sql string) int { return countPostgres(t, url, sql) }
		},
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, url, count := open(t)
			w := storetest.NewWorker(t, s)
			join(t, s, w)
			for i, c := range policies {
				kind := fmt.Sprint("kind ", i)
				ways := waysToSay(t, s, url, kind, c.text, c.policy, c.json)
				for _, e := range w.ClaimAll() {
					way := ways[e.ID]
					if delete(ways, e.ID); e.Retry != c.policy {
						t.Errorf("%s, by %s: it is %v", c.json, way, e.Retry)
					}
					if got := firstFailure(e); got != c.want {
						t.Errorf("%s, by %s: after a failure %s, want %s", c.json, way, got, c.want)
					}
				}
				if len(ways) > 0 {
					t.Errorf("%s: nothing came of %v", c.json, ways)
				}
				// The default is not stored at all, others once. Only what is
				// said in SQL and in a form of its own stands with its job.
				want := 1
				if c.policy == retry.Default() {
					want = 0
				}
				if got := count(`select count(distinct policy) from stint.entries where kind = '` + kind + `'`); got != want {
					t.Errorf("%s: the jobs refer to %d policies, want %d", c.json, got, want)
				}
			}
			distinct := map[retry.Policy]bool{}
			for _, c := range policies {
				distinct[c.policy] = c.policy != retry.Default()
			}
			want := 0
			for _, stored := range distinct {
				if stored {
					want++
				}
			}
			if got := count(`select count(*) from stint.policies`); got != want {
				t.Errorf("%d policies are stored, want %d", got, want)
			}
		})
	}
}

// waysToSay enqueues a job with a policy in every way that there is, and tells
// by which each came.
func waysToSay(t *testing.T, s storetest.Store, url, name, text string, p retry.Policy, canonical string) map[stint.ID]string {
	t.Helper()
	ways := map[stint.ID]string{}
	said := func(id stint.ID, err error) func(way string) {
		if err != nil {
			t.Fatal(err)
		}
		return func(way string) { ways[id] = way }
	}
	client := stint.NewClient(s)
	kind := stint.NewKind[struct{}](name, stint.Retry(p))
	said(client.Enqueue(t.Context(), stint.NewJob{Kind: name, Retry: p}))("a field in Go")
	said(stint.NewKind[struct{}](name).Enqueue(t.Context(), client, struct{}{}, stint.Retry(p)))("an option in Go")
	said(kind.Enqueue(t.Context(), client, struct{}{}))("the kind in Go")
	var decoded retry.Policy
	if err := json.Unmarshal([]byte(canonical), &decoded); err != nil {
		t.Fatal(err)
	}
	said(client.Enqueue(t.Context(), stint.NewJob{Kind: name, Retry: decoded}))("JSON in Go")
	if encoded, err := json.Marshal(p); err != nil || string(encoded) != canonical {
		t.Errorf("as JSON it is %s, error %v, want %s", encoded, err, canonical)
	}

	command := func(args ...string) (stint.ID, error) {
		out, errs, code := session(t, false, append([]string{"enqueue", name, "--db", url}, args...)...)
		id, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
		if code != exitOK || err != nil {
			return 0, fmt.Errorf("exit code %d, %q, %s", code, out, errs)
		}
		return stint.ID(id), nil
	}
	said(command("--force", "--retry", canonical))("JSON on the command line")
	if text != "" {
		said(command("--force", "--retry", text))("text on the command line")
	}
	declare(t, s, kind.Declaration())
	said(command())("the kind on the command line")

	if !(databaseFlags{url: url}).isPostgres() {
		return ways
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	sql := func(query string, args ...any) (id stint.ID, err error) {
		return id, conn.QueryRow(t.Context(), query, args...).Scan(&id)
	}
	said(sql(`select stint.enqueue($1, retry => $2)`, name, canonical))("JSON in SQL")
	said(sql(`select stint.enqueue($1)`, name))("the kind in SQL")
	if text != "" {
		said(sql(`select stint.enqueue($1, retry => $2)`, name, text))("text in SQL")
	}
	return ways
}

// firstFailure says what follows when a job fails for the first time.
func firstFailure(e store.Entry) string {
	x := store.Conclude(&e, store.Result{Outcome: stint.OutcomeFailed, Err: fmt.Errorf("no: %w", errGone)}, e.Due, 0.5)
	switch {
	case x.Final:
		return x.Reason
	case x.Next.Func != "":
		return x.Next.Func + " decides"
	case x.Next.Faulty:
		return retry.FormatDuration(x.Next.Delay) + " faulty"
	}
	return retry.FormatDuration(x.Next.Delay)
}

func join(t *testing.T, s store.Roster, w *storetest.Worker) {
	t.Helper()
	if err := s.Join(t.Context(), w.Info, nil); err != nil {
		t.Fatal(err)
	}
}

// declare has an engine come and declare a kind.
func declare(t *testing.T, s storetest.Store, d stint.KindInfo) {
	t.Helper()
	w := storetest.NewWorker(t, s, d.Name)
	if err := s.Join(t.Context(), w.Info, []stint.KindInfo{d}); err != nil {
		t.Fatal(err)
	}
	w.Leave()
}

func countPostgres(t *testing.T, url, sql string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func countSQLite(t *testing.T, file, sql string) int {
	t.Helper()
	db, err := sqlite3.Open("file:" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	q, _, err := db.Prepare(sql)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	q.Step()
	if q.Err() != nil {
		t.Fatal(q.Err())
	}
	return q.ColumnInt(0)
}

func TestAFailureIsShownWhole(t *testing.T) {
	var out strings.Builder
	a := &app{out: &out}
	a.showJob(view.Job{JobInfo: &stint.JobInfo{
		ID: 7, Kind: "print", State: stint.Failed, Reason: "error not retriable", Retry: "none", Attempts: []stint.Attempt{{
			Attempt: 1, Outcome: stint.OutcomeFailed, Final: true, Reason: "error not retriable", Recoverable: new(false),
			Error: &stint.Failure{
				Class: "panic", Classes: []string{"panic", "no_paper"}, Message: "panic: no paper", Note: "odd",
				Stack: "goroutine 1 [running]:\nmain.go:1",
			},
		}},
	}}, view.Crew{}, time.Now())
	for _, want := range []string{
		"job 7 failed: error not retriable\n", "attempt 1 failed: error not retriable\n", "  error        panic: no paper\n",
		"  class        panic, no_paper\n", "  note         odd\n", "  recoverable  no\n", "  goroutine 1 [running]:\n  main.go:1\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not show %q:\n%s", want, out.String())
		}
	}
}
