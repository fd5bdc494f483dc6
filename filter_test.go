package stint_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

func TestASearchWalksWhereNothingItAsksForIsKeptApart(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		f     stint.Filter
		walks bool
	}{
		{stint.Filter{}, false}, // whatever comes first fits
		{stint.Filter{Before: 7, After: 3, Limit: 5}, false},
		{stint.Filter{Kind: "k"}, true}, {stint.Filter{Queue: "q"}, true}, {stint.Filter{Source: "s"}, true},
		{stint.Filter{Created: stint.Span{From: now}}, true}, {stint.Filter{Due: stint.Span{To: now}}, true}, {stint.Filter{Finished: stint.Span{To: now}}, true},
		{stint.Filter{Outcome: stint.OutcomeCompleted}, true}, {stint.Filter{Longer: time.Second}, true},
		{stint.Filter{States: []stint.State{stint.Completed}}, true}, {stint.Filter{States: []stint.State{stint.Failed, stint.Available}}, true},
		{stint.Filter{States: []stint.State{stint.Failed, stint.Running}}, false}, {stint.Filter{States: []stint.State{stint.Scheduled}, Kind: "k"}, false},
		{stint.Filter{Kind: "k", Tag: "t"}, false}, {stint.Filter{Kind: "k", URN: "u"}, false}, {stint.Filter{Kind: "k", Correlation: "c"}, false},
		{stint.Filter{Kind: "k", Schedule: "s"}, false}, {stint.Filter{Kind: "k", Faulty: true}, false}, {stint.Filter{Kind: "k", Attempts: 1}, false},
		{stint.Filter{Kind: "k", Longer: stint.LongAttempt}, false}, {stint.Filter{Kind: "k", Class: "c"}, false}, {stint.Filter{Kind: "k", Error: "e"}, false},
		{stint.Filter{Kind: "k", Outcome: stint.OutcomeLost}, false},
	} {
		if got := c.f.Walks(); got != c.walks {
			t.Errorf("%+v walks: %v", c.f, got)
		}
	}
}

func TestAFilterThatNamesAnythingDoesNotChooseAll(t *testing.T) {
	if !(stint.Filter{Limit: 5}).All() {
		t.Error("a filter with a limit alone does not choose all")
	}
	full := reflect.ValueOf(stint.Filter{
		States: []stint.State{stint.Failed}, Kind: "k", Queue: "q", Tag: "t", URN: "u", Source: "s", Faulty: true, Schedule: "s", Correlation: "c",
		Created: stint.Span{To: time.Now()}, Due: stint.Span{To: time.Now()}, Finished: stint.Span{To: time.Now()},
		Outcome: stint.OutcomeFailed, Class: "c", Error: "e", Attempts: 1, Longer: 1, Before: 1, After: 1, Limit: 1,
	})
	for i, field := range reflect.VisibleFields(full.Type()) {
		var one stint.Filter
		reflect.ValueOf(&one).Elem().Field(i).Set(full.Field(i))
		if full.Field(i).IsZero() || field.Name != "Limit" && one.All() {
			t.Errorf("a filter by %s chooses all, or is not tried here", field.Name)
		}
	}
}
