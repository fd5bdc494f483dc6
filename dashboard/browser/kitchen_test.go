package browser_test

import (
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint/dashboard/chart"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/store"
)

// kitchen serves a page that has everything which pages are made of, behind the guard that real ones are behind. It is
// changed by tests, and says so to whoever listens.
type kitchen struct {
	*httptest.Server
	t *testing.T

	mu        sync.Mutex
	queued    int
	partial   int                      // how often the page was fetched for parts of it
	listeners map[chan string]struct{} // those that are told of changes
	gone      bool                     // nobody is let in any more
	made      func() time.Time         // when the page was looked at; nil for one that does not say so
	found     func() time.Time         // when one of its figures was found, likewise
}

func newKitchen(t *testing.T) *kitchen {
	t.Helper()
	k := &kitchen{t: t, queued: 1234, listeners: map[chan string]struct{}{}}
	g, err := guard.New(guard.Config{Stranger: guard.Viewer})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", k.page)
	mux.HandleFunc("GET /events", k.events)
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServerFS(os.DirFS("../assets"))))
	k.Server = httptest.NewServer(g.Wrap(mux))
	t.Cleanup(k.Close)
	t.Cleanup(k.CloseClientConnections) // streams have no end
	return k
}

func (k *kitchen) page(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone {
		http.Error(w, "unknown", http.StatusUnauthorized)
		return
	}
	if r.Header.Get("X-Partial") != "" {
		k.partial++
	}
	text, err := dish(k.queued, k.made, k.found)
	if err != nil {
		k.t.Error(err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, text)
}

// events tells a listener of changes until it is gone.
func (k *kitchen) events(w http.ResponseWriter, r *http.Request) {
	told := make(chan string, 100)
	k.mu.Lock()
	k.listeners[told] = struct{}{}
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.listeners, told)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 200\n\n")
	for flush := http.NewResponseController(w); ; {
		if flush.Flush() != nil {
			return
		}
		select {
		case name := <-told:
			name, data, _ := strings.Cut(name, " ")
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
		case <-r.Context().Done():
			return
		}
	}
}

// change changes the page, and says so.
func (k *kitchen) change(queued int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queued = queued
	k.tell("change")
}

// tell sends an event, with what follows its name. The mutex is held.
func (k *kitchen) tell(event string) {
	for told := range k.listeners {
		told <- event
	}
}

// looked tells that the page would look the same now.
func (k *kitchen) looked() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tell(fmt.Sprint("looked ", time.Now().UnixMilli()))
}

