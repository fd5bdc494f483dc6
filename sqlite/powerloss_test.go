package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/powerloss"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// Each seed is a file on which the power is cut again and again, at any write,
// sync, creation or deletion; STINT_POWERLOSS_SEEDS says how many there are, and
// STINT_POWERLOSS_SEED which one.
func TestAPowerCutLosesNothingThatWasAnsweredAndLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	if os.Getenv("STINT_POWERLOSS_SEED") != "" {
		t.Log(cutAndLook(t, uint64(setting(t, "STINT_POWERLOSS_SEED", 0))))
		return
	}
	seeds := []uint64{
		63, // finds it where the WAL has no name yet
		72, // found that the file was written to before it was said how to sync
	}
	for i := range setting(t, "STINT_POWERLOSS_SEEDS", 4) {
		seeds = append(seeds, uint64(i+1))
	}
	var sum outages
	for _, seed := range seeds {
		if sum.add(cutAndLook(t, seed)); t.Failed() {
			break
		}
	}
	t.Logf("%d seeds: %v", len(seeds), sum)
}

func setting(t *testing.T, name string, usual int) int {
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// outages is what cuts met.
type outages struct {
	cuts, openings, operations int // openings are cuts before anything was answered
	jobs, unknown, completed   int
}

func (o *outages) add(p outages) {
	o.cuts += p.cuts
	o.openings += p.openings
	o.operations += p.operations
	o.jobs += p.jobs
	o.unknown += p.unknown
	o.completed += p.completed
}

func (o outages) String() string {
	return fmt.Sprintf("%d cuts in %d operations, %d of them while the file was opened; %d jobs, %d of unknown fate, %d completed",
		o.cuts, o.operations, o.openings, o.jobs, o.unknown, o.completed)
}

// outage is a file whose power is cut, and what was answered about it.
type outage struct {
	t    *testing.T
	seed uint64
	dice *rand.Rand
	sum  outages

	disk   *powerloss.Disk
	path   string
	store  *Store
	worker *storetest.Worker

	stored map[stint.ID]bool // that the store said it has
	done   map[stint.ID]bool // likewise completed
	held   []store.Entry     // by the worker
	maybe  map[int]int       // batches that were under way at a cut: how many jobs they have
	ended  map[stint.ID]bool // that were being completed then
	batch  int
}

func cutAndLook(t *testing.T, seed uint64) outages {
	t.Helper()
	o := &outage{
		t: t, seed: seed, dice: rand.New(rand.NewPCG(seed, 31)),
		stored: map[stint.ID]bool{}, done: map[stint.ID]bool{}, maybe: map[int]int{}, ended: map[stint.ID]bool{},
	}
	o.path = filepath.Join(t.TempDir(), "jobs.db")
	for range 15 {
		o.life(1 + o.dice.IntN([]int{20, 150, 1000}[o.dice.IntN(3)]))
		if t.Failed() {
			t.Logf("replay it with: make powerloss SEED=%d", seed)
			return o.sum
		}
	}
	o.end()
	return o.sum
}

// life works until the power goes, and looks at what is left.
func (o *outage) life(operations int) {
	o.t.Helper()
	o.disk = powerloss.New(o.t)
	o.disk.CutAt(operations)
	err := o.open()
	if err != nil {
		o.sum.openings++
	}
	for err == nil {
		err = o.act()
	}
	off, n := o.disk.Off()
	if !off {
		o.t.Fatalf("seed %d: with power it says: %v", o.seed, err)
	}
	loss := powerloss.AnyLoss(o.dice)
	dir := o.t.TempDir()
	if err := o.disk.Left(dir, loss, o.dice); err != nil {
		o.t.Fatal(err)
	}
	if o.store != nil {
		_ = o.store.Close()
		o.store = nil
	}
	o.sum.cuts++
	o.sum.operations += n
	o.path = filepath.Join(dir, filepath.Base(o.path))
	o.look(fmt.Sprintf("seed %d, cut %d at operation %d that took %v: after %v", o.seed, o.sum.cuts, n, loss, err))
}

// open opens the file, with checkpoints as often as they are rare otherwise, and
// takes the place of an engine.
func (o *outage) open() error {
	s, err := openOn(o.t.Context(), system{o.disk.Name(), o.disk.SyncDir}, o.path, Config{Readers: 1}, schemaSteps())
	if err != nil {
		return err
	}
	o.store = s
	err = s.write(o.t.Context(), func(c *conn) (bool, error) {
		return false, c.db.Exec(fmt.Sprintf(`pragma wal_autocheckpoint = %d`, 10+o.dice.IntN(100)))
	})
	if err != nil {
		return err
	}
	o.worker, o.held = storetest.NewWorker(o.t, s, "noop"), nil
	return o.worker.TryJoin(o.t.Context())
}

// act does one thing that programs do.
func (o *outage) act() error {
	ctx := o.t.Context()
	switch n := o.dice.IntN(20); {
	case n < 6:
		return o.enqueue(func(jobs []stint.NewJob) ([]stint.Receipt, error) { return o.store.Enqueue(ctx, stint.Tx{}, jobs) })
	case n < 8:
		return o.enqueue(func(jobs []stint.NewJob) ([]stint.Receipt, error) { return o.inTransaction(ctx, jobs) })
	case n < 12:
		more, err := o.worker.TryClaimAll(ctx, 1+o.dice.IntN(20))
		o.held = append(o.held, more...)
		return err
	case n < 17:
		return o.finish(ctx)
	case n < 19:
		return o.checkpoint()
	}
	if _, err := storetest.Bury(ctx, o.store, store.Burial{Engine: o.worker.Info.Token, Why: "left"}, storetest.Judge); err != nil {
		return err
	}
	if err := o.store.Close(); err != nil {
		return err
	}
	o.store = nil
	return o.open()
}

// enqueue stores a batch.
func (o *outage) enqueue(store func([]stint.NewJob) ([]stint.Receipt, error)) error {
	o.batch++
	jobs := someJobs(1 + o.dice.IntN(20))
	for i := range jobs {
		jobs[i].Args = json.RawMessage(fmt.Sprintf(`{"batch":%d,"filling":"%0*d"}`, o.batch, o.dice.IntN(700), 0))
	}
	receipts, err := store(jobs)
	if err != nil {
		o.maybe[o.batch] = len(jobs)
		return err
	}
	for _, r := range receipts {
		o.stored[r.ID] = true
	}
	return nil
}

// inTransaction stores jobs in a transaction of a program's own, which is as
// durable as its connection makes it.
func (o *outage) inTransaction(ctx context.Context, jobs []stint.NewJob) ([]stint.Receipt, error) {
	db, err := sql.Open("sqlite3", o.store.system.filename(o.path)+"&_txlock=immediate&_pragma=synchronous(full)&_pragma=fullfsync(on)")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	receipts, err := o.store.Enqueue(ctx, Tx(tx), jobs)
	if err != nil {
		return nil, err
	}
	return receipts, tx.Commit()
}

// finish records the outcome of some of what is claimed.
func (o *outage) finish(ctx context.Context) error {
	n := o.dice.IntN(len(o.held) + 1)
	done := make([]store.Completion, n)
	for i, e := range o.held[:n] {
		done[i] = o.worker.Conclude(e, store.Result{Outcome: stint.OutcomeCompleted})
	}
	if n == 0 {
		return nil
	}
	_, err := o.worker.TryFinish(ctx, done...)
	for _, x := range done {
		if err != nil {
			o.ended[x.Job] = true
		} else {
			o.done[x.Job] = true
		}
	}
	o.held = o.held[n:]
	return err
}

// checkpoint is what a person does with another program.
func (o *outage) checkpoint() error {
	db, err := sqlite3.Open(o.store.system.filename(o.path))
	if err != nil {
		return err
	}
	defer db.Close()
	mode := []string{"passive", "full", "restart", "truncate"}[o.dice.IntN(4)]
	return db.Exec(`pragma synchronous = full; pragma fullfsync = on; pragma wal_checkpoint(` + mode + `)`)
}

// look opens what is left, and compares.
func (o *outage) look(when string) {
	o.t.Helper()
	ctx := o.t.Context()
	s, err := Open(ctx, o.path)
	if err != nil {
		o.t.Fatalf("%s: it does not open: %v", when, err)
	}
	defer s.Close()
	sound(o.t, s, when)
	storetest.Verify(o.t, s)
	batches := o.compare(when, s)
	for batch, size := range o.maybe {
		if n := batches[batch]; n != 0 && n != size {
			o.t.Errorf("%s: of %d jobs that were stored together, %d are there", when, size, n)
		}
		o.sum.unknown += size
	}
	clear(o.maybe)
	engines, err := s.Engines(ctx)
	for _, e := range engines {
		if err == nil {
			_, err = storetest.Bury(ctx, s, store.Burial{Engine: e.Token, Why: "power"}, storetest.Judge)
		}
	}
	if err != nil {
		o.t.Fatalf("%s: %v", when, err)
	}
}

// compare compares the jobs that are there with what was answered, and counts
// those of each batch.
func (o *outage) compare(when string, s *Store) map[int]int {
	o.t.Helper()
	there, batches := map[stint.ID]stint.State{}, map[int]int{}
	err := s.read(o.t.Context(), func(c *conn) error {
		return c.query(`select id, state, args->>'batch' from stint_jobs`, nil, func(q *stmt) error {
			there[stint.ID(q.ColumnInt64(0))] = stint.State(q.ColumnText(1))
			batches[q.ColumnInt(2)]++
			return nil
		})
	})
	if err != nil {
		o.t.Fatalf("%s: %v", when, err)
	}
	for id := range o.stored {
		if _, ok := there[id]; !ok {
			o.t.Errorf("%s: job %d is lost", when, id)
		}
	}
	for id := range o.done {
		if there[id] != stint.Completed {
			o.t.Errorf("%s: job %d was completed, and is %v", when, id, there[id])
		}
	}
	known := len(o.stored)
	for id, state := range there {
		if state == stint.Completed && !o.done[id] && !o.ended[id] {
			o.t.Errorf("%s: job %d is completed, and nobody said so", when, id)
		}
		o.stored[id] = true
		if state == stint.Completed {
			o.done[id] = true
		}
	}
	clear(o.ended)
	strange := len(o.stored) - known
	for batch := range o.maybe {
		strange -= batches[batch]
	}
	if strange != 0 {
		o.t.Errorf("%s: there are %d jobs that nobody stored", when, strange)
	}
	return batches
}

// sound wants the file to be whole.
func sound(t *testing.T, s *Store, when string) {
	t.Helper()
	err := s.read(t.Context(), func(c *conn) error {
		return c.query(`pragma integrity_check`, nil, func(q *stmt) error {
			if text := q.ColumnText(0); text != "ok" {
				return errors.New(text)
			}
			return nil
		})
	})
	if err != nil {
		t.Errorf("%s: the file is damaged: %v", when, err)
	}
}

// end does what is left to do, and wants every job done once.
func (o *outage) end() {
	o.t.Helper()
	s := open(o.t, o.path)
	w := storetest.Join(o.t, s, "noop")
	for rest := w.ClaimAll(); len(rest) > 0; rest = w.ClaimAll() {
		w.Complete(rest...)
	}
	w.Leave()
	counts, err := s.Counts(o.t.Context())
	if err != nil || counts[stint.Completed] != int64(len(o.stored)) {
		o.t.Errorf("seed %d: the counts are %v, error %v; want %d completed", o.seed, counts, err, len(o.stored))
	}
	storetest.Verify(o.t, s)
	o.sum.jobs, o.sum.completed = len(o.stored), len(o.done)
}
