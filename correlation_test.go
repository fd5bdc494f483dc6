package stint_test

import (
	"context"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

func TestCorrelateLeavesWhatIsSaid(t *testing.T) {
	entries := make([]store.Entry, 5)
	for i, id := range []stint.ID{9, 10, 1, 9223372036854775807, 42} {
		entries[i].ID = id
	}
	entries[2].Correlation = "said"
	store.Correlate(entries)
	for i, want := range []string{"9", "10", "said", "9223372036854775807", "42"} {
		if entries[i].Correlation != want {
			t.Errorf("that of entry %d is %q, want %q", i, entries[i].Correlation, want)
		}
	}
	store.Correlate(nil)
}

func TestAnAttemptLeadsToEachOfItsContexts(t *testing.T) {
	type key struct{}
	a := &stint.Run{Job: &stint.Job{ID: 7, Correlation: "c"}}
	first := a.Context(context.WithValue(t.Context(), key{}, 1))
	second := a.Context(context.WithValue(first, key{}, 2))
	for i, ctx := range []context.Context{first, second} {
		if ctx.Value(key{}) != i+1 || stint.JobFrom(ctx) != a.Job {
			t.Errorf("context %d leads to %v and %v", i+1, ctx.Value(key{}), stint.JobFrom(ctx))
		}
	}
	if job := stint.JobFrom((*stint.Run)(nil).Context(first)); job != nil {
		t.Errorf("no attempt leads to %v", job)
	}
}
