package dashboard_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/link"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/store"
)

// asks enqueues a job that asks questions, and lets it ask; run runs it again.
func (s *site) asks(names ...string) (id stint.ID, run func()) {
	s.Helper()
	mux := stint.NewMux()
	mux.Add(stint.KindInfo{Name: "order"}, func(ctx context.Context, _ *stint.Job) (_ json.RawMessage, err error) {
		for _, name := range names {
			if _, wrong := stint.Ask(ctx, name, "Pay for <"+name+">?", time.Hour, "pay <now>", "refuse"); wrong != nil {
				err = wrong
			}
		}
		return nil, err
	})
	worker, err := engine.New(s.store, mux, engine.Config{Instance: "one"})
	if err != nil {
		s.Fatal(err)
	}
	id, err = stint.NewClient(s.store).Enqueue(s.Context(), stint.NewJob{Kind: "order", Args: json.RawMessage(`{}`)})
	if err != nil {
		s.Fatal(err)
	}
	run = func() {
		s.Helper()
		if _, err := s.store.Promote(s.Context(), time.Time{}, 10); err != nil {
			s.Fatal(err)
		}
		if _, err := worker.RunReady(s.Context(), nil); err != nil {
			s.Fatal(err)
		}
	}
	run()
	return id, run
}

// answerOf is what is recorded of a question.
func (s *site) answerOf(id stint.ID, name string) (a stint.Answer) {
	s.Helper()
	steps, err := s.store.Steps(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	for _, step := range steps {
		if step.Name == name && step.Result != nil {
			if err := json.Unmarshal(step.Result, &a); err != nil {
				s.Fatal(err)
			}
		}
	}
	return a
}

func TestAQuestionIsAnsweredOnPages(t *testing.T) {
	s := open(t)
	if text := s.page("/"); strings.Contains(text, "/questions") {
		t.Error("without a question the overview leads to them")
	}
	id, run := s.asks("a <b>", "c")
	path := "/jobs/" + id.String()
	const text, button = `Pay for &lt;a &lt;b&gt;&gt;?`, `name="choice" value="pay &lt;now&gt;"`
	for _, page := range []string{path, "/questions"} {
		s.stranger()
		if got := s.page(page); strings.Contains(got, text) || strings.Contains(got, button) || !strings.Contains(got, "You are not allowed to see it.") {
			t.Errorf("%s shows to a viewer %s", page, said(got))
		}
		s.knock()
		if got := s.page(page); !strings.Contains(got, text) || strings.Count(got, button) != 2 || !strings.Contains(got, `action="/jobs/`+id.String()+`/answer"`) {
			t.Errorf("%s shows %s", page, got)
		}
	}
	if got := s.page("/"); !strings.Contains(got, `<a href="/questions">2 questions wait for an answer</a>`) {
		t.Error("the overview does not lead to the questions")
	}
	if got := s.page("/jobs"); !strings.Contains(got, `awaits the answer to &#34;a &lt;b&gt;&#34; or &#34;c&#34;, otherwise due`) {
		t.Errorf("the list says %s", said(got))
	}
	s.stranger()
	form := func(name, choice string) url.Values {
		return url.Values{"question": {name}, "choice": {choice}, "comment": {"fine"}, "back": {"/questions"}}
	}
	if status, _ := s.post(path+"/answer", form("c", "refuse")); status != http.StatusForbidden {
		t.Errorf("a viewer who answers gets %d", status)
	}
	s.knock()
	s.says("Choice: it is none of", path+"/answer", form("c", "perhaps"))
	s.says("The question a &lt;b&gt; of job "+id.String()+" is answered: pay &lt;now&gt;.", path+"/answer", form("a <b>", "pay <now>"))
	s.says("was answered by link: pay &lt;now&gt;.", path+"/answer", form("a <b>", "refuse"))
	s.says("has not asked this question", path+"/answer", form("none", "refuse"))
	if a := s.answerOf(id, "a <b>"); a.Choice != "pay <now>" || a.By != "link" || a.Comment != "fine" {
		t.Errorf("recorded is %+v", a)
	}
	if got := s.page("/questions"); strings.Contains(got, text) || !strings.Contains(got, "Pay for &lt;c&gt;?") {
		t.Errorf("the list shows %s", said(got))
	}
	s.says("is answered: refuse", path+"/answer", form("c", "refuse"))
	run()
	if got := s.page(path); !strings.Contains(got, "completed") || strings.Contains(got, button) || !strings.Contains(got, text) {
		t.Errorf("the page of the job that ended shows %s", said(got))
	}
	if got := s.page("/questions"); !strings.Contains(got, "No question is open.") {
		t.Errorf("the list shows %s", said(got))
	}
	changes, err := s.store.Changes(t.Context(), store.ChangeFilter{Operation: "jobs answer", Limit: 10})
	if err != nil || len(changes) != 5 || changes[0].By != "link" || changes[0].Subject != id.String() || string(changes[0].Details) != `{"choice":"refuse","question":"c"}` {
		t.Errorf("the changes are %+v, %v", changes, err)
	}
}

// at is the path of a link.
func (s *site) at(l link.Link) string {
	s.Helper()
	key, err := link.NewKey(linkSecret)
	if err != nil {
		s.Fatal(err)
	}
	to, err := key.URL(s.server.URL, l)
	if err != nil {
		s.Fatal(err)
	}
	return strings.TrimPrefix(to, s.server.URL)
}

func TestALinkAnswersWithoutALogin(t *testing.T) {
	for _, mounted := range []string{"", "/stint"} {
		s := openAt(t, mounted)
		id, run := s.asks("q")
		l := link.Link{Job: id, Question: "q", By: "ann <a>", Expires: time.Now().Add(time.Hour)}
		path := s.at(l)
		for range 3 { // programs that look at links do no harm
			text := s.page(path)
			if !strings.Contains(text, "Pay for &lt;q&gt;?") || !strings.Contains(text, `name="choice" value="pay &lt;now&gt;"`) || !strings.Contains(text, "You answer as ann &lt;a&gt;.") {
				t.Fatalf("the link shows %s", text)
			}
		}
		if a := s.answerOf(id, "q"); a.Choice != "" {
			t.Fatalf("to look has answered %+v", a)
		}
		if status, style := s.get("/answer/style.css"); status != http.StatusOK || !strings.Contains(style, ".question") {
			t.Errorf("its style answers %d", status)
		}
		if status, text := s.post(path, url.Values{"choice": {"perhaps"}}); status != http.StatusUnprocessableEntity || !strings.Contains(text, "none of") || !strings.Contains(text, `value="refuse"`) {
			t.Errorf("what is no choice is answered with %d %s", status, said(text))
		}
		if status, text := s.post(path, url.Values{"choice": {"refuse"}, "comment": {strings.Repeat("x", 70_000)}}); status != http.StatusUnprocessableEntity {
			t.Errorf("what is too large is answered with %d %s", status, said(text))
		}
		one := l
		one.Choice, one.By = "refuse", "bob"
		for _, path := range []string{s.at(one)} {
			if text := s.page(path); strings.Contains(text, "pay") && strings.Contains(text, `value="pay`) || !strings.Contains(text, `value="refuse"`) {
				t.Errorf("a link with one choice shows %s", text)
			}
		}
		status, text := s.post(s.at(one), url.Values{"choice": {"pay <now>"}, "comment": {"no"}})
		if status != http.StatusOK || !strings.Contains(text, "It is answered: <strong>refuse</strong>, by bob") {
			t.Errorf("the answer is answered with %d %s", status, said(text))
		}
		if a := s.answerOf(id, "q"); a.Choice != "refuse" || a.By != "bob" || a.Comment != "no" {
			t.Errorf("recorded is %+v", a)
		}
		if status, text := s.post(path, url.Values{"choice": {"pay <now>"}}); status != http.StatusConflict || !strings.Contains(text, "by bob") || strings.Contains(text, "<button") {
			t.Errorf("a second answer is answered with %d %s", status, said(text))
		}
		if text := s.page(path); !strings.Contains(text, "<strong>refuse</strong>, by bob") || strings.Contains(text, "<button") {
			t.Errorf("the link of an answered question shows %s", said(text))
		}
		changes, err := s.store.Changes(t.Context(), store.ChangeFilter{Operation: "jobs answer", Limit: 10})
		if err != nil || len(changes) != 3 || changes[1].By != "bob" || changes[1].Result != store.ChangeDone || changes[0].By != "ann <a>" || changes[0].Result != store.ChangeFailed {
			t.Errorf("the changes are %+v, %v", changes, err)
		}
		run()
		if text := s.page(path); !strings.Contains(text, "<strong>refuse</strong>, by bob") {
			t.Errorf("when the job has ended the link shows %s", said(text))
		}
	}
}

func TestALinkThatDoesNotHoldSaysSo(t *testing.T) {
	s := open(t)
	id, _ := s.asks("q", "r")
	l := link.Link{Job: id, Question: "q", By: "ann", Expires: time.Now().Add(time.Hour)}
	with := func(change func(l *link.Link)) string { l := l; change(&l); return s.at(l) }
	path := s.at(l)
	for what, c := range map[string]struct {
		path   string
		status int
		says   string
	}{
		"a changed one":        {path[:len(path)-3] + "xyz", http.StatusForbidden, "This link is not valid."},
		"half of one":          {path[:len(path)/2], http.StatusForbidden, "This link is not valid."},
		"an expired one":       {with(func(l *link.Link) { l.Expires = time.Now().Add(-time.Second) }), http.StatusGone, "This link has expired."},
		"one of no job":        {with(func(l *link.Link) { l.Job = 99 }), http.StatusNotFound, "The job that asked is gone"},
		"one of no question":   {with(func(l *link.Link) { l.Question = "none" }), http.StatusNotFound, "This has not been asked yet."},
		"one of another case":  {with(func(l *link.Link) { l.Question = "Q" }), http.StatusNotFound, "This has not been asked yet."},
		"one that is no more":  {with(func(l *link.Link) { l.Choice = "perhaps" }), http.StatusUnprocessableEntity, "is none that the question takes."},
		"a choice of any case": {with(func(l *link.Link) { l.Choice = "Refuse" }), http.StatusUnprocessableEntity, "is none that the question takes."},
	} {
		for _, ask := range []func() (int, string){func() (int, string) { return s.get(c.path) }, func() (int, string) { return s.post(c.path, url.Values{"choice": {"refuse"}}) }} {
			status, text := ask()
			if status != c.status || !strings.Contains(text, c.says) && !strings.Contains(text, "none of") && !strings.Contains(text, "no such job") && !strings.Contains(text, "not asked") || strings.Contains(text, "<button") {
				t.Errorf("%s is answered with %d %s", what, status, said(text))
			}
		}
	}
	if _, err := s.store.Cancel(t.Context(), []stint.ID{id}, ""); err != nil {
		t.Fatal(err)
	}
	if status, text := s.get(path); status != http.StatusGone || !strings.Contains(text, "has ended") {
		t.Errorf("of a job that ended it is answered with %d %s", status, said(text))
	}
	if status, text := s.post(path, url.Values{"choice": {"refuse"}}); status != http.StatusConflict || !strings.Contains(text, "has ended") {
		t.Errorf("of a job that ended an answer is answered with %d %s", status, said(text))
	}
	if a := s.answerOf(id, "q"); a.Choice != "" {
		t.Errorf("recorded is %+v", a)
	}
}

func TestALinkIsShieldedAndNeedsAKey(t *testing.T) {
	s := open(t)
	id, _ := s.asks("q")
	path := s.at(link.Link{Job: id, Question: "q", By: "ann", Expires: time.Now().Add(time.Hour)})
	ask := func(h http.Handler, change func(r *http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader("choice=refuse"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		change(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	board := s.server.Config.Handler
	for what, change := range map[string]func(r *http.Request){
		"a page of another origin": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"a foreign host":           func(r *http.Request) { r.Host = "evil.example" },
	} {
		if w := ask(board, change); w.Code != http.StatusForbidden && w.Code != http.StatusMisdirectedRequest {
			t.Errorf("%s is answered with %d", what, w.Code)
		}
	}
	none, err := dashboard.New(s.store, dashboard.Config{Guard: guard.Config{Stranger: guard.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	if w := ask(none, func(*http.Request) {}); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "takes no answers by links") {
		t.Errorf("without a key it is answered with %d %s", w.Code, said(w.Body.String()))
	}
	if _, err := dashboard.New(s.store, dashboard.Config{LinkKey: "short"}); err == nil {
		t.Error("a short key is taken")
	}
	if a := s.answerOf(id, "q"); a.Choice != "" {
		t.Errorf("recorded is %+v", a)
	}
	closed, err := dashboard.New(s.store, dashboard.Config{LinkKey: linkSecret}) // nobody may log in
	if err != nil {
		t.Fatal(err)
	}
	w := ask(closed, func(*http.Request) {})
	if a := s.answerOf(id, "q"); w.Code != http.StatusSeeOther || a.By != "ann" {
		t.Errorf("where nobody may log in it is answered with %d, recorded is %+v", w.Code, a)
	}
	if h := w.Header(); h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Content-Security-Policy") == "" {
		t.Errorf("its headers are %v", h)
	}
}
