package browser_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/link"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

func TestALinkOpensTheDashboard(t *testing.T) {
	b := newBoard(t)
	if at := eval[string](b.tab, `location.pathname + location.search`); at != "/" {
		t.Errorf("the token stays in the address: %s", at)
	}
	b.until(`document.querySelector(".who").textContent.includes("admin")`)
}

// Verbs of one job, on its page.

func TestAFailedJobIsDoneAgainAsANewOne(t *testing.T) {
	b := newBoard(t)
	defer b.work()()
	id := b.enqueue("bad")
	b.becomes(id, stint.Failed)
	b.visit(b.job(id))
	b.submit(`form[action$="/retry"] button`)
	again := b.only(store.Filter{Kind: "bad", States: store.States, Limit: 1})
	if again.Origin.Recovered != id {
		t.Errorf("the newest job does again %d, want %d", again.Origin.Recovered, id)
	}
	b.submit(`.flash a`)
	b.until(fmt.Sprintf(`location.pathname === %q`, b.job(again.ID)))

	// A second time it names that job, and asks.
	b.visit(b.job(id))
	const asks = `form[action$="/retry"]`
	if shown := eval[bool](b.tab, `document.querySelector('`+asks+`').checkVisibility()`); shown {
		t.Error("a job that was retried is retried by one click")
	}
	b.click(`details:has(` + asks + `) summary`)
	if got, want := eval[string](b.tab, `document.querySelector('`+asks+` a').pathname`), b.job(again.ID); got != want {
		t.Errorf("who retries it once more is pointed to %s, want %s", got, want)
	}
	b.submit(asks + ` button`)
	if third := b.only(store.Filter{Kind: "bad", States: store.States, Limit: 1}); third.ID == again.ID || third.Origin.Recovered != id {
		t.Errorf("the newest job is %d, and does again %d", third.ID, third.Origin.Recovered)
	}
}

func TestAJobThatWaitsIsRunNow(t *testing.T) {
	b := newBoard(t)
	defer b.work()()
	id := b.enqueue("good", stint.Delay(time.Hour))
	b.visit(b.job(id))
	b.submit(`form[action$="/retry"] button`)
	b.becomes(id, stint.Completed)
	b.until(`document.querySelector("h1 .badge").textContent === "completed"`) // the page follows
}

func TestAJobIsCancelledWithAReason(t *testing.T) {
	b := newBoard(t)
	id := b.enqueue("good")
	b.visit(b.job(id))
	b.enter(`form[action$="/cancel"] input[name="why"]`, "no need any more")
	b.submit(`form[action$="/cancel"] button`)
	b.says("1 job cancelled.")
	b.becomes(id, stint.Cancelled)
}

func TestARunningJobIsCancelled(t *testing.T) {
	b := newBoard(t)
	defer b.work()()
	id := b.enqueue("slow")
	b.becomes(id, stint.Running)
	b.visit(b.job(id))
	b.submit(`form[action$="/cancel"] button`)
	b.becomes(id, stint.Cancelled)
}

func TestAJobThatEndedIsDeleted(t *testing.T) {
	b := newBoard(t)
	defer b.work()()
	id := b.enqueue("good")
	b.becomes(id, stint.Completed)
	b.visit(b.job(id))
	b.click(`details:has(form[action$="/delete"]) summary`)
	b.submit(`form[action$="/delete"] button`)
	b.says("1 job deleted.")
	if _, err := b.store.Job(t.Context(), id); !errors.Is(err, stint.ErrNotFound) {
		t.Errorf("a job that was deleted: %v", err)
	}
}

func TestAJobIsEditedAndDoneAgain(t *testing.T) {
	b := newBoard(t)
	defer b.work()()
	id := b.enqueue("bad", stint.Tag("eu"))
	before := b.becomes(id, stint.Failed)
	b.visit(b.job(id))
	b.submit(`a[href$="/edit"]`)
	b.empty(`textarea[name="args"]`)
	b.enter(`textarea[name="args"]`, `{"n": 9007199254740993}`)
	b.submit(`form.edit button`)
	again := b.only(store.Filter{Kind: "bad", Limit: 1})
	if again.ID == id || string(again.Args) != `{"n":9007199254740993}` || again.Correlation != before.Correlation || !cmp.Equal(again.Tags, []string{"eu"}) {
		t.Errorf("the new job is %+v", again)
	}
}

