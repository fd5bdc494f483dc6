package ops

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
)

// instant is an input that has one.
type instant struct {
	At time.Time `query:"at"`
}

func TestAFormFillsInAnInput(t *testing.T) {
	for name, c := range map[string]struct {
		in   any
		name string
		form string
		want any
	}{
		"a name and a field of the body": {&QueueWhy{}, "mail/…", "why=+a+leak+&confirm=pause&other=x", &QueueWhy{QueueName{"mail/…"}, Why{"a leak"}}},
		"a number":                       {&EngineWhy{}, "42", "why=x", &EngineWhy{EngineToken{42}, Why{"x"}}},
		"a field of the query":           {&RemovedSchedule{}, "s", "why=x", &RemovedSchedule{ScheduleName{"s"}, "x"}},
		"nothing said":                   {&LeaseWhy{}, "l", "why=&why=+", &LeaseWhy{Lease: "l"}},
		"a job by its name":              {&CancelInput{}, "7", "why=x", &CancelInput{Cancelling{Selection{IDs: []stint.ID{7}}, Why{"x"}}}},
		"several jobs":                   {&DeleteInput{}, "", "ids=7&ids=8", &DeleteInput{Selection{IDs: []stint.ID{7, 8}}}},
		"a truth and a duration":         {&RetryInput{}, "7", "force=true&run_at=%2B5m", &RetryInput{Retrying{Selection{IDs: []stint.ID{7}}, Rerun{Force: true, RunAt: "+5m"}}}},
		"an instant":                     {&instant{}, "", "at=2026-03-01T09:00:00Z", &instant{time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}},
		"JSON":                           {&SignalInput{}, "7", "name=go+on&value=+%7B%22n%22%3A12345678901234567890%7D", &SignalInput{JobName{7}, NewSignal{Name: "go on", Value: []byte(`{"n":12345678901234567890}`)}}},
		"no JSON":                        {&SignalInput{}, "7", "name=go&value=+", &SignalInput{JobName{7}, NewSignal{Name: "go"}}},
		"a filter":                       {&Filter{}, "", "state=failed&state=running&attempts=3&faulty=1&kind=k", &Filter{States: []string{"failed", "running"}, Attempts: 3, Faulty: true, Kind: "k"}},
	} {
		form, err := url.ParseQuery(c.form)
		if err != nil {
			t.Fatal(err)
		}
		if err := Fill(c.in, c.name, form); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(c.want, c.in); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAFormThatAnInputCannotHaveSaysWhichFieldIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		in         any
		name, form string
		want       string
	}{
		"a token of letters":     {&EngineToken{}, "x", "", `engine: "x" is not a whole number`},
		"an id of letters":       {&CancelInput{}, "x", "", `ids: "x" is not a whole number`},
		"an id that is no id":    {&DeleteInput{}, "", "ids=1&ids=1.5", `ids: "1.5" is not a whole number`},
		"a number that is long":  {&Filter{}, "", "attempts=99999999999999999999", `attempts: "99999999999999999999" is not a whole number`},
		"neither true nor not":   {&Filter{}, "", "faulty=maybe", `faulty: "maybe" is neither true nor false`},
		"a day":                  {&instant{}, "", "at=2026-03-01", `at: "2026-03-01" is not an instant such as 2026-03-01T09:00:00Z`},
		"a name without place":   {&None{}, "x", "", `name: "x" names nothing here`},
		"a text that is no JSON": {&SignalInput{}, "7", "name=go&value=yes", "value: malformed JSON at byte 1: invalid character 'y' looking for beginning of value"},
		"what a form lacks":      {&CancelInput{}, "7", "filter=x", "filter: a form cannot say it"},
	} {
		form, err := url.ParseQuery(c.form)
		if err != nil {
			t.Fatal(err)
		}
		if err := Fill(c.in, c.name, form); !errors.Is(err, stint.ErrInvalid) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want %s", name, err, c.want)
		}
	}
}
