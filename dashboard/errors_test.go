package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// here and there are two places where jobs of one kind panic alike.
func here()  { panic("no") }
func there() { panic("no") }

// panics has jobs of the kind "shaky" panic: at two places, in two queues, and some
// of them are tried again in an hour. It answers with their ids.
func (s *site) panics() (ids map[string][]stint.ID) {
	s.Helper()
	mux := stint.NewMux()
	mux.Add(stint.KindInfo{Name: "shaky"}, func(_ context.Context, job *stint.Job) (json.RawMessage, error) {
		if string(job.Args) == `{"at":"here"}` {
			here()
		}
		there()
		return nil, nil
	})
	defer s.works(mux)()
	ids = map[string][]stint.ID{}
	for _, at := range []string{"here", "there"} {
		for _, queue := range []string{"mail", "default"} {
			for _, policy := range []retry.Policy{retry.None(), retry.Fixed(3, time.Hour)} {
				job := stint.KindInfo{Name: "shaky", Queue: queue, Retry: policy}.Job(json.RawMessage(`{"at":"` + at + `"}`))
				id, err := stint.NewClient(s.store).Enqueue(s.Context(), job)
				if err != nil {
					s.Fatal(err)
				}
				j := s.becomes(id, stint.Failed, stint.Retrying)
				name := at + " " + queue + " " + string(j.State)
				ids[name] = append(ids[name], id)
			}
		}
	}
	return ids
}

var retryLink = regexp.MustCompile(`href="(/jobs/bulk\?[^"]*verb=retry[^"]*)"`)

// retryGroup follows the link of a group's row and sends the form behind it.
func (s *site) retryGroup(page, place string) string {
	s.Helper()
	_, row, found := strings.Cut(s.page(page), place)
	link := retryLink.FindStringSubmatch(row)
	if !found || link == nil {
		s.Fatalf("%s has no group at %s", page, place)
	}
	text := s.page(html.UnescapeString(link[1]))
	form := url.Values{"confirm": {"retry"}}
	for _, field := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(text, -1) {
		form.Add(field[1], html.UnescapeString(field[2]))
	}
	_, text = s.post("/jobs/bulk", form)
	return flashOf(text)
}

func TestRetryingAGroupOfErrorsTakesItsJobsAndNoOthers(t *testing.T) {
	for _, c := range []struct {
		page, place string
		said        string
		taken       []string
	}{
		{"/errors", "dashboard_test.here", "2 jobs due now, 2 jobs retried as a new job.", []string{"here mail", "here default"}},
		{"/errors?queue=mail", "dashboard_test.there", "1 job due now, 1 job retried as a new job.", []string{"there mail"}},
		{"/errors?hours=0.5&queue=default", "dashboard_test.here", "1 job due now, 1 job retried as a new job.", []string{"here default"}},
	} {
		s := open(t)
		s.knock()
		ids := s.panics()
		if said := s.retryGroup(c.page, c.place); said != c.said {
			t.Errorf("%s: %q, want %q", c.page, said, c.said)
		}
		for name, jobs := range ids {
			state, taken := stint.State(name[strings.LastIndexByte(name, ' ')+1:]), slices.ContainsFunc(c.taken, func(of string) bool { return strings.HasPrefix(name, of) })
			for _, id := range jobs {
				switch j := s.becomes(id, store.States...); {
				case state == stint.Retrying && (j.State != stint.Retrying) != taken:
					t.Errorf("%s: the job %s is %s", c.page, name, j.State)
				case state == stint.Failed:
					again, err := s.store.Jobs(t.Context(), store.Filter{Correlation: id.String()})
					if err != nil || (len(again) == 2) != taken {
						t.Errorf("%s: of the job %s there are %d, %v", c.page, name, len(again), err)
					}
				}
			}
		}
	}
}

func TestAGroupOfErrorsWithNothingToRetrySaysSo(t *testing.T) {
	s := open(t)
	s.knock()
	s.panics()
	if text := s.page("/jobs/bulk?verb=retry&state=failed&kind=shaky&group=0123456789abcdef"); !strings.Contains(text, "No job of this group has failed") {
		t.Errorf("it says %s", said(text))
	}
	if status, _ := s.get("/jobs/bulk?verb=delete&kind=shaky&group=0123456789abcdef"); status != 404 {
		t.Errorf("the jobs of a group are offered to be deleted: %d", status)
	}
	if status, text := s.get("/jobs/bulk?verb=retry&kind=shaky&group=errors"); status != 422 || !strings.Contains(text, "is no key of a group of errors") {
		t.Errorf("what is no key of a group is %d %s", status, said(text))
	}
}

