// Package takeover tests stint import river with the real River.
package takeover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

var program string // the command stint

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "takeover")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "stint")
	if out, err := exec.Command("go", "build", "-C", "../../..", "-o", program, "./cmd/stint").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v: %s", err, out))
	}
	code := pgtest.Runner{M: m}.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// args are those of a job; each job of a test has another number.
type args struct {
	N    int    `json:"n"`
	Text string `json:"text"`
}

func (args) Kind() string { return "numbered" }

// other are those of jobs that nobody works in River.
type other args

func (other) Kind() string { return "other" }

// installation is a database of River's.
type installation struct {
	t    *testing.T
	url  string
	pool *pgxpool.Pool

	alone bool // River's workers do nothing beside working jobs: they move none from one state to another

	mu     sync.Mutex
	worked map[int]int // how often each number was worked by River
	block  chan struct{}
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	i := &installation{t: t, url: pgtest.New(t), worked: map[int]int{}, block: make(chan struct{})}
	i.pool = connect(t, i.url)
	i.migrate(rivermigrate.DirectionUp, nil)
	return i
}

func connect(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func (i *installation) migrate(d rivermigrate.Direction, o *rivermigrate.MigrateOpts) {
	i.t.Helper()
	migrator, err := rivermigrate.New(riverpgxv5.New(i.pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_, err = migrator.Migrate(i.t.Context(), d, o)
	}
	if err != nil {
		i.t.Fatal(err)
	}
}

// client is one that works queues, with so many workers each.
func (i *installation) client(queues map[string]river.QueueConfig) *river.Client[pgx.Tx] {
	i.t.Helper()
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[args]) error {
		switch job.Args.Text {
		case "fails":
			return errors.New("as it was told")
		case "cancels":
			return river.JobCancel(errors.New("as it was told"))
		case "runs":
			select {
			case <-i.block:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.worked[job.Args.N]++
		return nil
	}))
	c, err := river.NewClient(riverpgxv5.New(i.pool), &river.Config{
		Queues: queues, Workers: workers, Logger: slog.New(slog.DiscardHandler), FetchCooldown: 20 * time.Millisecond, FetchPollInterval: 50 * time.Millisecond,
		JobTimeout: -1, SkipUnknownJobCheck: true, LeaderElectionDisabled: i.alone,
	})
	if err != nil {
		i.t.Fatal(err)
	}
	return c
}

// work starts a client, and returns what stops it.
func (i *installation) work(workers int, queues ...string) (stop func()) {
	i.t.Helper()
	config := map[string]river.QueueConfig{}
	for _, queue := range queues {
		config[queue] = river.QueueConfig{MaxWorkers: workers}
	}
	c := i.client(config)
	if err := c.Start(context.WithoutCancel(i.t.Context())); err != nil {
		i.t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		limit, end := context.WithTimeout(context.Background(), time.Minute)
		defer end()
		if err := c.Stop(limit); err != nil {
			i.t.Error(err)
		}
	})
}

func (i *installation) insert(params []river.InsertManyParams) {
	i.t.Helper()
	c := i.client(nil)
	for len(params) > 0 {
		n := min(len(params), 5000)
		if _, err := c.InsertManyFast(i.t.Context(), params[:n]); err != nil {
			i.t.Fatal(err)
		}
		params = params[n:]
	}
}

// fill makes n jobs in all of River's states, by River itself, and returns what
// ends the jobs that run. Those that are available are in the queues default, mail and bulk.
func (i *installation) fill(n int) (release func()) {
	i.t.Helper()
	number := 0
	next := func(text string) args { number++; return args{number, text} }

	// Those that have run: in the queue past they complete, fail, are discarded and cancel themselves.
	var params []river.InsertManyParams
	past := func(text string, attempts int) {
		params = append(params, river.InsertManyParams{Args: next(text), InsertOpts: &river.InsertOpts{Queue: "past", MaxAttempts: attempts, Tags: []string{"tried"}}})
	}
	for range n / 200 {
		past("ok", 25)
		past("fails", 7)
		past("fails", 1)
		past("cancels", 25)
	}
	i.insert(params)
	stop := i.work(100, "past")
	// A first retry is due after a second, and those that fail wait for their second by then.
	i.await("select count(*) from river_job where state in ('available', 'running', 'scheduled')", 0)
	stop()

	params = nil
	for k := len(i.worked); number < n-10; k++ {
		o := &river.InsertOpts{Queue: []string{"default", "mail", "bulk"}[k%3], Priority: 1 + k%4}
		var job river.JobArgs = next("waits")
		switch k % 10 {
		case 0, 1:
			o.ScheduledAt = time.Now().Add(time.Duration(1+k%48) * time.Hour)
		case 2:
			o.Pending = true
		case 3:
			o.Metadata, o.Tags = fmt.Appendf(nil, `{"customer": %d, "nested": {"a": [1, null]}}`, k), []string{"red", "dark-blue"}
		case 4:
			o.UniqueOpts = river.UniqueOpts{ByArgs: true}
		case 5:
			job = other(job.(args))
		case 6:
			o.MaxAttempts = 3
		}
		params = append(params, river.InsertManyParams{Args: job, InsertOpts: o})
	}
	i.insert(params)

	c := i.client(nil)
	for range 5 {
		one, err := c.Insert(i.t.Context(), next("waits"), &river.InsertOpts{Queue: "cancelled"})
		if err == nil {
			_, err = c.JobCancel(i.t.Context(), one.Job.ID)
		}
		if err != nil {
			i.t.Fatal(err)
		}
	}
	params = nil
	for range 5 {
		params = append(params, river.InsertManyParams{Args: next("runs"), InsertOpts: &river.InsertOpts{Queue: "now"}})
	}
	i.insert(params)
	stop = i.work(5, "now")
	i.await("select 5 - count(*) from river_job where state = 'running'", 0)
	for _, state := range rivertype.JobStates() {
		if i.count("select count(*) from river_job where state::text = $1", string(state)) == 0 {
			i.t.Fatalf("no job of River is %s", state)
		}
	}
	release = sync.OnceFunc(func() { close(i.block); stop() })
	i.t.Cleanup(release)
	return release
}

func (i *installation) count(query string, params ...any) (n int) {
	i.t.Helper()
	if err := i.pool.QueryRow(i.t.Context(), query, params...).Scan(&n); err != nil {
		i.t.Fatal(err)
	}
	return n
}

func (i *installation) await(query string, want int) {
	i.t.Helper()
	for limit := time.Now().Add(time.Minute); i.count(query) != want; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			i.t.Fatalf("after a minute still %d: %s", i.count(query), query)
		}
	}
}
