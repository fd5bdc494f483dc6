package engine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// throne is a duty of engines: one of them sits on it at a time.
type throne struct {
	t       *testing.T
	sits    atomic.Int32
	most    int32       // how many may act at once; 0 for one
	acts    chan string // the instance that begins to act
	mu      sync.Mutex
	history map[string][]string // the events about leases, by instance
	lost    chan event.Event
}

func newThrone(t *testing.T) *throne {
	return &throne{t: t, acts: make(chan string, 100), history: map[string][]string{}, lost: make(chan event.Event, 100)}
}

// start runs an engine that wants the throne.
func (h *throne) start(s store.Store, instance string, c engine.Config) (stop func() error) {
	h.t.Helper()
	return h.startWith(s, stint.NewMux(), instance, c)
}

func (h *throne) startWith(s store.Store, mux *stint.Mux, instance string, c engine.Config) (stop func() error) {
	h.t.Helper()
	c.Instance, c.OnEvent = instance, func(e event.Event) {
		if e.Lease != "throne" && e.Type != event.EventLeft {
			return
		}
		h.mu.Lock()
		h.history[e.Instance] = append(h.history[e.Instance], string(e.Type))
		h.mu.Unlock()
		if e.Type == event.EventLeaseLost {
			h.lost <- e
		}
	}
	e, err := engine.New(s, mux, c)
	if err != nil {
		h.t.Fatal(err)
	}
	e.Lead("throne", func(ctx context.Context) {
		if n := h.sits.Add(1); n > max(1, h.most) {
			h.t.Errorf("%d act at once", n)
		}
		h.acts <- instance
		<-ctx.Done()
		h.sits.Add(-1)
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	h.t.Cleanup(func() { _ = stop() })
	return stop
}

// events are those of one engine so far.
func (h *throne) events(instance string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.history[instance])
}

// U92, U93: one of three acts; when it stops it gives the lease back, and
// another one takes it long before its time is over.
func TestOneEngineLeadsAndAnotherTakesOverAtOnceWhenItStops(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		h := newThrone(t)
		stops := map[string]func() error{}
		for _, name := range []string{"a", "b", "c"} {
			stops[name] = h.start(s, name, engine.Config{LeaseFor: time.Hour, LeaseWait: 300 * time.Millisecond})
		}
		var led []string
		for range stops {
			leader := <-h.acts
			if slices.Contains(led, leader) {
				t.Fatalf("%s leads again", leader)
			}
			led = append(led, leader)
			if lease := leaseOf(t, s, "throne"); lease.Instance != leader {
				t.Errorf("%s leads, and the store says %+v", leader, lease)
			}
			if err := stops[leader](); err != nil {
				t.Error(err)
			}
			if lost := <-h.lost; !errors.Is(lost.Err, stint.ErrStopping) {
				t.Errorf("it was lost because of %v", lost.Err)
			}
			want := []string{"lease acquired", "lease lost", "left"}
			if got := h.events(leader); !slices.Equal(got, want) {
				t.Errorf("%s says %q, want %q", leader, got, want)
			}
		}
		if lease := leaseOf(t, s, "throne"); lease.Engine != 0 {
			t.Errorf("all have left, and the store says %+v", lease)
		}
	})
}

// What runs may go on for long after a stop; the lease does not wait for it.
func TestAnEngineThatStopsGivesItsLeasesBackBeforeItsJobsEnd(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		h := newThrone(t)
		mux := stint.NewMux()
		began, goOn := make(chan stint.ID, 1), make(chan struct{})
		handle(mux, "k", func(_ context.Context, job *stint.Job) error {
			began <- job.ID
			<-goOn
			return nil
		})
		c := engine.Config{LeaseFor: time.Hour, LeaseWait: 300 * time.Millisecond}
		stop := h.startWith(s, mux, "a", c)
		<-h.acts
		id := enqueue(t, s, "k", `{}`)
		<-began
		h.start(s, "b", c)
		ended := make(chan error, 1)
		go func() { ended <- stop() }()
		select {
		case <-h.acts:
		case <-time.After(20 * time.Second):
			t.Error("nobody took over")
		}
		until(t, s, id, stint.Running)
		close(goOn)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		until(t, s, id, stint.Completed)
	})
}

