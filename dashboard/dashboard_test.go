package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

const (
	secret     = "a-secret-that-nobody-guesses"
	linkSecret = "a-key-that-nobody-guesses"
)

// site is a dashboard over a fresh store, and a browser that looks at it: one that
// keeps cookies and says where a request comes from.
type site struct {
	*testing.T
	store  *sqlite.Store
	server *httptest.Server
	client *http.Client
	path   string
}

func open(t *testing.T) *site { return openAt(t, "") }

// openAt mounts it at a path.
func openAt(t *testing.T, path string) *site {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	board, err := dashboard.New(db, dashboard.Config{
		Guard: guard.Config{Stranger: guard.Viewer, Link: secret}, Path: path, LinkKey: linkSecret,
		API: api.Config{Restricted: []string{"sh"}, HideArgs: true, Keys: ringOf(t, "known"), Bury: func(ctx context.Context, token store.EngineID, why string) (int, error) {
			return engine.Bury(ctx, db, token, why)
		}},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, store: db, path: path, server: httptest.NewServer(board)}
	t.Cleanup(s.server.Close)
	s.stranger()
	return s
}

// stranger forgets who looks.
func (s *site) stranger() {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.Fatal(err)
	}
	s.client = &http.Client{Jar: jar, Timeout: time.Minute}
}

// knock opens the link, and is an admin from then on.
func (s *site) knock() {
	s.Helper()
	if status, text := s.get("/?token=" + secret); status != http.StatusOK {
		s.Fatalf("the link answers %d %s", status, text)
	}
}

