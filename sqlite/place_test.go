package sqlite

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

const timeToLiveVar = "STINT_SQLITE_TEST_TTL"

func childTimeToLive() time.Duration {
	d, err := time.ParseDuration(os.Getenv(timeToLiveVar))
	if err != nil {
		panic(err)
	}
	return d
}

// workFor takes its time, unless the engine is fenced.
func workFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// child is an engine in a process of its own.
type child struct {
	*exec.Cmd
	mu    sync.Mutex
	heard []string
}

func startChild(t *testing.T, path string, ttl time.Duration) *child {
	t.Helper()
	c := &child{Cmd: process(t, "engine", path)}
	c.Env = append(c.Env, timeToLiveVar+"="+ttl.String())
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { c.listen(out) })
	t.Cleanup(func() {
		_ = c.Process.Kill()
		wg.Wait()
		_ = c.Wait()
	})
	return c
}

func (c *child) listen(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		c.mu.Lock()
		c.heard = append(c.heard, lines.Text())
		c.mu.Unlock()
	}
}

func (c *child) says(what event.EventType) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.heard, string(what))
}

// until waits for something to become true.
func until(t *testing.T, what string, limit time.Duration, is func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v it is not true that %s", limit, what)
		}
	}
}

// watcher runs an engine that works on a kind of its own, and buries others.
func watcher(t *testing.T, s *Store, ttl time.Duration, handler func(context.Context) error) *sync.Map {
	t.Helper()
	mux := stint.NewMux()
	mux.Add(stint.KindInfo{Name: "mine"}, func(ctx context.Context, _ *stint.Job) (json.RawMessage, error) {
		return nil, handler(ctx)
	})
	var events sync.Map
	e, err := engine.New(s, mux, engine.Config{Instance: "watcher", Queues: []string{"mine"}, TimeToLive: ttl, OnEvent: func(e event.Event) { events.Store(e.Type, e) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the engine ended with %v", err)
		}
	})
	return &events
}

func (s *Store) engineNamed(t *testing.T, name string) (e store.EngineInfo, there bool) {
	t.Helper()
	all, err := s.Engines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(e store.EngineInfo) bool { return e.Instance == name })
	if i < 0 {
		return e, false
	}
	return all[i], true
}

// enqueueKind enqueues a job of a kind, in a queue of its own.
func enqueueKind(t *testing.T, s *Store, kind string) stint.ID {
	t.Helper()
	ids, err := stint.NewClient(s).EnqueueMany(t.Context(), []stint.NewJob{stint.KindInfo{Name: kind, Queue: kind}.Job(nil)})
	if err != nil {
		t.Fatal(err)
	}
	return ids[0]
}

func (s *Store) stateOf(t *testing.T, id stint.ID) stint.State {
	t.Helper()
	job, err := s.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return job.State
}

// running starts a child and waits until it works on a job.
func running(t *testing.T, s *Store, ttl time.Duration) (*child, stint.ID) {
	t.Helper()
	id := enqueueKind(t, s, "slow")
	c := startChild(t, s.path, ttl)
	until(t, "the child has begun its job", 10*time.Second, func() bool { return c.says(event.EventStarted) })
	return c, id
}

// The time to live does not come into it: it is a minute here.
func TestAProcessThatIsKilledIsBuriedAtOnce(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	c, id := running(t, s, time.Minute)
	if e, _ := s.engineNamed(t, "child"); !e.Held || e.Gone {
		t.Errorf("of a living process the roster says %+v", e)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "the roster says that the child is gone", 5*time.Second, func() bool {
		e, _ := s.engineNamed(t, "child")
		return e.Gone && !e.Held
	})
	watcher(t, s, time.Minute, func(context.Context) error { return nil })
	until(t, "the child was buried", 5*time.Second, func() bool {
		_, there := s.engineNamed(t, "child")
		return !there
	})
	if state := s.stateOf(t, id); state != stint.Available {
		t.Errorf("its job is %s, want available", state)
	}
}

