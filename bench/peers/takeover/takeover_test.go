package takeover

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/takeover"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
)

// jobs is how many River has.
func jobs() int {
	if testing.Short() {
		return 5000
	}
	return 100_000
}

// world is River and stint, in one database or in two.
type world struct {
	*installation
	url   string // stint's
	flags []string
}

func newWorld(t *testing.T, apart bool) *world {
	w := &world{installation: newInstallation(t)}
	w.url = w.installation.url
	if apart {
		w.flags = []string{"--from", w.url}
		w.url = newInstallation(t).url // its River is empty
	}
	w.flags = append(w.flags, "--db", w.url)
	store, err := postgres.Open(t.Context(), w.url, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
	return w
}

func (w *world) command(ctx context.Context, flags ...string) *exec.Cmd {
	return exec.CommandContext(ctx, program, slices.Concat([]string{"import", "river", "--json"}, w.flags, flags)...)
}

// run imports, and wants an exit code.
func (w *world) run(code int, flags ...string) (r takeover.Report) {
	w.t.Helper()
	var out, errs bytes.Buffer
	cmd := w.command(w.t.Context(), flags...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if _ = cmd.Run(); cmd.ProcessState.ExitCode() != code {
		w.t.Fatalf("%v: %v: %s%s", cmd.Args, cmd.ProcessState, out.String(), errs.String())
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		w.t.Fatalf("%v: %s%s", err, out.String(), errs.String())
	}
	return r
}

// killed imports, and kills the process each time when it has begun to take jobs, until it is done or
// was killed eight times. Holding is how many of them left jobs held.
func (w *world) killed(random *rand.Rand, flags ...string) (kills, holding int) {
	w.t.Helper()
	const touched = `select count(*) from river_job where metadata ?| '{stint_job,stint_import}'`
	for kills < 8 {
		before := w.count(touched)
		cmd := w.command(w.t.Context(), flags...)
		if err := cmd.Start(); err != nil {
			w.t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for len(ended) == 0 && w.count(touched) == before {
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		_ = cmd.Process.Kill() // it may have ended
		if err := <-ended; err == nil {
			break
		} else if cmd.ProcessState.Exited() {
			w.t.Fatal(err)
		}
		kills++
		holding += min(1, w.count(`select count(*) from river_job where metadata ? 'stint_import'`))
	}
	// What a killed process had locked is passed over until the server notices.
	w.await(`select count(*) from pg_stat_activity where application_name = '' and state <> 'idle' and pid <> pg_backend_pid() and query like '%stint%'`, 0)
	return kills, holding
}

// job is one of River's as it was inserted, and as it is now; or one of stint's.
type job struct {
	ID, N                    int
	State, Queue, Kind       string
	Args, Metadata           string
	Priority                 int
	Tags                     []string
	Attempt, Most            int
	Due                      time.Time
	Source, Retry, Imported  string
	CancelledBefore, Pending bool
}

func (w *world) riverJobs() map[int]job {
	return collect(w.t, w.installation.url, `
		select id, (args ->> 'n')::int, state::text, queue, kind, args::text, metadata::text, priority, tags, attempt, max_attempts, scheduled_at,
			'', '', coalesce(metadata ->> 'stint_job', ''), false, false from river_job`)
}

func (w *world) stintJobs() map[int]job {
	return collect(w.t, w.url, `
		select id, (args ->> 'n')::int, state, queue, kind, args::text, metadata::text, priority, coalesce(tags, '{}'), attempt, 0, due,
			coalesce(source, ''), coalesce(retry::text, ''), '', false, false from stint.jobs`)
}

// collect reads jobs by their numbers. Two of one number are a failure.
func collect(t *testing.T, url, query string) map[int]job {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[job])
	if err != nil {
		t.Fatal(err)
	}
	of := map[int]job{}
	for _, j := range all {
		if before, there := of[j.N]; there {
			t.Errorf("the jobs %d and %d have both the number %d", before.ID, j.ID, j.N)
		}
		of[j.N] = j
	}
	return of
}

// same compares a job of stint with what it was in River.
func same(t *testing.T, was, is job) {
	t.Helper()
	state := map[string]string{"available": "available", "scheduled": "scheduled", "retryable": "scheduled", "pending": "available"}[was.State]
	if was.State == "retryable" && is.State == "available" && was.Due.Before(time.Now()) {
		state = "available" // its time has come
	}
	var policy retry.Policy
	if err := json.Unmarshal([]byte(is.Retry), &policy); err != nil {
		t.Fatalf("the policy %q: %v", is.Retry, err)
	}
	retries, bounded := policy.Retries()
	switch {
	case is.State != state, is.State == "scheduled" && !is.Due.Equal(was.Due):
		t.Errorf("%s in River until %v is %s until %v", was.State, was.Due, is.State, is.Due)
	case is.Queue != was.Queue, is.Kind != was.Kind, is.Args != was.Args, is.Priority != was.Priority-1, is.Source != "river", is.Attempt != 1, !bounded, retries != was.Most-was.Attempt-1:
		t.Errorf("%+v in River is %+v", was, is)
	case !slices.Equal(was.Tags, is.Tags):
		t.Errorf("tags %q in River are %q", was.Tags, is.Tags)
	}
	var before, after map[string]any
	if err := errors.Join(json.Unmarshal([]byte(was.Metadata), &before), json.Unmarshal([]byte(is.Metadata), &after)); err != nil {
		t.Fatal(err)
	}
	origin, _ := after["river"].(map[string]any)
	if delete(after, "river"); !reflect.DeepEqual(before, after) || origin["id"] != float64(was.ID) || origin["attempt"] != float64(was.Attempt) || origin["max_attempts"] != float64(was.Most) {
		t.Errorf("the metadata %s of job %d in River are %s", was.Metadata, was.ID, is.Metadata)
	}
}

var waits = []string{"available", "scheduled", "retryable"}

func count(all map[int]job, states ...string) (n int64) {
	for _, j := range all {
		if slices.Contains(states, j.State) {
			n++
		}
	}
	return n
}

func each(t *testing.T, f func(t *testing.T, apart bool)) {
	for name, apart := range map[string]bool{"in one database": false, "between two databases": true} {
		t.Run(name, func(t *testing.T) { f(t, apart) })
	}
}

func TestEachWaitingJobOfRiverIsImportedAsItIsThoughTheImportIsKilled(t *testing.T) {
	each(t, func(t *testing.T, apart bool) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		w := newWorld(t, apart)
		w.alone = true
		release := w.fill(jobs())
		was := w.riverJobs()
		if len(was) != jobs() {
			t.Fatalf("River has %d jobs, want %d", len(was), jobs())
		}

		plan := w.run(0, "--dry-run")
		if want := count(was, waits...); plan.Jobs != want || plan.Refused != 0 || plan.Failed == 0 || plan.Unique == 0 {
			t.Errorf("the plan is %+v, want %d jobs", plan, want)
		}
		if now := w.riverJobs(); !reflect.DeepEqual(now, was) || len(w.stintJobs()) > 0 {
			t.Error("the plan changed something")
		}

		kills, holding := w.killed(rand.New(rand.NewPCG(seed, 0)), "--batch", "200")
		began := time.Now()
		last := w.run(0)
		t.Logf("%d kills, %d of them with jobs held; the last import took %d jobs in %v and knew %d", kills, holding, last.Jobs, time.Since(began), last.Known)
		if kills == 0 || apart && holding == 0 {
			t.Errorf("%d kills, %d of them with jobs held", kills, holding)
		}
		if again := w.run(0); again.Jobs != 0 || again.Known != 0 {
			t.Errorf("imported again, it took %+v", again)
		} else if left := again.Left; !slices.ContainsFunc(left, func(c takeover.Count) bool {
			return c == takeover.Count{Queue: "now", Kind: "numbered", State: "running", Jobs: 5}
		}) {
			t.Errorf("the jobs that run are not among %v", left)
		}

		is, imported := w.riverJobs(), w.stintJobs()
		for n, before := range was {
			now, copied := is[n], imported[n]
			if !slices.Contains(waits, before.State) {
				if copied.ID != 0 || !reflect.DeepEqual(before, now) {
					t.Errorf("the job %+v was touched: %+v, %+v", before, now, copied)
				}
				continue
			}
			if copied.ID == 0 {
				t.Errorf("the job %+v is lost", before)
				continue
			}
			if now.State != "cancelled" || now.Imported != fmt.Sprint(copied.ID) {
				t.Errorf("the job %d of stint is %s in River, as the job %q", copied.ID, now.State, now.Imported)
			}
			same(t, before, copied)
			if t.Failed() {
				return
			}
		}
		if want := count(was, waits...); int64(len(imported)) != want {
			t.Errorf("stint has %d jobs, want %d", len(imported), want)
		}

		// Pending ones come when they are asked for, and rows are deleted when that is.
		pending := count(was, "pending")
		if r := w.run(0, "--pending", "--delete"); r.Jobs != pending {
			t.Errorf("%d of %d pending jobs were imported", r.Jobs, pending)
		}
		if n := w.count("select count(*) from river_job where state = 'pending'"); n != 0 || len(w.riverJobs()) != jobs()-int(pending) {
			t.Errorf("%d pending jobs are left, of %d", n, len(w.riverJobs()))
		}
		for n, copied := range w.stintJobs() {
			if was[n].State == "pending" {
				same(t, was[n], copied)
			}
		}
		release()
		if n := w.count("select count(*) from river_job where state = 'completed' and queue = 'now'"); n != 5 {
			t.Errorf("of the running jobs %d completed in River, want 5", n)
		}
	})
}

func TestEachJobIsWorkedOnceByRiverOrByStintWhileBothAreAtWorkAndImportsAreKilled(t *testing.T) {
	each(t, func(t *testing.T, apart bool) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		w := newWorld(t, apart)
		var params []river.InsertManyParams
		for n := range jobs() {
			params = append(params, river.InsertManyParams{Args: args{n, "waits"}, InsertOpts: &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: n%5 == 0}}})
		}
		w.insert(params)

		stopRiver := w.work(50, "default")
		stopStint, byStint := w.engine()
		kills, holding := w.killed(rand.New(rand.NewPCG(seed, 0)), "--batch", "100")
		var others sync.WaitGroup // imports at the same time
		for range 2 {
			others.Go(func() { w.run(0, "--batch", "100") })
		}
		others.Wait()
		w.await("select count(*) from river_job where state <> 'completed' and not metadata ? 'stint_job'", 0)
		stopRiver()
		stopStint()

		var river, stint int
		for n := range jobs() {
			river, stint = river+w.worked[n], stint+byStint[n]
			if w.worked[n]+byStint[n] != 1 {
				t.Errorf("the job %d was worked %d times by River and %d times by stint", n, w.worked[n], byStint[n])
			}
		}
		t.Logf("%d kills, %d of them with jobs held; River worked %d jobs and stint %d", kills, holding, river, stint)
		if kills == 0 || river == 0 || stint == 0 {
			t.Error("they were not at work at the same time")
		}
	})
}