func (s *site) get(path string) (int, string) {
	s.Helper()
	res, err := s.client.Get(s.server.URL + s.path + path)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// page is a page that must be there.
func (s *site) page(path string) string {
	s.Helper()
	status, text := s.get(path)
	if status != http.StatusOK {
		s.Fatalf("%s answers %d %s", path, status, said(text))
	}
	return text
}

// post sends a form of a page, and answers with the page behind it.
func (s *site) post(path string, form url.Values) (int, string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.server.URL+s.path+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", s.server.URL)
	res, err := s.client.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// says sends a form and wants the page behind it to say something.
func (s *site) says(want, path string, form url.Values) {
	s.Helper()
	status, text := s.post(path, form)
	if said := flashOf(text); status != http.StatusOK || !strings.Contains(said, want) {
		s.Fatalf("%s answers %d and says %q, want %q", path, status, said, want)
	}
}

// said is what a page says in its main part.
func said(text string) string {
	if _, main, ok := strings.Cut(text, `<main id="main">`); ok {
		text, _, _ = strings.Cut(main, "</main>")
	}
	return strings.Join(strings.Fields(text), " ")
}

var flashText = regexp.MustCompile(`(?s)<p class="flash[^>]*>(.*?)</p>`)

func flashOf(text string) string {
	if m := flashText.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// nasty is what somebody puts wherever they may.
const nasty = `<script>alert("x")</script>'"&` + "\x1b[31m"

// stepwise does steps: more than a page shows, one with a large result, and one that sleeps.
func stepwise(ctx context.Context, _ *stint.Job) (json.RawMessage, error) {
	for i := range 60 {
		result := map[string]any{"big": json.Number("12345678901234567890"), "page": i}
		if i == 59 {
			result["html"] = nasty + strings.Repeat("x", view.MostResult)
		}
		_, err := stint.Step(ctx, fmt.Sprintf("page %d of <b>", i), func(context.Context) (map[string]any, error) { return result, nil })
		if err != nil {
			return nil, err
		}
	}
	return nil, stint.Sleep(ctx, "<i>trial</i>", time.Hour)
}

// fill runs an engine until there is some of everything.
func (s *site) fill() map[string]stint.ID {
	s.Helper()
	mux := stint.NewMux()
	handle := func(kind string, do func(job *stint.Job) (json.RawMessage, error)) {
		mux.Add(stint.KindInfo{Name: kind}, func(_ context.Context, job *stint.Job) (json.RawMessage, error) { return do(job) })
	}
	mux.Add(stint.KindInfo{Name: "stepwise"}, stepwise)
	handle("good", func(*stint.Job) (json.RawMessage, error) { return json.RawMessage(`{"big":12345678901234567890}`), nil })
	handle("bad", func(*stint.Job) (json.RawMessage, error) {
		return nil, stint.NoRetry(errors.New("it failed: " + nasty))
	})
	handle(strings.ReplaceAll(nasty, "\x1b", ""), func(*stint.Job) (json.RawMessage, error) { return nil, nil })
	stop := s.works(mux)
	client := stint.NewClient(s.store)
	ids := map[string]stint.ID{}
	for name, job := range map[string]stint.NewJob{
		"good":      {Kind: "good", Args: json.RawMessage(`{"n":98765432109876543210,"s":"<b>"}`), Tags: []string{"a<b>"}},
		"bad":       {Kind: "bad", Args: json.RawMessage(`{}`), URN: nasty[:20]},
		"nasty":     {Kind: strings.ReplaceAll(nasty, "\x1b", ""), Args: json.RawMessage(`{"</script>":"<!--"}`), Queue: `q"><i>`},
		"stepwise":  {Kind: "stepwise", Args: json.RawMessage(`{}`)},
		"scheduled": stint.KindInfo{Name: "good"}.Job(json.RawMessage(`{}`), stint.Delay(time.Hour)),
		"waiting":   {Kind: "nobody", Args: json.RawMessage(`{}`), Queue: "away"},
	} {
		id, err := client.Enqueue(s.Context(), job)
		if err != nil {
			s.Fatal(err)
		}
		ids[name] = id
	}
	for _, name := range []string{"good", "bad", "nasty"} {
		s.becomes(ids[name], stint.Completed, stint.Failed)
	}
	s.becomes(ids["stepwise"], stint.Scheduled)
	stop()
	recurrence, err := cron.Parse("30 2 * * *")
	if err != nil {
		s.Fatal(err)
	}
	if err := client.Schedule(s.Context(), "somebody", stint.Schedule{Name: "nightly/…", Recurrence: recurrence, Zone: "Europe/Berlin", Job: stint.NewJob{Kind: "good"}}); err != nil {
		s.Fatal(err)
	}
	return ids
}

// works runs an engine until stop is called.
func (s *site) works(mux *stint.Mux) (stop func()) {
	s.Helper()
	worker, err := engine.New(s.store, mux, engine.Config{Instance: "one", Slots: 4})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	}
}

// becomes waits until a job is in one of some states.
func (s *site) becomes(id stint.ID, states ...stint.State) *stint.JobInfo {
	s.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		j, err := s.store.Job(s.Context(), id)
		if err != nil {
			s.Fatal(err)
		}
		if slices.Contains(states, j.State) {
			return j
		}
		if time.Now().After(deadline) {
			s.Fatalf("job %d is %s, want %v", id, j.State, states)
		}
	}
}

// everyPage are the addresses of all pages, as far as they show the same to
// everybody.
func everyPage(ids map[string]stint.ID) []string {
	all := []string{"/", "/jobs", "/jobs?state=failed&kind=bad", "/queues", "/kinds", "/errors", "/errors?kind=bad&hours=1.5", "/schedules", "/engines", "/database"}
	for _, id := range ids {
		all = append(all, "/jobs/"+id.String())
	}
	if len(ids) > 0 {
		all = append(all, "/schedules/"+url.PathEscape("nightly/…"))
	}
	return all
}

func TestEveryPageIsThereAndRunsNothingOfAJob(t *testing.T) {
	s := open(t)
	forbidden := map[string]*regexp.Regexp{
		"an element of a job":      regexp.MustCompile(`<script>|<i>|<b>"|<!--`),
		"an inline script":         regexp.MustCompile(`<script(>|[^>]*[^>/]>[^<])|\son[a-z]+=|javascript:`),
		"an inline style":          regexp.MustCompile(`<style|\sstyle=`),
		"a control character":      regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f]"),
		"something of other hosts": regexp.MustCompile(`(src|href|action)="(https?:)?//`),
		"a failure of a template":  regexp.MustCompile(`ZgotmplZ|%!|<no value>|&lt;nil&gt;`),
	}
	look := func(paths []string) {
		for _, path := range paths {
			res, err := s.client.Get(s.server.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(res.Body)
			res.Body.Close()
			text := string(raw)
			if err != nil || res.StatusCode != http.StatusOK || !strings.HasSuffix(strings.TrimSpace(text), "</html>") {
				t.Errorf("%s: %d, %v: %s", path, res.StatusCode, err, said(text))
			}
			if policy := res.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self'") || strings.Contains(policy, "unsafe") {
				t.Errorf("%s: the policy is %q", path, policy)
			}
			for what, pattern := range forbidden {
				if at := pattern.FindStringIndex(text); at != nil {
					t.Errorf("%s has %s: …%s…", path, what, text[max(0, at[0]-100):min(len(text), at[1]+100)])
				}
			}
		}
	}
	look(everyPage(nil))
	ids := s.fill()
	look(everyPage(ids))
	s.knock()
	look(append(everyPage(ids), "/changes", "/jobs/new", "/jobs/"+ids["good"].String()+"/edit", "/jobs/bulk?verb=cancel&queue=away", "/jobs/bulk?verb=delete&kind=none", "/jobs?text=98765"))
}

