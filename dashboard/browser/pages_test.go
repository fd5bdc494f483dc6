package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// shown is a page with something on it, by a name for its pictures.
type shown struct{ name, path string }

// life lets an engine work until there is some of everything, and names all pages.
func (b *board) life() []shown {
	b.Helper()
	b.work()
	b.schedule("nightly-report", "30 2 * * *")
	b.schedule("every-quarter", "*/15 * * * *")
	failed := b.enqueue("import_orders", stint.Queue("mail"), stint.Tag("customer:42"))
	retrying := b.enqueue("sync_customer", stint.Queue("mail"), stint.URN("urn:invoice:17"))
	for i := range 40 {
		b.enqueue("send_invoice", stint.Tag(fmt.Sprintf("customer:%d", i)))
		b.enqueue([]string{"import_orders", "sync_customer", "send_invoice"}[i%3], stint.Queue([]string{"mail", "reports"}[i%2]))
	}
	for range 5 {
		b.enqueue("send_invoice", stint.Delay(3*time.Hour), stint.Queue("reports"))
	}
	b.enqueue("print_labels", stint.Queue("labels"))
	b.becomes(failed, stint.Failed)
	b.becomes(retrying, stint.Retrying)
	for limit, rule := range map[string]stint.LimitRule{"smtp": {AtOnce: 2, Starts: 6000, Per: time.Minute}, "tenant": {AtOnce: 1}} {
		if err := b.store.SetLimit(b.Context(), limit, rule, "ann@ops", "the server is slow"); err != nil {
			b.Fatal(err)
		}
	}
	slow := b.enqueue("render_report", stint.Limited("smtp", "tenant=acme"))
	b.becomes(slow, stint.Running)
	limited := b.enqueue("render_report", stint.Limited("tenant=acme"))
	flow, part := b.flow()
	asking := b.enqueue("approve_payment")
	b.becomes(asking, stint.Blocked)
	cancelled := b.enqueue("send_invoice", stint.Delay(time.Hour))
	if _, err := b.store.Cancel(b.Context(), []stint.ID{cancelled}, "no need"); err != nil {
		b.Fatal(err)
	}
	for name, query := range map[string]string{"failed orders": "kind=import_orders&state=failed", "from a newer version": "colour=red"} {
		if _, _, err := b.store.SaveFilter(b.Context(), store.SavedFilter{Name: name, Query: query, By: "ann@ops"}); err != nil {
			b.Fatal(err)
		}
	}
	b.visit("/queues")
	b.enter(`form[action="/queues/reports/pause"] input`, "the printer is out of paper")
	b.submit(`form[action="/queues/reports/pause"] button`)
	return []shown{
		{"overview", "/"}, {"jobs", "/jobs"}, {"jobs-filtered", "/jobs?state=failed&state=retrying&queue=mail"},
		{"job", b.job(failed)}, {"job-running", b.job(slow)}, {"job-limited", b.job(limited)}, {"job-asking", b.job(asking)}, {"questions", "/questions"}, {"flow", b.job(flow)}, {"flow-part", b.job(part)}, {"edit", b.job(failed) + "/edit"}, {"new", "/jobs/new"}, {"bulk", "/jobs/bulk?verb=retry&state=failed"},
		{"queues", "/queues"}, {"queue", "/queues/mail"}, {"search", "/search?q=s"}, {"limits", "/limits"}, {"limit", "/limits/smtp"}, {"limit-keys", "/limits/tenant"}, {"kinds", "/kinds"}, {"kind", "/kinds/send_invoice"}, {"zoom", "/?from=6h"}, {"errors", "/errors"}, {"schedules", "/schedules"}, {"schedule", "/schedules/nightly-report"},
		{"engines", "/engines"}, {"engine", fmt.Sprintf("/engines/%d", b.engine().Token)}, {"database", "/database"}, {"changes", "/changes"},
		{"problem", "/jobs/99999999"},
	}
}

// flow enqueues a flow that has some of everything, and answers with it and the flow within it.
func (b *board) flow() (flow, within stint.ID) {
	b.Helper()
	kind := func(name string) stint.Kind[struct{}] { return stint.NewKind[struct{}](name, stint.Queue("mail")) }
	f := stint.NewFlow("import")
	fetch := kind("send_invoice").Add(f, "fetch", struct{}{})
	in := f.Flow("pages", "import-pages")
	for range 3 {
		kind("send_invoice").Add(in, "", struct{}{}, stint.Needs(fetch))
	}
	broken := kind("import_orders").Add(f, "import the orders of a customer with a long name", struct{}{}, stint.Needs(fetch))
	sum := kind("send_invoice").Add(f, "sum", struct{}{}, stint.Needs(in.Node(), broken))
	kind("print_labels").Add(f, "alarm", struct{}{}, stint.NeedsFailure(broken))
	kind("send_invoice").Add(f, "tidy", struct{}{}, stint.NeedsEnd(sum))
	id, err := f.Enqueue(b.Context(), stint.NewClient(b.store))
	if err != nil {
		b.Fatal(err)
	}
	b.becomes(broken.ID(), stint.Failed)
	return id, in.Node().ID()
}

