package dashboard_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

var (
	formFields = regexp.MustCompile(`<input [^>]*name="([a-z_]+)" value="([^"]*)"`)
	formTexts  = regexp.MustCompile(`(?s)<textarea name="([a-z_]+)"[^>]*>(.*?)</textarea>`)
)

// filledIn is the form of a page as it would be sent untouched.
func filledIn(text string) url.Values {
	_, text, _ = strings.Cut(text, `<form class="verb edit"`)
	form := url.Values{}
	for _, pattern := range []*regexp.Regexp{formFields, formTexts} {
		for _, field := range pattern.FindAllStringSubmatch(text, -1) {
			form.Set(field[1], html.UnescapeString(field[2]))
		}
	}
	return form
}

// full has everything that a job can have.
func full() stint.NewJob {
	return stint.NewJob{
		Kind: "good", Args: json.RawMessage(`{"n":98765432109876543210}`), Queue: "fast", Priority: 7, Delay: time.Hour, Retry: retry.Fixed(2, time.Minute),
		Timeout: 90 * time.Second, StartBy: time.Now().Add(3 * time.Hour).Truncate(time.Millisecond), MaxLosses: new(1), Tags: []string{"a b", "c", "n=98765432109876543210", "n=7"}, URN: "order:7", Source: "crm",
		Metadata: json.RawMessage(`{"trace":98765432109876543210}`), Correlation: "c7",
	}
}

func TestAnEditedJobHasAllOfTheOldOneAndNamesIt(t *testing.T) {
	s := open(t)
	s.knock()
	s.fill()
	old, err := stint.NewClient(s.store).Enqueue(t.Context(), full())
	if err != nil {
		t.Fatal(err)
	}
	page := s.page("/jobs/" + old.String() + "/edit")
	if !strings.Contains(page, "That job has not ended") {
		t.Error("the page does not say that the old one stays")
	}
	form := filledIn(page)
	form.Del("cancel")
	form.Set("delay", "1h")
	s.says("Enqueued as", "/jobs/new", form)
	was := s.becomes(old, stint.Scheduled)
	made, err := s.store.Jobs(t.Context(), store.Filter{Correlation: "c7", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := &made[0]
	if want := `{"edited_from":` + old.String() + `,"trace":98765432109876543210}`; string(got.Metadata) != want {
		t.Errorf("its metadata are %s, want %s", got.Metadata, want)
	}
	if diff := cmp.Diff(was, got, cmpopts.IgnoreFields(stint.JobInfo{}, "ID", "Created", "Due", "Metadata")); diff != "" {
		t.Errorf("the new job is another one (-old +new):\n%s", diff)
	}
	if text := s.page("/jobs/" + got.ID.String()); !strings.Contains(text, `<dt>Edited from</dt><dd><a href="/jobs/`+old.String()+`">`) {
		t.Error("its page does not lead to the old one")
	}

	form.Set("args", `{"n":8}`)
	form.Set("cancel", "true")
	s.says("Job "+old.String()+" is cancelled. Enqueued as", "/jobs/new", form)
	s.becomes(old, stint.Cancelled)
	if made, err = s.store.Jobs(t.Context(), store.Filter{Tag: "n=8"}); err != nil || len(made) != 1 || !slices.Equal(made[0].Tags, []string{"a b", "c", "n=8", "n=7"}) {
		t.Errorf("with another argument it is %+v, %v", made, err)
	}
}

func TestAFormThatIsRefusedIsShownAgainAsItWasTyped(t *testing.T) {
	s := open(t)
	s.knock()
	id := s.fill()["bad"]
	for _, c := range []struct{ field, value, says string }{
		{"args", `{"n": `, "not JSON"},
		{"metadata", `[1]`, "no JSON object"},
		{"priority", "high", "not a whole number"},
		{"priority", "1000", "priority"},
		{"retry", "sometimes", "retry"},
		{"delay", "soon", "Delay:"},
		{"start_by", "noon", "not an instant"},
		{"kind", "odd", "no engine ever declared the kind"},
		{"queue", "a\x01b", "Queue"},
	} {
		form := filledIn(s.page("/jobs/" + id.String() + "/edit"))
		form.Set("tags", "mine")
		form.Set(c.field, c.value)
		status, text := s.post("/jobs/new", form)
		if status != http.StatusUnprocessableEntity || !strings.Contains(flashOf(text), c.says) {
			t.Errorf("%s %q: %d, %q, want %q", c.field, c.value, status, flashOf(text), c.says)
		}
		again := filledIn(text)
		for name := range form {
			if again.Get(name) != form.Get(name) && c.field != "queue" {
				t.Errorf("%s %q: of %s is left %q, want %q", c.field, c.value, name, again.Get(name), form.Get(name))
			}
		}
	}
	if jobs, err := s.store.Jobs(t.Context(), store.Filter{Tag: "mine"}); err != nil || len(jobs) != 0 {
		t.Errorf("%d jobs were made, %v", len(jobs), err)
	}
}