func TestAJobIsEnqueued(t *testing.T) {
	b := newBoard(t)
	defer b.work()()
	b.engine()
	b.visit("/jobs")
	b.submit(`a[href="/jobs/new"]`)
	b.enter(`input[name="kind"]`, "good")
	b.empty(`textarea[name="args"]`)
	b.enter(`textarea[name="args"]`, `{"to": "ada"}`)
	b.enter(`input[name="queue"]`, "mail")
	b.enter(`textarea[name="tags"]`, "a b")
	b.enter(`input[name="delay"]`, "2h")
	b.submit(`form.edit button`)
	made := b.only(store.Filter{Queue: "mail"})
	if made.Kind != "good" || string(made.Args) != `{"to":"ada"}` || !cmp.Equal(made.Tags, []string{"a b"}) || made.State != stint.Scheduled {
		t.Errorf("the new job is %+v", made)
	}
}

// Verbs of several jobs.

func TestWhatIsTickedIsChangedAndNothingElse(t *testing.T) {
	b := newBoard(t)
	ids := []stint.ID{b.enqueue("good", stint.Delay(time.Hour)), b.enqueue("good", stint.Delay(time.Hour)), b.enqueue("good", stint.Delay(time.Hour))}
	tick := func(ids ...stint.ID) {
		t.Helper()
		b.visit("/jobs")
		for _, id := range ids {
			b.click(fmt.Sprintf(`input[name="id"][value="%d"]`, id))
		}
	}
	wants := func(want map[stint.State]int) {
		t.Helper()
		if got := b.states(store.Filter{}); !maps.Equal(got, want) {
			t.Fatalf("there are %v, want %v", got, want)
		}
	}
	tick(ids[0], ids[1])
	b.submit(`button[name="verb"][value="retry"]`)
	wants(map[stint.State]int{stint.Available: 2, stint.Scheduled: 1})
	tick(ids[0])
	b.submit(`button[name="verb"][value="cancel"]`)
	b.submit(`form.confirm button`)
	wants(map[stint.State]int{stint.Cancelled: 1, stint.Available: 1, stint.Scheduled: 1})
	b.rest(store.Filter{})
	wants(map[stint.State]int{stint.Cancelled: 1, stint.Completed: 1, stint.Scheduled: 1})
	b.visit("/jobs")
	b.click("[data-select-all]")
	b.submit(`button[name="verb"][value="delete"]`)
	wants(map[stint.State]int{stint.Cancelled: 1, stint.Completed: 1, stint.Scheduled: 1}) // it asks
	if got, want := eval[string](b.tab, `document.querySelector("form.confirm button").textContent`), "Delete 3 jobs"; got != want {
		t.Errorf("the second button says %q, want %q", got, want)
	}
	b.submit(`form.confirm button`)
	wants(map[stint.State]int{stint.Scheduled: 1})
}

func TestAllThatFitAreChangedOnceTheWordIsTyped(t *testing.T) {
	b := newBoard(t)
	for range 12 {
		b.enqueue("good", stint.Queue("long"), stint.Delay(time.Hour))
		b.enqueue("good", stint.Queue("other"), stint.Delay(time.Hour))
	}
	for _, verb := range []struct {
		name string
		want map[stint.State]int
	}{
		{"retry", map[stint.State]int{stint.Available: 12}},
		{"cancel", map[stint.State]int{stint.Cancelled: 12}},
		{"delete", map[stint.State]int{}},
	} {
		query := "/jobs?queue=long"
		switch verb.name {
		case "retry":
			query += "&state=scheduled"
		case "delete":
			b.rest(store.Filter{Queue: "long"})
		}
		b.visit(query)
		b.submit(fmt.Sprintf(`a[href*="/jobs/bulk"][href*="verb=%s"]`, verb.name))
		if n := eval[string](b.tab, `document.querySelector("dl.facts strong").textContent`); n != "12" {
			t.Errorf("%s: it would be %s jobs, want 12", verb.name, n)
		}
		if verb.name != "retry" { // which does no harm
			b.enter(`input[name="confirm"]`, "yes")
			b.click(`form.confirm button`) // the browser holds it back
			if here := eval[string](b.tab, `location.pathname`); here != "/jobs/bulk" {
				t.Fatalf("%s: the wrong word led to %s", verb.name, here)
			}
			b.empty(`input[name="confirm"]`)
			b.enter(`input[name="confirm"]`, verb.name)
		}
		b.submit(`form.confirm button`)
		if got := b.states(store.Filter{Queue: "long"}); !maps.Equal(got, verb.want) {
			t.Fatalf("%s: of the queue there are %v, want %v", verb.name, got, verb.want)
		}
		if got := b.states(store.Filter{Queue: "other"}); got[stint.Scheduled] != 12 {
			t.Fatalf("%s: of the other queue there are %v", verb.name, got)
		}
	}
}

