package sim

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// workerVariable makes a test binary a worker.
const workerVariable = "STINT_SIM_WORKER"

// beginning starts the line with which a worker announces a seed: should it
// crash, that tells which one it was.
const beginning = "begin seed "

// employ has seeds run by as many workers as there are processors. A worker
// is this binary as a process of its own with one processor and without
// preemption: there, least is left to chance.
func employ(t *testing.T, seeds []Seed) {
	t.Helper()
	began := time.Now()
	n := min(runtime.NumCPU(), len(seeds))
	var all sync.WaitGroup
	for i := range n {
		var mine strings.Builder
		for k := i; k < len(seeds); k += n {
			fmt.Fprintln(&mine, seeds[k])
		}
		all.Go(func() {
			if out, err := employee(t, mine.String()); err != nil {
				t.Errorf("a worker failed: %v\n%s", err, out)
			}
		})
	}
	all.Wait()
	t.Logf("%d seeds took %v", len(seeds), time.Since(began).Round(time.Millisecond))
}

func employee(t *testing.T, seeds string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	patience := time.Minute + time.Duration(strings.Count(seeds, "\n"))*30*time.Second
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestSeeds$", "-test.timeout="+patience.String())
	debug := strings.TrimPrefix(os.Getenv("GODEBUG")+",asyncpreemptoff=1", ",")
	cmd.Env = append(os.Environ(), workerVariable+"=1", "GOMAXPROCS=1", "GODEBUG="+debug)
	cmd.Stdin = strings.NewReader(seeds)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return withoutBeginnings(out.String()), err
}

// withoutBeginnings leaves out the seeds that a worker announced, but for the
// last.
func withoutBeginnings(out string) string {
	var kept []string
	last := ""
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, beginning) {
			last = line
			continue
		}
		kept = append(kept, line)
	}
	return "its last: " + last + strings.Join(kept, "")
}
