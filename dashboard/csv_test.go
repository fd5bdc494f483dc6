package dashboard_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
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

// shortOf is a store that fails to list jobs below an ID.
type shortOf struct {
	*sqlite.Store
	id stint.ID
}

// Jobs implements [store.Inspector].
func (s shortOf) Jobs(ctx context.Context, f store.Filter) ([]stint.JobInfo, error) {
	if f.Before != 0 && f.Before < s.id {
		return nil, errors.New("it is away")
	}
	return s.Store.Jobs(ctx, f)
}

// A file that is not whole is none: whoever fetches it sees that it was cut off.
func TestAFileThatIsCutOffIsNoWholeOne(t *testing.T) {
	s := open(t)
	jobs := make([]stint.NewJob, 1500)
	for i := range jobs {
		jobs[i] = stint.NewJob{Kind: "k", Queue: "q", Args: json.RawMessage(`{}`)}
	}
	if _, err := stint.NewClient(s.store).EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	for at, whole := range map[stint.ID]bool{0: true, 1400: false, 700: false} {
		board, err := dashboard.New(shortOf{s.store, at}, dashboard.Config{Guard: guard.Config{Stranger: guard.Admin}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(board)
		res, err := http.Get(server.URL + "/jobs.csv") // compressed, as browsers ask for it
		var text []byte
		if err == nil {
			text, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		if (err == nil) != whole || whole && strings.Count(string(text), "\n") != 1501 {
			t.Errorf("of a store that is away below %d come %d bytes, error %v", at, len(text), err)
		}
		server.Close()
	}
}