func TestAGroupOfErrorsIsDoneAgain(t *testing.T) {
	for _, c := range []struct {
		kind       string
		from, then stint.State
	}{
		{"bad", stint.Failed, stint.Failed}, // new jobs do them again
		{"flaky", stint.Retrying, stint.Available},
	} {
		b := newBoard(t)
		stop := b.work()
		for range 3 {
			b.becomes(b.enqueue(c.kind), c.from)
		}
		stop()
		b.visit("/errors")
		b.reload(`document.querySelector("table.rows") !== null`)
		b.submit(`a.button[href*="verb=retry"]`)
		b.submit(`form.confirm button`)
		if got := b.states(store.Filter{Kind: c.kind}); got[stint.Available] != 3 || got[c.then] != 3 {
			t.Errorf("of the kind %s there are %v", c.kind, got)
		}
	}
}

func TestAGroupOfErrorsIsResolvedReopenedAndMuted(t *testing.T) {
	b := newBoard(t)
	stop := b.work()
	b.becomes(b.enqueue("bad"), stint.Failed)
	stop()
	is := func(want report.ErrorState, why string) {
		t.Helper()
		r, err := b.store.Errors(t.Context(), report.ErrorFilter{})
		if err != nil || len(r.Groups) != 1 || r.Groups[0].State != want || r.Groups[0].Why != why {
			t.Fatalf("the errors are %+v, %v, want them to be %s: %q", r.Groups, err, want, why)
		}
	}
	b.visit("/errors")
	b.reload(`document.querySelector("table.rows") !== null`)
	b.enter(`form[action$="/resolve"] input[name=why]`, "it is fixed")
	b.submit(`form[action$="/resolve"] button:not([formaction])`)
	is(report.ErrorsResolved, "it is fixed")
	b.visit("/errors?state=resolved")
	b.submit(`form[action$="/reopen"] button`)
	is(report.ErrorsOpen, "")
	b.visit("/errors?state=all")
	b.submit(`form button[formaction$="/mute"]`)
	is(report.ErrorsMuted, "")
}

// Verbs of queues, schedules, engines and leases.

func TestAQueueIsPausedAndGoesOn(t *testing.T) {
	b := newBoard(t)
	b.enqueue("good", stint.Queue("mail"))
	b.visit("/queues")
	b.reload(`document.querySelector('form[action="/queues/mail/pause"]') !== null`)
	b.enter(`form[action="/queues/mail/pause"] input`, "the server is down")
	b.submit(`form[action="/queues/mail/pause"] button`)
	if paused, err := b.store.Paused(t.Context()); err != nil || !cmp.Equal(paused, []string{"mail"}) {
		t.Fatalf("paused are %v, %v", paused, err)
	}
	b.submit(`form[action="/queues/mail/resume"] button`)
	if paused, err := b.store.Paused(t.Context()); err != nil || len(paused) > 0 {
		t.Fatalf("paused are %v, %v", paused, err)
	}
}

func TestAScheduleIsFiredPausedAndForgotten(t *testing.T) {
	b := newBoard(t)
	b.schedule("nightly", "30 2 * * *")
	get := func() *store.ScheduleInfo {
		t.Helper()
		s, err := b.store.Schedule(t.Context(), "nightly")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	b.visit("/schedules")
	b.submit(`a[href="/schedules/nightly"]`)
	b.submit(`form[action$="/run-now"] button`)
	if made := b.only(store.Filter{Schedule: "nightly"}); made.Kind != "good" {
		t.Errorf("it made %+v", made)
	}
	b.visit("/schedules/nightly")
	b.enter(`form[action$="/pause"] input[name="why"]`, "holidays")
	b.submit(`form[action$="/pause"] button`)
	if s := get(); s.Paused.IsZero() || s.PausedWhy != "holidays" {
		t.Errorf("it is paused since %v, for %q", s.Paused, s.PausedWhy)
	}
	b.submit(`form[action$="/resume"] button`)
	if s := get(); !s.Paused.IsZero() {
		t.Errorf("it is paused since %v", s.Paused)
	}
	b.enter(`form[action$="/remove"] input[name="confirm"]`, "remove")
	b.submit(`form[action$="/remove"] button`)
	if _, err := b.store.Schedule(t.Context(), "nightly"); !errors.Is(err, stint.ErrNoSchedule) {
		t.Errorf("a schedule that was removed: %v", err)
	}
}

func TestAnEngineIsDrained(t *testing.T) {
	b := newBoard(t)
	defer b.work()()
	e := b.engine()
	b.visit("/engines")
	b.submit(fmt.Sprintf(`a[href="/engines/%d"]`, e.Token))
	b.click(`details:has(form[action$="/drain"]) summary`)
	b.submit(`form[action$="/drain"] button`)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all, err := b.store.Engines(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			return // it left
		}
		if time.Now().After(end) {
			t.Fatalf("the roster is %+v", all)
		}
	}
}

