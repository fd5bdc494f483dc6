package dashboard_test

import (
	"context"
	"html"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// slow is a store in which it takes long to look for jobs of a kind, or at many.
type slow struct{ *sqlite.Store }

// Jobs implements [store.Inspector].
func (s slow) Jobs(ctx context.Context, f store.Filter) ([]stint.JobInfo, error) {
	if f.Kind != "" || f.Limit > 1000 {
		time.Sleep(100 * time.Millisecond)
	}
	return s.Store.Jobs(ctx, f)
}

func TestASearchThatTakesLongEndsSoonAndOffersToGoOn(t *testing.T) {
	s := open(t)
	jobs := make([]stint.NewJob, 11_000)
	for i := range jobs {
		jobs[i] = stint.NewJob{Kind: "common", Queue: "default", Args: []byte(`{"to":"all"}`)}
	}
	jobs[0] = stint.NewJob{Kind: "rare", Queue: "default", Args: []byte(`{"to":"needle"}`)}
	if _, err := s.store.Enqueue(t.Context(), stint.Tx{}, jobs); err != nil {
		t.Fatal(err)
	}
	board, err := dashboard.New(slow{s.store}, dashboard.Config{Guard: guard.Config{Stranger: guard.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	page := func(path string) string {
		t.Helper()
		w := httptest.NewRecorder()
		board.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1"+path, nil))
		if w.Code != 200 {
			t.Fatalf("%s answers %d: %s", path, w.Code, w.Body)
		}
		return html.UnescapeString(w.Body.String())
	}
	const found = `href="/jobs/1"`
	for _, c := range []struct{ search, says, offer string }{
		{"/jobs?kind=rare", "The search stopped early", "Search older jobs"},
		{"/jobs?text=needle", "Searched 2,000 jobs, the newest first", "Search older jobs"},
		{"/jobs?text=needle", "Searched 2,000 jobs, the newest first", "Look at 100,000"},
	} {
		offer := regexp.MustCompile(`href="([^"]*)"[^>]*>` + c.offer)
		at, pages := c.search, 0
		text := page(at)
		if !strings.Contains(text, c.says) || strings.Contains(text, found) {
			t.Errorf("%s does not say %q, or found the oldest job at once", c.search, c.says)
		}
		for ; !strings.Contains(text, found) && pages < 10; pages++ {
			to := offer.FindStringSubmatch(text)
			if to == nil {
				t.Fatalf("%s does not offer to %q", at, c.offer)
			}
			at = to[1]
			text = page(at)
		}
		if pages > 1 && c.offer == "Look at 100,000" || offer.MatchString(text) {
			t.Errorf("%s came to the oldest job behind %d pages, and offers %q still: %v", c.search, pages, c.offer, offer.MatchString(text))
		}
	}
}
