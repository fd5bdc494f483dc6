package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"hash/fnv"
	"io"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// deadline ends a call of a store that does not return.
const deadline = time.Minute

// T is one test with the fresh store that it is about.
type T struct {
	*testing.T
	Harness
	Store Store
	ctx   context.Context
}

func newT(t *testing.T, h Harness) *T {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	s := h.Open(t)
	t.Cleanup(func() { Verify(t, s) })
	return &T{T: t, Harness: h, Store: s, ctx: ctx}
}

// must stops the test at an error that it does not expect.
func (t *T) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// enqueue stores jobs as a program does, through a client.
func (t *T) enqueue(jobs ...stint.NewJob) []stint.ID {
	t.Helper()
	ids := must(stint.NewClient(t.Store).EnqueueMany(t.ctx, jobs))(t)
	need(t, len(ids) == len(jobs), "%d jobs were enqueued, and %d ids came back", len(jobs), len(ids))
	return ids
}

// join enters an engine into the roster.
func (t *T) join(kinds ...string) *Worker {
	t.Helper()
	return Join(t, t.Store, kinds...)
}

// again opens the same database a second time.
func (t *T) again() Store {
	t.Helper()
	return must(t.Again(t.T, t.Store))(t)
}

// begin begins a caller's transaction; it is rolled back when the test ends
// and did not end it.
func (t *T) begin() Tx {
	t.Helper()
	tx := must(t.Begin(t.T, t.Store))(t)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// info shows a job.
func (t *T) info(id stint.ID) *stint.JobInfo {
	t.Helper()
	return must(t.Store.Job(t.ctx, id))(t)
}

// state checks what people see of a job.
func (t *T) state(id stint.ID, want stint.State) {
	t.Helper()
	got := t.info(id).State
	expect(t, got == want, "job %d is %s, want %s", id, got, want)
}

// now reads the store's clock, by the one thing that every store stamps: a
// new job. The job stays behind, in a queue of its own.
func (t *T) now() time.Time {
	t.Helper()
	return t.info(t.enqueue(job("clock", stint.Queue("clock")))[0]).Created
}

// ledger copies everything out of the store.
func (t *T) ledger() *store.Ledger {
	t.Helper()
	return must(t.Store.Audit(t.ctx))(t)
}

// job is a job of a kind without arguments.
func job(kind string, opts ...stint.Option) stint.NewJob {
	return stint.KindInfo{Name: kind}.Job(nil, opts...)
}

// jobs is n of them.
func jobs(n int, kind string, opts ...stint.Option) []stint.NewJob {
	all := make([]stint.NewJob, n)
	for i := range all {
		all[i] = job(kind, opts...)
	}
	return all
}

// lane is the lane of new jobs of a queue at priority 0.
func lane(queue string) store.LaneID {
	return store.LaneOf(queue, 0, store.PartNormal, "").ID
}

// atOnce calls f from n goroutines that start together.
func atOnce(n int, f func(i int) error) []error {
	var wg sync.WaitGroup
	start, errs := make(chan struct{}), make([]error, n)
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// until waits for what passing time must bring about soon.
func (t *T) until(done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience()); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came")
		}
	}
}

// expect reports a failure unless ok.
func expect(t testing.TB, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}

// equal compares two values. The format ends with a verb for each of them,
// after those for args.
func equal[V comparable](t testing.TB, got, want V, format string, args ...any) {
	t.Helper()
	expect(t, got == want, format, append(args, got, want)...)
}

// equalAll compares two slices as equal does; nil is an empty one.
func equalAll[S ~[]E, E comparable](t testing.TB, got, want S, format string, args ...any) {
	t.Helper()
	expect(t, slices.Equal(got, want), format, append(args, got, want)...)
}

// noDiff reports what cmp.Diff found, if anything.
func noDiff(t testing.TB, diff, format string, args ...any) {
	t.Helper()
	expect(t, diff == "", format+":\n%s", append(args, diff)...)
}

// fails reports a failure unless err is target. The format ends with a verb
// for err, after those for args.
func fails(t testing.TB, err, target error, format string, args ...any) {
	t.Helper()
	expect(t, errors.Is(err, target), format, append(args, err)...)
}