func TestAStoreThatIsClosedGivesUpItsPlaces(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	other, err := Open(t.Context(), s.path)
	if err != nil {
		t.Fatal(err)
	}
	a, b := storetest.Join(t, other, "noop"), storetest.Join(t, other, "noop")
	// That nothing but its place tells that it is gone, as in a container.
	c := storetest.Join(t, other, "noop")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*storetest.Worker{a, b} {
		if other.Vouches(w.Info.Token, time.Now()).After(time.Now()) {
			t.Errorf("a closed store holds a place")
		}
		if _, err := s.Bury(t.Context(), store.Burial{Engine: w.Info.Token, Unless: time.Hour}, storetest.Judge); err != nil {
			t.Errorf("the burial of an engine whose process is gone gives %v", err)
		}
	}
	watcher(t, s, time.Minute, func(context.Context) error { return nil })
	until(t, "the engine was buried", 5*time.Second, func() bool {
		_, there := s.engineNamed(t, c.Info.Instance)
		return !there
	})
}

// Where there is no file, there are no places: beats decide.
func TestInMemoryBeatsDecide(t *testing.T) {
	s := open(t, Memory)
	w := storetest.Join(t, s, "noop")
	all, err := s.Engines(t.Context())
	if err != nil || len(all) != 1 || all[0].Held || all[0].Gone || s.Vouches(w.Info.Token, time.Now()).After(time.Now()) {
		t.Errorf("the roster is %+v, error %v", all, err)
	}
	time.Sleep(20 * time.Millisecond)
	if _, err := s.Bury(t.Context(), store.Burial{Engine: w.Info.Token, Unless: 5 * time.Millisecond}, storetest.Judge); err != nil {
		t.Error(err)
	}
}

func TestABeatFromBeforeTheClockWasPutBackKeepsNobodyAlive(t *testing.T) {
	s := open(t, Memory)
	w := storetest.Join(t, s, "noop")
	err := s.writer.here(t.Context(), func(c *conn) (bool, error) {
		_, err := c.exec(`update stint_beats set beat = ?`, micro(time.Now().Add(3*time.Hour)))
		return false, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Bury(t.Context(), store.Burial{Engine: w.Info.Token, Unless: time.Hour}, storetest.Judge); err != nil {
		t.Error(err)
	}
}

// Without the places both engines would fence themselves, and whoever came
// first after the transaction would bury the other.
func TestALongTransactionOfTheUsersGetsNobodyBuried(t *testing.T) {
	const ttl, long = time.Second, 5 * time.Second
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	db := database(t, s.path)
	mine := enqueueKind(t, s, "mine")
	free := make(chan struct{})
	events := watcher(t, s, ttl, func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-free:
			return nil
		}
	})
	until(t, "the watcher has begun its job", 10*time.Second, func() bool { _, ok := events.Load(event.EventStarted); return ok })
	c, id := running(t, s, ttl)
	before, err := s.Engines(t.Context())
	if err != nil || len(before) != 2 {
		t.Fatalf("the roster is %+v, error %v", before, err)
	}

	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enqueue(t.Context(), Tx(tx), someJobs(1)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(long)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	close(free)
	for _, id := range []stint.ID{mine, id} {
		until(t, "the jobs that ran meanwhile have completed", 5*time.Second, func() bool { return s.stateOf(t, id) == stint.Completed })
		if job, _ := s.Job(t.Context(), id); len(job.Attempts) != 1 {
			t.Errorf("job %d was tried %d times", id, len(job.Attempts))
		}
	}
	time.Sleep(2 * ttl)
	after, err := s.Engines(t.Context())
	if err != nil || len(after) != 2 || after[0].Token != before[0].Token || after[1].Token != before[1].Token {
		t.Errorf("the roster was %+v and is %+v, error %v", before, after, err)
	}
	if _, fenced := events.Load(event.EventBuried); fenced || c.says(event.EventBuried) {
		t.Errorf("an engine was fenced")
	}
}
