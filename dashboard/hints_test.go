package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/guard"
)

func TestPagesWithNothingOnThemSayWhatToDo(t *testing.T) {
	s := open(t)
	s.knock()
	for path, want := range map[string]string{
		"/": "stint up --demo", "/jobs": `href="/jobs/new">Enqueue one`, "/jobs?kind=none": `href="/jobs">show all jobs`, "/jobs?before=1": "Back to the newest",
		"/queues": "stint sh --queue", "/engines": "stint work", "/changes": `href="/queues"`, "/changes?by=nobody": `href="/changes">Show all`,
	} {
		if _, empty, found := strings.Cut(s.page(path), `class="empty`); !found || !strings.Contains(empty, want) {
			t.Errorf("%s says nothing of %s: %.300s", path, want, said(empty))
		}
	}
}

func TestWhyNothingIsDoneToAllJobsWithATextIsSaid(t *testing.T) {
	s := open(t)
	s.knock()
	text := s.page("/jobs?kind=good&text=x")
	if strings.Contains(text, "/jobs/bulk") || !strings.Contains(text, "you cannot change all matching jobs") || !strings.Contains(text, `href="/jobs?kind=good">search without the text`) {
		t.Errorf("the page says %s", said(text))
	}
}

func TestALongChainLeadsToAllOfIt(t *testing.T) {
	s := open(t)
	var ids []stint.ID
	enqueue := func() {
		t.Helper()
		id, err := stint.NewClient(s.store).Enqueue(t.Context(), stint.NewJob{Kind: "work", Args: json.RawMessage(`{}`), Correlation: "long"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	shown := func(id stint.ID) (others int, more bool) {
		t.Helper()
		_, chain, _ := strings.Cut(s.page("/jobs/"+id.String()), `data-live="related"`)
		return strings.Count(chain, `<td class="id">`), strings.Contains(chain, `href="/jobs?correlation=long">all jobs`)
	}
	for range 21 {
		enqueue()
	}
	for _, id := range []stint.ID{ids[0], ids[20]} {
		if n, more := shown(id); n != 20 || more {
			t.Errorf("of 20 others %d are shown; there are more: %v", n, more)
		}
	}
	enqueue()
	for _, id := range []stint.ID{ids[0], ids[21]} {
		if n, more := shown(id); n != 20 || !more {
			t.Errorf("of 21 others %d are shown; there are more: %v", n, more)
		}
	}
}

func TestMetricsAreOfferedOnlyWhereTheyAreServed(t *testing.T) {
	for _, served := range []bool{true, false} {
		s := open(t)
		config := dashboard.Config{Guard: guard.Config{Stranger: guard.Viewer}}
		if served {
			config.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "up 1") })
		}
		board, err := dashboard.New(s.store, config)
		if err != nil {
			t.Fatal(err)
		}
		s.server.Config.Handler = board
		if offered := strings.Contains(s.page("/engines"), `href="/metrics"`); offered != served {
			t.Errorf("served %v, offered %v", served, offered)
		}
		if status, _ := s.get("/metrics"); (status == http.StatusOK) != served {
			t.Errorf("served %v, answers %d", served, status)
		}
	}
}
