package stint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stint-go/stint"
)

// says returns middleware that notes when it is entered and left.
func says(log *[]string, name string) stint.Middleware {
	return func(next stint.Handler) stint.Handler {
		return func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
			*log = append(*log, name)
			defer func() { *log = append(*log, "/"+name) }()
			return next(ctx, job)
		}
	}
}

func TestMiddlewareWrapsTheHandlerFirstAddedOutermost(t *testing.T) {
	var log []string
	mux := stint.NewMux()
	note := func(context.Context, *stint.Job) (json.RawMessage, error) { log = append(log, "work"); return nil, nil }
	mux.Add(stint.KindInfo{Name: "k"}, note).Use(says(&log, "c"), says(&log, "d"))
	mux.Use(says(&log, "a"))
	mux.Use(says(&log, "b"))
	mux.Add(stint.KindInfo{Name: "other"}, note)
	for kind, want := range map[string]string{"k": "a b c d work /d /c /b /a", "other": "a b work /b /a"} {
		log = nil
		if _, err := mux.Handler(kind)(t.Context(), &stint.Job{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(log, " "); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
	if mux.Handler("unknown") != nil {
		t.Error("middleware made a handler of nothing")
	}
}

func TestMiddlewareIsGivenEachHandlerOnce(t *testing.T) {
	mux, n := stint.NewMux(), 0
	mux.Use(func(next stint.Handler) stint.Handler { n++; return next })
	for _, kind := range []string{"a", "b"} {
		mux.Add(stint.KindInfo{Name: kind}, func(context.Context, *stint.Job) (json.RawMessage, error) { return nil, nil })
	}
	for range 3 {
		mux.Handler("a")
		mux.Handler("b")
	}
	if n != 2 {
		t.Errorf("it was called %d times for two kinds", n)
	}
}

func TestWhatComesTooLateForAMuxPanics(t *testing.T) {
	mux := stint.NewMux()
	r := mux.Add(stint.KindInfo{Name: "k"}, func(context.Context, *stint.Job) (json.RawMessage, error) { return nil, nil })
	mux.Handler("k")
	for what, f := range map[string]func(){
		"middleware": func() { mux.Use() }, "middleware of a kind": func() { r.Use() },
		"hooks": func() { mux.Hook(stint.Hooks{}) }, "hooks of a kind": func() { r.Hook(stint.Hooks{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s were ignored in silence", what)
				}
			}()
			f()
		}()
	}
}

func TestMiddlewareSeesWhatAHandlerSetAndMayReplaceIt(t *testing.T) {
	set := errors.New("set")
	var seen error
	mux := stint.NewMux()
	mux.Use(func(next stint.Handler) stint.Handler {
		return func(ctx context.Context, job *stint.Job) (result json.RawMessage, err error) {
			defer func() {
				if v := recover(); v != nil {
					err = fmt.Errorf("recovered: %v", v)
				}
			}()
			result, err = next(ctx, job)
			seen = err
			return result, nil
		}
	})
	mux.Add(stint.KindInfo{Name: "sets"}, func(ctx context.Context, _ *stint.Job) (json.RawMessage, error) {
		return nil, stint.SetError(ctx, set, true)
	})
	mux.Add(stint.KindInfo{Name: "panics"}, func(ctx context.Context, _ *stint.Job) (json.RawMessage, error) {
		_ = stint.SetResult(ctx, "all is well")
		panic("not so")
	})
	run := func(kind string) (json.RawMessage, error) {
		var a stint.Run
		return a.Settle(mux.Handler(kind)(a.Context(t.Context()), &stint.Job{}))
	}
	if _, err := run("sets"); seen != set || err != nil {
		t.Errorf("the middleware saw %v, and its own answer became %v", seen, err)
	}
	if result, err := run("panics"); result != nil || err == nil {
		t.Errorf("a handler that set a result and panicked came to %s, %v", result, err)
	}
}

func TestHooksAreListedTheMuxsFirst(t *testing.T) {
	mux := stint.NewMux()
	var log []string
	hooks := func(name string) stint.Hooks {
		return stint.Hooks{Finally: func(context.Context, *stint.Job, *stint.Attempt) error { log = append(log, name); return nil }}
	}
	mux.Add(stint.KindInfo{Name: "k"}, func(context.Context, *stint.Job) (json.RawMessage, error) { return nil, nil }).Hook(hooks("kind"))
	mux.Add(stint.KindInfo{Name: "l"}, func(context.Context, *stint.Job) (json.RawMessage, error) { return nil, nil })
	mux.Hook(hooks("mux"))
	for kind, want := range map[string]string{"k": "mux kind", "l": "mux", "unknown": ""} {
		log = nil
		for _, h := range mux.Hooks(kind) {
			_ = h.Finally(t.Context(), nil, nil)
		}
		if got := strings.Join(log, " "); got != want {
			t.Errorf("%s has the hooks %s, want %s", kind, got, want)
		}
	}
}

func TestEnqueueMiddlewareMayChangeRefuseAndSeeWhatCameOfIt(t *testing.T) {
	var k kept
	var log []string
	tag := func(next stint.EnqueueFunc) stint.EnqueueFunc {
		return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
			log = append(log, "tag")
			for i := range jobs {
				stint.Tag("audited")(&jobs[i])
			}
			receipts, err := next(ctx, tx, jobs)
			log = append(log, fmt.Sprintf("tagged %d, %v", len(receipts), err))
			return receipts, err
		}
	}
	closed := errors.New("we are closed")
	guard := func(next stint.EnqueueFunc) stint.EnqueueFunc {
		return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
			if slices.ContainsFunc(jobs, func(j stint.NewJob) bool { return j.Queue == "closed" }) {
				return nil, closed
			}
			if tx.Handle != nil {
				log = append(log, "in a transaction")
			}
			return next(ctx, tx, jobs)
		}
	}
	client := stint.NewClient(&k).Use(tag, guard).Limit(stint.Limits{Args: 10})
	mine := []stint.NewJob{{Kind: "a"}, {Kind: "b", Tags: []string{"x"}}}
	if _, err := client.With(stint.Tx{Handle: 1}).EnqueueMany(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if len(k.jobs) != 2 || k.jobs[0].Tags[0] != "audited" || len(k.jobs[1].Tags) != 2 || k.jobs[0].Queue != "default" {
		t.Errorf("stored were %+v", k.jobs)
	}
	if mine[0].Tags != nil || len(mine[1].Tags) != 1 {
		t.Errorf("the caller's own jobs became %+v", mine)
	}
	if _, err := client.Enqueue(t.Context(), stint.NewJob{Kind: "c", Queue: "closed"}); err != closed || len(k.jobs) != 2 {
		t.Errorf("refused with %v, and %d jobs are stored", err, len(k.jobs))
	}
	if _, err := client.Enqueue(t.Context(), stint.NewJob{Kind: "c", Args: json.RawMessage(`"longer than ten"`)}); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("a limit that was set after the middleware: %v", err)
	}
	want := "tag; in a transaction; tagged 2, <nil>; tag; tagged 0, we are closed; tag; tagged 0, args: 17 bytes are more than the limit of 10"
	if got := strings.Join(log, "; "); got != want {
		t.Errorf("\ngot  %s\nwant %s", got, want)
	}
}

func TestWhatEnqueueMiddlewareChangedIsChecked(t *testing.T) {
	var k kept
	client := stint.NewClient(&k).Use(func(next stint.EnqueueFunc) stint.EnqueueFunc {
		return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
			jobs[1].Queue = "*"
			return next(ctx, tx, jobs)
		}
	})
	_, err := client.EnqueueMany(t.Context(), []stint.NewJob{{Kind: "a"}, {Kind: "b"}})
	if !errors.Is(err, stint.ErrInvalid) || len(k.jobs) != 0 {
		t.Errorf("%v, and %d jobs are stored", err, len(k.jobs))
	}
}

