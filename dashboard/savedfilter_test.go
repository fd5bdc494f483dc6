package dashboard_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stint-go/stint/store"
)

func TestAFilterIsSavedChosenRenamedAndDeletedOnTheListOfJobs(t *testing.T) {
	s := openAt(t, "/stint")
	s.fill()
	if text := s.page("/jobs?kind=k"); strings.Contains(text, `action="/stint/filters`) {
		t.Error("a viewer is offered to save it")
	}
	s.knock()
	if text := s.page("/jobs"); strings.Contains(text, `action="/stint/filters"`) {
		t.Error("it is offered to save no filter")
	}
	const query = "finished_after=1h&kind=bad&state=failed"
	here := "/jobs?kind=bad&finished_after=1h&state=failed&before=99"
	if text := s.page(here); !strings.Contains(text, `<input type="hidden" name="query" value="`+strings.ReplaceAll(query, "&", "&amp;")+`">`) {
		t.Errorf("it is not offered to save the filter: %s", text)
	}
	form := url.Values{"name": {" on call "}, "query": {query}, "back": {"/jobs"}}
	s.says("The filter on call is saved.", "/filters", form)
	s.says("The filter on call is saved in place of the former one.", "/filters", form)
	shows := func(page string, want ...string) {
		t.Helper()
		text := s.page(page)
		for _, want := range want {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %s", page, want)
			}
		}
	}
	link := `<a href="/stint/jobs?` + strings.ReplaceAll(query, "&", "&amp;") + `"`
	shows("/jobs", link+`>on call</a>`, "saved by ")
	shows("/jobs?"+query, link+` aria-current="true">on call</a>`)
	shows("/jobs?text=x", link+`>on call`)
	s.says("Query: before: a saved filter has no such parameter.", "/filters", url.Values{"name": {"x"}, "query": {"before=7"}})
	if status, text := s.post("/filters", url.Values{"name": {" "}, "query": {query}}); status != 422 || !strings.Contains(text, "the name is empty") {
		t.Errorf("no name is answered with %d %s", status, said(text))
	}
	s.says("The filter on call is now a/b.", "/filters/on%20call/rename", url.Values{"to": {"a/b"}})
	shows("/jobs", link+`>a/b</a>`)
	s.says("Nothing was done: confirm it by the word delete.", "/filters/a%2Fb/delete", url.Values{})
	s.says("The filter a/b is deleted.", "/filters/a%2Fb/delete", url.Values{"confirm": {"delete"}})
	if text := s.page("/jobs"); strings.Contains(text, "Saved filters") {
		t.Error("it is still there")
	}
}

func TestASavedFilterThatCannotBeReadBreaksNoPage(t *testing.T) {
	s := open(t)
	for name, query := range map[string]string{"newer": "colour=red", "broken": "%zz", "late": "finished_after=soon"} { // as another version would
		if _, _, err := s.store.SaveFilter(t.Context(), store.SavedFilter{Name: name, Query: query}); err != nil {
			t.Fatal(err)
		}
	}
	s.knock()
	text := s.page("/jobs")
	for _, want := range []string{`<b>newer</b> <small class="note bad">colour: a saved filter has no such parameter</small>`, `<b>broken</b> <small`, `<a href="/jobs?finished_after=soon">late</a>`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if status, text := s.get("/jobs?finished_after=soon"); status != 422 || !strings.Contains(text, "is neither an instant") || !strings.Contains(text, `<b>newer</b>`) {
		t.Errorf("the filter is answered with %d %s", status, said(text))
	}
	s.says("The filter broken is deleted.", "/filters/broken/delete", url.Values{"confirm": {"delete"}})
}

func TestASavedFilterThatComparesWhatIsHiddenIsShownToNoViewer(t *testing.T) {
	s := open(t)
	s.knock()
	for name, query := range map[string]string{"card": "text=4111", "said": "error=4111", "open": "kind=k"} {
		s.says("The filter "+name+" is saved.", "/filters", url.Values{"name": {name}, "query": {query}})
	}
	if text := s.page("/jobs"); strings.Count(text, "4111") != 2 {
		t.Errorf("an admin is shown %s", said(text))
	}
	s.stranger()
	if text := s.page("/jobs"); strings.Contains(text, "4111") || strings.Contains(text, ">card<") || !strings.Contains(text, `<a href="/jobs?kind=k">open</a>`) || strings.Contains(text, "/filters/") {
		t.Errorf("a viewer is shown %s", said(text))
	}
	for _, path := range []string{"/filters", "/filters/open/rename", "/filters/open/delete"} {
		if status, _ := s.post(path, url.Values{"name": {"x"}, "query": {"kind=k"}, "to": {"y"}, "confirm": {"delete"}}); status != 403 {
			t.Errorf("a viewer is answered at %s with %d", path, status)
		}
	}
	if all, err := s.store.SavedFilters(t.Context()); err != nil || fmt.Sprint(len(all)) != "3" {
		t.Errorf("left are %v, %v", all, err)
	}
}
