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
