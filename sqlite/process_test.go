package sqlite

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// Tests that need more than one process run this binary again, with the role
// that it is to play in the environment.
const (
	roleVar = "STINT_SQLITE_TEST_ROLE"
	pathVar = "STINT_SQLITE_TEST_PATH"
)

var roles = map[string]func(ctx context.Context, path string) error{
	"enqueue": func(ctx context.Context, path string) error {
		s, err := Open(ctx, path)
		if err != nil {
			return err
		}
		_, err = s.Enqueue(ctx, stint.Tx{}, someJobs(1))
		return errors.Join(err, s.Close())
	},
	"refused": func(ctx context.Context, path string) error {
		s, err := Open(ctx, path)
		if err == nil {
			err = s.Close()
		} else if errors.Is(err, fs.ErrPermission) {
			return nil
		}
		return fmt.Errorf("opening for writing gives %w", err)
	},
	"work": workAlong,
	"engine": func(ctx context.Context, path string) error {
		s, err := Open(ctx, path)
		if err != nil {
			return err
		}
		mux := stint.NewMux()
		mux.Add(stint.KindInfo{Name: "slow"}, func(ctx context.Context, _ *stint.Job) (json.RawMessage, error) {
			return nil, workFor(ctx, 2*time.Second)
		})
		e, err := engine.New(s, mux, engine.Config{Instance: "child", Queues: []string{"slow"}, TimeToLive: childTimeToLive(), OnEvent: func(e event.Event) {
			fmt.Println(e.Type)
		}})
		if err != nil {
			return err
		}
		return e.Run(ctx)
	},
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := roles[role](context.Background(), os.Getenv(pathVar)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func process(t *testing.T, role, path string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), roleVar+"="+role, pathVar+"="+path)
	cmd.Stderr = t.Output()
	return cmd
}

func TestTenProcessesCreateTheFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := process(t, "enqueue", path).Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := open(t, path)
	if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Available] != 10 {
		t.Errorf("the counts are %v, error %v; want 10 available", counts, err)
	}
}

// workAlong claims and completes until it is killed or buried, and says each
// job that it has recorded, and when it finds nothing to do.
func workAlong(ctx context.Context, path string) error {
	s, err := Open(ctx, path)
	if err != nil {
		return err
	}
	token := store.EngineID(rand.Int64())
	if err := s.Join(ctx, store.EngineInfo{Token: token, Instance: "child", Slots: 1, TimeToLive: time.Second}, nil); err != nil {
		return err
	}
	lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID
	for serial := int64(1); ; serial++ {
		req := store.ClaimRequest{Engine: token, Serial: serial, Nonce: store.Nonce(rand.Int64()), Lane: lane, Max: 7}
		c, err := s.Claim(ctx, req)
		if errors.Is(err, store.ErrBuried) {
			return nil
		} else if err != nil {
			return err
		}
		now := time.Now()
		for i := range c.Entries {
			x := store.Conclude(&c.Entries[i], store.Result{Outcome: stint.OutcomeCompleted}, now, 0)
			x.Nonce, x.Slot, x.Started, x.Ended = c.Nonce, 1, now, now
			_, err := s.Finish(ctx, token, []store.ClaimRef{c.ClaimRef}, []store.Completion{x})
			if errors.Is(err, store.ErrBuried) {
				return nil
			} else if err != nil {
				return err
			}
			fmt.Println(x.Job)
		}
		if len(c.Entries) == 0 {
			fmt.Println("idle")
			time.Sleep(time.Millisecond)
		}
	}
}

func TestProcessesShareAFileAndAreKilled(t *testing.T) {
	const jobs, processes = 600, 3
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, path)
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		said     = map[string]int{}
		produced atomic.Bool
	)
	for range processes {
		wg.Go(func() {
			for life := 0; life < 3 || !produced.Load(); life++ {
				cmd := process(t, "work", path)
				out, err := cmd.StdoutPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Error(err)
					return
				}
				// Killed in the middle of its work, wherever it is then.
				lines := bufio.NewScanner(out)
				for n := 0; n < 20+10*life && lines.Scan(); n++ {
					if lines.Text() == "idle" {
						if produced.Load() {
							break
						}
						continue
					}
					mu.Lock()
					said[lines.Text()]++
					mu.Unlock()
				}
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				buryAll(t, s)
			}
		})
	}
	for range jobs / 20 {
		enqueue(t, s, someJobs(20))
		time.Sleep(10 * time.Millisecond)
	}
	produced.Store(true)
	wg.Wait()
	w := storetest.Join(t, s, "noop")
	for rest := w.ClaimAll(); len(rest) > 0; rest = w.ClaimAll() {
		w.Complete(rest...)
	}
	for id, n := range said {
		if n > 1 {
			t.Errorf("job %s was recorded by %d processes", id, n)
		}
	}
	if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Completed] != jobs {
		t.Errorf("the counts are %v, error %v; want %d completed", counts, err, jobs)
	}
	storetest.Verify(t, s)
}

// buryAll buries every engine: that of the dead, and those of the living, who
// must then find themselves fenced.
func buryAll(t *testing.T, s *Store) {
	engines, err := s.Engines(t.Context())
	if err != nil {
		t.Error(err)
	}
	for _, e := range engines {
		_, err := s.Bury(t.Context(), store.Burial{Engine: e.Token, Why: "test"}, storetest.Judge)
		if err != nil && !errors.Is(err, store.ErrBuried) {
			t.Error(err)
		}
	}
}
