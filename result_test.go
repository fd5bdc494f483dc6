package stint_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

func TestWhatIsSetTakesThePlaceOfWhatIsReturned(t *testing.T) {
	returned, set := errors.New("returned"), errors.New("set")
	for name, c := range map[string]struct {
		do     func(ctx context.Context) error // sets something
		result string
		err    error
	}{
		"nothing":   {func(context.Context) error { return nil }, `"returned"`, returned},
		"a result":  {func(ctx context.Context) error { return stint.SetResult(ctx, 1) }, `1`, nil},
		"no result": {func(ctx context.Context) error { return stint.SetResult(ctx, nil) }, ``, nil},
		"an error":  {func(ctx context.Context) error { return stint.SetError(ctx, set, true) }, ``, set},
		"a result, then an error": {func(ctx context.Context) error {
			return errors.Join(stint.SetResult(ctx, 1), stint.SetError(ctx, set, true))
		}, `1`, set},
		"an error, then a result": {func(ctx context.Context) error {
			return errors.Join(stint.SetError(ctx, set, false), stint.SetResult(ctx, 1))
		}, `1`, nil},
		"an error that is taken back": {func(ctx context.Context) error {
			return errors.Join(stint.SetError(ctx, set, false), stint.SetError(ctx, nil, false))
		}, ``, nil},
	} {
		var a stint.Run
		if err := c.do(a.Context(t.Context())); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		result, err := a.Settle(json.RawMessage(`"returned"`), returned)
		if string(result) != c.result || err != c.err {
			t.Errorf("%s: it came to %s, %v; want %s, %v", name, result, err, c.result, c.err)
		}
	}
}

func TestASetErrorSaysWhetherItIsRetriable(t *testing.T) {
	for _, retriable := range []bool{true, false} {
		var a stint.Run
		if err := stint.SetError(a.Context(t.Context()), errors.New("no"), retriable); err != nil {
			t.Fatal(err)
		}
		_, err := a.Settle(nil, nil)
		x := store.Conclude(&store.Entry{Job: stint.Job{Attempt: 1}}, store.Result{Outcome: stint.OutcomeFailed, Err: err}, time.Now(), 0)
		if x.Final == retriable {
			t.Errorf("retriable %v, and it is final: %v", retriable, x.Final)
		}
	}
}

func TestNothingIsSetByWhatCannotBeEncodedOrComesTooLate(t *testing.T) {
	var a stint.Run
	ctx := a.Context(t.Context())
	if err := stint.SetResult(ctx, func() {}); err == nil {
		t.Error("a function was encoded")
	}
	if result, err := a.Settle(json.RawMessage(`2`), nil); string(result) != "2" || err != nil {
		t.Errorf("it came to %s, %v", result, err)
	}
	if err := stint.SetResult(ctx, 1); !errors.Is(err, stint.ErrNoAttempt) {
		t.Errorf("after the end, setting says %v", err)
	}
}
