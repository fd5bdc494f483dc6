package dashboard_test

import (
	"encoding/json"
	"errors"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

const canary = "CANARY7"

// redacting declares a kind that redacts its token, as a program that the dashboard does not know does, and enqueues
// jobs of it.
func (s *site) redacting() map[string]stint.ID {
	s.Helper()
	w := storetest.NewWorker(s, s.store)
	kind := stint.KindInfo{Name: "sync", Queue: "default", Redacted: []string{"/token", "/card/number"}}
	if err := s.store.Join(s.Context(), w.Info, []stint.KindInfo{kind, {Name: "plain", Queue: "default"}}); err != nil {
		s.Fatal(err)
	}
	client, args := stint.NewClient(s.store), json.RawMessage(`{"user":7,"token":"`+canary+`","card":{"number":"`+canary+`","holder":"Ann"}}`)
	ids := map[string]stint.ID{}
	for _, name := range []string{"failed", "ready", "later"} {
		job := kind.Job(args, stint.Correlation("c"))
		if name == "later" {
			job.Delay = time.Hour
		}
		id, err := client.Enqueue(s.Context(), job)
		if err != nil {
			s.Fatal(err)
		}
		if ids[name] = id; name != "failed" {
			continue
		}
		taken := w.ClaimAll()
		if len(taken) != 1 || !strings.Contains(string(taken[0].Args), canary) {
			s.Fatalf("an engine gets %+v", taken)
		}
		w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(errors.New("it failed"))}, taken...)
	}
	every, err := cron.Parse("every 1h")
	if err != nil {
		s.Fatal(err)
	}
	if err := client.Schedule(s.Context(), "test", stint.Schedule{Name: "sync", Recurrence: every, Job: kind.Job(args)}); err != nil {
		s.Fatal(err)
	}
	return ids
}

var links = regexp.MustCompile(`(?:href|data-[a-z]+)="(/[^"#]*)"`)

func TestWhatIsRedactedIsOnNoPageAndInNoAnswer(t *testing.T) {
	s := open(t)
	ids := s.redacting()
	for _, who := range []string{"viewer of all", "admin"} {
		board, err := dashboard.New(s.store, dashboard.Config{Guard: guard.Config{Stranger: map[string]guard.Role{"admin": guard.Admin, "viewer of all": guard.Viewer}[who]}})
		if err != nil {
			t.Fatal(err)
		}
		s.server.Config.Handler = board
		clean := func(what, text string) {
			if strings.Contains(text, canary) {
				t.Errorf("%s: %s shows what is redacted", who, what)
			}
		}
		// Each page, by the links of others.
		next, seen := []string{"/", "/jobs?text=" + canary, "/jobs?text=Ann", "/jobs?queue=default"}, map[string]bool{}
		for len(next) > 0 && len(seen) < 400 {
			path := next[0]
			if next = next[1:]; seen[path] || strings.HasPrefix(path, "/events") || strings.HasPrefix(path, "/assets") {
				continue
			}
			seen[path] = true
			_, text := s.get(path)
			if path == "/jobs?text="+canary {
				text = strings.ReplaceAll(text, canary+`"`, "") // what was asked for stands in the form
				text = strings.ReplaceAll(text, "text="+canary, "")
				if strings.Contains(text, ids["ready"].String()+"</a>") {
					t.Errorf("%s finds jobs by what is redacted", who)
				}
				text = strings.ReplaceAll(text, canary, "")
			}
			clean(path, text)
			for _, link := range links.FindAllStringSubmatch(text, -1) {
				next = append(next, html.UnescapeString(link[1]))
			}
		}
		for _, path := range []string{"/jobs/" + ids["failed"].String(), "/schedules/sync", "/kinds/sync"} {
			if !seen[path] {
				t.Errorf("%s: no link leads to %s", who, path)
			}
		}
		if text := s.page("/jobs/" + ids["ready"].String()); !strings.Contains(html.UnescapeString(text), `"[redacted]"`) || !strings.Contains(text, "Ann") {
			t.Errorf("%s sees of a job %s", who, said(text))
		}
		// Each question of the API.
		for _, op := range ops.All {
			d := op.Describe()
			path := strings.NewReplacer("{id}", ids["failed"].String(), "{schedule}", "sync", "{queue}", "default", "{limit}", "x", "{engine}", "1").Replace(d.Path)
			if d.Method != http.MethodGet {
				continue
			}
			status, text := s.get(api.Prefix + path + "?by=args.user&text=Ann&wait=10ms")
			if clean(d.Name, text); status >= 500 {
				t.Errorf("%s: %s answers %d", who, d.Name, status)
			}
		}
		_, text := s.get(api.Prefix + "/jobs?text=" + canary)
		if !strings.Contains(text, `"items":[]`) {
			t.Errorf("%s finds %s", who, text)
		}
		for by, want := range map[string]int{"args.token": 422, "args.card": 422, "args.Card.Number": 422, "args.user": 200} {
			status, text := s.get(api.Prefix + "/analytics/due?by=" + by)
			if clean(by, text); status != want {
				t.Errorf("%s groups by %s: %d %s", who, by, status, text)
			}
		}
		if status, _ := s.get(api.Prefix + "/analytics/due?kind=plain&by=args.token"); status != 200 {
			t.Errorf("another kind is not grouped: %d", status)
		}
	}
	for _, verb := range []string{"retry", "cancel", "delete"} {
		if status, text := s.send("/jobs/"+verb, `{"filter":{"kind":"sync"},"dry_run":true}`); status != 200 || strings.Contains(text, canary) || !strings.Contains(text, `"first"`) {
			t.Errorf("what a %s would do is %d %s", verb, status, text)
		}
	}
}

