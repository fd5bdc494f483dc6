//go:build unix

package chaos_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// borders are numbers at which others that are smaller than 64 bits end: half of
// 32 bits, all of them, and what a JSON reader keeps exactly that knows floats
// only.
var borders = []int64{1 << 31, 1 << 32, 1 << 53}

// A fleet works over each border: positions, which are ids of jobs too, numbers of
// claims, and those of changes.
func TestNumbersMayGrowAcrossEveryBorder(t *testing.T) {
	atLength(t)
	t.Parallel()
	onEach(t, func(t *testing.T, db string) {
		const n = 60 // jobs before a border, and at least as many behind it
		ground, fleet := open(t, db), chaos.NewFleet(t)
		dice := rand.New(rand.NewPCG(seed(t), 131))
		p := &chaos.Producer{Name: "producer", Ground: ground, History: fleet.History, Mixed: true, Rand: dice}
		shifts := 0
		work := func(jobs int) {
			t.Helper()
			shifts++
			var keepers []*chaos.Keeper
			for i := range 2 {
				keepers = append(keepers, fleet.Keep(chaos.Worker{Name: fmt.Sprintf("worker-%d-%d", shifts, i), DB: db, Slots: 5}))
			}
			if _, err := p.Run(t.Context(), jobs); err != nil {
				t.Fatal(err)
			}
			fleet.Drain(t.Context(), ground.Store, time.Minute)
			stopAll(keepers)
		}
		work(n)
		jobs := n
		for _, border := range borders {
			if err := ground.Advance(t.Context(), border-n); err != nil {
				t.Fatal(err)
			}
			work(2 * n)
			jobs += 2 * n
			if highest := listed(t, ground.Store, 7)[0]; int64(highest) <= border {
				t.Errorf("the last job is %d, and the border was %d", highest, border)
			}
		}
		all := listed(t, ground.Store, 7)
		if len(all) != jobs {
			t.Errorf("%d of %d jobs are listed", len(all), jobs)
		}
		report := fleet.Judge(t.Context(), ground)
		if report.Jobs != jobs {
			t.Errorf("%d of %d jobs are known", report.Jobs, jobs)
		}
		t.Logf("from %d to %d: %v", all[len(all)-1], all[0], report)
		summed(t, ground.Store, report.Runs)
		erased(t, ground.Store, jobs, 100)
	})
}

// The log is in the order of transaction numbers, which have 64 bits: what a server
// shows as 32 of them begins anew in each epoch.
func TestTransactionNumbersMayGrowAcrossEpochs(t *testing.T) {
	atLength(t)
	t.Parallel()
	resetwal, major := "", 0
	for _, one := range pgtest.Installations() {
		if path := filepath.Join(one.Bin, "pg_resetwal"); exec.Command(path, "--version").Run() == nil {
			resetwal, major = path, one.Major
			break
		}
	}
	if resetwal == "" {
		t.Skip("no PostgreSQL that was found has pg_resetwal: apt-get install postgresql")
	}
	server := pgtest.Start(t, pgtest.Options{Major: major})
	w := newWorld(t, server.New(t))
	for i, epoch := range []int{0, 1, 1 << 21} { // at last behind 2^53
		if epoch > 0 {
			server.Stop(pgtest.Fast)
			reset := exec.Command(resetwal, "-e", strconv.Itoa(epoch), server.DataDir())
			asOwner(t, reset, server.DataDir())
			if text, err := reset.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			server.Start()
			w.until("the server answers", `select true`)
		}
		// Some wait across the change, and some are claimed and wait for a retry.
		worker := w.Start(chaos.Worker{Name: fmt.Sprint("worker-", i), DB: w.url, Slots: 5})
		w.produce(t.Context(), 1, 200)
		w.Drain(t.Context(), w.store, time.Minute)
		if err := worker.Stop(); err != nil {
			t.Error(err)
		}
		w.enqueue(fmt.Sprint("across-", i), 0, 20, quick)
		if n := w.number(`select (pg_current_xact_id()::text::numeric / 4294967296)::bigint`); n != epoch {
			t.Errorf("the epoch is %d, want %d", n, epoch)
		}
	}
	worker := w.Start(chaos.Worker{Name: "last", DB: w.url, Slots: 5})
	w.Drain(t.Context(), w.store, time.Minute)
	if err := worker.Stop(); err != nil {
		t.Error(err)
	}
	w.apart()
}

