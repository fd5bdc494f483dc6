package ops

import (
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
)

func TestWhatIsHiddenFromViewersIsThereForOthersWhoShareIt(t *testing.T) {
	l := &Local{HideArgs: true, As: &guard.Identity{Role: guard.Viewer}}
	shared := []stint.JobInfo{{Args: []byte(`{}`), Attempts: []stint.Attempt{{Result: []byte(`1`), Error: &stint.Failure{Message: "m", Stack: "s", Note: "n", Class: "c"}}}}}
	seen := l.seen(t.Context(), shared)
	if j := seen[0]; j.Args != nil || j.Attempts[0].Result != nil || j.Attempts[0].Error.Message+j.Attempts[0].Error.Stack+j.Attempts[0].Error.Note != "" {
		t.Errorf("a viewer sees %+v", j)
	}
	if j := shared[0]; j.Args == nil || j.Attempts[0].Result == nil || j.Attempts[0].Error.Message != "m" {
		t.Errorf("of what they share is left %+v", j)
	}
	steps := []view.Step{{Name: "a", Result: []byte(`1`)}, {Name: "b", Bytes: 20_000}}
	if l.seenSteps(t.Context(), steps); steps[0].Result != nil || steps[1].Bytes != 0 || steps[0].Name != "a" {
		t.Errorf("a viewer sees %+v", steps)
	}
	signals := []view.Signal{{SentSignal: stint.SentSignal{Name: "a", Value: []byte(`1`)}}, {SentSignal: stint.SentSignal{Name: "b"}, Bytes: 20_000}}
	if l.seenSignals(t.Context(), signals); signals[0].Value != nil || signals[1].Bytes != 0 || signals[0].Name != "a" {
		t.Errorf("a viewer sees %+v", signals)
	}
	told := view.Job{Log: []stint.LogLine{{Text: "secret"}}, Progress: []stint.Progress{{Fraction: 0.5, Text: "secret"}}}
	if l.seenLog(t.Context(), &told); told.Log != nil || told.Progress[0].Text != "" || told.Progress[0].Fraction != 0.5 {
		t.Errorf("a viewer sees %+v", told)
	}
	l.As.Role = guard.Operator
	if j := l.seen(t.Context(), shared)[0]; j.Args == nil {
		t.Errorf("an operator sees %+v", j)
	}
}
