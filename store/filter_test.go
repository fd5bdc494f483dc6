package store_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

func TestASearchWalksWhereNothingItAsksForIsKeptApart(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		f     store.Filter
		walks bool
	}{
		{store.Filter{}, false}, // whatever comes first fits
		{store.Filter{Before: 7, After: 3, Limit: 5}, false},
		{store.Filter{Kind: "k"}, true}, {store.Filter{Queue: "q"}, true}, {store.Filter{Source: "s"}, true},
		{store.Filter{Created: store.TimeRange{From: now}}, true}, {store.Filter{Due: store.TimeRange{To: now}}, true}, {store.Filter{Finished: store.TimeRange{To: now}}, true},
		{store.Filter{Outcome: stint.OutcomeCompleted}, true}, {store.Filter{Longer: time.Second}, true},
		{store.Filter{States: []stint.State{stint.Completed}}, true}, {store.Filter{States: []stint.State{stint.Failed, stint.Available}}, true},
		{store.Filter{States: []stint.State{stint.Failed, stint.Running}}, false}, {store.Filter{States: []stint.State{stint.Scheduled}, Kind: "k"}, false},
		{store.Filter{Kind: "k", Tag: "t"}, false}, {store.Filter{Kind: "k", URN: "u"}, false}, {store.Filter{Kind: "k", Correlation: "c"}, false},
		{store.Filter{Kind: "k", Schedule: "s"}, false}, {store.Filter{Kind: "k", Faulty: true}, false}, {store.Filter{Kind: "k", Attempts: 1}, false},
		{store.Filter{Kind: "k", Longer: store.LongAttempt}, false}, {store.Filter{Kind: "k", Class: "c"}, false}, {store.Filter{Kind: "k", Error: "e"}, false},
		{store.Filter{Kind: "k", Outcome: stint.OutcomeLost}, false},
	} {
		if got := c.f.Walks(); got != c.walks {
			t.Errorf("%+v walks: %v", c.f, got)
		}
	}
}

func TestAFilterThatNamesAnythingDoesNotChooseAll(t *testing.T) {
	if !(store.Filter{Limit: 5}).All() {
		t.Error("a filter with a limit alone does not choose all")
	}
	full := reflect.ValueOf(store.Filter{
		States: []stint.State{stint.Failed}, Kind: "k", Queue: "q", Tag: "t", URN: "u", Source: "s", Faulty: true, NotRetried: true, Schedule: "s", Correlation: "c", Flow: 1, Flows: true,
		Created: store.TimeRange{To: time.Now()}, Due: store.TimeRange{To: time.Now()}, Finished: store.TimeRange{To: time.Now()},
		Outcome: stint.OutcomeFailed, Class: "c", Error: "e", Attempts: 1, Longer: 1, Before: 1, After: 1, Limit: 1,
	})
	for i, field := range reflect.VisibleFields(full.Type()) {
		var one store.Filter
		reflect.ValueOf(&one).Elem().Field(i).Set(full.Field(i))
		if full.Field(i).IsZero() || field.Name != "Limit" && one.All() {
			t.Errorf("a filter by %s chooses all, or is not tried here", field.Name)
		}
	}
}

func TestAURNWithAnAsteriskIsARangeOfBytes(t *testing.T) {
	for urn, want := range map[string][2]string{
		"order:47*": {"order:47", "order:48"}, "*": {"", ""}, "a**": {"a*", "a+"}, "ü*": {"ü", "ý"},
		"a\ud7ff*": {"a\ud7ff", "a\ue000"}, "a\U0010ffff*": {"a\U0010ffff", "b"}, "\U0010ffff*": {"\U0010ffff", ""},
	} {
		from, to, ok := store.Filter{URN: urn}.URNRange()
		if !ok || from != want[0] || to != want[1] {
			t.Errorf("%q is from %q to %q, %v", urn, from, to, ok)
		}
	}
	for _, urn := range []string{"", "order:47", "order:*47"} {
		if from, to, ok := (store.Filter{URN: urn}).URNRange(); ok {
			t.Errorf("%q is from %q to %q", urn, from, to)
		}
	}
}