// engine works all jobs of stint. Stop waits until there are none, and after it the counts are fixed.
func (w *world) engine() (stop func(), worked map[int]int) {
	w.t.Helper()
	store, err := postgres.Open(w.t.Context(), w.url, postgres.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(store.Close)
	var mu sync.Mutex
	worked = map[int]int{}
	mux := stint.NewMux()
	stint.Handle(mux, stint.NewKind[args]("numbered"), func(_ context.Context, _ *stint.Job, in args) error {
		mu.Lock()
		defer mu.Unlock()
		worked[in.N]++
		return nil
	})
	e, err := engine.New(store, mux, engine.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		counts, err := store.Counts(ctx)
		for ; err == nil && counts["available"]+counts["running"] > 0; counts, err = store.Counts(ctx) {
			time.Sleep(20 * time.Millisecond)
		}
		cancel()
		if err := cmp.Or(err, <-ended); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return stop, worked
}

func TestAJobThatStintCannotAcceptStaysInRiverAndTheOthersGoOn(t *testing.T) {
	each(t, func(t *testing.T, apart bool) {
		w := newWorld(t, apart)
		for n, text := range []string{"fits", strings.Repeat("x", 1<<20), "fits", "revived"} {
			w.insert([]river.InsertManyParams{{Args: args{n, text}}})
		}
		if _, err := w.pool.Exec(t.Context(), `
			update river_job set metadata = '{"stint_job": 7}' where args ->> 'text' = 'revived'`); err != nil {
			t.Fatal(err)
		}
		for _, flags := range [][]string{{"--dry-run"}, nil} {
			r := w.run(1, flags...)
			if r.Jobs != 2 || r.Refused != 2 || len(r.Refusals) != 2 ||
				r.Refusals[0].Why != "args: 1048596 bytes are more than the limit of 1048576" || !strings.Contains(r.Refusals[1].Why, "imported before") {
				t.Errorf("%v: the report is %+v", flags, r)
			}
		}
		if n := w.count("select count(*) from river_job where state = 'available'"); n != 2 {
			t.Errorf("%d jobs wait in River, want those 2 that do not fit", n)
		}
		if n := len(w.stintJobs()); n != 2 {
			t.Errorf("%d jobs were imported, want 2", n)
		}
	})
}

func TestWhatAnImportHeldTooLongAgoIsLeftToPeople(t *testing.T) {
	w := newWorld(t, true)
	w.insert([]river.InsertManyParams{{Args: args{1, "waits"}}, {Args: args{2, "waits"}}})
	if _, err := w.pool.Exec(t.Context(), `
		update river_job set state = 'pending', metadata = jsonb_build_object('stint_import',
			jsonb_build_object('state', state, 'at', now() - case args ->> 'n' when '1' then interval '1 hour' else '1 day' end))`); err != nil {
		t.Fatal(err)
	}
	if r := w.run(1); r.Jobs != 1 || r.Refused != 1 || !strings.Contains(r.Refusals[0].Why, "interrupted more than 23 hours ago") {
		t.Errorf("the report is %+v", r)
	}
	if all := w.stintJobs(); len(all) != 1 || all[1].ID == 0 {
		t.Errorf("imported were %v", all)
	}
}

func TestOnlyTheJobsThatAreChosenAreImportedUnderTheNamesThatAreGiven(t *testing.T) {
	w := newWorld(t, false)
	w.insert([]river.InsertManyParams{
		{Args: args{1, "chosen"}, InsertOpts: &river.InsertOpts{Queue: "mail"}}, {Args: args{2, "in another queue"}},
		{Args: other{3, "of another kind"}, InsertOpts: &river.InsertOpts{Queue: "mail"}},
	})
	if err := w.client(nil).QueuePause(t.Context(), "mail", nil); err != nil && !strings.Contains(err.Error(), "not found") {
		t.Fatal(err)
	}
	if _, err := w.pool.Exec(t.Context(), "insert into river_queue (name, paused_at) values ('mail', now()) on conflict (name) do update set paused_at = now()"); err != nil {
		t.Fatal(err)
	}
	r := w.run(0, "--queue", "mail,bulk", "--kind", "numbered", "--rename", "numbered=renamed", "--river-schema", "public")
	if r.Jobs != 1 || len(r.Left) != 0 || !slices.Equal(r.Paused, []string{"mail"}) {
		t.Errorf("the report is %+v", r)
	}
	if all := w.stintJobs(); len(all) != 1 || all[1].Kind != "renamed" {
		t.Errorf("imported were %v", all)
	}
}

func TestARiverThatIsNotThereOrTooOldIsNamed(t *testing.T) {
	w := newWorld(t, false)
	complaint := func(want string, flags ...string) {
		t.Helper()
		out, err := w.command(t.Context(), flags...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %s, want %q", flags, out, want)
		}
	}
	complaint(`there is no table "elsewhere"."river_job"`, "--river-schema", "elsewhere")
	w.migrate(rivermigrate.DirectionDown, &rivermigrate.MigrateOpts{TargetVersion: 5})
	complaint("the table river_job is of before River's migration 6")
	w.migrate(rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{TargetVersion: 6})
	w.run(0)
	w.migrate(rivermigrate.DirectionDown, &rivermigrate.MigrateOpts{TargetVersion: -1})
	complaint("there is no table river_job")
}

var errBroken = errors.New("the connection broke")

func TestJobsThatAnInterruptedImportHoldsAreRunByNobodyInRiverAndImportedOnce(t *testing.T) {
	for name, stored := range map[string]bool{"before they are stored": false, "after they were stored": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, true)
			store, err := postgres.Open(t.Context(), w.url, postgres.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			w.insert([]river.InsertManyParams{
				{Args: args{1, "waits"}}, {Args: args{2, "waits"}}, {Args: args{3, "waits"}, InsertOpts: &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)}},
			})
			since := "select count(distinct metadata -> 'stint_import' ->> 'at') * 10 + count(*) from river_job where state = 'pending' and metadata ? 'stint_import'"
			r := &takeover.River{Pool: w.pool, Apart: true}
			for range 2 { // the second goes on with what the first held, and is interrupted too
				client := stint.NewClient(store).Use(func(next stint.EnqueueFunc) stint.EnqueueFunc {
					return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) (receipts []stint.Receipt, err error) {
						if n := w.count(since); n != 13 {
							t.Errorf("while they are enqueued %d are held, want 13: three since one time", n)
						}
						if stored {
							_, err = next(ctx, tx, jobs)
						}
						return nil, cmp.Or(err, errBroken)
					}
				})
				if report, err := r.Import(t.Context(), client); !errors.Is(err, errBroken) || report.Jobs != 0 {
					t.Errorf("the import took %d jobs, and its error is %v", report.Jobs, err)
				}
			}
			stop := w.work(10, "default")
			time.Sleep(time.Second) // River's workers look many times
			stop()
			if len(w.worked) > 0 {
				t.Errorf("River worked %v", w.worked)
			}
			// A person decides about one of them meanwhile.
			if _, err := w.pool.Exec(t.Context(), "update river_job set state = 'completed', finalized_at = now() where args ->> 'n' = '2'"); err != nil {
				t.Fatal(err)
			}

			plan := w.run(0, "--dry-run")
			want := []takeover.Count{{Queue: "default", Kind: "numbered", State: "available", Jobs: 1}, {Queue: "default", Kind: "numbered", State: "scheduled", Jobs: 1}}
			if !reflect.DeepEqual(plan.Taken, want) {
				t.Errorf("the plan is %+v", plan)
			}
			last := w.run(0)
			if stored && last.Known != 2 || !stored && last.Jobs != 2 || last.Jobs+last.Known != 2 {
				t.Errorf("the last import reports %+v", last)
			}
			all := w.stintJobs()
			if all[1].State != "available" || all[3].State != "scheduled" || stored != (all[2].ID > 0) {
				t.Errorf("stint has %+v", all)
			}
			if rows := w.riverJobs(); rows[1].State != "cancelled" || rows[2].State != "completed" || rows[3].Imported != fmt.Sprint(all[3].ID) {
				t.Errorf("River has %+v", rows)
			}
		})
	}
}