func TestGroupsOfErrorsAreResolvedMutedAndReopenedOnTheirPage(t *testing.T) {
	s := openAt(t, "/stint")
	s.knock()
	s.panics()
	group := regexp.MustCompile(`href="/stint/errors\?key=([0-9a-f]{16})&amp;kind=shaky"`)
	before, _, _ := strings.Cut(s.page("/errors"), "dashboard_test.here") // its place stands behind its message
	found := group.FindAllStringSubmatch(before, -1)
	if found == nil {
		t.Fatalf("before the place stands %s", said(before))
	}
	key := found[len(found)-1][1]
	shows := func(page string, here, there bool) {
		t.Helper()
		_, text, _ := strings.Cut(s.page(page), "<h1>")
		if got := strings.Contains(text, "dashboard_test.here"); got != here {
			t.Errorf("%s shows the group: %v", page, got)
		}
		if got := strings.Contains(text, "dashboard_test.there"); got != there {
			t.Errorf("%s shows the other group: %v", page, got)
		}
	}
	one := "/errors?key=" + key
	shows("/errors", true, true)
	shows(one, true, false)
	if text := s.page(one); strings.Count(text, `href="/stint/jobs/`) < 5 || !strings.Contains(text, "The newest jobs of the group") {
		t.Errorf("the page of the group has not its jobs: %s", text)
	}
	act := func(verb, want string, form url.Values) {
		t.Helper()
		form.Set("back", "/errors?queue=mail")
		_, text := s.post("/errors/"+key+"/"+verb, form)
		if got := flashOf(text); got != want {
			t.Errorf("%s says %q, want %q", verb, got, want)
		}
	}
	act("resolve", "Errors "+key+" are resolved.", url.Values{"why": {"a <fix>"}, "kind": {"shaky"}})
	shows("/errors", false, true) // also by the sample, which was read before
	shows("/errors?state=resolved", true, false)
	shows("/errors?state=all", true, true)
	if text := s.page(one); !strings.Contains(text, ">resolved</span>") || !strings.Contains(text, ": a &lt;fix&gt;") || !strings.Contains(text, "/reopen") {
		t.Errorf("the page of the group is %s", text)
	}
	s.panics()
	shows("/errors?state=returned", true, false)
	act("mute", "Errors "+key+" are muted.", url.Values{"kind": {"shaky"}})
	shows("/errors", false, true)
	shows("/errors?state=muted", true, false)
	act("reopen", "Errors "+key+" are open again.", url.Values{})
	shows("/errors", true, true)
	act("mute", "No group among the newest errors has the key "+key+".", url.Values{"kind": {"other"}})
	act("explode", "This does not exist, or no longer.", url.Values{})
	for _, bad := range []string{"/errors?key=1", "/errors?state=odd", "/errors?hours=x"} {
		if status, text := s.get(bad); status != 422 {
			t.Errorf("%s answers %d %s", bad, status, said(text))
		}
	}
	s.stranger() // a viewer, from whom messages are hidden
	if text := s.page("/errors"); !strings.Contains(text, "dashboard_test.here") || strings.Contains(text, key) || strings.Contains(text, "/resolve") {
		t.Errorf("a viewer is shown %s", text)
	}
	if status, _ := s.get(one); status != 404 {
		t.Errorf("a viewer finds the group by its key: %d", status)
	}
	if status, _ := s.post("/errors/"+key+"/resolve", url.Values{}); status != 403 {
		t.Errorf("a viewer resolves the group: %d", status)
	}
}

func TestErrorsAreShownAHundredGroupsAtATime(t *testing.T) {
	s := open(t)
	s.knock()
	mux := stint.NewMux()
	mux.Add(stint.KindInfo{Name: "odd"}, func(_ context.Context, job *stint.Job) (json.RawMessage, error) {
		return nil, errors.New("no room in shelf " + strings.Trim(string(job.Args), `"`))
	})
	var jobs []stint.NewJob
	for i := range 230 { // letters, since a group is of any number
		jobs = append(jobs, stint.KindInfo{Name: "odd", Retry: retry.None()}.Job(json.RawMessage(fmt.Sprintf(`"%c%c"`, 'a'+i/20, 'a'+i%20))))
	}
	ids, err := stint.NewClient(s.store).EnqueueMany(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	defer s.works(mux)()
	for _, id := range ids {
		s.becomes(id, stint.Failed)
	}
	row, seen := regexp.MustCompile(`<td class="message"><a href="/errors\?key=([0-9a-f]+)`), map[string]bool{}
	for _, c := range []struct {
		skip, says           string
		rows                 int
		previous, next, none string
	}{
		{"", "Groups 1 to 100 of 230.", 100, "", "skip=100", `rel="prev"`},
		{"100", "Groups 101 to 200 of 230.", 100, "skip=0", "skip=200", "Groups 1 "},
		{"200", "Groups 201 to 230 of 230.", 30, "skip=100", "", `rel="next"`},
		{"5000", "Groups 201 to 230 of 230.", 30, "skip=100", "", `rel="next"`},
	} {
		text := s.page("/errors?kind=odd&skip=" + c.skip)
		found := row.FindAllStringSubmatch(text, -1)
		for _, m := range found {
			seen[m[1]] = true
		}
		if len(found) != c.rows || !strings.Contains(text, c.says) || !strings.Contains(text, c.previous) || !strings.Contains(text, c.next) || strings.Contains(text, c.none) {
			t.Errorf("after %q groups it shows %d, and not all of %q, or %q", c.skip, len(found), []string{c.says, c.previous, c.next}, c.none)
		}
	}
	if len(seen) != 230 {
		t.Errorf("%d groups were shown", len(seen))
	}
	if status, text := s.get("/errors?skip=-1"); status != 422 || !strings.Contains(text, "is not a number of groups") {
		t.Errorf("less than no groups before them: %d %s", status, said(text))
	}
}
