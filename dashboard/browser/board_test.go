package browser_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

const (
	secret     = "a-secret-that-nobody-guesses"
	linkSecret = "a-key-that-nobody-guesses"
)

// board is a dashboard over a fresh store, and an admin who looks at it.
type board struct {
	*tab
	file   string
	store  *sqlite.Store
	client *stint.Client
	url    string
}

func newBoard(t *testing.T) *board {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jobs.db")
	db, err := sqlite.Open(t.Context(), file, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	handler, err := dashboard.New(db, dashboard.Config{
		Guard: guard.Config{Link: secret}, LinkKey: linkSecret,
		API: api.Config{Restricted: []string{"sh"}, Keys: keysOf(t), Bury: func(ctx context.Context, token store.EngineID, why string) (int, error) {
			return engine.Bury(ctx, db, token, why)
		}},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	b := &board{tab: open(t), file: file, store: db, client: stint.NewClient(db), url: server.URL}
	b.visit("/?token=" + secret)
	return b
}

// visit loads a page of the dashboard.
func (b *board) visit(path string) {
	b.Helper()
	b.tab.visit(b.url + path)
}

// says wants the page to say what came of something.
func (b *board) says(want string) {
	b.Helper()
	if got := eval[string](b.tab, `document.querySelector(".flash")?.textContent ?? ""`); got != want {
		b.Fatalf("the page says %q, want %q", got, want)
	}
}

// anHour is when what fails is tried again.
var anHour = retry.Fixed(3, time.Hour)

// work has an engine perform jobs until the test ends or the answer is called: those of the kind good succeed, of bad fail for good, of
// flaky fail and are tried again in an hour, of asking ask a question, and of slow take as long as the engine lives. Each has a second name, as people would give it.
func (b *board) work() (stop func()) {
	b.Helper()
	mux := stint.NewMux()
	kind := func(name, inPictures string, do stint.Handler) {
		for _, name := range []string{name, inPictures} {
			mux.Add(stint.KindInfo{Name: name, Queue: "default", Retry: anHour}, do)
		}
	}
	kind("good", "send_invoice", func(_ context.Context, job *stint.Job) (json.RawMessage, error) {
		time.Sleep(time.Duration(job.ID%5) * 2 * time.Millisecond)
		return json.RawMessage(`{"sent":1}`), nil
	})
	kind("bad", "import_orders", func(context.Context, *stint.Job) (json.RawMessage, error) {
		return nil, stint.NoRetry(errors.New("no such customer"))
	})
	kind("flaky", "sync_customer", func(context.Context, *stint.Job) (json.RawMessage, error) { return nil, errors.New("no answer") })
	kind("asking", "approve_payment", func(ctx context.Context, _ *stint.Job) (json.RawMessage, error) {
		_, err := stint.Ask(ctx, "approve", "Pay 900 EUR to ACME?", 72*time.Hour, "pay", "refuse")
		return nil, err
	})
	kind("slow", "render_report", func(ctx context.Context, _ *stint.Job) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	worker, err := engine.New(b.store, mux, engine.Config{Instance: "worker-1", Version: "v1.0.0", Slots: 4, Grace: time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	b.Cleanup(stop)
	return stop
}

// enqueue stores a job of a kind.
func (b *board) enqueue(kind string, options ...stint.Option) stint.ID {
	b.Helper()
	id, err := b.client.Enqueue(b.Context(), stint.KindInfo{Name: kind, Retry: anHour}.Job(json.RawMessage(`{"n":1}`), options...))
	if err != nil {
		b.Fatal(err)
	}
	return id
}

// becomes waits until a job is in a state.
func (b *board) becomes(id stint.ID, state stint.State) *stint.JobInfo {
	b.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		j, err := b.store.Job(b.Context(), id)
		if err != nil {
			b.Fatal(err)
		}
		if j.State == state {
			return j
		}
		if time.Now().After(end) {
			b.Fatalf("job %d is %s, want %s", id, j.State, state)
		}
	}
}

// rest lets an engine do what is due and record what was cancelled without it: a
// job cannot be deleted before that.
func (b *board) rest(f store.Filter) {
	b.Helper()
	defer b.work()()
	db, err := sql.Open("sqlite3", "file:"+b.file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for range 1000 {
		jobs, err := b.store.Jobs(b.Context(), f)
		if err != nil {
			b.Fatal(err)
		}
		if !slices.ContainsFunc(jobs, func(j stint.JobInfo) bool {
			return j.State == stint.Available || j.State == stint.Running || j.State == stint.Cancelled && !b.recorded(db, j.ID)
		}) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Fatal("jobs that are due or were cancelled are never done")
}

// recorded reports whether an engine recorded the end of a job. Pages show one that
// was cancelled before an engine ran it as ended at once.
func (b *board) recorded(db *sql.DB, id stint.ID) (yes bool) {
	b.Helper()
	err := db.QueryRowContext(b.Context(), `select exists(select 1 from stint_executions where final = 1 and (job = ?1 or job is null and pos = ?1))`, int64(id)).Scan(&yes)
	if err != nil {
		b.Fatal(err)
	}
	return yes
}

// only is the single job that fits a filter.
func (b *board) only(f store.Filter) stint.JobInfo {
	b.Helper()
	jobs, err := b.store.Jobs(b.Context(), f)
	if err != nil || len(jobs) != 1 {
		b.Fatalf("%d jobs fit %+v (%v), want one", len(jobs), f, err)
	}
	return jobs[0]
}

// states counts jobs by their states.
func (b *board) states(f store.Filter) map[stint.State]int {
	b.Helper()
	jobs, err := b.store.Jobs(b.Context(), f)
	if err != nil {
		b.Fatal(err)
	}
	counts := map[stint.State]int{}
	for _, j := range jobs {
		counts[j.State]++
	}
	return counts
}

// schedule declares a schedule by name.
func (b *board) schedule(name, when string) {
	b.Helper()
	recurrence, err := cron.Parse(when)
	if err != nil {
		b.Fatal(err)
	}
	s := stint.Schedule{Name: name, Recurrence: recurrence, Zone: "Europe/Berlin", Job: stint.NewJob{Kind: "good"}}
	if err := b.client.Schedule(b.Context(), "ada", s); err != nil {
		b.Fatal(err)
	}
}

// engine is the only engine of the roster, once it is there.
func (b *board) engine() store.EngineInfo {
	b.Helper()
	for range 1000 {
		all, err := b.store.Engines(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if len(all) == 1 {
			return all[0]
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Fatal("no engine joins")
	panic("unreachable")
}

func (b *board) job(id stint.ID) string { return fmt.Sprintf("/jobs/%d", id) }