// send sends a request to the API.
func (s *site) send(path, body string) (int, string) {
	s.Helper()
	return s.sendBy(http.MethodPost, path, body)
}

func (s *site) sendBy(method, path, body string) (int, string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, s.server.URL+api.Prefix+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", s.server.URL)
	res, err := s.client.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	var text strings.Builder
	_ = res.Write(&text)
	return res.StatusCode, text.String()
}

func TestAnEditedJobKeepsWhatIsRedacted(t *testing.T) {
	s := open(t)
	s.knock()
	id := s.redacting()["failed"]
	edit := "/jobs/" + id.String() + "/edit"
	form := filledIn(s.page(edit))
	if args := form.Get("args"); strings.Contains(args, canary) || !strings.Contains(args, `"token": "[redacted]"`) {
		t.Fatalf("the form has %s", args)
	}
	form.Set("args", strings.Replace(form.Get("args"), "Ann", "Bob", 1))
	newest := func() stint.JobInfo {
		all, err := s.store.Jobs(t.Context(), store.Filter{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	s.says("Enqueued as", "/jobs/new", form)
	if got := string(newest().Args); !strings.Contains(got, `"Bob"`) || strings.Count(got, canary) != 2 || strings.Contains(got, "redacted") {
		t.Errorf("the edited job has %s", got)
	}
	before := newest().ID
	for name, change := range map[string]func(url.Values){
		"of another kind":    func(f url.Values) { f.Set("kind", "plain") },
		"without the old":    func(f url.Values) { f.Del("like") },
		"at another place":   func(f url.Values) { f.Set("args", `{"card":{"number":"[redacted]"},"Token":"[redacted]"}`) },
		"limited by a token": func(f url.Values) { f.Set("limits", "tenant by /token") },
	} {
		f := url.Values{}
		maps.Copy(f, form)
		change(f)
		if status, text := s.post("/jobs/new", f); status == http.StatusOK && strings.Contains(flashOf(text), "Enqueued") || strings.Contains(text, canary) {
			t.Errorf("an edit %s is enqueued: %d %s", name, status, flashOf(text))
		}
	}
	if after := newest(); after.ID != before {
		t.Errorf("an edit was enqueued as %+v", after)
	}
	for _, body := range []string{
		`{"jobs":[{"kind":"sync","args":{"token":"[redacted]"}}]}`, `{"jobs":[{"kind":"sync","args":{"TOKEN":"[redacted]"}}],"exact":true,"force":true}`,
		`{"jobs":[{"kind":"sync","args":{"card":{"number":"[redacted]"}}}],"like":999999}`,
	} {
		if status, text := s.send("/jobs", body); status < 400 {
			t.Errorf("%s gives %d %s", body, status, text)
		}
	}
	if status, text := s.sendBy(http.MethodPut, "/schedules/copy", `{"recurrence":"every 1h","job":{"kind":"sync","args":{"token":"[redacted]"}}}`); status != 422 {
		t.Errorf("a schedule of what was shown gives %d %s", status, text)
	}
}
