package browser_test

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// axePath is where make browser puts axe, which knows what keeps people out of pages.
const axePath = "../../.cache/axe-core/axe.min.js"

func axe(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(axePath)
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("CI") == "" {
		t.Skip("there is no axe: make browser fetches it")
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// barriers are what axe finds on a page, by the rules of WCAG 2.2 AA and what is good practice.
func (p *tab) barriers(axe string) []string {
	p.Helper()
	act(p, "load axe", run(axe))
	const search = `axe.run(document, {
		resultTypes: ["violations"],
		runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
	}).then((found) => found.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + ": " + n.target + " " + n.html + " " + n.failureSummary)))`
	return act(p, "run axe", chromedp.Evaluate[[]string](search, chromedp.EvalAwaitPromise))
}

// unreached are what can be used on a page and is not come to with the tabulator key.
func (p *tab) unreached() []string {
	p.Helper()
	const usable = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary")].filter((e) => !e.disabled && e.type !== "hidden" && e.checkVisibility())`
	// A part that is replaced meanwhile is another one than was to be reached.
	act(p, "hold the page still", run(`{ const b = document.querySelector("[data-pause]"); if (b && !b.hidden && b.textContent === "Pause") b.click(); }`))
	n := eval[int](p, `(window.usable = `+usable+`).length`)
	act(p, "begin at the top", run(`window.reached = new Set(); document.addEventListener("focusin", (e) => window.reached.add(e.target)); document.activeElement.blur()`))
	for range n + 30 { // what scrolls is come to as well
		p.press("\t")
	}
	// What the key passes over on purpose has something beside it that does the same: a link to the same place in a table
	// that opens, or the field that a picker fills in.
	return eval[[]string](p, `window.usable.filter((e) => !window.reached.has(e) && !(e.tabIndex < 0 &&
		[...document.querySelectorAll("a[href], .when button")].some((o) => o.tabIndex >= 0 && (o.matches("a") ? o.getAttribute("href") === e.getAttribute("href") : e.matches(".picker") && o.parentElement === e.parentElement)))).map((e) => e.outerHTML)`)
}

func TestThereAreNoBarriersInWhatPagesAreMadeOf(t *testing.T) {
	rules, k, p := axe(t), newKitchen(t), open(t)
	for _, l := range looks {
		p.as(l)
		p.visit(k.URL + "/")
		p.until(`!document.querySelector("[data-theme-toggle]").hidden`)
		for _, barrier := range p.barriers(rules) {
			t.Errorf("%s: %s", l.name, barrier)
		}
	}
}

// TestBarriersAreFound sees to it that the check above can fail.
func TestBarriersAreFound(t *testing.T) {
	rules, k, p := axe(t), newKitchen(t), open(t)
	p.visit(k.URL + "/")
	act(p, "spoil the page", run(`
		document.querySelector("#main h1").remove();
		document.querySelector("form.edit label").replaceWith(document.querySelector("form.edit input"));
		document.querySelector(".lead").style.color = "#999"`))
	found := p.barriers(rules)
	for _, want := range []string{"page-has-heading-one", "label", "color-contrast"} {
		if !slices.ContainsFunc(found, func(f string) bool { return len(f) > len(want) && f[:len(want)+1] == want+":" }) {
			t.Errorf("a page that was spoiled has no barrier %s: %q", want, found)
		}
	}
}

func TestEverythingIsReachedByKeys(t *testing.T) {
	k, p := newKitchen(t), open(t)
	p.visit(k.URL + "/")
	p.until(`!document.querySelector("[data-theme-toggle]").hidden`)
	for _, e := range p.unreached() {
		t.Errorf("the tabulator key does not come to %s", e)
	}
	if first := eval[string](p, `[...window.reached][0].textContent`); first != "Skip to the content" {
		t.Errorf("the first that is come to is %q", first)
	}
	act(p, "hide a button", run(`document.querySelector("[data-pause]").tabIndex = -1`))
	if got := p.unreached(); len(got) != 1 {
		t.Errorf("of what is not reached was found %q, want one button", got)
	}
}
