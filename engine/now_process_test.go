package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/storetest"
)

// doomedEnv names the database of a process that runs a job now and dies.
const doomedEnv = "STINT_ENGINE_DOOMED"

// doomed is that process: the test binary, started again. It says which job it
// has begun, and then only waits to be killed.
func doomed(database string) {
	ctx := context.Background()
	s, err := openAny(ctx, database)
	if err == nil {
		mux := stint.NewMux()
		handle(mux, "work", func(_ context.Context, job *stint.Job) error {
			fmt.Println(job.ID)
			select {}
		})
		var e *engine.Engine
		if e, err = engine.New(s, mux, engine.Config{Instance: "doomed"}); err == nil {
			_, err = e.RunNow(ctx, newJob("work", `{}`))
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func openAny(ctx context.Context, database string) (anyStore, error) {
	if strings.Contains(database, "://") {
		return postgres.Open(ctx, database)
	}
	return sqlite.Open(ctx, database)
}

func TestAProcessThatIsKilledInTheMiddleIsChargedAndItsJobRunsElsewhere(t *testing.T) {
	for name, database := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "jobs.db") },
		"postgres": func(t *testing.T) string { return migrated.New(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := database(t)
			s, err := openAny(t.Context(), where)
			if err != nil {
				t.Fatal(err)
			}
			switch s := s.(type) {
			case *sqlite.Store:
				t.Cleanup(func() { _ = s.Close() })
			case *postgres.Store:
				t.Cleanup(s.Close)
			}
			t.Cleanup(func() { storetest.Verify(t, s) })
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), doomedEnv+"="+where)
			cmd.Stderr = t.Output()
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			id, wrong := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
			if err != nil || wrong != nil {
				t.Fatalf("it said %q, %v", line, err)
			}
			if job := info(t, s, stint.ID(id)); job.State != stint.Running || !job.Begun {
				t.Errorf("it is %s, announced %v", job.State, job.Begun)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			mux := stint.NewMux()
			handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
			start(t, s, mux, engine.Config{Instance: "other"})
			job := until(t, s, stint.ID(id), stint.Completed)
			if len(job.Attempts) != 2 || job.Attempts[0].Outcome != stint.OutcomeLost || job.Attempts[0].Instance != "doomed" ||
				job.Attempts[1].Attempt != 2 || job.Losses != 1 {
				t.Errorf("the executions are %+v", job.Attempts)
			}
		})
	}
}