// asOwner has a command run as whoever owns a file.
func asOwner(t *testing.T, cmd *exec.Cmd, file string) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if cmd.Dir = file; os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
}

// Nobody will live to see it, and whoever does is told.
func TestANumberThatRunsOutIsSaidAndWhatIsThereIsDone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db string) {
		ground, fleet := open(t, db), chaos.NewFleet(t)
		client := stint.NewClient(ground.Store)
		enqueue := func(args chaos.Args) error {
			intent := fleet.History.Intend(args.Key)
			id, err := chaos.Kind.Enqueue(t.Context(), client, args)
			if err != nil {
				intent.RolledBack()
				return err
			}
			intent.Committed(int64(id))
			return nil
		}
		if err := enqueue(chaos.Args{Key: "first"}); err != nil {
			t.Fatal(err)
		}
		if err := ground.Advance(t.Context(), math.MaxInt64-2); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if err := enqueue(chaos.Args{Key: fmt.Sprint("last-", i)}); err != nil {
				t.Fatal(err)
			}
		}
		err := enqueue(chaos.Args{Key: "one more"})
		if err == nil || !strings.Contains(err.Error(), "used up") || errors.Is(err, stint.ErrUnstorable) {
			t.Errorf("one more is %v", err)
		}
		worker := fleet.Start(chaos.Worker{Name: "worker", DB: db, Slots: 2})
		fleet.Drain(t.Context(), ground.Store, time.Minute)
		if err := worker.Stop(); err != nil {
			t.Error(err)
		}
		t.Log(fleet.Judge(t.Context(), ground))
	})
}

// listed are the ids of all jobs, read in small pages from the newest on. Each
// is found under its id, and JSON has it exactly.
func listed(t *testing.T, st chaos.Store, page int) (ids []stint.ID) {
	t.Helper()
	for before := stint.ID(0); ; before = ids[len(ids)-1] {
		jobs, err := st.Jobs(t.Context(), store.Filter{Before: before, Limit: page})
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range jobs {
			if len(ids) > 0 && job.ID >= ids[len(ids)-1] {
				t.Fatalf("job %d comes behind %d", job.ID, ids[len(ids)-1])
			}
			ids = append(ids, job.ID)
			text, err := json.Marshal(job)
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf(`"id":%d,`, job.ID); !bytes.Contains(text, []byte(want)) {
				t.Errorf("job %d is shown as %s", job.ID, text)
			}
			if one, err := st.Job(t.Context(), job.ID); err != nil || one.ID != job.ID || one.State != job.State {
				t.Errorf("job %d is found as %+v, %v", job.ID, one, err)
			}
		}
		if len(jobs) < page {
			return ids
		}
	}
}

// summed compares the sums over attempts with how many handlers ran.
func summed(t *testing.T, store chaos.Store, runs int) {
	t.Helper()
	stats, err := store.(report.StatsStore).Stats(t.Context(), report.StatsFilter{})
	if err != nil {
		t.Fatal(err)
	}
	attempts := 0
	for _, s := range stats {
		attempts += int(s.Attempts)
	}
	if attempts != runs {
		t.Errorf("%d attempts are summed up, and handlers ran %d times", attempts, runs)
	}
}

// erased has retention delete everything, some rows at a time.
func erased(t *testing.T, st chaos.Store, jobs, step int) {
	t.Helper()
	retainer := st.(store.Retainer)
	deleted := map[store.RetainPart]int{}
	for _, part := range store.RetainParts {
		for at := (store.RetainMark{}); ; {
			done, err := retainer.Retain(t.Context(), store.RetainStep{Part: part, From: at, Limit: step, Keep: store.Retention{KeepFor: store.KeepFor{All: time.Millisecond}}})
			if err != nil {
				t.Fatal(err)
			}
			deleted[part] += done.Deleted
			if at = done.Next; !done.More {
				break
			}
		}
	}
	if left := listed(t, st, 100); deleted[store.RetainJobs] != jobs || len(left) > 0 || deleted[store.RetainClaims] == 0 {
		t.Errorf("deleted were %v, and %d jobs are left", deleted, len(left))
	}
}
