package dashboard_test

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// limited is a limit of which an engine holds all permits, and a job that waits for it.
func (s *site) limited() stint.ID {
	s.Helper()
	if err := s.store.DeclareLimits(s.Context(), map[string]stint.LimitRule{"smtp": {AtOnce: 2}, "tenant": {AtOnce: 5}}); err != nil {
		s.Fatal(err)
	}
	const token = 4711
	if err := s.store.Join(s.Context(), store.EngineInfo{Token: token, Instance: "holder", Host: "h", Slots: 8, TimeToLive: time.Hour, Kinds: []string{"work"}, Beat: time.Now()}, nil); err != nil {
		s.Fatal(err)
	}
	gates := []store.TakingGate{{Gate: "smtp"}, {Gate: "tenant=a/b"}}
	if _, err := s.store.Permits(s.Context(), token, store.PermitRequest{Take: []store.Taking{{Gates: gates, Want: 2}}}); err != nil {
		s.Fatal(err)
	}
	id, err := stint.NewClient(s.store).Enqueue(s.Context(), stint.KindInfo{Name: "work"}.Job(nil, stint.Limited("smtp", "tenant=a/b")))
	if err != nil {
		s.Fatal(err)
	}
	return id
}

func TestPagesSayWhatALimitAllowsAndWhoHoldsIt(t *testing.T) {
	s := open(t)
	id := s.limited()
	for path, want := range map[string]string{
		"/limits":         `<a href="/limits/smtp">smtp</a></td> <td class="mono">2</td> <td class="num">2</td> <td><meter min="0" max="2" value="2"[^>]*>2 of 2</meter>`,
		"/limits/smtp":    `<a href="/engines/4711">holder</a></td> <td class="num">2</td>`,
		"/limits/tenant":  `<td><a href="/limits/tenant=a%2Fb">a/b</a></td> <td class="num">2</td> <td><meter min="0" max="5" value="2"`,
		"/limits/unknown": `<span class="mono">any</span> <span class="badge state-cancelled">no rule</span>`,
		"/jobs/" + id.String(): `It is available, waits for the limit smtp: 2 of 2 in use, by holder \(2\)\.</p>.*` +
			`<a href="/limits/smtp">smtp</a>, <a href="/limits/tenant">tenant=a/b</a></dd> <dt>smtp</dt><dd>2 of 2 in use: <a href="/engines/4711">holder</a> \(2\)`,
	} {
		if text := said(s.page(path)); !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s says %s", path, text)
		}
	}
	if status, text := s.get("/limits/a%20b"); status != 404 {
		t.Errorf("what can be no limit: %d %s", status, said(text))
	}
}

func TestALimitIsSetAndResetByThoseWhoMay(t *testing.T) {
	s := open(t)
	s.limited()
	if text := s.page("/limits/smtp"); strings.Contains(text, "/set") {
		t.Errorf("a viewer is offered to set it: %s", said(text))
	}
	if status, _ := s.post("/limits/smtp/set", url.Values{"rule": {"7"}}); status != 403 {
		t.Errorf("a viewer who sets it gets %d", status)
	}
	rule := func() string {
		t.Helper()
		all, err := s.store.Limits(t.Context())
		if err != nil || all[0].Name != "smtp" {
			t.Fatalf("the limits are %+v, %v", all, err)
		}
		return all[0].Rule
	}
	s.knock()
	s.says("Limit smtp is set to 7,100/1m, and was 2.", "/limits/smtp/set", url.Values{"rule": {" 7,100/1m "}, "why": {"a new server"}, "back": {"/limits/smtp"}})
	if text := said(s.page("/limits/smtp")); rule() != "7,100/1m" || !regexp.MustCompile(`<dt>Set</dt><dd><time [^>]*>[^<]*</time> by [^:<]+: a new server</dd>`).MatchString(text) {
		t.Errorf("the rule is %s, and the page says %s", rule(), text)
	}
	if status, text := s.post("/limits/smtp/set", url.Values{"rule": {"many"}}); status != 422 || !strings.Contains(flashOf(text)+said(text), "is not such as 10") {
		t.Errorf("a rule that is none: %d %s", status, said(text))
	}
	s.says("confirm it by the word reset", "/limits/smtp/reset", url.Values{})
	if rule() != "7,100/1m" {
		t.Errorf("it is %s", rule())
	}
	s.says("Limit smtp was reset from 7,100/1m to 2, which programs declare.", "/limits/smtp/reset", url.Values{"confirm": {"reset"}})
	if rule() != "2" {
		t.Errorf("it is %s", rule())
	}
}

