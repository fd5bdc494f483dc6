//go:build unix

package chaos_test

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
)

// Most tests wait most of the time, so more of them run at once than there are
// processors, unless the command line says otherwise.
func TestMain(m *testing.M) {
	chaos.Main()
	_ = flag.Set("test.parallel", "8")
	flag.Parse()
	pgtest.Main(m)
}

// seed is that of a test: another one each time, unless somebody asks for one.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv("STINT_CHAOS_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("STINT_CHAOS_SEED=%d", n)
	return n
}

// world is a database with a fleet on it.
type world struct {
	*chaos.Fleet
	t      *testing.T
	url    string
	addr   string // of the server
	store  *postgres.Store
	pool   *pgxpool.Pool
	ground *chaos.Ground
	seed   uint64
}

func newWorld(t *testing.T, url string) *world {
	t.Helper()
	seed := seed(t)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		Fleet: chaos.NewFleet(t), t: t, url: url, seed: seed,
		addr: net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))),
	}
	w.Seed = seed
	w.store, w.pool = w.connect(url)
	w.ground = chaos.NewGround(w.store, w.pool)
	if err := w.ground.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// produce runs clients side by side until they have committed n jobs.
func (w *world) produce(ctx context.Context, clients, n int) {
	w.t.Helper()
	var all sync.WaitGroup
	for i := range clients {
		p := w.client(i)
		all.Go(func() {
			if _, err := p.Run(ctx, n/clients); err != nil {
				w.t.Error(err)
			}
		})
	}
	all.Wait()
}

// client makes a producer of mixed jobs.
func (w *world) client(i int) *chaos.Producer {
	return &chaos.Producer{
		Name: fmt.Sprintf("client-%d", i), Ground: w.ground, History: w.History,
		Rand: w.dice(uint64(i)), Mixed: true,
	}
}

// goOn has clients enqueue until they are stopped, which waits for them. Each is
// made by its number.
func goOn(t *testing.T, clients int, client func(i int) *chaos.Producer) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range clients {
		p := client(i)
		all.Go(func() {
			if _, err := p.Run(ctx, 1<<30); err != nil {
				t.Error(err)
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// every has a client rest between two transactions.
func every(pause time.Duration, client func(i int) *chaos.Producer) func(i int) *chaos.Producer {
	return func(i int) *chaos.Producer {
		p := client(i)
		p.Pause = pause
		return p
	}
}

// dice are what the seed decides for one purpose.
func (w *world) dice(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, purpose)) }

// atLength skips, in -short, what takes long and has a shorter test of the same kind of trouble beside it.
func atLength(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes longer than ten seconds")
	}
}

// few are, in -short, n cases of a table, others in each run; all of them otherwise.
func few[K comparable, V any](n int, table iter.Seq2[K, V]) map[K]V {
	cases := maps.Collect(table)
	for k := range cases {
		if !testing.Short() || len(cases) <= n {
			break
		}
		delete(cases, k)
	}
	return cases
}

// jobs is how large a run is: small in CI, and as large as one likes by hand.
func jobs(t *testing.T, small int) int {
	text := os.Getenv("STINT_CHAOS_JOBS")
	if text == "" {
		return small
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWorkersDoEachJobOfManyClientsOnce(t *testing.T) {
	t.Run("two workers, four clients", func(t *testing.T) { workOff(t, 2, 20, 4, jobs(t, 8000)) })
	t.Run("five workers, one client", func(t *testing.T) { workOff(t, 5, 10, 1, jobs(t, 1000)) })
}

func workOff(t *testing.T, workers, slots, clients, n int) {
	w := newWorld(t, pgtest.New(t))
	var all []*chaos.Process
	for i := range workers {
		all = append(all, w.Start(chaos.Worker{Name: fmt.Sprintf("worker-%d", i+1), DB: w.url, Slots: slots}))
	}
	w.produce(t.Context(), clients, n)
	w.Drain(t.Context(), w.store, time.Minute+time.Duration(n)*time.Millisecond)
	for _, p := range all {
		if err := p.Stop(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	report := w.Judge(t.Context(), w.ground)
	if report.Jobs < n || report.Final != report.Jobs {
		t.Errorf("%d of %d jobs are final", report.Final, report.Jobs)
	}
	t.Log(report)
}
