//go:build unix

package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/powerloss"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

func init() { roles["fall"] = fall }

// fallVar says at which of its operations on the file a process is to fall.
const fallVar = "STINT_SQLITE_TEST_FALL"

// fall enqueues, claims and completes until it kills itself: in the middle of a
// write, or before it syncs, cuts, makes or deletes a file. It says what it was
// told: "+" and a batch, "-" and a job. A batch that it is about to store is "?".
func fall(ctx context.Context, path string) error {
	n := 0
	if _, err := fmt.Sscan(os.Getenv(fallVar), &n); err != nil {
		return err
	}
	disk := powerloss.Register()
	disk.CallAt(n, func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	})
	s, err := openOn(ctx, system{disk.Name(), disk.SyncDir}, path, Config{}, schemaSteps())
	if err != nil {
		return err
	}
	err = s.write(ctx, func(c *conn) (bool, error) { return false, c.script(`pragma wal_autocheckpoint = 20`) })
	w := storetest.NewWorker(nil, s, "noop")
	if err = errors.Join(err, w.TryJoin(ctx)); err != nil {
		return err
	}
	for batch := 0; ; batch++ {
		name := fmt.Sprintf("%d-%d", os.Getpid(), batch)
		jobs := someJobs(5)
		for i := range jobs {
			jobs[i].Tags = []string{name}
		}
		fmt.Println("?" + name)
		if _, err := s.Enqueue(ctx, stint.Tx{}, jobs); err != nil {
			return err
		}
		fmt.Println("+" + name)
		entries, err := w.TryClaimAll(ctx, 7)
		if errors.Is(err, store.ErrBuried) {
			return nil
		} else if err != nil {
			return err
		}
		for _, e := range entries {
			_, err := w.TryFinish(ctx, w.Conclude(e, store.Result{Outcome: stint.OutcomeCompleted}))
			if errors.Is(err, store.ErrBuried) {
				return nil
			} else if err != nil {
				return err
			}
			fmt.Println("-", e.ID)
		}
	}
}

func TestAProcessThatIsKilledInTheMiddleOfAWriteLosesNothingAndLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	const processes = 2
	falls := setting(t, "STINT_FALLS", 40)
	path := filepath.Join(t.TempDir(), "jobs.db")
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		tried = map[string]bool{} // batches; true for those that are stored
		done  = map[string]int{}  // jobs
		fell  int
	)
	for p := range processes {
		all.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(p), 9))
			for range falls / processes {
				cmd := process(t, "fall", path)
				cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", fallVar, 1+dice.IntN([]int{40, 400}[dice.IntN(2)])))
				out, err := cmd.Output()
				mu.Lock()
				for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
					switch what, name := lines.Text()[0], lines.Text()[1:]; what {
					case '?', '+':
						tried[name] = what == '+'
					case '-':
						done[name]++
					}
				}
				if exit, is := errors.AsType[*exec.ExitError](err); is && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
					fell++
				} else if err != nil {
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	s := open(t, path)
	sound(t, s, fmt.Sprintf("after %d falls", fell))
	storetest.Verify(t, s)
	stored := 0
	for name, sure := range tried {
		n := count(t, path, `select count(*) from stint_job_tags where tag = '`+name+`'`)
		if stored += n; n != 5 && (sure || n != 0) {
			t.Errorf("of the batch %s, stored: %v, %d jobs are there", name, sure, n)
		}
	}
	for id, n := range done {
		if n > 1 || s.stateOf(t, number(id)) != stint.Completed {
			t.Errorf("job %s was completed %d times, and is %s", id, n, s.stateOf(t, number(id)))
		}
	}
	buryAll(t, s)
	w := storetest.Join(t, s, "noop")
	for rest := w.ClaimAll(); len(rest) > 0; rest = w.ClaimAll() {
		w.Complete(rest...)
	}
	if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Completed] != int64(stored) {
		t.Errorf("the counts are %v, error %v; want %d completed", counts, err, stored)
	}
	storetest.Verify(t, s)
	t.Logf("%d of %d processes fell; %d batches, %d jobs completed by them, %d in the end", fell, falls, len(tried), len(done), stored)
	if fell < falls*9/10 {
		t.Errorf("only %d processes fell", fell)
	}
}

func number(text string) (id stint.ID) {
	_, _ = fmt.Sscan(text, &id)
	return id
}