func TestTheGraphOfAFlowLeadsToItsJobs(t *testing.T) {
	b := newBoard(t)
	b.work()
	flow, within := b.flow()
	b.settled(b.job(flow))
	b.until(`document.querySelectorAll("svg.graph .node.state-completed").length >= 3`)
	if n := eval[int](b.tab, `document.querySelectorAll("svg.graph .node").length`); n != 6 {
		t.Errorf("the graph has %d nodes, want 6", n)
	}
	if edges := eval[int](b.tab, `document.querySelectorAll("svg.graph .edge").length`); edges != 6 {
		t.Errorf("the graph has %d edges, want 6", edges)
	}
	act(b.tab, "go to the flow within", run(fmt.Sprintf(`document.querySelector('svg.graph a[href="%s"]').dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}))`, b.job(within))))
	b.until(fmt.Sprintf(`location.pathname === "%s" && document.querySelector("svg.graph") !== null`, b.job(within)))
	if n := eval[int](b.tab, `document.querySelectorAll("svg.graph .node").length`); n != 4 { // and what they need outside of it
		t.Errorf("the graph of the flow within has %d nodes, want 4", n)
	}
}

// settled visits a page and waits until it has what it looks up in the background.
func (b *board) settled(path string) {
	b.Helper()
	for range 20 {
		b.visit(path)
		b.until(`!document.querySelector("[data-theme-toggle]").hidden`)
		text := eval[string](b.tab, `document.querySelector("main").innerText`)
		if !strings.Contains(text, "Not checked yet…") && !strings.Contains(text, "Counting…") {
			return
		}
		time.Sleep(300 * time.Millisecond)
	}
	b.Errorf("%s never knows what it looks for", path)
}

func TestNoPageKeepsAnybodyOut(t *testing.T) {
	rules, b := axe(t), newBoard(t)
	for _, page := range b.life() {
		for _, l := range []look{looks[0], looks[3]} {
			b.as(l)
			b.settled(page.path)
			for _, barrier := range b.barriers(rules) {
				t.Errorf("%s, %s: %s", page.name, l.name, barrier)
			}
			if wide := eval[int64](b.tab, `document.documentElement.scrollWidth`); wide > l.width {
				t.Errorf("%s, %s: the page is %d pixels wide", page.name, l.name, wide)
			}
		}
		b.forgive() // one page is not there, and says so
	}
}

// overlapping are texts of one chart that stand upon each other.
func (p *tab) overlapping() []string {
	p.Helper()
	return eval[[]string](p, `[...document.querySelectorAll(".chart svg:not(.data)")].flatMap((chart) => {
		const texts = [...chart.querySelectorAll("text")].map((t) => [t.textContent, t.getBoundingClientRect()]).filter(([, at]) => at.width > 0);
		return texts.flatMap(([one, a], i) => texts.slice(i + 1)
			.filter(([, b]) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom) // lines of text have room above and below
			.map(([other]) => one + " and " + other));
	})`)
}

func TestTextsOfChartsStandApartOnAPhone(t *testing.T) {
	b := newBoard(t)
	b.as(looks[2])
	charts := 0
	for _, page := range b.life() {
		b.settled(page.path)
		charts += eval[int](b.tab, `document.querySelectorAll("details").forEach((d) => d.open = true), document.querySelectorAll(".chart svg:not(.data)").length`)
		for _, pair := range b.overlapping() {
			t.Errorf("%s: %s", page.name, pair)
		}
		b.forgive()
	}
	if charts < 8 {
		t.Errorf("there were %d charts only", charts)
	}
}

func TestEveryPageIsUsedByKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("it presses a thousand keys")
	}
	b := newBoard(t)
	for _, page := range b.life() {
		b.settled(page.path)
		for _, e := range b.unreached() {
			t.Errorf("%s: the tabulator key does not come to %s", page.name, e)
		}
		b.forgive()
	}
}

// TestScreenshots writes pictures of every page, for the documentation, after a while of work: make screenshots.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("STINT_SCREENSHOTS")
	if dir == "" {
		t.Skip("STINT_SCREENSHOTS names no directory for pictures")
	}
	b := newBoard(t)
	b.in("Europe/Berlin")
	pages := b.life()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		for i := range 20 + time.Now().Second()/3 {
			b.enqueue([]string{"send_invoice", "sync_customer", "import_orders"}[max(0, i%14-11)], stint.Queue([]string{"mail", "reports", "default"}[i%3]))
		}
	}
	for _, page := range pages {
		b.settled(page.path) // what is looked at in the background is as old as the last visit
		time.Sleep(300 * time.Millisecond)
		for _, l := range looks {
			b.as(l)
			b.settled(page.path)
			b.picture(filepath.Join(dir, page.name+"-"+l.name+".png"))
		}
		b.forgive()
	}
}
