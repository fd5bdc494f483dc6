package stint_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

// Mistakes in a flow are kept, and nothing is enqueued.
func TestMistakesInFlows(t *testing.T) {
	kind := stint.NewKind[int]("k")
	for want, build := range map[string]func() *stint.Flow{
		`"a" is there twice`: func() *stint.Flow {
			f := stint.NewFlow("f")
			kind.Add(f, "a", 1)
			kind.Add(f, "a", 2)
			return f
		},
		"needs one of a flow that was not enqueued": func() *stint.Flow {
			f, other := stint.NewFlow("f"), stint.NewFlow("g")
			kind.Add(f, "a", 1, stint.Needs(kind.Add(other, "b", 1)))
			return f
		},
		"needs one": func() *stint.Flow {
			f := stint.NewFlow("f")
			kind.Add(f, "a", 1, stint.Needs(nil))
			return f
		},
		"needs the flow that it is in": func() *stint.Flow {
			f := stint.NewFlow("f")
			kind.Add(f.Flow("in", "g").Flow("deep", "h"), "a", 1, stint.Needs(f.Node()))
			return f
		},
		"in a circle": func() *stint.Flow {
			f := stint.NewFlow("f")
			a, b := f.Flow("a", "g"), f.Flow("b", "g")
			kind.Add(b, "x", 1, stint.Needs(a.Node()))
			kind.Add(a, "y", 1, stint.Needs(b.Node()))
			return f
		},
		"is not run, and has none": func() *stint.Flow { return stint.NewFlow("f", stint.Delay(time.Hour)) },
		"only the flow as a whole has keys": func() *stint.Flow {
			f := stint.NewFlow("f")
			kind.Add(f, "a", 1, stint.IdempotencyKey("x"))
			return f
		},
		"name": func() *stint.Flow {
			f := stint.NewFlow("f")
			kind.Add(f, " a", 1)
			return f
		},
		"is in no flow": func() *stint.Flow { return stint.FlowFrom(context.Background()) },
	} {
		_, err := build().Enqueue(t.Context(), stint.NewClient(nil))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
	job, err := kind.New(1, stint.Needs(stint.Existing(7)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stint.NewClient(nil).EnqueueMany(t.Context(), []stint.NewJob{{Kind: "k"}, job}); err == nil || !strings.Contains(err.Error(), "is enqueued by itself") {
		t.Errorf("a job that is in no flow and needs others gives %v", err)
	}
	if _, err := stint.FlowFrom(t.Context()).Enqueue(t.Context(), nil); !errors.Is(err, stint.ErrNoAttempt) {
		t.Errorf("outside of a handler the error is %v", err)
	}
}
