package browser_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/stint-go/stint"
)

// mouse moves, presses or releases the button at a place of the last bar of the first chart and so many bars from it.
func (p *tab) mouse(typ input.DispatchMouseEventType, bars int) chromedp.Action[chromedp.Void] {
	p.Helper()
	const place = `(() => { const all = document.querySelectorAll("svg[data-zoom]")[0].querySelectorAll(".step .hit"); const box = all[all.length - 1 - %d].getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height / 2]; })()`
	at := eval[[]float64](p, fmt.Sprintf(place, bars))
	return chromedp.MouseEvent(typ, at[0], at[1], chromedp.ButtonLeft, func(m *input.DispatchMouseEventParams) { m.ClickCount, m.Buttons = 1, 1 })
}

func TestADragAcrossAChartChoosesATime(t *testing.T) {
	b := newBoard(t)
	b.work()
	for range 3 {
		b.becomes(b.enqueue("good"), stint.Completed)
	}
	b.visit("/")
	b.reload(`document.querySelector("svg[data-zoom] .step .ok") !== null`)
	const chosen = `document.querySelectorAll(".chosen").length === %d`
	act(b.tab, "scroll", run(`document.querySelector("svg[data-zoom]").scrollIntoView({ block: "center" })`))

	// Escape gives up, and nothing is chosen.
	act(b.tab, "press", b.mouse(input.DispatchMouseEventTypeMousePressed, 9))
	act(b.tab, "move", b.mouse(input.DispatchMouseEventTypeMouseMoved, 4))
	b.until(fmt.Sprintf(chosen, 1))
	b.press("\x1b")
	b.until(fmt.Sprintf(chosen, 0))
	act(b.tab, "release", b.mouse(input.DispatchMouseEventTypeMouseReleased, 4))

	// A part in which somebody drags stays as it is.
	act(b.tab, "press", b.mouse(input.DispatchMouseEventTypeMousePressed, 9))
	act(b.tab, "move", b.mouse(input.DispatchMouseEventTypeMouseMoved, 5))
	b.becomes(b.enqueue("good"), stint.Completed)
	b.until(`document.querySelector('[data-live="charts"]').classList.contains("behind")`)
	b.until(fmt.Sprintf(chosen, 1))
	act(b.tab, "move", b.mouse(input.DispatchMouseEventTypeMouseMoved, 0))
	act(b.tab, "release", chromedp.WaitEvent(page.LoadEventFired, nil, b.mouse(input.DispatchMouseEventTypeMouseReleased, 0)))

	b.until(`location.pathname === "/" && document.querySelector("h2#charts")?.textContent.startsWith("From ")`)
	if eval[bool](b.tab, `document.body.dataset.events !== undefined`) {
		t.Error("the page of a time that is over keeps itself up to date")
	}
	at := func(name string) time.Time {
		t.Helper()
		at, err := time.Parse(time.RFC3339, eval[string](b.tab, `new URLSearchParams(location.search).get("`+name+`")`))
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if from, to := at("from"), at("to"); to.Sub(from) != 10*time.Minute || time.Since(to) > time.Minute || !from.Equal(from.Truncate(time.Minute)) {
		t.Errorf("ten bars are the time from %v to %v", from, to)
	}
	if got := eval[string](b.tab, `document.querySelector(".card .figure").textContent`); got != "4" {
		t.Errorf("%s attempts ended then, want 4", got)
	}
	b.submit(`nav[aria-label="Other times"] a:nth-of-type(1)`)
	if got := eval[string](b.tab, `document.querySelector(".card .figure").textContent`); got != "0" {
		t.Errorf("%s attempts ended in the ten minutes before, want 0", got)
	}
	for _, link := range []string{"Zoom out", "Back to now"} {
		act(b.tab, "mark "+link, run(fmt.Sprintf(`[...document.querySelectorAll("nav.pages a")].find((a) => a.textContent === %q).id = "to"`, link)))
		b.submit("#to")
		want := map[string]string{"Zoom out": "4", "Back to now": ""}[link]
		if got := eval[string](b.tab, `location.search && document.querySelector(".card .figure").textContent`); got != want {
			t.Errorf("%s leads to a page with %q, want %q", link, got, want)
		}
	}

	// The form does the same without a mouse.
	b.enter(`form.zoom input[name="from"]`, "2h")
	b.submit(`form.zoom button[type="submit"]`)
	b.until(`location.search === "?from=2h" && document.querySelector(".card .figure").textContent === "4"`)
	b.submit(`.panel td a[href*="/kinds/good"]`)
	if got := eval[string](b.tab, `document.querySelector("h1").textContent`); got != "Kind good" || !strings.Contains(eval[string](b.tab, "location.search"), "from=") {
		t.Errorf("the kind leads to %q", got)
	}

	// A click on a bar leads to its jobs, as before.
	act(b.tab, "scroll", run(`document.querySelector("svg[data-zoom]").scrollIntoView({ block: "center" })`))
	bar := eval[float64](b.tab, `[...document.querySelectorAll("svg[data-zoom]")[0].querySelectorAll(".step")].reverse().findIndex((s) => s.querySelector(".ok"))`)
	act(b.tab, "press", b.mouse(input.DispatchMouseEventTypeMousePressed, int(bar)))
	act(b.tab, "release", chromedp.WaitEvent(page.LoadEventFired, nil, b.mouse(input.DispatchMouseEventTypeMouseReleased, int(bar))))
	b.until(`location.pathname === "/jobs"`)
}
