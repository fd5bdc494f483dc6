package stint_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

type runner interface {
	Run(ctx context.Context, job *stint.Job, args int) error
}

// counter is a handler with a field of its own.
type counter struct {
	add func(int)
	n   int
}

func (c *counter) Run(_ context.Context, _ *stint.Job, by int) error {
	c.n += by
	c.add(c.n)
	return nil
}

func TestEachRunHasAFreshRunnerWithItsDependencies(t *testing.T) {
	var sums []int
	mux := stint.NewMux()
	stint.HandleNew(mux, stint.NewKind[int]("count"), func(context.Context, *stint.Job) (*counter, error) {
		return &counter{add: func(n int) { sums = append(sums, n) }}, nil
	})
	for range 2 {
		if _, err := mux.Handler("count")(t.Context(), &stint.Job{Args: json.RawMessage(`2`)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(sums) != 2 || sums[0] != 2 || sums[1] != 2 {
		t.Errorf("the sums are %v: a run saw what another left", sums)
	}
}

func TestAConstructorThatFailsNamesItsKind(t *testing.T) {
	down := errors.New("no database")
	for name, c := range map[string]struct {
		construct func(context.Context, *stint.Job) (runner, error)
		args      string
		want      string
	}{
		"an error":      {func(context.Context, *stint.Job) (runner, error) { return nil, down }, `1`, "construct the handler of k: no database"},
		"a panic":       {func(context.Context, *stint.Job) (runner, error) { panic(down) }, `1`, "construct the handler of k: panic: no database"},
		"nothing":       {func(context.Context, *stint.Job) (runner, error) { return nil, nil }, `1`, "construct the handler of k: the constructor returned nil"},
		"bad arguments": {func(context.Context, *stint.Job) (runner, error) { panic("called") }, `"x"`, "decode the arguments: json: cannot unmarshal string into Go value of type int"},
	} {
		mux := stint.NewMux()
		stint.HandleNew(mux, stint.NewKind[int]("k"), c.construct)
		_, err := mux.Handler("k")(t.Context(), &stint.Job{Args: json.RawMessage(c.args)})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		p, panicked := errors.AsType[*stint.PanicError](err)
		if panicked != (name == "a panic") || panicked && (p.Stack == "" || retry.ErrorClasses(err)[0] != "panic") {
			t.Errorf("%s: the class is %v, the stack %q", name, retry.ErrorClasses(err), p)
		}
	}
}
