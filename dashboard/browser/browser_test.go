package browser_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is one for all tests: its context, or why there is none.
var browser struct {
	sync.Once
	context.Context
	err  error
	stop func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if browser.stop != nil {
		browser.stop()
	}
	os.Exit(code)
}

// patience is how long a page may take for anything.
const patience = 20 * time.Second

// tab is a page that a test looks at and uses, in a session of its own.
type tab struct {
	*testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string // of the browser, about the pages
}

// open opens a tab. What the browser complains about, a script that fails or something that the page may not load, fails
// the test. Where there is no Chromium the test is skipped, but for CI.
func open(t *testing.T) *tab {
	t.Helper()
	browser.Do(func() {
		browser.Context, browser.stop = chromedp.NewContext(context.Background())
		browser.err = chromedp.Do(browser.Context)
	})
	if errors.Is(browser.err, exec.ErrNotFound) && os.Getenv("CI") == "" {
		t.Skip("there is no Chromium: make browser installs one")
	}
	if browser.err != nil {
		t.Fatalf("start Chromium: %v", browser.err)
	}
	p := &tab{T: t}
	ctx, closeTab := chromedp.NewContext(browser.Context, chromedp.WithNewBrowserContext(), chromedp.WithListener(p.hear))
	t.Cleanup(closeTab)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	p.ctx = ctx
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, complaint := range p.complaints {
			t.Error("the browser complains: " + complaint)
		}
	})
	return p
}

// hear keeps what the browser complains about.
func (p *tab) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		p.complaints = append(p.complaints, fmt.Sprintf("%+v", event.ExceptionDetails))
	case *log.EventEntryAdded:
		if event.Entry.Level == log.EntryLevelError {
			p.complaints = append(p.complaints, event.Entry.Text+" "+event.Entry.URL)
		}
	}
}

// forgive forgets complaints that a test brought about.
func (p *tab) forgive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = nil
}

// act does something to the page, and returns what comes of it.
func act[T any](p *tab, what string, action chromedp.Action[T]) T {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		p.Fatalf("%s: %v", what, err)
	}
	return v
}

// visit loads a page.
func (p *tab) visit(url string) {
	p.Helper()
	act(p, "visit "+url, chromedp.Navigate(url))
}

// click clicks what a selector of CSS finds.
func (p *tab) click(selector string) {
	p.Helper()
	act(p, "click "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// submit clicks what leads to another page, and waits for that.
func (p *tab) submit(selector string) {
	p.Helper()
	click := chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)
	act(p, "click "+selector+" and wait for the page", chromedp.WaitEvent(page.LoadEventFired, nil, click))
}

// enter types into a field.
func (p *tab) enter(selector, text string) {
	p.Helper()
	act(p, "type into "+selector, chromedp.SendKeys(chromedp.CSS(selector), text, chromedp.NodeVisible))
}

// empty takes out what a field has.
func (p *tab) empty(selector string) {
	p.Helper()
	act(p, "empty "+selector, run(fmt.Sprintf("document.querySelector(%q).value = ''", selector)))
}

// press sends keys to whatever has the focus.
func (p *tab) press(keys string) {
	p.Helper()
	act(p, "press "+keys, chromedp.KeyEvent(keys))
}

// eval is the value of an expression in the page.
func eval[T any](p *tab, expression string) T {
	p.Helper()
	return act(p, expression, chromedp.Evaluate[T](expression))
}

// run executes a statement in the page.
func run(statement string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Evaluate[bool](statement+"; true")(ctx, t)
		return chromedp.Void{}, err
	}
}

// until waits for a condition of the page, an expression that is true or false, also while pages change.
func (p *tab) until(condition string) {
	p.Helper()
	var last error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ok, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](condition))
		if last = err; ok {
			return
		}
	}
	p.Fatalf("the page never came to: %s (%v)", condition, last)
}

// reload loads the page again until a condition holds, which may be about what a page learns only by being loaded. Each time
// it waits until the page has loaded: a page that is still to be replaced would swallow what the test enters, and its loading
// would look like that of the next page.
func (p *tab) reload(until string) {
	p.Helper()
	for end := time.Now().Add(patience); !eval[bool](p, until); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("the page never came to: %s", until)
		}
		act(p, "load the page again", chromedp.Reload())
	}
}

// look is how a page is looked at.
type look struct {
	name          string
	scheme        string // light or dark
	width, height int64
}

var looks = []look{
	{"light-wide", "light", 1280, 900}, {"dark-wide", "dark", 1280, 900},
	{"light-phone", "light", 360, 740}, {"dark-phone", "dark", 360, 740},
}

// as looks at pages in a way.
func (p *tab) as(l look) {
	p.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}}}
	act(p, "set the scheme of colours", command(emulation.SetEmulatedMedia, media))
	act(p, "set the size of the page", chromedp.EmulateViewport(l.width, l.height))
}

// in looks at pages from a zone of time.
func (p *tab) in(zone string) {
	p.Helper()
	act(p, "set the zone", command(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone}))
}

// command is one of the protocol that browsers are driven by.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[R] {
	return func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, c, params) }
}

// picture writes one of the whole page into a file.
func (p *tab) picture(path string) {
	p.Helper()
	png := act(p, "take a picture", chromedp.FullScreenshot(100))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(path, png, 0o644); err != nil {
		p.Fatal(err)
	}
}
