package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

func TestAPausedQueueSaysSinceWhenByWhomAndWhy(t *testing.T) {
	s := open(t)
	s.knock()
	s.says("is paused", "/queues/mail/pause", url.Values{"why": {"the server is down"}})
	if text := s.page("/queues"); !regexp.MustCompile(`paused</span> <time [^>]*>[^<]*</time> by [^:<]+: the server is down</td>`).MatchString(text) {
		t.Errorf("the page says %s", said(text))
	}
}

func TestQueuesThatAreLeftOutAreMentioned(t *testing.T) {
	s := open(t)
	var jobs []stint.NewJob
	for i := range 501 {
		jobs = append(jobs, stint.NewJob{Kind: "work", Args: json.RawMessage(`{}`), Queue: fmt.Sprintf("q%d", i)})
	}
	if _, err := stint.NewClient(s.store).EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	text := s.page("/queues")
	for end := time.Now().Add(20 * time.Second); strings.Contains(text, "Counting…") && time.Now().Before(end); text = s.page("/queues") {
		time.Sleep(20 * time.Millisecond)
	}
	if !strings.Contains(text, "these are the 500 with the longest") {
		t.Errorf("the page says %.300s", said(text))
	}
}

// The page of a queue says all that is known of it, and what is done there leads back to it.
func TestAQueueHasAPage(t *testing.T) {
	s := open(t)
	s.knock()
	if status, _ := s.get("/queues/%01"); status != 404 {
		t.Errorf("the page of a queue whose name is invalid has status %d", status)
	}
	if text := said(s.page("/queues/none")); !strings.Contains(text, ">no engine</span>") {
		t.Errorf("of a queue of which nothing is known it says %s", text)
	}
	s.says("is paused", "/queues/mail/pause", url.Values{"why": {"the server is down"}, "back": {"/queues/mail"}})
	s.says("is set to 7", "/limits/queue=mail/set", url.Values{"rule": {"7"}, "back": {"/queues/mail"}})
	want := []string{`paused</span> <time [^>]*>[^<]*</time> by [^:<]+: the server is down; drained: nothing runs any more</dd>`, `href="/limits/queue=mail">7</a>`, `action="/queues/mail/resume"`}
	var text string
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		text = said(s.page("/queues/mail"))
		if list := s.page("/queues"); regexp.MustCompile(want[0]).MatchString(text) && strings.Contains(list, `href="/queues/mail"`) || time.Now().After(end) {
			break
		}
	}
	for _, w := range want {
		if !regexp.MustCompile(w).MatchString(text) {
			t.Errorf("it lacks %s: %s", w, text)
		}
	}
	// Charts are pictures, and not the numbers that they are made of.
	for end := time.Now().Add(20 * time.Second); !strings.Contains(text, "<figcaption>Run time</figcaption>") && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		text = s.page("/queues/mail")
	}
	for title, text := range map[string]string{"per minute": text, "in steps of 10m": s.page("/queues/mail?from=1d")} {
		for _, title := range []string{"Attempts that ended, " + title, "Run time", "Queue latency"} {
			if !strings.Contains(text, "<figcaption>"+title+"</figcaption>") {
				t.Errorf("there is no chart %q", title)
			}
		}
	}
	s.says("is resumed", "/queues/mail/resume", url.Values{"back": {"/queues/mail"}})
	if text := s.page("/queues/mail"); !strings.Contains(text, `action="/queues/mail/pause"`) {
		t.Errorf("it is not resumed: %s", said(text))
	}
}
