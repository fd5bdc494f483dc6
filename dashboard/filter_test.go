package dashboard_test

import (
	"net/http"
	"strings"
	"testing"
)

// A filter that means nothing is shown again with all that was entered, and says beside the field what is wrong.
func TestAWrongFilterKeepsWhatWasEntered(t *testing.T) {
	s := open(t)
	s.fill()
	s.knock()
	status, text := s.get("/jobs?kind=good&tag=vip&finished_after=soon")
	want := []string{`name="kind" value="good"`, `name="tag" value="vip"`, `name="finished_after" value="soon"`, `<small class="note bad">&#34;soon&#34; is neither an instant`}
	for _, w := range want {
		if status != http.StatusUnprocessableEntity || !strings.Contains(text, w) {
			t.Errorf("status %d, and it lacks %s: %s", status, w, said(text))
		}
	}
	if strings.Contains(text, "Retry all") || strings.Contains(text, "No job matches") {
		t.Error("it offers to change jobs of no filter, or says that there is none")
	}
	if i, j := strings.Index(text, `name="finished_after"`), strings.Index(text, `<small class="note bad">`); j < i || strings.Contains(text[i:j], "<label>") {
		t.Error("what is wrong does not stand beside its field")
	}
	if status, text := s.get("/jobs?longer=often&kind=good"); status != http.StatusUnprocessableEntity || !strings.Contains(text, `value="often"`) || !strings.Contains(text, `<small class="note bad">`) {
		t.Errorf("for another field it answers %d", status)
	}
}

// Times are entered as people write them, and as durations.
func TestTimesOfAFilterAreEnteredAsPeopleWriteThem(t *testing.T) {
	s := open(t)
	ids := s.fill()
	s.knock()
	for query, some := range map[string]bool{
		"finished_after=1h": true, "finished_before=1h": false, "finished_after=2020-01-02": true, "finished_after=2020-01-02+03:04": true, "finished_after=2020-01-02T03:04": true,
		"finished_after=2020-01-02+03:04:05": true, "finished_before=2020-01-02+03:04": false, "created_after=2099-01-02": false,
	} {
		if text := s.page("/jobs?" + query); strings.Contains(text, `href="/jobs/`+ids["bad"].String()+`"`) != some {
			t.Errorf("%s shows the job: %v", query, !some)
		}
	}
}
