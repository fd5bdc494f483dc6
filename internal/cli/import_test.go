package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/stint-go/stint/internal/takeover"
)

func TestAReportOfAnImportSaysWhatWasTakenWhatIsLeftAndWhatHasNoPlace(t *testing.T) {
	var out, errs strings.Builder
	a := &app{out: &out, err: &errs}
	r := &takeover.Report{
		Jobs: 1234, Taken: []takeover.Count{{Queue: "mail", Kind: "send", State: "retryable", Jobs: 1234}}, Known: 1,
		Left:    []takeover.Count{{Queue: "mail", Kind: "send", State: "running", Jobs: 5}},
		Refused: 3, Refusals: []takeover.Refusal{{ID: 77, Queue: "mail", Kind: "send", Why: "args: too large"}},
		Failed: 2, Unique: 4, Paused: []string{"mail"},
	}
	if err := a.showImport(r, "imported"); !errors.Is(err, errReported) {
		t.Errorf("the error is %v, want that of jobs that were refused", err)
	}
	want := `1,234 jobs imported

imported:
QUEUE  KIND  STATE      JOBS
mail   send  retryable  1,234

left in River:
QUEUE  KIND  STATE    JOBS
mail   send  running  5

not acceptable, left in River: 3 jobs
ID  QUEUE  KIND  WHY
77  mail   send  args: too large
`
	if out.String() != want {
		t.Errorf("the report is\n%s", out.String())
	}
	want = `1 job in stint already, from an import that was interrupted
2 jobs with errors of earlier attempts, which stay in River
4 jobs unique in River, and with no unique key in stint
the queue mail is paused in River: stint queues pause mail pauses it in stint
`
	if errs.String() != want {
		t.Errorf("the notes are\n%s", errs.String())
	}
	if err := a.showImport(&takeover.Report{}, "to import"); err != nil || !strings.HasSuffix(out.String(), "0 jobs to import\n") {
		t.Errorf("of nothing the report is\n%s%v", out.String(), err)
	}
}