// U92: by force.
func TestWhoIsDeposedStopsAndAnotherTakesOver(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		h := newThrone(t)
		h.most = 2 // until the first has heard of it; what he does by then does not count
		c := engine.Config{LeaseFor: 3 * time.Second, LeaseWait: 100 * time.Millisecond}
		h.start(s, "a", c)
		first := <-h.acts
		h.start(s, "b", c)
		if _, had, err := s.(store.Leaser).Revoke(t.Context(), "throne", "ann", "it hangs"); err != nil || !had {
			t.Fatal(had, err)
		}
		lost := <-h.lost
		if lost.Instance != first || !errors.Is(lost.Err, store.ErrNotHeld) || lost.Err.Error() != store.ErrNotHeld.Error()+": it was freed by ann: it hangs" {
			t.Errorf("%s lost the lease because of %v", lost.Instance, lost.Err)
		}
		if second := <-h.acts; second == first {
			t.Errorf("%s leads again", second)
		}
		if n := h.sits.Load(); n != 1 {
			t.Errorf("%d act", n)
		}
	})
}

// U93: the events are of changes only.
func TestEventsAboutLeasesAreOfChangesOnly(t *testing.T) {
	inBubble(t, 48*time.Hour, func(t *testing.T, s *sqlite.Store) {
		h := newThrone(t)
		stop := h.start(&faraway{Store: s, Leaser: s}, "a", engine.Config{TimeToLive: time.Hour, Poll: time.Minute})
		time.Sleep(time.Hour)
		if got := h.events("a"); !slices.Equal(got, []string{"lease acquired"}) {
			t.Errorf("after an hour it says %q", got)
		}
		lease := leaseOf(t, s, "throne")
		if held := lease.Renewed.Sub(lease.Acquired); held < time.Hour-10*time.Second || lease.Expires.Sub(lease.Renewed) != engine.DefaultLeaseFor {
			t.Errorf("the lease is %+v", lease)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// faraway is a store that does not call, and whose leases cannot be reached.
type faraway struct {
	store.Store
	store.Leaser
	away, hangs atomic.Bool
	asked       atomic.Int32
}

func (d *faraway) Acquire(ctx context.Context, name string, e store.EngineID, term time.Duration) (store.Lease, error) {
	if name == "throne" {
		d.asked.Add(1)
	}
	switch {
	case d.hangs.Load():
		<-ctx.Done()
		return store.Lease{}, ctx.Err()
	case d.away.Load():
		return store.Lease{}, errors.New("the database is away")
	}
	return d.Leaser.Acquire(ctx, name, e, term)
}

// An engine counts from when its last successful renewal was sent, so it stops
// before anybody else can begin.
func TestAnEngineThatCannotRenewItsLeaseStopsBeforeAnotherBegins(t *testing.T) {
	for _, how := range []string{"fails", "hangs"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
				h := newThrone(t)
				d := &faraway{Store: s, Leaser: s}
				c := engine.Config{LeaseFor: 10 * time.Second, LeaseWait: time.Second}
				stop := h.start(d, "a", c)
				<-h.acts
				stopOther := h.start(&faraway{Store: s, Leaser: s}, "b", c)
				time.Sleep(5 * time.Minute)
				cut := time.Now()
				d.away.Store(how == "fails")
				d.hangs.Store(how == "hangs")
				if next := <-h.acts; next != "b" { // the throne sees that nobody else acts
					t.Fatalf("%s acts", next)
				}
				if took := time.Since(cut); took < 6*time.Second || took > 11*time.Second {
					t.Errorf("another one began after %v", took)
				}
				if lost := <-h.lost; lost.Instance != "a" || lost.Err == nil {
					t.Errorf("%s lost it because of %v", lost.Instance, lost.Err)
				}
				d.away.Store(false)
				d.hangs.Store(false)
				if err := errors.Join(stop(), stopOther()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// U94: how long an engine waits between attempts is constant, or grows.
func TestWaitsForALeaseAreConstantOrGrow(t *testing.T) {
	for _, c := range []struct {
		name     string
		config   engine.Config
		from, to int // attempts in an hour
	}{
		{"constant", engine.Config{LeaseWait: time.Minute}, 60, 90},
		{"growing", engine.Config{LeaseWait: time.Minute, LeaseWaitMax: 16 * time.Minute}, 5, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 48*time.Hour, func(t *testing.T, s *sqlite.Store) {
				h := newThrone(t)
				stop := h.start(&faraway{Store: lonely{s}, Leaser: s}, "a", engine.Config{TimeToLive: time.Hour, LeaseFor: time.Minute, Poll: time.Minute})
				<-h.acts
				c.config.TimeToLive, c.config.Poll = time.Hour, time.Minute
				other := &faraway{Store: lonely{s}, Leaser: s}
				stopOther := h.start(other, "b", c.config)
				time.Sleep(time.Hour)
				synctest.Wait()
				if asked := int(other.asked.Load()); asked < c.from || asked > c.to {
					t.Errorf("it asked %d times, want %d to %d", asked, c.from, c.to)
				}
				if err := errors.Join(stopOther(), stop()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestTimesOfLeasesAreChecked(t *testing.T) {
	for _, c := range []engine.Config{
		{LeaseFor: -1}, {LeaseFor: 999 * time.Millisecond}, {LeaseFor: 25 * time.Hour}, {LeaseWait: -1}, {LeaseWait: 1},
		{LeaseWait: time.Minute, LeaseWaitMax: time.Second},
	} {
		if _, err := engine.New(nil, stint.NewMux(), c); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%+v gives %v", c, err)
		}
	}
}

// leaderEnv names the database of a process that wants the throne.
const leaderEnv = "STINT_ENGINE_LEADER"

func leader(database string) {
	ctx := context.Background()
	s, err := openAny(ctx, database)
	if err == nil {
		var e *engine.Engine
		if e, err = engine.New(s, stint.NewMux(), engine.Config{TimeToLive: time.Second, LeaseFor: 10 * time.Second, LeaseWait: 200 * time.Millisecond}); err == nil {
			e.Lead("throne", func(ctx context.Context) {
				fmt.Println("acts")
				<-ctx.Done()
			})
			err = e.Run(ctx)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// U92: of three processes one acts; kill it, and another one does within the
// time of a lease.
func TestWhenTheProcessThatLeadsIsKilledAnotherTakesOverWithinALease(t *testing.T) {
	for name, database := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "jobs.db") },
		"postgres": func(t *testing.T) string { return migrated.New(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := database(t)
			if _, err := openAny(t.Context(), where); err != nil {
				t.Fatal(err)
			}
			acts := make(chan *exec.Cmd, 10)
			for range 3 {
				cmd := exec.CommandContext(t.Context(), os.Args[0])
				cmd.Env = append(os.Environ(), leaderEnv+"="+where)
				cmd.Stderr = os.Stderr
				out, err := cmd.StdoutPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
				go func() {
					for lines := bufio.NewScanner(out); lines.Scan(); {
						acts <- cmd
					}
				}()
			}
			first := <-acts
			if err := first.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			killed := time.Now()
			if second := <-acts; second == first {
				t.Error("the dead act")
			} else if took := time.Since(killed); took > 10*time.Second {
				t.Errorf("another one took over after %v", took)
			}
			if len(acts) > 0 {
				t.Error("two act")
			}
		})
	}
}

// leaseOf shows one lease.
func leaseOf(t *testing.T, s any, name string) store.Lease {
	t.Helper()
	all, err := s.(store.Leaser).Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("there is no lease %q among %+v", name, all)
	return store.Lease{}
}