// The usual results of attempts.
var (
	completed     = store.Result{Outcome: stint.OutcomeCompleted}
	cancelled     = store.Result{Outcome: stint.OutcomeCancelled}
	snoozed       = store.Result{Outcome: stint.OutcomeSnoozed}
	expired       = store.Result{Outcome: stint.OutcomeExpired}
	returned      = store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront}
	failed        = store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("no")}
	failedFinally = store.Result{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(errors.New("no"))}
)

func errOf[V any](_ V, err error) error { return err }

func errOf2[A, B any](_ A, _ B, err error) error { return err }

// must returns what a call answered, and stops the test at an error.
func must[V any](v V, err error) func(t testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// need stops the test unless ok.
func need(t testing.TB, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}

// over is a context that has ended.
func (t *T) over() context.Context {
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	return ctx
}

// states checks what people see of jobs, which is one state for all or one for
// each of the first.
func (t *T) states(ids []stint.ID, want ...stint.State) {
	t.Helper()
	for i, id := range ids {
		if len(want) == 1 {
			t.state(id, want[0])
		} else if i < len(want) {
			t.state(id, want[i])
		}
	}
}

// promoteAfter waits and then promotes what is due, and checks how much that is.
func (t *T) promoteAfter(d time.Duration, want int) {
	t.Helper()
	time.Sleep(d)
	t.promoteAll(want)
}

// savepoints is a transaction that can be rolled back in part.
func (t *T) savepoints(tx Tx) Savepointer {
	t.Helper()
	sp, ok := tx.(Savepointer)
	t.skipIf(!ok, "no savepoints")
	return sp
}

// between reports whether an instant is between two others, or one of them.
func between(at, first, last time.Time) bool { return !at.Before(first) && !at.After(last) }

// as is the store in a role that it may have or not. A test that asks for one
// that the store does not have is skipped.
func as[R any](t *T) R {
	t.Helper()
	r, ok := t.Store.(R)
	t.skipIf(!ok, "the store is no "+reflect.TypeFor[R]().String())
	return r
}

func (t *T) skipIf(lacks bool, why string) {
	t.Helper()
	if lacks {
		t.Skip(why)
	}
}

var seedFlag = flag.Uint64("storetest.seed", 0, "seed of the randomised tests; 0 takes one from the clock")

// Seed is where the randomness of a test comes from.
type Seed uint64

// NewSeed takes the seed of a test from -storetest.seed or from the clock. A
// failing test prints it. With it each part of the test draws the same numbers
// again; how its goroutines are interleaved may still differ.
func NewSeed(t testing.TB) Seed {
	seed := Seed(*seedFlag)
	if seed == 0 {
		seed = Seed(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("draw the same numbers again with -storetest.seed=%d", seed)
		}
	})
	return seed
}

// Rand is the randomness of one part of the test, for one goroutine.
func (s Seed) Rand(part string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(part)) // it never fails
	return rand.New(rand.NewPCG(uint64(s), h.Sum64()))
}

// sameJob compares jobs by what they mean: JSON by its values, times by their
// instant, labels as sets.
var sameJob = []cmp.Option{
	cmp.Comparer(func(a, b json.RawMessage) bool { return sameJSON(a, b) }),
	cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
	cmp.Comparer(func(a, b retry.Policy) bool { return a.String() == b.String() }),
	cmp.Comparer(func(a, b []string) bool {
		return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
	}),
	cmp.FilterValues(func(a, b []stint.Attempt) bool { return len(a)+len(b) == 0 }, cmp.Ignore()),
}

// sameJSON tells whether two texts are the same value. Numbers are compared
// exactly, however they are written; nothing equals only nothing.
func sameJSON(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	x, errX := parse(a)
	y, errY := parse(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func parse(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	return exact(v), nil
}

// exact writes every number of a value as a fraction in lowest terms.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		if r, ok := new(big.Rat).SetString(v.String()); ok {
			return json.Number(r.RatString())
		}
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}

// deep is an array nested n deep.
func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func jobIDs(entries []store.Entry) []stint.ID {
	ids := make([]stint.ID, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	return ids
}

func positions(entries []store.Entry) []store.Position {
	at := make([]store.Position, len(entries))
	for i, e := range entries {
		at[i] = e.Pos
	}
	return at
}

// distinct tells whether nothing is there twice.
func distinct[V int64 | stint.ID | store.Position](all []V) bool {
	sorted := slices.Sorted(slices.Values(all))
	return len(slices.Compact(sorted)) == len(all)
}