func TestALimitIsPausedAndResumedOnItsPage(t *testing.T) {
	s := open(t)
	s.limited()
	s.knock()
	s.says("Limit smtp is paused for 10m.", "/limits/smtp/pause", url.Values{"for": {"10m"}, "why": {"their maintenance"}, "back": {"/limits/smtp"}})
	for path, want := range map[string]string{
		"/limits/smtp": `<dt>Paused</dt><dd>until <time [^>]*>[^<]*</time>, by [^:<]+: their maintenance</dd>`,
		"/limits":      `<span class="badge cond-silent">paused</span> until <time [^>]*>[^<]*</time>, by [^:<]+: their maintenance</td>`,
	} {
		if text := said(s.page(path)); !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s says %s", path, text)
		}
	}
	if status, text := s.post("/limits/smtp/pause", url.Values{"for": {"soon"}}); status != 422 {
		t.Errorf("a pause of no time: %d %s", status, said(text))
	}
	s.says("Limit smtp is resumed.", "/limits/smtp/resume", url.Values{})
	if text := s.page("/limits/smtp"); strings.Contains(text, "<dt>Paused") {
		t.Errorf("resumed, the page says %s", said(text))
	}
}

func TestAPageSaysWhatHoldsUpAnOrderAndLetsPeopleGoOn(t *testing.T) {
	s := open(t)
	if err := s.store.SetLimit(t.Context(), "account", stint.LimitRule{AtOnce: 1, InOrder: true, Halt: true}, "", ""); err != nil {
		t.Fatal(err)
	}
	job := stint.KindInfo{Name: "work"}.Job(nil, stint.Limited("account=7"))
	ids, err := stint.NewClient(s.store).EnqueueMany(t.Context(), []stint.NewJob{job, job})
	if err != nil {
		t.Fatal(err)
	}
	first, next := ids[0].String(), ids[1].String()
	w := storetest.Join(t, s.store, "work")
	claim := func(part store.Part) store.Entry {
		return w.Claim(store.LimitedLane(stint.DefaultQueue, 0, part, "", "account=7").ID, 1)[0]
	}
	w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront}, claim(store.PartNormal))
	if text := said(s.page("/jobs/" + next)); !strings.Contains(text, "waits for job "+first+" of account=7, which goes first") {
		t.Errorf("of the one behind it says %s", text)
	}
	if text := said(s.page("/jobs/" + first)); strings.Contains(text, "waits for job") {
		t.Errorf("of the one that goes first it says %s", text)
	}
	w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(errors.New("no"))}, claim(store.PartFront))
	if text := s.page("/limits/account=7"); strings.Contains(text, "/unblock") || !strings.Contains(said(text), "<strong>halted</strong> since") {
		t.Errorf("to a viewer it says %s", said(text))
	}
	s.knock()
	if text := s.page("/limits/account=7"); !strings.Contains(text, "/limits/account=7/unblock") {
		t.Errorf("nobody is offered to go on: %s", said(text))
	}
	s.says("Account=7 goes on without job "+first+".", "/limits/account=7/unblock", url.Values{"back": {"/limits/account=7"}})
	if text := said(s.page("/limits/account=7")); strings.Contains(text, "halted") {
		t.Errorf("it says %s", text)
	}
}
