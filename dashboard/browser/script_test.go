package browser_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	isQueued = `document.getElementById("queued").textContent === %q`
	isLive   = `document.querySelector(".live").className === "live %s"`
)

// kept opens the page that keeps itself up to date, and waits until it does.
func kept(t *testing.T) (*kitchen, *tab) {
	t.Helper()
	k, p := newKitchen(t), open(t)
	p.in("Asia/Singapore")
	p.visit(k.URL + "/")
	p.until(fmt.Sprintf(isLive, "on"))
	k.heard(1)
	return k, p
}

func TestTimesAreInTheViewersZone(t *testing.T) {
	_, p := kept(t)
	const time = `document.querySelector(".panel .note time")`
	if got, want := eval[string](p, time+".textContent"), "2026-11-22 20:00:00"; got != want {
		t.Errorf("noon of UTC is %q in Singapore, want %q", got, want)
	}
	if got, want := eval[string](p, time+".title"), "2026-11-22T12:00:00.123456Z"; got != want {
		t.Errorf("the instant is %q, want %q", got, want)
	}
	if got, want := eval[string](p, `document.querySelector("[data-zone]").textContent`), ", shown in the zone Asia/Singapore"; got != want {
		t.Errorf("the page says %q of its zone, want %q", got, want)
	}
	if got, want := eval[string](p, `document.querySelector(".chart text[data-time]").textContent`), "20:00"; got != want {
		t.Errorf("the first label of the first chart is %q, want %q", got, want)
	}
	if !eval[bool](p, `[...document.querySelectorAll("text[data-time]")].some((label) => label.textContent === "23 Nov")`) {
		t.Error("no chart shows where the day begins in Singapore")
	}
	if got, want := eval[string](p, `document.querySelector(".step title").textContent.split("\n")[0]`), "2026-11-22 20:00:00"; got != want {
		t.Errorf("the first step says %q, want %q", got, want)
	}
}

func TestAPageKeepsItselfUpToDate(t *testing.T) {
	k, p := kept(t)
	k.caughtUp()
	k.change(2345)
	p.until(fmt.Sprintf(isQueued, "2,345"))
	if got := eval[string](p, `document.querySelector(".level-warning a").getAttribute("href")`); got != "/engines" {
		t.Errorf("what has no name was replaced: a link leads to %q", got)
	}
}

func TestAPageIsFetchedSeldomHoweverMuchHappens(t *testing.T) {
	k, p := kept(t)
	k.caughtUp()
	before := k.partials()
	began := time.Now()
	for i := range 40 {
		k.change(i)
		time.Sleep(50 * time.Millisecond)
	}
	p.until(fmt.Sprintf(isQueued, "39"))
	most := 2 + int(time.Since(began)/(2*time.Second))
	if n := k.partials() - before; n > most {
		t.Errorf("40 changes fetched the page %d times, want %d at most", n, most)
	}
}

func TestAPageCanBePaused(t *testing.T) {
	k, p := kept(t)
	p.click("[data-pause]")
	p.until(fmt.Sprintf(isLive, "paused"))
	k.heard(0)
	k.change(99)
	time.Sleep(2500 * time.Millisecond)
	if !eval[bool](p, fmt.Sprintf(isQueued, "1,234")) {
		t.Error("a paused page has changed")
	}
	p.click("[data-pause]")
	p.until(fmt.Sprintf(isQueued, "99"))
}

func TestWhoIsBusyInAPartKeepsIt(t *testing.T) {
	k, p := kept(t)
	p.click(`#rows input[value="3"]`)
	act(p, "mark the table", run(`document.querySelector("#rows").dataset.marked = "yes"`))
	k.change(77)
	p.until(fmt.Sprintf(isQueued, "77"))
	if !eval[bool](p, `document.querySelector("#rows").dataset.marked === "yes" && document.querySelector('#rows input[value="3"]').checked`) {
		t.Error("a table was replaced in which a box was ticked")
	}
	p.click(`#rows input[value="3"]`)
	act(p, "leave", run(`document.activeElement.blur()`))
	k.change(78)
	p.until(`document.querySelector("#rows").dataset.marked === undefined`)
}

// TestWhatIsOldSaysSo looks at pages and figures that get old while they are open.
func TestWhatIsOldSaysSo(t *testing.T) {
	ago := func(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(-d) } }
	k, p := newKitchen(t), open(t)
	p.in("Asia/Singapore")
	k.made, k.found = ago(8*time.Minute), ago(2*time.Second)
	p.visit(k.URL + "/")
	p.until(fmt.Sprintf(isLive, "on old") + ` && document.querySelector(".live").textContent.startsWith("As of ") && document.querySelector("main").className === "old"`)
	k.heard(1)
	k.caughtUp()
	const shown = `getComputedStyle(document.querySelector("#found")).display !== "none"`
	if eval[bool](p, shown) {
		t.Error("a figure that is two seconds old says how old it is")
	}
	// There is no change, so the page is as it would be now.
	p.until(`document.body.dataset.made !== undefined`)
	k.mu.Lock()
	k.made, k.found = ago(0), ago(8*time.Minute)
	k.mu.Unlock()
	time.Sleep(2500 * time.Millisecond) // until no fetch is under way
	k.looked()
	p.until(fmt.Sprintf(isLive, "on") + ` && document.querySelector(".live").textContent === "Live" && document.querySelector("main").className === ""`)
	k.change(2) // a new page, whose figure is old
	p.until(shown)
	if got := eval[string](p, `getComputedStyle(document.querySelector("#found")).color`); got != eval[string](p, `getComputedStyle(document.querySelector(".card.warn .figure")).color`) {
		t.Errorf("what is old is %s, and not amber", got)
	}
	// Nothing comes any more.
	p.until(fmt.Sprintf(isLive, "on old"))
}