func TestInOneDatabaseAnInterruptedBatchLeavesEverythingAsItWas(t *testing.T) {
	w := newWorld(t, false)
	store, err := postgres.Open(t.Context(), w.url, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	w.insert([]river.InsertManyParams{{Args: args{1, "waits"}}, {Args: args{2, "waits"}}})
	was := w.riverJobs()
	client := stint.NewClient(store).Use(func(next stint.EnqueueFunc) stint.EnqueueFunc {
		return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
			_, err := next(ctx, tx, jobs)
			return nil, cmp.Or(err, errBroken)
		}
	})
	if _, err := (&takeover.River{Pool: w.pool}).Import(t.Context(), client); !errors.Is(err, errBroken) {
		t.Errorf("the error is %v", err)
	}
	if now := w.riverJobs(); !reflect.DeepEqual(now, was) || len(w.stintJobs()) > 0 {
		t.Errorf("River has %+v and stint %+v", now, w.stintJobs())
	}
}

func TestWhatAPersonEndsWhileItIsEnqueuedStaysAsItEnded(t *testing.T) {
	w := newWorld(t, true)
	store, err := postgres.Open(t.Context(), w.url, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	w.insert([]river.InsertManyParams{{Args: args{1, "waits"}}})
	client := stint.NewClient(store).Use(func(next stint.EnqueueFunc) stint.EnqueueFunc {
		return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
			if _, err := w.pool.Exec(ctx, "update river_job set state = 'completed', finalized_at = now()"); err != nil {
				return nil, err
			}
			return next(ctx, tx, jobs)
		}
	})
	if _, err := (&takeover.River{Pool: w.pool, Apart: true}).Import(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if rows := w.riverJobs(); rows[1].State != "completed" {
		t.Errorf("River has %+v", rows)
	}
}

func TestAUniqueJobWhoseNextStateIsTakenByAnotherIsImported(t *testing.T) {
	each(t, func(t *testing.T, apart bool) {
		w := newWorld(t, apart)
		w.alone = true
		for range 2 { // a retryable one does not hold the key of this job, and pending and cancelled ones do
			c := w.client(nil)
			if _, err := c.Insert(t.Context(), args{1, "fails"}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
				rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateScheduled, rivertype.JobStateCancelled,
			}}}); err != nil {
				t.Fatal(err)
			}
			if w.count("select count(*) from river_job") == 1 {
				stop := w.work(1, "default")
				w.await("select count(*) from river_job where state <> 'retryable'", 0)
				stop()
			}
		}
		if n := w.count("select count(*) from river_job where state in ('retryable', 'available')"); n != 2 {
			t.Fatalf("River has %d jobs, want 2", n)
		}
		if r := w.run(0, "--batch", "1"); r.Jobs != 2 || r.Unique != 2 || r.Failed != 1 {
			t.Errorf("the report is %+v", r)
		}
	})
}

func TestJobsOfRiverAreImportedIntoAFile(t *testing.T) {
	w := newWorld(t, true)
	file := filepath.Join(t.TempDir(), "stint.db")
	if out, err := exec.CommandContext(t.Context(), program, "migrate", "up", "--db", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.flags = []string{"--from", w.installation.url, "--db", file}
	w.insert([]river.InsertManyParams{{Args: args{1, "waits"}}, {Args: args{2, "waits"}}})
	for _, want := range []int64{2, 0} {
		if r := w.run(0); r.Jobs != want {
			t.Errorf("the report is %+v, want %d jobs", r, want)
		}
	}
	out, err := exec.CommandContext(t.Context(), program, "jobs", "list", "--db", file, "--json").Output()
	var listed []struct{ Kind, Source string }
	if err = cmp.Or(err, json.Unmarshal(out, &listed)); err != nil || len(listed) != 2 || listed[0].Kind != "numbered" || listed[0].Source != "river" {
		t.Errorf("the file has %s, %v", out, err)
	}
}