func TestAnEngineIsBuried(t *testing.T) {
	b := newBoard(t)
	const token = 4711
	dead := store.EngineInfo{Token: token, Instance: "dead", Host: "far", PID: 1, Version: "v1", Slots: 1, TimeToLive: time.Second}
	if err := b.store.Join(t.Context(), dead, nil); err != nil {
		t.Fatal(err)
	}
	b.visit(fmt.Sprintf("/engines/%d", token))
	b.enter(`form[action$="/bury"] input[name="why"]`, "its machine burnt")
	b.enter(`form[action$="/bury"] input[name="confirm"]`, "bury")
	b.submit(`form[action$="/bury"] button`)
	if all, err := b.store.Engines(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("the roster is %+v, %v", all, err)
	}
}

func TestALeaseIsReleased(t *testing.T) {
	b := newBoard(t)
	const token = 4712
	if err := b.store.Join(t.Context(), store.EngineInfo{Token: token, Instance: "holder", TimeToLive: time.Hour}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Acquire(t.Context(), "reports", token, time.Hour); err != nil {
		t.Fatal(err)
	}
	b.visit("/database")
	b.enter(`form[action="/leases/reports/release"] input[name="why"]`, "it hangs")
	b.submit(`form[action="/leases/reports/release"] button`)
	leases, err := b.store.Leases(t.Context())
	if err != nil || len(leases) != 1 || leases[0].Engine != 0 || leases[0].Deposed.Why != "it hangs" {
		t.Errorf("the leases are %+v, %v", leases, err)
	}
}

func TestALimitIsSetAndReset(t *testing.T) {
	b := newBoard(t)
	defer b.work()()
	if err := b.store.DeclareLimits(t.Context(), map[string]stint.LimitRule{"smtp": {AtOnce: 1}}); err != nil {
		t.Fatal(err)
	}
	b.becomes(b.enqueue("slow", stint.Limited("smtp")), stint.Running)
	second := b.enqueue("slow", stint.Limited("smtp"))
	b.visit(b.job(second))
	b.until(`document.querySelector(".lead").textContent.includes("waits for the limit smtp: 1 of 1 in use, by worker-1 (1)")`) // the page follows
	b.submit(`a[href="/limits/smtp"]`)
	b.until(`document.querySelector("h1").textContent === "Limit smtp"`)
	b.enter(`form[action="/limits/smtp/set"] input[name="rule"]`, "2")
	b.enter(`form[action="/limits/smtp/set"] input[name="why"]`, "a new server")
	b.submit(`form[action="/limits/smtp/set"] button`)
	b.says("Limit smtp is set to 2, and was 1.")
	b.becomes(second, stint.Running)
	b.until(`document.querySelector("meter").value === 2`)
	b.enter(`form[action="/limits/smtp/reset"] input[name="confirm"]`, "reset")
	b.submit(`form[action="/limits/smtp/reset"] button`)
	b.says("Limit smtp was reset from 2 to 1, which programs declare.")
}

// TestAListFollowsWhatHappens has no verb: the page shows by itself what others do.
func TestAListFollowsWhatHappens(t *testing.T) {
	b := newBoard(t)
	b.visit("/jobs?kind=good")
	b.until(`document.querySelector(".live").className === "live on"`)
	time.Sleep(3 * time.Second) // the page has looked for what it missed while it was loaded
	id := b.enqueue("good")
	b.until(fmt.Sprintf(`document.querySelector('td.id a[href="%s"]') !== null`, b.job(id)))
}

// Questions are answered by a click: on the page of the job, on that of all questions, and on that of a signed link.
func TestAQuestionIsAnsweredByAClick(t *testing.T) {
	b := newBoard(t)
	defer b.work()()
	answered := func(id stint.ID, choice, by, comment string) {
		t.Helper()
		b.becomes(id, stint.Completed)
		steps, err := b.store.Steps(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var a stint.Answer
		if err := json.Unmarshal(steps[0].Result, &a); err != nil || a.Choice != choice || a.By != by || a.Comment != comment {
			t.Errorf("job %d got %s: %v", id, steps[0].Result, err)
		}
	}
	id := b.enqueue("asking")
	b.becomes(id, stint.Blocked)
	b.visit(b.job(id))
	b.enter(`form[action$="/answer"] input[name="comment"]`, "it is fine")
	b.press("\r") // which chooses nothing
	b.submit(`form[action$="/answer"] button[value="pay"]`)
	b.says(fmt.Sprintf("The question approve of job %d is answered: pay.", id))
	answered(id, "pay", "link", "it is fine")
	b.until(`document.querySelector("h1 .badge").textContent === "completed"`)

	id = b.enqueue("asking")
	b.becomes(id, stint.Blocked)
	b.visit("/")
	b.until(`document.querySelector('main a[href="/questions"]')?.textContent === "1 question waits for an answer"`)
	b.submit(`main a[href="/questions"]`)
	b.until(`location.pathname === "/questions" && document.querySelector(".question").textContent === "Pay 900 EUR to ACME?"`)
	b.submit(`form[action$="/answer"] button[value="refuse"]`)
	b.says(fmt.Sprintf("The question approve of job %d is answered: refuse.", id))
	answered(id, "refuse", "link", "")

	id = b.enqueue("asking")
	b.becomes(id, stint.Blocked)
	key, err := link.NewKey(linkSecret)
	if err != nil {
		t.Fatal(err)
	}
	to, err := key.URL(b.url, link.Link{Job: id, Question: "approve", By: "ann", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	b.tab.visit(to)
	b.enter(`textarea[name="comment"]`, "by mail")
	b.submit(`button[value="pay"]`)
	b.until(`document.querySelector(".flash.ok")?.textContent.startsWith("It is answered: pay, by ann")`)
	answered(id, "pay", "ann", "by mail")
}

// The tabs of a job's page need no scripts, and stay where they are while the page follows the job.
func TestTheTabsOfAJobShowOnePartAtATime(t *testing.T) {
	b := newBoard(t)
	id := b.enqueue("good", stint.Delay(time.Hour))
	shown := func(want string) {
		t.Helper()
		b.until(fmt.Sprintf(`[...document.querySelectorAll(".tab")].filter((tab) => tab.checkVisibility()).map((tab) => tab.id).join() === %q`, want))
	}
	for _, scripts := range []bool{true, false} {
		act(b.tab, "switch scripts", command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !scripts}))
		b.visit(b.job(id))
		shown("attempts")
		b.click(`nav.tabs a[href="#arguments"]`)
		shown("arguments")
		if !scripts {
			break
		}
		if _, err := b.store.Cancel(t.Context(), []stint.ID{id}, ""); err != nil {
			t.Fatal(err)
		}
		b.until(`document.querySelector("h1 .badge").textContent === "cancelled"`)
		shown("arguments")
	}
}

// A time is entered in the viewer's zone, and sent as UTC; a duration is sent as it is. A bar of a chart leads to
// the jobs of its time.
func TestTimesAreEnteredInTheViewersZone(t *testing.T) {
	b := newBoard(t)
	b.work()
	id := b.enqueue("send_invoice")
	b.becomes(id, stint.Completed)
	b.in("Asia/Singapore")
	b.visit("/jobs")
	b.enter(`input[name="finished_after"]`, "2026-03-01 09:00")
	b.enter(`input[name="finished_before"]`, "1h")
	b.submit(`form.filter button[type="submit"]`)
	if got, want := eval[string](b.tab, `location.search`), "?finished_after=2026-03-01T01%3A00%3A00.000Z&finished_before=1h"; got != want {
		t.Errorf("the filter is %s, want %s", got, want)
	}
	if got := eval[string](b.tab, `document.querySelector('input[name="finished_after"]').value`); got != "2026-03-01 09:00:00" {
		t.Errorf("it is shown as %q", got)
	}
	if got := eval[string](b.tab, `document.querySelector(".when button").getAttribute("aria-label")`); got != "Pick a time for: Finished since" {
		t.Errorf("the button of the picker is %q", got)
	}
	b.visit("/kinds/send_invoice")
	b.until(`document.querySelectorAll("[data-live=charts] .chart").length === 3`)
	b.until(`document.querySelector(".chart a[href*=finished_after]") !== null`)
	act(b.tab, "follow a bar", run(`location.href = document.querySelector(".chart a[href*=finished_after]").getAttribute("href")`))
	b.until(fmt.Sprintf(`location.pathname === "/jobs" && document.querySelector('td.id a')?.textContent === "%d"`, id))
}