// heard waits until so many listen.
func (k *kitchen) heard(n int) {
	k.t.Helper()
	for range 500 {
		k.mu.Lock()
		is := len(k.listeners)
		k.mu.Unlock()
		if is == n {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	k.t.Fatalf("there are never %d listeners", n)
}

// caughtUp waits until a page has looked for what it missed while it was loaded.
func (k *kitchen) caughtUp() {
	k.t.Helper()
	for range 500 {
		if k.partials() > 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	k.t.Fatal("the page never looks for what it missed")
}

func (k *kitchen) partials() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.partial
}

// dish is the page.
func dish(queued int, made, found func() time.Time) (string, error) {
	page, err := template.ParseFiles("testdata/kitchen.html")
	if err != nil {
		return "", err
	}
	var text strings.Builder
	says := map[string]any{
		"Queued": chart.Count.Exact(float64(queued)), "States": store.States,
		"Conditions": []view.Condition{view.Working, view.Draining, view.Gone, view.Stuck, view.Silent, view.Left, view.Buried},
		"Spark":      template.HTML(chart.Sparkline{Title: "Running", Values: []float64{3, 8, 21, 34, 30, 44, 48}, Class: chart.Own}.SVG()),
		"Charts":     []template.HTML{template.HTML(ended().Figure()), template.HTML(took().Figure()), template.HTML(backlog().Figure())},
		"Timeline":   template.HTML(attempts().Figure() + brief().Figure() + lanes().Figure()),
		"Graph":      template.HTML(graph().Figure()), "Clock": time.Now().UnixMilli(),
	}
	if made != nil {
		says["Made"] = made().UnixNano()
	}
	if found != nil {
		says["Found"] = found().UnixMilli()
	}
	err = page.Execute(&text, says)
	return text.String(), err
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// wave goes up and down between two values, the same way in every run.
func wave(n int, low, high float64) []float64 {
	values, seed := make([]float64, n), uint32(n)
	for i := range values {
		seed = seed*1664525 + 1013904223
		hill := 1 - float64((i-n/3)*(i-n/3))/float64(n*n)
		values[i] = low + (high-low)*hill*(.7+.3*float64(seed>>8)/(1<<24))
	}
	return values
}

func ended() chart.TimeSeries {
	completed, failed := wave(60, 800, 2400), wave(60, 0, 90)
	for i := range completed {
		completed[i], failed[i] = float64(int(completed[i])), float64(int(failed[i]))
	}
	lost := make([]float64, len(completed))
	for i := 42; i < 48; i++ { // nobody was there to count
		completed[i], failed[i], lost[i] = math.NaN(), math.NaN(), math.NaN()
	}
	return chart.TimeSeries{Title: "Attempts that ended, per minute", From: noon, Step: time.Minute, Zoom: "/", Before: chart.Series{Name: "the hour before", Class: "s1", Values: wave(60, 300, 1100)}, Series: []chart.Series{
		{Name: "completed", Class: chart.OK, Values: completed}, {Name: "failed", Class: chart.Bad, Values: failed},
		{Name: "lost", Class: chart.Warn, Values: lost},
	}}
}

func took() chart.TimeSeries {
	return chart.TimeSeries{Title: "How long attempts took", Unit: chart.Duration, Style: chart.Lines, From: noon, Step: 10 * time.Minute, Series: []chart.Series{
		{Name: "median", Values: wave(144, 4e6, 9e6)}, {Name: "95 of 100", Values: wave(144, 2e7, 6e7)}, {Name: "99 of 100", Values: wave(144, 5e7, 2e8)},
	}}
}

func backlog() chart.Ranking {
	return chart.Ranking{Title: "Jobs that wait, by queue", Rows: []chart.Row{
		{Name: "default", Value: 1_234_567}, {Name: "mail", Value: 412_003}, {Name: "reports-of-the-whole-year-and-of-all-customers", Value: 20_001},
		{Name: "slow", Value: 12, Class: chart.Warn}, {Name: "none", Value: 0},
	}}
}

func attempts() chart.Timeline {
	at := func(s float64) time.Time { return noon.Add(time.Duration(s * float64(time.Second))) }
	return chart.Timeline{Title: "Attempts of job 42", Now: at(900), Lanes: []chart.Lane{
		{Name: "1", Segments: []chart.Segment{
			{Name: "waiting", Class: chart.Muted, From: at(0), To: at(60)},
			{Name: "failed", Class: chart.Bad, From: at(60), To: at(61.234567), Note: "no such host"},
			{Name: "until the retry", From: at(61.234567), To: at(360)},
		}},
		{Name: "2", Segments: []chart.Segment{
			{Name: "waiting", Class: chart.Muted, From: at(360), To: at(420)},
			{Name: "failed", Class: chart.Bad, From: at(420), To: at(480), Note: "timeout"},
			{Name: "until the retry", From: at(480), To: at(780)},
		}},
		{Name: "3", Segments: []chart.Segment{{Name: "running", Class: chart.OK, From: at(790)}}},
	}}
}

// brief has an axis of seconds, with labels that are long.
func brief() chart.Timeline {
	return chart.Timeline{Title: "Attempts of job 43", Now: noon.Add(6 * time.Second), Lanes: []chart.Lane{{Name: "1", Segments: []chart.Segment{{Name: "waited", Class: chart.Muted, From: noon}}}}}
}

// lanes have titles that lead somewhere.
func lanes() chart.Timeline {
	c := brief()
	c.Title = "Attempts of the jobs of flow 12"
	c.Lanes = append(c.Lanes, c.Lanes[0])
	c.Lanes[0].Name, c.Lanes[0].Title, c.Lanes[0].Link = "", "fetch", "/jobs/13"
	c.Lanes[1].Name, c.Lanes[1].Title = "", "page ×9,998"
	return c
}

// graph has nodes in all states and of all shapes, and edges of all sorts.
func graph() chart.Graph {
	g := chart.Graph{Title: "Jobs of flow 12"}
	for i, s := range store.States {
		g.Nodes = append(g.Nodes, chart.Node{Name: "a job that is " + string(s), State: string(s), Link: fmt.Sprint("/jobs/", i), Shape: chart.Shape(i % 4), Bold: i == 1, Layer: i / 3})
	}
	for i := range g.Nodes[3:] {
		g.Edges = append(g.Edges, chart.Edge{From: i, To: i + 3, Note: "that it completes",
			Line: []chart.Line{chart.Solid, chart.Dashes, chart.Dots}[i%3], Class: []chart.Class{chart.OK, chart.Bad, chart.Muted}[i%3]})
	}
	return g
}

// TestEverythingThatHasAStyleIsLookedAt sees to it that the page has all classes of the style sheet, so that what is
// checked of it is checked of all of them.
func TestEverythingThatHasAStyleIsLookedAt(t *testing.T) {
	text, err := dish(1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{"on": true, "off": true, "paused": true, "behind": true, "help": true} // the script makes these
	for _, found := range regexp.MustCompile(`class="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		for class := range strings.FieldsSeq(found[1]) {
			there[class] = true
		}
	}
	rules := regexp.MustCompile(`\{[^{}]*\}`).ReplaceAllString(style(t), "{}")
	for _, found := range regexp.MustCompile(`\.([a-z][a-z0-9-]*)`).FindAllStringSubmatch(rules, -1) {
		if class := found[1]; !there[class] && !slices.Contains([]string{"s4", "s5", "s6", "s7", "s8", "none"}, class) {
			t.Errorf("the style has rules for .%s, and testdata/kitchen.html has none of it", class)
		}
	}
}

// TestLooks writes pictures of the page into a directory, for people: STINT_LOOKS=/tmp/looks go test -run Looks.
func TestLooks(t *testing.T) {
	dir := os.Getenv("STINT_LOOKS")
	if dir == "" {
		t.Skip("STINT_LOOKS names no directory for pictures")
	}
	k, p := newKitchen(t), open(t)
	p.in("Europe/Berlin")
	for _, l := range looks {
		p.as(l)
		p.visit(k.URL + "/")
		p.until(`document.querySelector(".live").className === "live on"`)
		p.picture(filepath.Join(dir, "kitchen-"+l.name+".png"))
	}
}
