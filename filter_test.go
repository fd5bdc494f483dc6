package stint_test

import (
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
