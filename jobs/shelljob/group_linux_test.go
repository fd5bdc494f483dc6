package shelljob

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

func TestTheCommandDiesWithAnEngineThatIsKilled(t *testing.T) {
	if file := os.Getenv("STINT_TEST_ENGINE"); file != "" {
		_, err := perform(t, t.Context(), Config{}, Args{Shell: `echo $$ >$F; exec sleep 300`, Env: map[string]string{"F": file}})
		t.Fatalf("the engine outlived its command: %v", err)
	}
	file := filepath.Join(t.TempDir(), "pids")
	engine := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	engine.Env = append(os.Environ(), "STINT_TEST_ENGINE="+file)
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	command := pids(t, file, 1)
	_ = engine.Process.Kill()
	_ = engine.Wait()
	for deadline := time.Now().Add(10 * time.Second); running(command[0]) && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	expectGone(t, command)
}

func TestTheCommandDoesNotDieWithAThread(t *testing.T) {
	stop := make(chan struct{})
	var busy, work sync.WaitGroup
	for range 4 {
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond):
				}
				// A thread that is still locked when its goroutine ends, ends
				// with it.
				busy.Go(runtime.LockOSThread)
			}
		})
	}
	for range 50 {
		work.Go(func() {
			if _, err := perform(t, t.Context(), Config{}, Args{Argv: []string{"sleep", "0.5"}, Stdin: "x"}); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	close(stop)
	busy.Wait()
}
