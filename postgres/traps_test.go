package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

var traps = slices.Concat(claimTraps, costTraps, fenceTraps, finishTraps, enqueueTraps, keyTraps, uniqueTraps, wakeTraps, upkeepTraps, sumTraps, permitTraps, stepTraps, signalTraps, logTraps)

// bench is a store that a trap's check works on. An error that ends the check
// early is the check's answer.
type bench struct {
	testing.TB
	s    *Store
	open func(url string) *Store // as s was opened, elsewhere
}

// at is the same in another, empty database.
func (b *bench) at(url string) *bench { return &bench{b.TB, b.open(url), b.open} }

type surrender struct{ err error }

// Fatal and Fatalf are what the helpers of tests call.
func (b *bench) Fatal(args ...any) { panic(surrender{errors.New(fmt.Sprint(args...))}) }

// Fatalf is Fatal.
func (b *bench) Fatalf(format string, args ...any) { panic(surrender{fmt.Errorf(format, args...)}) }

// ask runs a check.
func (t *trap) ask(b *bench) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case surrender:
			err = r.err
		default:
			panic(r)
		}
	}()
	return t.check(b)
}

// patience is how long a check waits for what must not wait.
const patience = 3 * time.Second

var normal = store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID

func (b *bench) join() *storetest.Worker { return storetest.Join(b, b.s, "k") }

func (b *bench) must(err error) {
	b.Helper()
	must(b, err)
}

func (b *bench) enqueue(n int, opts ...stint.Option) []stint.ID {
	b.Helper()
	return b.enqueueIn(stint.Tx{}, n, opts...)
}

func (b *bench) enqueueIn(tx stint.Tx, n int, opts ...stint.Option) []stint.ID {
	b.Helper()
	jobs := make([]stint.NewJob, n)
	for i := range jobs {
		jobs[i] = stint.KindInfo{Name: "k"}.Job(nil, opts...)
	}
	ids, err := stint.NewClient(b.s).With(tx).EnqueueMany(b.Context(), jobs)
	b.must(err)
	return ids
}

// load leaves n rows of the default queue uncommitted.
func (b *bench) load(n int) pgx.Tx {
	b.Helper()
	tx := begin(b, b.s)
	_, err := tx.Exec(b.Context(), b.s.sql.in(`
		insert into stint.entries (lane, queue, kind, args) select $1, 'default', 'k', '{}' from generate_series(1, $2::int)`), normal, n)
	b.must(err)
	return tx
}

// claimIn claims by hand in a transaction, which stays open.
func (b *bench) claimIn(tx pgx.Tx, w *storetest.Worker, limit int) ([]store.Position, error) {
	var at []store.Position
	err := tx.QueryRow(b.Context(), b.s.sql.in(`select positions from stint.claim($1, 1000000, 0, 1, $2, $3, true, false)`),
		w.Info.Token, normal, limit).Scan(&at)
	return at, translate(err)
}

// soon runs f and says when it takes longer than it may.
func (b *bench) soon(what string, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	if err := f(ctx); ctx.Err() != nil {
		return fmt.Errorf("%s waits", what)
	} else if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// take claims until nothing is left and compares with what there was.
func (b *bench) take(w *storetest.Worker, limit int, got []stint.ID, want ...[]stint.ID) error {
	total := 0
	for _, w := range want {
		total += len(w)
	}
	for barren := 0; barren < 3 && len(got) <= 2*total; barren++ {
		c, err := w.TryClaim(b.Context(), store.ClaimRequest{Lane: normal, Max: limit, Wait: true})
		if err != nil {
			return err
		}
		if len(c.Entries) > 0 {
			barren = 0
		}
		got = append(got, ids(c.Entries)...)
	}
	all := slices.Sorted(slices.Values(slices.Concat(want...)))
	slices.Sort(got)
	if !slices.Equal(got, all) {
		return fmt.Errorf("%d jobs were claimed (%d different ones), want each of %d once", len(got), len(slices.Compact(got)), len(all))
	}
	return nil
}

func ids(entries []store.Entry) []stint.ID {
	var list []stint.ID
	for _, e := range entries {
		list = append(list, e.ID)
	}
	return list
}

// blocked waits until a session of this database waits for a lock.
func (b *bench) blocked() error { return b.blockedMany(1) }

func (b *bench) blockedMany(n int) error {
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(2 * time.Millisecond) {
		if value[int](b, b.s.pool, `select count(distinct pid) from pg_locks l join pg_stat_activity a using (pid)
			where not l.granted and a.datname = current_database()`) >= n {
			return nil
		}
	}
	return fmt.Errorf("not %d sessions wait for a lock", n)
}
