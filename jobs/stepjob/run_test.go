package stepjob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// numbers offers operations on a list of numbers, and notes what ran.
func numbers(ran *[]string) *Operations {
	note := func(in Input, what string) { *ran = append(*ran, fmt.Sprintf("%d %s", in.Step, what)) }
	ops := NewOperations()
	ops.Add("count", Func(func(_ context.Context, in Input, args struct{ To int }) ([]int, error) {
		note(in, "count")
		var list []int
		for i := range args.To {
			list = append(list, i+1)
		}
		return list, nil
	}))
	ops.Add("add", Func(func(_ context.Context, in Input, _ struct{}) (int, error) {
		note(in, "add")
		var list []int
		if err := json.Unmarshal(in.Previous, &list); err != nil {
			return 0, err
		}
		sum := 0
		for _, n := range list {
			sum += n
		}
		return sum, nil
	}))
	ops.Add("tell", Func(func(_ context.Context, in Input, _ struct{}) (string, error) {
		note(in, "tell")
		return fmt.Sprintf("job %d, attempt %d, last %v: %s", in.Job.ID, in.Job.Attempt, in.Last, in.Previous), nil
	}))
	ops.Add("raw", Operation{Run: func(_ context.Context, in Input) (json.RawMessage, error) {
		note(in, "raw")
		var args struct {
			Result, Error string
			Panic         any
		}
		if err := json.Unmarshal(in.Args, &args); err != nil {
			return nil, err
		}
		if args.Panic != nil {
			panic(args.Panic)
		}
		var result json.RawMessage
		if args.Result != "" {
			result = json.RawMessage(args.Result)
		}
		if args.Error != "" {
			return result, errors.New(args.Error)
		}
		return result, nil
	}})
	return ops
}

// perform runs one attempt the way an engine does.
func perform(ctx context.Context, ops *Operations, args string) (Result, error) {
	mux := stint.NewMux()
	Register(mux, ops)
	raw, err := mux.Handler("steps")(ctx, &stint.Job{ID: 42, Kind: "steps", Attempt: 3, Args: json.RawMessage(args)})
	var r Result
	if raw != nil {
		if err := json.Unmarshal(raw, &r); err != nil {
			panic(err)
		}
	}
	return r, err
}

func isFinal(err error) bool {
	e := &store.Entry{Job: stint.Job{Attempt: 1}}
	return store.Conclude(e, store.Result{Outcome: stint.OutcomeFailed, Err: err}, time.Time{}, 0).Final
}