func TestAPageSaysThatItLostItsConnection(t *testing.T) {
	k, p := kept(t)
	k.mu.Lock()
	k.gone = true
	k.mu.Unlock()
	k.change(1)
	p.until(`document.querySelector(".live").textContent === "Signed out: load the page again"`)
	p.forgive() // the browser says that the page was refused, as it should
	k.Server.CloseClientConnections()
	k.Server.Listener.Close()
	p.until(`document.querySelector(".live").textContent === "Connection lost"`)
	p.forgive()
}

func TestOneBoxTicksAll(t *testing.T) {
	_, p := kept(t)
	const ticked = `document.querySelectorAll("#rows tbody input:checked").length`
	p.click("[data-select-all]")
	if n := eval[int](p, ticked); n != 8 {
		t.Errorf("%d boxes are ticked, want 8", n)
	}
	p.click(`#rows input[value="2"]`)
	if !eval[bool](p, `document.querySelector("[data-select-all]").indeterminate`) {
		t.Error("seven of eight boxes are taken for all or none")
	}
	p.click("[data-select-all]")
	p.click("[data-select-all]")
	if n := eval[int](p, ticked); n != 0 {
		t.Errorf("%d boxes are ticked, want none", n)
	}
}

func TestTheThemeIsKept(t *testing.T) {
	k, p := kept(t)
	const theme = `document.documentElement.dataset.theme ?? ""`
	const background = `getComputedStyle(document.body).backgroundColor`
	for i, want := range []string{"light", "dark"} {
		p.click("[data-theme-toggle]")
		if got := eval[string](p, theme); got != want {
			t.Fatalf("after %d clicks the theme is %q, want %q", i+1, got, want)
		}
	}
	dark := eval[string](p, background)
	p.visit(k.URL + "/?again")
	if got := eval[string](p, background); got != dark || got != "rgb(14, 18, 23)" {
		t.Errorf("the next page is %s, want %s", got, dark)
	}
	p.click("[data-theme-toggle]")
	if got := eval[string](p, theme); got != "" {
		t.Errorf("after three clicks the theme is %q, want that of the system", got)
	}
}

func TestKeysLeadToPages(t *testing.T) {
	_, p := kept(t)
	p.press("f")
	p.until(`document.activeElement.name === "kind"`)
	act(p, "leave", run(`document.activeElement.blur()`))
	p.press("/")
	p.until(`document.activeElement.name === "q"`)
	p.press("gq")
	if got := eval[string](p, `document.activeElement.value + location.pathname`); !strings.HasSuffix(got, "gq/") {
		t.Errorf("typing into a field led to %q", got)
	}
	act(p, "leave", run(`document.activeElement.blur()`))
	p.press("?")
	p.until(`document.querySelector("dialog.help")?.open === true`)
	if got := eval[string](p, `document.querySelector("dialog.help").innerText`); !strings.Contains(got, "to Queues") || !strings.Contains(got, "to the search box") {
		t.Errorf("the help says %q", got)
	}
	p.press("\x1b")
	p.until(`!document.querySelector("dialog.help").open`)
	p.press("gq")
	p.until(`location.pathname === "/queues"`)
}

// Chromium takes the focus out of a dialog a frame after that was closed: until then, keys are in it.
func TestKeysLeadToPagesAtOnceAfterTheHelp(t *testing.T) {
	_, p := kept(t)
	p.press("?")
	p.until(`document.querySelector("dialog.help")?.open === true`)
	act(p, "close the help and press keys in one frame", run(`{
		const help = document.querySelector("dialog.help");
		help.close();
		for (const key of ["g", "q"]) help.querySelector("button").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
	}`))
	p.until(`location.pathname === "/queues"`)
}

func TestAButtonCopies(t *testing.T) {
	_, p := kept(t)
	act(p, "take the clipboard's place", run(`navigator.clipboard.writeText = async (text) => { window.copied = text }`))
	p.click("[data-copy]")
	p.until(`window.copied?.includes("9007199254740993") === true`)
}

func TestAPhoneShowsThePageWithoutMovingIt(t *testing.T) {
	k, p := newKitchen(t), open(t)
	p.as(look{"", "light", 360, 740})
	p.visit(k.URL + "/")
	if wide := eval[int](p, `document.documentElement.scrollWidth`); wide > 360 {
		t.Errorf("on a phone of 360 pixels the page is %d wide", wide)
		t.Log(eval[string](p, `[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > 361 && !e.parentElement.closest(".scroll, pre, table.rows")).map((e) => e.outerHTML.slice(0, 120)).join("\n")`))
	}
}
