package dashboard_test

import (
	"encoding/csv"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stint-go/stint"
)

func TestJobsComeAsAFileForASpreadsheet(t *testing.T) {
	s := open(t)
	jobs := make([]stint.NewJob, 1234)
	for i := range jobs {
		jobs[i] = stint.NewJob{Kind: "k", Queue: "q", Args: json.RawMessage(`{"secret":1}`), URN: "=1+1", Tags: []string{`a "b"`, "c,d"}}
	}
	jobs[7].Kind = "other"
	if _, err := stint.NewClient(s.store).EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	if text := s.page("/jobs?kind=k"); !strings.Contains(text, `href="/jobs.csv?kind=k"`) {
		t.Error("the list has no link to the file")
	}
	rows, err := csv.NewReader(strings.NewReader(s.page("/jobs.csv?kind=k"))).ReadAll()
	if err != nil || len(rows) != 1234 {
		t.Fatalf("it has %d rows, want a head and 1,233: %v", len(rows), err)
	}
	seen := map[string]bool{}
	for _, row := range rows[1:] {
		if seen[row[0]] = true; row[1] != "available" || row[2] != "k" || row[3] != "q" || row[6] != `a "b" c,d` || row[7] != "'=1+1" || row[11] == "" {
			t.Fatalf("a row is %q", row)
		}
	}
	if len(seen) != 1233 {
		t.Errorf("%d jobs are there", len(seen))
	}
	if status, _ := s.get("/jobs.csv?" + url.Values{"finished_after": {"soon"}}.Encode()); status != 422 {
		t.Errorf("for a filter that means nothing the status is %d", status)
	}
	if status, _ := s.get("/jobs.csv?text=secret"); status != 403 {
		t.Errorf("who may not see arguments searches them: %d", status)
	}
}