func TestWhatIsNotThereIsSaid(t *testing.T) {
	s := open(t)
	s.knock()
	for path, want := range map[string]int{
		"/nowhere": 404, "/jobs/99": 404, "/jobs/x": 404, "/jobs/-1": 404, "/jobs/99/edit": 404, "/schedules/none": 404, "/kinds/none": 404, "/engines/7": 404, "/engines/x": 404,
		"/jobs/bulk?verb=burn": 404, "/jobs?state=odd": 422, "/jobs?before=x": 422, "/jobs?longer=x": 422, "/changes?before=x": 422, "/changes?before=0": 422, "/errors?hours=x": 422, "/assets/": 404, "/assets/0/none.css": 404,
		"/jobs/bulk?verb=cancel&attempts=x": 422,
	} {
		if status, text := s.get(path); status != want {
			t.Errorf("%s answers %d, want %d: %s", path, status, want, said(text))
		}
	}
}

func TestFieldsThatWereLeftEmptyAreNotInTheAddress(t *testing.T) {
	s := open(t)
	s.knock()
	for path, want := range map[string]string{
		"/jobs?kind=good&queue=&tag=&text=": "/jobs?kind=good", "/jobs?kind=&state=failed&state=": "/jobs?state=failed", "/jobs?kind=": "/jobs",
	} {
		r, err := s.client.Get(s.server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if at := strings.TrimPrefix(r.Request.URL.String(), s.server.URL); at != want || r.StatusCode != http.StatusOK {
			t.Errorf("%s leads to %s, %d, want %s", path, at, r.StatusCode, want)
		}
	}
}

func TestPagesAreCompressed(t *testing.T) {
	s := open(t)
	s.fill()
	s.knock()
	style := regexp.MustCompile(`/assets/[^"]+/style.css`).FindString(s.page("/"))
	for path, want := range map[string]string{"/": "gzip", "/jobs": "gzip", "/api/v1/jobs": "gzip", style: "gzip", "/events?page=%2Fjobs": ""} {
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Encoding", "gzip")
		r, err := s.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Header.Get("Content-Encoding"); got != want || r.StatusCode != http.StatusOK {
			t.Errorf("%s is answered %d, in the encoding %q", path, r.StatusCode, got)
		}
		cancel()
		r.Body.Close()
	}
}

func TestNumbersStayExactHoweverLarge(t *testing.T) {
	s := open(t)
	id := s.fill()["good"]
	s.knock()
	text := s.page("/jobs/" + id.String())
	for _, want := range []string{`<span class="n">98765432109876543210</span>`, `<span class="n">12345678901234567890</span>`, `<span class="s">&#34;&lt;b&gt;&#34;</span>`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

func TestAPageShowsTheStepsOfAJob(t *testing.T) {
	s := open(t)
	path := "/jobs/" + s.fill()["stepwise"].String()
	large := regexp.MustCompile(`<td>page 59 of &lt;b&gt;</td>.*?<span class="muted">1\d\.\d KiB: <code>stint jobs steps \d+</code> shows it</span>`)
	for _, viewer := range []bool{true, false} {
		if !viewer {
			s.knock()
		}
		text := strings.Join(strings.Fields(s.page(path)), " ")
		for _, want := range []string{
			"11 steps ended before", "<td>page 11 of &lt;b&gt;</td>", "<td>&lt;i&gt;trial&lt;/i&gt;</td>",
			"Attempt 1: snoozed: step &#34;&lt;i&gt;trial&lt;/i&gt;&#34; sleeps until 2",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the page has no %s: %s", want, said(text))
			}
		}
		if strings.Contains(text, "page 10 of") {
			t.Error("it shows more than the last steps")
		}
		if hidden := strings.Contains(text, "You are not allowed to see it."); hidden != viewer || large.MatchString(text) == viewer || strings.Contains(text, "12345678901234567890") == viewer {
			t.Errorf("to a viewer (%v) it shows %s", viewer, said(text))
		}
	}
}

func TestAJobIsSentASignalOnItsPage(t *testing.T) {
	s := open(t)
	mux := stint.NewMux()
	mux.Add(stint.KindInfo{Name: "order"}, func(ctx context.Context, _ *stint.Job) (json.RawMessage, error) {
		return stint.Await[json.RawMessage](ctx, "go <on>", time.Hour)
	})
	worker, err := engine.New(s.store, mux, engine.Config{Instance: "one"})
	if err != nil {
		t.Fatal(err)
	}
	id, err := stint.NewClient(s.store).Enqueue(t.Context(), stint.NewJob{Kind: "order", Args: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	path := "/jobs/" + id.String()
	shows := func(want bool, patterns ...string) {
		t.Helper()
		text := said(s.page(path))
		for _, pattern := range patterns {
			if regexp.MustCompile(pattern).MatchString(text) != want {
				t.Errorf("that the page shows %s is not %v: %s", pattern, want, text)
			}
		}
	}
	const panel, form = `<h2 id="signals-title">`, `action="/jobs/\d+/signal"`
	shows(false, panel)
	if _, err := worker.RunReady(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	shows(true, panel, `is blocked, awaits the signal &#34;go &lt;on&gt;&#34;, otherwise due <time [^>]*>in \d`, `It awaits the signal &#34;go &lt;on&gt;&#34; until <time`)
	shows(false, form)
	if status, _ := s.post(path+"/signal", url.Values{"name": {"go <on>"}}); status != http.StatusForbidden {
		t.Errorf("a viewer who sends one gets %d", status)
	}
	s.knock()
	shows(true, form, `<input name="name" [^>]* value="go &lt;on&gt;">`, `<option value="go &lt;on&gt;">`)
	if status, text := s.post(path+"/signal", url.Values{"name": {"go <on>"}, "value": {"{yes}"}}); status != 422 || !strings.Contains(text, "Value: malformed JSON at byte 2") {
		t.Errorf("what is no JSON is answered with %d %s", status, said(text))
	}
	s.says("Signal go &lt;on&gt; is sent to job "+id.String()+".", path+"/signal", url.Values{"name": {"go <on>"}, "value": {` {"big":12345678901234567890} `}, "back": {path}})
	shows(true, `<td>go &lt;on&gt;</td>.*<span class="muted">not taken yet</span>.*12345678901234567890`)
	s.stranger()
	shows(false, "12345678901234567890")
	s.knock()
	if _, err := s.store.Promote(t.Context(), time.Time{}, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := worker.RunReady(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	shows(true, `<td>go &lt;on&gt;</td> <td class="time">.*?</td> <td>go &lt;on&gt;</td>`)
	shows(false, form)
	s.says("the job has ended", path+"/signal", url.Values{"name": {"again"}})
}

func TestViewersSeeNoArgumentsWhenThoseAreHidden(t *testing.T) {
	s := open(t)
	ids := s.fill()
	for _, path := range everyPage(ids) {
		if text := s.page(path); strings.Contains(text, "98765432109876543210") || strings.Contains(text, "12345678901234567890") {
			t.Errorf("%s shows arguments or results", path)
		}
	}
	if status, _ := s.get("/jobs?text=9876"); status != http.StatusForbidden {
		t.Errorf("viewers search arguments: %d", status)
	}
}

func TestViewersAreOfferedNothingAndMayChangeNothing(t *testing.T) {
	s := open(t)
	ids := s.fill()
	offer := regexp.MustCompile(`method="post"[^>]*>|type="checkbox" name="id"|href="/changes"|href="/jobs/(new|bulk|\d+/edit)[^"]*"`)
	for _, path := range everyPage(ids) {
		for _, o := range offer.FindAllString(s.page(path), -1) {
			t.Errorf("%s offers %s", path, o)
		}
	}
	for _, path := range []string{"/jobs/bulk?verb=cancel", "/jobs/new", "/jobs/" + ids["good"].String() + "/edit", "/changes"} {
		if status, _ := s.get(path); status != http.StatusForbidden {
			t.Errorf("%s answers %d", path, status)
		}
	}
	waiting := ids["waiting"]
	for _, path := range []string{
		"/jobs/" + waiting.String() + "/cancel", "/jobs/selected", "/jobs/bulk", "/jobs/new", "/queues/away/pause", "/schedules/nightly%2F%E2%80%A6/pause", "/leases/retention/release",
	} {
		if status, _ := s.post(path, url.Values{"id": {waiting.String()}, "verb": {"cancel"}, "confirm": {"cancel"}}); status != http.StatusForbidden {
			t.Errorf("%s answers %d", path, status)
		}
	}
	if j := s.becomes(waiting, stint.Available); j.State != stint.Available {
		t.Error("a viewer changed it")
	}
}

func TestFormsDoWhatTheySay(t *testing.T) {
	s := open(t)
	ids := s.fill()
	s.knock()
	job := func(name string) string { return "/jobs/" + ids[name].String() }

	s.says("1 job due now.", job("scheduled")+"/retry", nil)
	s.becomes(ids["scheduled"], stint.Available)
	s.says("1 job cancelled.", job("scheduled")+"/cancel", url.Values{"why": {"no need"}})
	s.says("1 job had already ended.", job("good")+"/cancel", nil)
	s.says("1 job retried as a new job.", job("bad")+"/retry", nil)
	again, err := s.store.Jobs(t.Context(), store.Filter{Kind: "bad"})
	if err != nil || len(again) != 2 || again[0].Origin.Recovered != ids["bad"] {
		t.Fatalf("there are %d of it: %v", len(again), err)
	}
	s.says("1 job already retried before.", job("bad")+"/retry", nil)
	if again, err = s.store.Jobs(t.Context(), store.Filter{Kind: "bad"}); err != nil || len(again) != 2 {
		t.Fatalf("when it was sent twice there are %d of it: %v", len(again), err)
	}
	s.says("1 job retried as a new job.", job("bad")+"/retry", url.Values{"force": {"true"}})
	s.says("Nothing was done", job("bad")+"/delete", url.Values{"back": {"/jobs"}})
	s.says("Nothing was done", "/jobs/selected", url.Values{"verb": {"delete"}, "id": {ids["bad"].String()}})
	s.says("1 job deleted.", job("bad")+"/delete", url.Values{"back": {"/jobs"}, "confirm": {"delete"}})
	if status, _ := s.get(job("bad")); status != http.StatusNotFound {
		t.Errorf("a deleted job answers %d", status)
	}

	s.says("Enqueued as", "/jobs/new", url.Values{"kind": {"good"}, "args": {`{"n": 2}`}, "priority": {"-3"}, "queue": {"fast"}, "tags": {"x\r\ny z"}, "source": {"c1"}})
	made, err := s.store.Jobs(t.Context(), store.Filter{Source: "c1"})
	if err != nil || len(made) != 1 || made[0].Priority != -3 || made[0].Queue != "fast" || string(made[0].Args) != `{"n":2}` || !slices.Equal(made[0].Tags, []string{"x", "y z"}) {
		t.Fatalf("made %+v, %v", made, err)
	}

	s.says("2 jobs cancelled.", "/jobs/selected", url.Values{"verb": {"cancel"}, "confirm": {"cancel"}, "id": {ids["waiting"].String(), made[0].ID.String()}})
	s.says("No job is selected.", "/jobs/selected", url.Values{"verb": {"cancel"}})

	s.says("Queue away is paused.", "/queues/away/pause", url.Values{"why": {"a leak"}})
	s.says("Queue away was paused already.", "/queues/away/pause", nil)
	if paused, err := s.store.Paused(t.Context()); err != nil || len(paused) != 1 {
		t.Errorf("paused are %v, %v", paused, err)
	}
	s.says("Queue away is resumed.", "/queues/away/resume", nil)

	nightly := "/schedules/" + url.PathEscape("nightly/…")
	s.says("Schedule nightly/… is paused.", nightly+"/pause", url.Values{"why": {"holidays"}})
	s.says("Schedule nightly/… is resumed", nightly+"/resume", nil)
	s.says("Schedule nightly/… made job", nightly+"/run-now", nil)
	s.says("Nothing was done", nightly+"/remove", nil)
	s.says("is removed", nightly+"/remove", url.Values{"confirm": {"remove"}})
	if all, err := s.store.Schedules(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("there are %d schedules, %v", len(all), err)
	}
	s.says("Nobody holds the lease", "/leases/retention/release", nil)
}

func TestManyJobsAreChangedOnceTheWordIsTyped(t *testing.T) {
	s := open(t)
	s.knock()
	var jobs []stint.NewJob
	for range 30 {
		jobs = append(jobs, stint.NewJob{Kind: "work", Args: json.RawMessage(`{}`), Queue: "long"}, stint.NewJob{Kind: "work", Args: json.RawMessage(`{}`), Queue: "other"})
	}
	if _, err := stint.NewClient(s.store).EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	text := s.page("/jobs/bulk?verb=cancel&queue=long")
	for _, want := range []string{"<strong>30</strong>", `name="queue" value="long"`, "Type <b>cancel</b>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	cancelled := func() int {
		t.Helper()
		ids, err := s.store.Find(t.Context(), store.Filter{States: []stint.State{stint.Cancelled}, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(ids)
	}
	s.says("Nothing was done", "/jobs/bulk", url.Values{"verb": {"cancel"}, "queue": {"long"}, "confirm": {"yes"}})
	if n := cancelled(); n != 0 {
		t.Fatalf("%d are cancelled without the word", n)
	}
	s.says("30 jobs cancelled.", "/jobs/bulk", url.Values{"verb": {"cancel"}, "queue": {"long"}, "confirm": {"cancel"}})
	if n := cancelled(); n != 30 {
		t.Fatalf("%d are cancelled, want 30", n)
	}
}

func TestWhatAFormSaysIsShownOnce(t *testing.T) {
	s := open(t)
	s.knock()
	s.says("is paused", "/queues/q/pause", nil)
	if said := flashOf(s.page("/queues")); said != "" {
		t.Errorf("it is said again: %s", said)
	}
}

func TestAFormLeadsNowhereElse(t *testing.T) {
	s := open(t)
	s.knock()
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, back := range []string{"//evil.example/", "https://evil.example/", `/\evil.example`, "", "jobs"} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL+"/queues/q/pause", strings.NewReader(url.Values{"back": {back}}.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", s.server.URL)
		res, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if to := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || to != "/queues" {
			t.Errorf("back to %q leads to %d %q", back, res.StatusCode, to)
		}
	}
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	s := open(t)
	s.knock()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL+"/queues/q/pause", strings.NewReader(""))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", "http://localhost:1")
	res, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("it answers %d", res.StatusCode)
	}
	if paused, err := s.store.Paused(t.Context()); err != nil || len(paused) != 0 {
		t.Errorf("paused are %v, %v", paused, err)
	}
}

func TestAFormWithoutEndIsCutOff(t *testing.T) {
	s := open(t)
	s.knock()
	if status, _ := s.post("/jobs/new", url.Values{"args": {strings.Repeat("x", 5<<20)}}); status != http.StatusRequestEntityTooLarge {
		t.Errorf("it answers %d", status)
	}
}

func TestItCanBeMountedAnywhere(t *testing.T) {
	s := openAt(t, "/ops/stint")
	s.knock()
	text := s.page("/jobs")
	local := regexp.MustCompile(`(?:href|src|action)="([^"#]*)"`)
	for _, m := range local.FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "/ops/stint/") {
			t.Errorf("the page leads to %s", m[1])
		}
	}
	s.says("is paused", "/queues/q/pause", nil)
	for _, path := range []string{"/healthz", "/readyz", "/api/v1/queues"} {
		if status, text := s.get(path); status != http.StatusOK {
			t.Errorf("%s answers %d %s", path, status, text)
		}
	}
	for _, path := range []string{"stint", "/a//b", "/a?b", "http://x/"} {
		if _, err := dashboard.New(s.store, dashboard.Config{Path: path}); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("mounted at %q: %v", path, err)
		}
	}
}

func TestAssetsAreKeptUntilThereAreOthers(t *testing.T) {
	s := open(t)
	asset := regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`)
	found := asset.FindAllStringSubmatch(s.page("/"), -1)
	if len(found) < 3 {
		t.Fatalf("the page has %d assets", len(found))
	}
	for _, m := range found {
		res, err := s.client.Get(s.server.URL + m[1])
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK || !strings.Contains(res.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s answers %d, %s", m[1], res.StatusCode, res.Header.Get("Cache-Control"))
		}
	}
}

// refusing is a database that does not let its program in.
type refusing struct{ *sqlite.Store }

func (refusing) Paused(context.Context) ([]string, error) { return nil, store.ErrLogin }

func TestTheDatabaseIsAskedWhetherTheDashboardIsReady(t *testing.T) {
	s := open(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, _ := s.get(path); status != http.StatusOK {
			t.Errorf("%s answers %d", path, status)
		}
	}
	board, err := dashboard.New(refusing{s.store}, dashboard.Config{Guard: guard.Config{Stranger: guard.Viewer}})
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	board.ServeHTTP(answer, httptest.NewRequest("GET", "http://localhost/readyz", nil))
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "it refuses the login") {
		t.Errorf("where the database refuses its login it answers %d %s", answer.Code, answer.Body)
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	if status, _ := s.get("/healthz"); status != http.StatusOK {
		t.Errorf("without a database it is not alive: %d", status)
	}
	if status, _ := s.get("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("without a database it is ready: %d", status)
	}
	if status, text := s.get("/jobs"); status != http.StatusInternalServerError || strings.Contains(text, "closed") {
		t.Errorf("without a database a page answers %d %s", status, text)
	}
}

func TestAGatewayForWorkersOnlySaysSo(t *testing.T) {
	board, err := dashboard.New(open(t).store, dashboard.Config{WorkersOnly: true, Path: "/jobs", Guard: guard.Config{Stranger: guard.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/jobs/api/v1/jobs": 404, "/": 404, "/jobs/healthz": 200} {
		w := httptest.NewRecorder()
		board.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != want || want == 404 && !strings.Contains(w.Body.String(), `"detail":"this address serves workers only, at /jobs/api/v1/workers`) {
			t.Errorf("%s answers %d %s", path, w.Code, w.Body)
		}
	}
}

// stream opens the events of a page and sends what comes to a channel.
func (s *site) stream(page string) (*http.Response, <-chan string) {
	s.Helper()
	res, err := s.client.Get(s.server.URL + s.path + "/events?" + url.Values{"page": {page}}.Encode())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { res.Body.Close() })
	events := make(chan string, 100)
	go func() {
		defer close(events)
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				events <- name
			}
		}
	}()
	return res, events
}

