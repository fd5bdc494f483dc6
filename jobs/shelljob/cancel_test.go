//go:build unix

package shelljob

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

// running reports whether a process exists and is more than a zombie that
// nobody has collected yet.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return !os.IsNotExist(err) || !hasProc()
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}

// pids waits until a file lists n processes.
func pids(t *testing.T, file string, n int) []int {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		raw, _ := os.ReadFile(file)
		var all []int
		for s := bufio.NewScanner(strings.NewReader(string(raw))); s.Scan(); {
			if pid, err := strconv.Atoi(s.Text()); err == nil {
				all = append(all, pid)
			}
		}
		if len(all) == n && strings.HasSuffix(string(raw), "\n") {
			return all
		}
	}
	t.Fatalf("the commands did not start")
	return nil
}

func expectGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("process %d still runs", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// family starts a shell, a child and a grandchild, who all write their
// numbers into $F.
const family = `echo $$ >>$F; sh -c 'echo $$ >>$F; sh -c "echo \$\$ >>\$F; exec sleep 300" & wait' & wait`

func TestCancelEndsTheWholeProcessGroup(t *testing.T) {
	for _, tt := range []struct {
		name, before string
		cause        error
		grace        time.Duration
		least, most  time.Duration
		signal       string
	}{
		{"politely", "", stint.ErrTimeout, time.Minute, 0, 20 * time.Second, "SIGTERM"},
		{"by force after the grace", "trap '' TERM; ", stint.ErrStopping, 300 * time.Millisecond, 300 * time.Millisecond, 20 * time.Second, "SIGKILL"},
		{"by force before a stopping engine exits", "trap '' TERM; ", stint.ErrStopping, 0, time.Second, 4900 * time.Millisecond, "SIGKILL"},
		{"by force at once when fenced", "trap '' TERM; ", stint.ErrFenced, time.Minute, 0, 20 * time.Second, "SIGKILL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pids")
			ctx, cancel := context.WithCancelCause(t.Context())
			all := make(chan []int, 1)
			var cancelled time.Time
			go func() {
				list := pids(t, file, 3)
				cancelled = time.Now()
				cancel(tt.cause)
				all <- list
			}()
			got, err := perform(t, ctx, Config{Grace: tt.grace}, Args{Shell: tt.before + family, Env: map[string]string{"F": file}})
			expectGone(t, <-all)
			if took := time.Since(cancelled); took < tt.least || took > tt.most {
				t.Errorf("it took %v", took)
			}
			if !errors.Is(err, tt.cause) || got.Signal != tt.signal {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestACommandThatPrintsWithoutEndAndIgnoresItsEndIsKilledAndKeptToALimit(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, stint.ErrTimeout)
	defer cancel()
	got, err := perform(t, ctx, Config{OutputLimit: 1000, Grace: 300 * time.Millisecond}, Args{Shell: `trap '' TERM; yes "$(printf 'x\377y')"`})
	if !errors.Is(err, stint.ErrTimeout) || got.Signal != "SIGKILL" {
		t.Errorf("got %+v, %v", got, err)
	}
	if !got.Truncated || len(got.Output) > 2000 || !strings.HasPrefix(got.Output, "x\uFFFDy\n") {
		t.Errorf("of %d bytes the first are %.20q", len(got.Output), got.Output)
	}
}

func TestACancelledCommandThatEndsInPeaceIsNoSuccess(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(300*time.Millisecond, func() { cancel(stint.ErrStopping) })
	got, err := perform(t, ctx, Config{}, Args{Shell: `trap 'echo saved; exit 0' TERM; while :; do sleep 0.02; done`})
	if !errors.Is(err, stint.ErrStopping) || got.ExitCode != 0 || !strings.HasSuffix(got.Output, "saved\n") {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNothingIsStartedAfterTheCancel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stint.ErrFenced)
	_, err := perform(t, ctx, Config{}, Args{Argv: []string{"touch", file}})
	if _, missing := os.Stat(file); !errors.Is(err, stint.ErrFenced) || missing == nil {
		t.Errorf("got %v, file %v", err, missing)
	}
}

func TestChildrenDoNotOutliveTheAttempt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	got, err := perform(t, t.Context(), Config{}, Args{
		Shell: `sleep 300 >/dev/null 2>&1 & echo $! >$F; sleep 300 & echo $! >>$F; echo done`,
		Env:   map[string]string{"F": file},
	})
	if err != nil || got.Output != "done\n" {
		t.Errorf("got %+v, %v", got, err)
	}
	expectGone(t, pids(t, file, 2))
}

func TestGrandchildHoldingThePipeDoesNotHang(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	got, err := perform(t, t.Context(), Config{}, Args{
		Shell: `"$EXE" -test.run='^TestHelperLeavesTheGroup$' & while [ ! -s $F ]; do sleep 0.02; done; echo done`,
		Env:   map[string]string{"F": file, "EXE": exe, "STINT_TEST_LEAVE": file},
	})
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if err != nil || got.Output != "done\n" {
		t.Errorf("got %+v, %v", got, err)
	}
	pid := pids(t, file, 1)[0]
	if !running(pid) {
		t.Error("who left the group was ended with it: the test shows nothing")
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// TestHelperLeavesTheGroup is no test but a process that makes itself
// independent and keeps its output open.
func TestHelperLeavesTheGroup(t *testing.T) {
	file := os.Getenv("STINT_TEST_LEAVE")
	if file == "" {
		t.Skip("a helper of another test")
	}
	if _, err := syscall.Setsid(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
}
