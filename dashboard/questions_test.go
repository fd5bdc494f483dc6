package dashboard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/link"
)

func TestThePagesOfLinksAreAsTheyWere(t *testing.T) {
	page, err := answeringTemplate("/stint")
	if err != nil {
		t.Fatal(err)
	}
	l := link.Link{Job: 49, Question: "approve <b>", By: "<ann>", Expires: noon.Add(time.Hour)}
	q := &stint.Question{Text: "Pay 900 EUR\nto <ACME>?", Choices: []string{"pay <now>", "refuse"}, Until: noon.Add(72 * time.Hour)}
	for name, data := range map[string]answering{
		"open":     {Link: l, Question: q, Choices: q.Choices, Now: noon},
		"answered": {Link: l, Question: q, Answer: &stint.Answer{Choice: "pay <now>", By: "<bob>", Comment: "fine\n<b>", At: noon}, Now: noon},
		"over":     {Link: l, Question: q, What: "The time to answer is over.", Now: noon},
		"invalid":  {What: "This link is not valid. It may be incomplete: open it as it was sent.", Now: noon},
	} {
		var got strings.Builder
		if err := page.ExecuteTemplate(&got, "answering.html", data); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", "answering-"+name+".html")
		if *update {
			if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("it is another page than %s; if it is to be so: go test ./dashboard -update (-want +got):\n%s", file, diff)
		}
	}
}

func TestTheOverviewSaysHowManyQuestionsAreOpen(t *testing.T) {
	for n, want := range map[int]string{1: "1 question waits for an answer", 2: "2 questions wait for an answer", 100: "100 questions or more wait for an answer"} {
		if got := (overviewPage{seldom: seldom{Asked: n}}).AskedInWords(); got != want {
			t.Errorf("of %d it says %q, want %q", n, got, want)
		}
	}
}
