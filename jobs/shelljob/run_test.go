//go:build unix

package shelljob

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// perform runs one attempt the way an engine does.
func perform(t *testing.T, ctx context.Context, c Config, args Args) (Result, error) {
	t.Helper()
	mux := stint.NewMux()
	Register(mux, c)
	job, err := Kind.New(args)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := mux.Handler("sh")(ctx, &stint.Job{ID: 42, Kind: "sh", Attempt: 3, Queue: "default", Args: job.Args})
	var r Result
	if raw != nil {
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
	}
	return r, err
}

func isFinal(err error) bool {
	end := store.Result{Outcome: stint.OutcomeFailed, Err: err}
	e := &store.Entry{Job: stint.Job{Attempt: 1}}
	return store.Conclude(e, end, e.Due, 0).Final
}

func TestArgumentsReachTheProgramWithoutAShell(t *testing.T) {
	got, err := perform(t, t.Context(), Config{}, Args{Argv: []string{"printf", "%s|", "$HOME", "a b", "*", "; exit 1"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Result{Output: "$HOME|a b|*|; exit 1|"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAShellIsThereForThoseWhoAsk(t *testing.T) {
	dir := t.TempDir()
	got, err := perform(t, t.Context(), Config{}, Args{
		Shell: `cat; echo "$GREETING $STINT_JOB $STINT_ATTEMPT $STINT_QUEUE" | tr a-z A-Z; pwd -P; ls -a >f; cat f | wc -l | tr -d ' '`,
		Dir:   dir,
		Env:   map[string]string{"GREETING": "hello"},
		Stdin: "read me\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(got.Output, "\n")
	if len(lines) != 5 || lines[0] != "read me" || lines[1] != "HELLO 42 3 DEFAULT" || !strings.HasSuffix(lines[2], dir) || lines[3] != "3" {
		t.Errorf("got %q", lines)
	}
}

func TestBothStreamsAreKeptInTheOrderOfArrival(t *testing.T) {
	got, err := perform(t, t.Context(), Config{}, Args{Shell: "echo 1; echo 2 >&2; echo 3; echo 4 >&2"})
	if err != nil || got.Output != "1\n2\n3\n4\n" {
		t.Errorf("got %q, %v", got.Output, err)
	}
}

func TestExitCodeOtherThanZeroIsAFailureThatShowsTheEndOfTheOutput(t *testing.T) {
	got, err := perform(t, t.Context(), Config{}, Args{
		Shell: "i=0; while [ $i -lt 1000 ]; do echo step $i; i=$((i+1)); done; echo 'disk full' >&2; exit 3",
	})
	exit, ok := errors.AsType[*ExitError](err)
	if !ok || exit.Code != 3 {
		t.Fatalf("got %v", err)
	}
	if msg := err.Error(); !strings.HasPrefix(msg, "exit code 3: [...]\nstep ") || !strings.HasSuffix(msg, "\nstep 999\ndisk full") || len(msg) > 1100 {
		t.Errorf("the message is %q", msg)
	}
	if got.ExitCode != 3 || !strings.HasPrefix(got.Output, "step 0\nstep 1\n") || got.Truncated {
		t.Errorf("the result is not kept: %+v", got)
	}
	if isFinal(err) {
		t.Error("the failure is final, whatever the policy says")
	}
	if class := retry.ErrorClasses(err)[0]; class != "shelljob.ExitError" {
		t.Errorf("policies see it as a %s", class)
	}
}

func TestASilentFailureSaysSo(t *testing.T) {
	if _, err := perform(t, t.Context(), Config{}, Args{Argv: []string{"false"}}); err == nil || err.Error() != "exit code 1, no output" {
		t.Errorf("got %v", err)
	}
}

func TestASignalIsAFailureThatNamesIt(t *testing.T) {
	got, err := perform(t, t.Context(), Config{}, Args{Shell: "echo bye; kill -USR1 $$"})
	if err == nil || err.Error() != "ended by SIGUSR1: bye" {
		t.Errorf("got %v", err)
	}
	if got.Signal != "SIGUSR1" || got.ExitCode <= 128 {
		t.Errorf("got %+v", got)
	}
}

func TestEndlessOutputIsKeptToALimit(t *testing.T) {
	got, err := perform(t, t.Context(), Config{OutputLimit: 1000}, Args{Shell: "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last"})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Truncated || len(got.Output) > 1100 || !strings.HasPrefix(got.Output, "first\nxxx") || !strings.HasSuffix(got.Output, "xxx\nlast\n") {
		t.Errorf("got %+v", got)
	}
}

func TestWhatAppearsWithADeploymentIsWorthARetry(t *testing.T) {
	for name, args := range map[string]Args{
		"program":   {Argv: []string{"no-such-program-here"}},
		"path":      {Argv: []string{"/no/such/program"}},
		"directory": {Argv: []string{"true"}, Dir: "/no/such/directory"},
		"in shell":  {Shell: "no-such-program-here"},
	} {
		_, err := perform(t, t.Context(), Config{}, args)
		if err == nil || isFinal(err) || !strings.Contains(err.Error(), "no") {
			t.Errorf("%s: got %v", name, err)
		}
		t.Log(err)
	}
}

func TestInvalidArgumentsFailForGood(t *testing.T) {
	_, err := perform(t, t.Context(), Config{}, Args{})
	if !errors.Is(err, stint.ErrInvalid) || !isFinal(err) {
		t.Errorf("got %v", err)
	}
}

func TestStandardInputThatNobodyReadsIsNoFailure(t *testing.T) {
	if _, err := perform(t, t.Context(), Config{}, Args{Argv: []string{"true"}, Stdin: strings.Repeat("x", 1<<20)}); err != nil {
		t.Error(err)
	}
}