func TestEnqueueMiddlewareAnswersForEachJob(t *testing.T) {
	var k kept
	client := stint.NewClient(&k).Use(func(next stint.EnqueueFunc) stint.EnqueueFunc {
		return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
			return nil, nil // as though there had been none
		}
	})
	if id, err := client.Enqueue(t.Context(), stint.NewJob{Kind: "a"}); err == nil {
		t.Errorf("a job that was not stored has the id %d", id)
	}
}

func TestEnqueueMiddlewareSeesWhatIsADuplicate(t *testing.T) {
	var seen []stint.Receipt
	client := stint.NewClient(&memory{}).Use(func(next stint.EnqueueFunc) stint.EnqueueFunc {
		return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
			receipts, err := next(ctx, tx, jobs)
			seen = append(seen, receipts...)
			return receipts, err
		}
	})
	for range 2 {
		if id, err := client.Enqueue(t.Context(), stint.NewJob{Kind: "k", IdempotencyKey: "a"}); err != nil || id != 1 {
			t.Errorf("answered with job %d, %v", id, err)
		}
	}
	if want := []stint.Receipt{{ID: 1}, {ID: 1, Duplicate: true}}; !slices.Equal(seen, want) {
		t.Errorf("it saw %+v, want %+v", seen, want)
	}
}
