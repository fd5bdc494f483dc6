package ops

import (
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
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
	l.As.Role = guard.Operator
	if j := l.seen(t.Context(), shared)[0]; j.Args == nil {
		t.Errorf("an operator sees %+v", j)
	}
}