func TestStepsRunInOrderAndEachGetsTheResultOfTheOneBefore(t *testing.T) {
	var ran []string
	got, err := perform(t.Context(), numbers(&ran), `{"steps": [{"do": "count", "args": {"To": 4}}, {"do": "add", "name": "sum"}, {"do": "tell"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	want := Result{Steps: []StepResult{
		{Name: "count", Result: json.RawMessage(`[1,2,3,4]`)},
		{Name: "sum", Result: json.RawMessage(`10`)},
		{Name: "tell", Result: json.RawMessage(`"job 42, attempt 3, last true: 10"`)},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(ran, []string{"1 count", "2 add", "3 tell"}) {
		t.Errorf("what ran is %v", ran)
	}
}

func TestOnlyTheLastStepIsToldThatItIs(t *testing.T) {
	var ran []string
	got, err := perform(t.Context(), numbers(&ran), `{"steps": [{"do": "tell"}, {"do": "tell"}]}`)
	if err != nil || !strings.Contains(string(got.Steps[0].Result), "last false") || !strings.Contains(string(got.Steps[1].Result), "last true") {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAFailureNamesItsStepAndEndsTheAttempt(t *testing.T) {
	var ran []string
	got, err := perform(t.Context(), numbers(&ran), `{"steps": [
		{"do": "count", "args": {"To": 1}}, {"do": "raw", "args": {"Error": "no paper", "Result": "7"}, "name": "print"}, {"do": "tell"}]}`)
	if err == nil || err.Error() != "step 2 (print): no paper" {
		t.Errorf("the error is %v", err)
	}
	if step, ok := errors.AsType[*StepError](err); !ok || step.Step != 2 || step.Name != "print" {
		t.Errorf("the error is %#v", err)
	}
	if isFinal(err) {
		t.Error("it would not be tried again")
	}
	if !slices.Equal(ran, []string{"1 count", "2 raw"}) {
		t.Errorf("what ran is %v", ran)
	}
	want := []StepResult{{Name: "count", Result: json.RawMessage(`[1]`)}, {Name: "print", Result: json.RawMessage(`7`)}}
	if diff := cmp.Diff(want, got.Steps); diff != "" {
		t.Error(diff)
	}
}

func TestTheNextAttemptStartsFromTheFirstStep(t *testing.T) {
	var ran []string
	ops := numbers(&ran)
	const args = `{"steps": [{"do": "count", "args": {"To": 1}}, {"do": "raw", "args": {"Error": "no"}}]}`
	for range 2 {
		if _, err := perform(t.Context(), ops, args); err == nil {
			t.Fatal("it succeeded")
		}
	}
	if !slices.Equal(ran, []string{"1 count", "2 raw", "1 count", "2 raw"}) {
		t.Errorf("what ran is %v", ran)
	}
}

func TestAPanicNamesItsStepAndKeepsItsStack(t *testing.T) {
	var ran []string
	_, err := perform(t.Context(), numbers(&ran), `{"steps": [{"do": "raw", "args": {"Panic": "oh"}}]}`)
	if err == nil || err.Error() != "step 1 (raw): panic: oh" {
		t.Errorf("the error is %v", err)
	}
	if p, ok := errors.AsType[*stint.PanicError](err); !ok || !strings.Contains(p.Stack, "run_test.go") {
		t.Errorf("the error is %#v", err)
	}
}

func TestAStepMaySnoozeAndCancelTheJob(t *testing.T) {
	for want, end := range map[stint.Outcome]error{
		stint.OutcomeSnoozed:   stint.Snooze(time.Minute),
		stint.OutcomeCancelled: stint.Cancel("not needed any more"),
	} {
		ops := NewOperations()
		ops.Add("end", Operation{Run: func(context.Context, Input) (json.RawMessage, error) { return nil, end }})
		_, err := perform(t.Context(), ops, `{"steps": [{"do": "end"}]}`)
		var got store.Result
		if !store.AsResult(err, &got) || got.Outcome != want {
			t.Errorf("got %v of %v", got.Outcome, err)
		}
	}
}

func TestNoStepBeginsOnceTheContextHasEnded(t *testing.T) {
	var ran []string
	ops := numbers(&ran)
	ctx, cancel := context.WithCancelCause(t.Context())
	ops.Add("stop", Operation{Run: func(context.Context, Input) (json.RawMessage, error) {
		cancel(stint.ErrStopping)
		return nil, nil
	}})
	got, err := perform(ctx, ops, `{"steps": [{"do": "stop"}, {"do": "tell"}]}`)
	if !errors.Is(err, stint.ErrStopping) || !strings.HasPrefix(err.Error(), "step 2 (tell): ") || len(ran) != 0 || len(got.Steps) != 1 {
		t.Errorf("got %v, %v after %v", got, err, ran)
	}
}

func TestWhatCanNeverBeRightFailsForGoodBeforeTheFirstStep(t *testing.T) {
	for args, want := range map[string]string{
		`{"steps": [{"do": "tell"}, {"do": "nope"}]}`:                       `args.steps: step 2: there is no operation "nope"; there are add, count, raw, tell`,
		`{"steps": [{"do": "tell"}, {"do": "count", "args": {"Too": 4}}]}`:  `args.steps: step 2 (count): args: unknown field "Too"`,
		`{"steps": [{"do": "count", "name": "many", "args": {"To": "x"}}]}`: "args.steps: step 1 (many): args.To: got a JSON string, want int",
		`{"steps": []}`:             "args.steps: at least one step is needed",
		`{}`:                        "args.steps: at least one step is needed",
		`{"steps": [{"args": {}}]}`: "args.steps: step 1: do: the name is empty",
		`{"steps": [{"do": "tell", "name": " x"}]}`:                               `args.steps: step 1: name: " x" has space at an end`,
		`{"steps": [{"do": "tell", "with": 1}]}`:                                  `args: unknown field "with"`,
		`{"steps": [{"do": "tell"}], "retries": 3}`:                               `args: unknown field "retries"`,
		`{"steps": ["tell"]}`:                                                     "args.steps: got a JSON string, want stepjob.Step",
		`{"steps": [` + strings.Repeat(`{"do":"tell"},`, 100) + `{"do":"tell"}]}`: "args.steps: 101 steps are more than 100",
	} {
		var ran []string
		_, err := perform(t.Context(), numbers(&ran), args)
		if err == nil || err.Error() != want {
			t.Errorf("%.60s: the error is %v, want %s", args, err, want)
		}
		if !errors.Is(err, stint.ErrInvalid) || !isFinal(err) {
			t.Errorf("%.60s: %v would be tried again", args, err)
		}
		if len(ran) != 0 {
			t.Errorf("%.60s: %v ran all the same", args, ran)
		}
	}
}

func TestAResultThatIsNotJSONFailsForGood(t *testing.T) {
	var ran []string
	_, err := perform(t.Context(), numbers(&ran), `{"steps": [{"do": "raw", "args": {"Result": "{half"}}]}`)
	if err == nil || !isFinal(err) || !strings.Contains(err.Error(), "step 1 (raw): what it returned is not JSON") {
		t.Errorf("the error is %v", err)
	}
}

func TestResultsThatAreTooLargeTogetherLeaveOutTheFirst(t *testing.T) {
	ops := NewOperations()
	ops.Add("fill", Func(func(_ context.Context, in Input, _ struct{}) (string, error) {
		if in.Step > 1 && len(in.Previous) < 400<<10 {
			return "", errors.New("the result of the step before is missing")
		}
		return strings.Repeat("x", 400<<10), nil
	}))
	got, err := perform(t.Context(), ops, `{"steps": [{"do": "fill"}, {"do": "fill"}, {"do": "fill"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range got.Steps {
		if kept := s.Result != nil; kept == s.Omitted || kept != (i > 0) {
			t.Errorf("step %d: kept %v, omitted %v", i+1, kept, s.Omitted)
		}
	}
	raw, err := json.Marshal(got)
	if err != nil || valid.JSON("result", raw, 1<<20) != nil {
		t.Errorf("an engine would not keep %d bytes, %v", len(raw), err)
	}
}

func TestAHandlerAsAStepSeesTheJobWithTheStepsArguments(t *testing.T) {
	ops := NewOperations()
	ops.Add("handler", Of(func(_ context.Context, job *stint.Job) (json.RawMessage, error) {
		return fmt.Appendf(nil, `{"job": %d, "attempt": %d, "args": %s}`, job.ID, job.Attempt, job.Args), nil
	}))
	got, err := perform(t.Context(), ops, `{"steps": [{"do": "handler", "args": [1]}, {"do": "handler"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`{"job":42,"attempt":3,"args":[1]}`, `{"job":42,"attempt":3,"args":{}}`} {
		if string(got.Steps[i].Result) != want {
			t.Errorf("step %d got %s, want %s", i+1, got.Steps[i].Result, want)
		}
	}
}

func TestNumbersStayExact(t *testing.T) {
	ops := NewOperations()
	ops.Add("echo", Func(func(_ context.Context, _ Input, args map[string]any) (map[string]any, error) { return args, nil }))
	got, err := perform(t.Context(), ops, `{"steps": [{"do": "echo", "args": {"n": 12345678901234567890}}]}`)
	if err != nil || string(got.Steps[0].Result) != `{"n":12345678901234567890}` {
		t.Errorf("got %s, %v", got.Steps[0].Result, err)
	}
}

func TestOperationsThatCanNeverBeRightPanic(t *testing.T) {
	run := func(context.Context, Input) (json.RawMessage, error) { return nil, nil }
	for name, add := range map[string]func(o *Operations){
		"no name":   func(o *Operations) { o.Add("", Operation{Run: run}) },
		"no run":    func(o *Operations) { o.Add("a", Operation{}) },
		"there yet": func(o *Operations) { o.Add("a", Operation{Run: run}); o.Add("a", Operation{Run: run}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: it did not panic", name)
				}
			}()
			add(NewOperations())
		}()
	}
}

// enqueued keeps what was enqueued.
type enqueued struct{ jobs []stint.NewJob }

func (e *enqueued) Enqueue(_ context.Context, _ stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	e.jobs = append(e.jobs, jobs...)
	return make([]stint.Receipt, len(jobs)), nil
}

func TestWhatAStepEnqueuesBelongsToTheJobOfAllSteps(t *testing.T) {
	var store enqueued
	ops := NewOperations()
	ops.Add("enqueue", Func(func(ctx context.Context, in Input, _ struct{}) (string, error) {
		_, err := stint.ClientFrom(ctx).Enqueue(ctx, stint.NewJob{Kind: "child"})
		return in.Job.Correlation, err
	}))
	mux := stint.NewMux()
	Register(mux, ops)
	job := &stint.Job{ID: 42, Kind: "steps", Attempt: 1, Correlation: "order 7", Args: json.RawMessage(`{"steps":[{"do":"enqueue"},{"do":"enqueue"}]}`)}
	ctx := (&stint.Run{Job: job, Client: stint.NewClient(&store)}).Context(t.Context())
	raw, err := mux.Handler("steps")(ctx, job)
	if err != nil || strings.Count(string(raw), `"order 7"`) != 2 {
		t.Errorf("the steps came to %s, %v", raw, err)
	}
	for _, j := range store.jobs {
		if j.Correlation != "order 7" {
			t.Errorf("a step enqueued a job of %q", j.Correlation)
		}
	}
	if len(store.jobs) != 2 {
		t.Errorf("%d jobs were enqueued", len(store.jobs))
	}
}
