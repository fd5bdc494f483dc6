package browser_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// onCall is somebody who was woken up, with the overview open. Clicks counts what they click, and forms that
// they send by Enter; what they type is free.
type onCall struct {
	*board
	clicks int
}

func woken(b *board) *onCall {
	b.Helper()
	b.visit("/")
	return &onCall{board: b}
}

// follow clicks what leads to another page.
func (o *onCall) follow(selector string) {
	o.Helper()
	o.clicks++
	o.submit(selector)
}

// open clicks what opens on the page.
func (o *onCall) open(selector string) {
	o.Helper()
	o.clicks++
	o.click(selector)
}

// find types into the box that each page has.
func (o *onCall) find(text string) {
	o.Helper()
	was := eval[float64](o.tab, "performance.timeOrigin")
	o.clicks += 2 // into the box, and Enter
	o.enter("form.find input", text+"\r")
	o.until(fmt.Sprintf(`performance.timeOrigin !== %f && document.readyState === "complete"`, was))
}

// took checks how many clicks it took.
func (o *onCall) took(most int) {
	o.Helper()
	if o.clicks > most {
		o.Errorf("it took %d clicks, and may take %d", o.clicks, most)
	}
	o.Logf("%d clicks of %d", o.clicks, most)
}

func (o *onCall) reads(want string) {
	o.Helper()
	o.until(fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, want))
}

func TestOnCallFindsOutWhyACustomerGotNoMail(t *testing.T) {
	b := newBoard(t)
	b.work()
	job := stint.KindInfo{Name: "bad", Queue: "default"}.Job(json.RawMessage(`{"order":4711}`))
	id, err := b.client.Enqueue(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	b.becomes(b.enqueue("bad"), stint.Failed)
	b.becomes(id, stint.Failed)
	o := woken(b)
	o.find("order = 4711")
	o.until(fmt.Sprintf(`location.pathname === "/jobs/%d"`, id))
	o.reads("no such customer")
	o.took(4)
}

func TestOnCallRetriesWhatFailedOneWayInTheLastHour(t *testing.T) {
	b := newBoard(t)
	stop := b.work()
	for range 3 {
		b.becomes(b.enqueue("bad"), stint.Failed)
		b.becomes(b.enqueue("flaky"), stint.Retrying)
	}
	stop()
	o := woken(b)
	o.follow(`nav a[href="/errors"]`)
	o.follow(`a[href="/errors?hours=1"]`)
	o.until(`document.querySelectorAll("td.message").length === 2`)
	o.follow(`tr:has(a[href="/jobs?kind=bad"]) form[action="/jobs/bulk"] button`)
	o.took(3)
	if got := b.states(store.Filter{Kind: "bad"}); got[stint.Available] != 3 {
		t.Errorf("the jobs are %v", got)
	}
	if got := b.states(store.Filter{Kind: "flaky"}); got[stint.Retrying] != 3 {
		t.Errorf("other jobs are %v", got)
	}
}

func TestOnCallSeesWhichKindIsSlowing(t *testing.T) {
	b := newBoard(t)
	w := storetest.Join(t, b.store, "always", "slowing")
	for _, ran := range []struct {
		kind      string
		ago, took time.Duration
	}{{"always", time.Minute, time.Second}, {"always", 24*time.Hour + 20*time.Minute, time.Second}, {"slowing", time.Minute, 3 * time.Second}, {"slowing", 24*time.Hour + 20*time.Minute, time.Second}} {
		for range 25 {
			b.enqueue(ran.kind)
		}
		var done []store.Completion
		for _, e := range w.ClaimAll() {
			x := w.Conclude(e, store.Result{Outcome: stint.OutcomeCompleted})
			x.Ended = time.Now().Add(-ran.ago)
			x.Started = x.Ended.Add(-ran.took)
			done = append(done, x)
		}
		if _, err := w.TryFinish(t.Context(), done...); err != nil {
			t.Fatal(err)
		}
	}
	for more := true; more; {
		var err error
		if more, err = b.store.SumUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	o := woken(b)
	o.follow(`nav a[href="/kinds"]`)
	o.took(1)
	b.reload(`document.querySelector("table.rows strong.bad") !== null`)
	if got := eval[string](b.tab, `document.querySelector("table.rows tbody tr").innerText`); !strings.Contains(got, "slowing") || !strings.Contains(got, "3.0× slower") {
		t.Errorf("first comes %q", got)
	}
}

func TestOnCallStopsDrainsAndRestartsAQueue(t *testing.T) {
	b := newBoard(t)
	b.work()
	b.becomes(b.enqueue("good"), stint.Completed)
	o := woken(b)
	o.follow(`nav a[href="/queues"]`)
	o.follow(`a[href="/queues/default"]`)
	o.follow(`form[action$="/pause"] button`)
	o.reads("drained: nothing runs any more")
	late := b.enqueue("good")
	o.follow(`form[action$="/resume"] button`)
	b.becomes(late, stint.Completed)
	o.took(5)
}

func TestOnCallFindsWhichEngineHoldsAJobAndDrainsIt(t *testing.T) {
	b := newBoard(t)
	b.work()
	id := b.enqueue("slow")
	b.becomes(id, stint.Running)
	o := &onCall{board: b}
	o.visit(b.job(id))
	o.reads("worker-1")
	o.open(`details:has(form[action$="/drain"]) summary`)
	o.reads("It ends the 1 job that it holds")
	o.follow(`form[action$="/drain"] button`)
	o.took(2)
	o.reads("draining")
}

func TestOnCallSeesWhatRanAtATime(t *testing.T) {
	b := newBoard(t)
	b.work()
	id := b.enqueue("good")
	b.becomes(id, stint.Completed)
	o := woken(b)
	o.reload(`document.querySelector(".chart a[href*=finished_after] .hit") !== null`)
	o.follow(`.chart a[href*=finished_after] .hit`)
	o.until(fmt.Sprintf(`location.pathname === "/jobs" && document.querySelector("td.id a")?.textContent === "%d"`, id))
	o.took(2)
}

func TestOnCallRunsAJobAgainWithOtherArguments(t *testing.T) {
	b := newBoard(t)
	stop := b.work()
	id := b.enqueue("bad")
	b.becomes(id, stint.Failed)
	stop()
	o := &onCall{board: b}
	o.visit(b.job(id))
	o.follow(fmt.Sprintf(`a[href="/jobs/%d/edit"]`, id))
	o.empty(`textarea[name="args"]`)
	o.enter(`textarea[name="args"]`, `{"n":2}`)
	o.follow(`form.edit button[type="submit"]`)
	o.took(3)
	if j := b.only(store.Filter{States: []stint.State{stint.Available}}); string(j.Args) != `{"n":2}` {
		t.Errorf("the new job is %+v", j)
	}
}