func TestAPageIsToldWhenItWouldLookOtherwise(t *testing.T) {
	t.Parallel()
	s := open(t)
	res, events := s.stream("/jobs?kind=new")
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("it answers %d as %s", res.StatusCode, kind)
	}
	client := stint.NewClient(s.store)
	enqueue := func(kind string) {
		t.Helper()
		if _, err := client.Enqueue(t.Context(), stint.NewJob{Kind: kind, Args: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(500 * time.Millisecond) // the first look was taken
	enqueue("another")
	looked := 0
	for over := time.After(5 * time.Second); over != nil; {
		select {
		case e := <-events:
			if looked++; e != "looked" {
				t.Fatalf("%s came for what the page does not show", e)
			}
		case <-over:
			over = nil
		}
	}
	if looked == 0 {
		t.Error("it is not told that the page would look the same")
	}
	enqueue("new")
	for late, e := time.After(20*time.Second), "looked"; e == "looked"; {
		select {
		case e = <-events:
			if e != "looked" && e != "change" {
				t.Errorf("%s came", e)
			}
		case <-late:
			t.Fatal("nothing came")
		}
	}
}

func TestEventsAreOfPagesThatAreThere(t *testing.T) {
	s := open(t)
	for page, want := range map[string]int{"/nowhere": 404, "http://evil.example/": 400, "": 400, "//x/": 400, "/changes": 404, "/jobs/new": 404} {
		if status, _ := s.get("/events?" + url.Values{"page": {page}}.Encode()); status != want {
			t.Errorf("events of %q answer %d, want %d", page, status, want)
		}
	}
}

func TestOnlySoManyPagesAreLive(t *testing.T) {
	s := open(t)
	for range 100 {
		if res, _ := s.stream("/queues"); res.StatusCode != http.StatusOK {
			t.Fatalf("it answers %d", res.StatusCode)
		}
	}
	if status, _ := s.get("/events?page=%2Fqueues"); status != http.StatusServiceUnavailable {
		t.Errorf("the 101st stream answers %d", status)
	}
}

func TestJobsArePagedByKeys(t *testing.T) {
	s := open(t)
	var jobs []stint.NewJob
	for i := range 120 {
		jobs = append(jobs, stint.NewJob{Kind: "work", Args: json.RawMessage(fmt.Sprintf(`{"i":%d}`, i))})
	}
	if _, err := stint.NewClient(s.store).EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`<td class="id"><a href="/jobs/(\d+)">`)
	next := regexp.MustCompile(`<a href="([^"]+)" rel="next">`)
	seen, pages := map[string]bool{}, 0
	for path := "/jobs?kind=work"; path != "" && pages < 10; {
		text := s.page(path)
		for _, m := range row.FindAllStringSubmatch(text, -1) {
			if seen[m[1]] {
				t.Errorf("job %s is on two pages", m[1])
			}
			seen[m[1]] = true
		}
		pages++
		path = ""
		if m := next.FindStringSubmatch(text); m != nil {
			path = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	if len(seen) != 120 || pages != 3 {
		t.Errorf("%d jobs on %d pages", len(seen), pages)
	}
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	s := open(t)
	s.fill()
	s.knock()
	href := regexp.MustCompile(`<(?:a|link)[^>]* href="([^"#]+)"`)
	seen := map[string]bool{"/": true}
	for open := []string{"/"}; len(open) > 0 && len(seen) < 500; open = open[1:] {
		text := s.page(open[0])
		for _, m := range href.FindAllStringSubmatch(text, -1) {
			to := html.UnescapeString(m[1])
			u, err := url.Parse(to)
			if err != nil {
				t.Fatalf("%s leads to %q: %v", open[0], to, err)
			}
			for name, values := range u.Query() {
				if len(values) == 0 || values[0] == "" {
					t.Errorf("%s leads to %s, in which %s is empty", open[0], to, name)
				}
			}
			if !seen[to] && !strings.HasPrefix(to, "/assets/") && to != "/metrics" {
				seen[to] = true
				open = append(open, to)
			}
		}
	}
	if len(seen) < 40 {
		t.Errorf("there are only %d pages", len(seen))
	}
}

func TestAnEngineThatIsGoneHasAPageThatSaysWhatBecameOfItsJobs(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	for token, name := range map[store.EngineID]string{4711: "killed <i>", 4712: "burier"} {
		if err := s.store.Join(ctx, store.EngineInfo{Token: token, Instance: name, Host: "h", PID: 7, Slots: 2, TimeToLive: time.Hour}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stint.NewClient(s.store).Enqueue(ctx, stint.KindInfo{Name: "lost"}.Job(nil)); err != nil {
		t.Fatal(err)
	}
	claim, err := s.store.Claim(ctx, store.ClaimRequest{Engine: 4711, Serial: 1, Nonce: 1, Lane: store.LaneOf("default", 0, store.PartNormal, "").ID, Max: 1})
	if err != nil || len(claim.Positions) != 1 {
		t.Fatal(claim, err)
	}
	if _, err := s.store.Heartbeat(ctx, 4711, store.Heartbeat{Number: 1, Running: claim.Positions}); err != nil {
		t.Fatal(err)
	}
	if status, _ := s.get("/engines/4711"); status != http.StatusOK {
		t.Fatalf("living, its page answers %d", status)
	}
	if text := said(s.page("/jobs/" + claim.Entries[0].ID.String())); strings.Contains(text, "counts as dead") || !strings.Contains(text, `Runs since</dt><dd><span class="muted">–<`) {
		t.Errorf("of a job whose start no beat has said the page says %s", text)
	}
	if _, err := s.store.Heartbeat(ctx, 4711, store.Heartbeat{Number: 2, Running: claim.Positions, Started: map[store.Position]time.Time{claim.Positions[0]: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/jobs/" + claim.Entries[0].ID.String(): "Runs since</dt><dd><time", "/engines/4711": "<td>running since <time"} {
		if text := said(s.page(path)); !strings.Contains(text, want) {
			t.Errorf("of a job that runs %s does not say since when: %s", path, text)
		}
	}
	if _, err := storetest.Bury(ctx, s.store, store.Burial{Engine: 4711, Why: store.WhySilent, By: 4712}, storetest.Judge); err != nil {
		t.Fatal(err)
	}
	id := claim.Entries[0].ID.String()
	for path, want := range map[string][]string{
		"/engines":      {`href="/engines/4711">killed &lt;i&gt;</a>`, "buried: it sent no heartbeat within its time to live", `href="/engines/4712">burier</a>`},
		"/engines/4711": {"Attempts lost with it", `href="/jobs/` + id + `"`, "1 job that it held; 1 known to have begun", `href="/engines/4712">burier</a>`, `state-available`},
		"/jobs/" + id:   {`Lost with</dt><dd><a href="/engines/4711">killed &lt;i&gt;`},
	} {
		text := s.page(path)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not say %q:\n%s", path, w, said(text))
			}
		}
	}
	if strings.Contains(s.page("/engines/4711"), "/bury") {
		t.Error("one that is gone can be buried")
	}
	res, err := s.client.Get(s.server.URL + "/figures")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if to := res.Request.URL; to.Path != "/engines" || to.Fragment != "metrics" {
		t.Errorf("the old address of the metrics leads to %s", to)
	}
}

func TestChangesNameEnginesInPlaceOfTokens(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	s.knock()
	for token, name := range map[store.EngineID]string{4711: "gone", 4712: "living"} {
		if err := s.store.Join(ctx, store.EngineInfo{Token: token, Instance: name, Slots: 2, TimeToLive: time.Hour}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []store.NewChange{{Way: "w", Operation: "engines drain", Subject: "4711"}, {Way: "w", Operation: "engines drain", Subject: "4712"}, {Way: "w", Operation: "engines bury", Subject: "4713"}, {Way: "w", Operation: "queues pause", Subject: "4712"}} {
		if _, err := s.store.BeginChange(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := storetest.Bury(ctx, s.store, store.Burial{Engine: 4711}, storetest.Judge); err != nil {
		t.Fatal(err)
	}
	text := s.page("/changes")
	for _, want := range []string{`<a href="/engines/4711">gone</a>`, `<a href="/engines/4712">living</a>`, `<td><a href="/changes?subject=4713">4713</a></td>`, `<td><a href="/changes?subject=4712">4712</a></td>`} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is not there once", want)
		}
	}
}
