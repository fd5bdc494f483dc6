package stint_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

// full is a job that says something in every option.
func full(t *testing.T) stint.NewJob {
	at := time.Date(2026, 3, 1, 9, 0, 0, 123000, time.UTC)
	j := stint.NewJob{
		Kind: "k", Args: json.RawMessage(`{"a":"<b>"}`), Queue: "q", Priority: -3, RunAt: at, Delay: time.Second, Retry: retry.Fixed(2, time.Second),
		Timeout: time.Minute, StartBy: at, StartWithin: 90 * time.Second, MaxLosses: new(0), Tags: []string{"a"}, URN: "u",
		Source: "s", Description: "d", Metadata: json.RawMessage(`{"m":1}`), Correlation: "c", IdempotencyKey: "i", Unique: "until-ended",
		Limits: []string{"smtp", "tenant by /a"},
	}
	for f, v := range reflect.ValueOf(j).Fields() {
		switch f.Name {
		case "Member", "Sealed", "Redacted", "Indexed": // a flow says where a job stands in it, and the kind what is sealed, redacted and indexed
			continue
		}
		if v.IsZero() {
			t.Fatalf("the test says nothing of %s", f.Name)
		}
		if f.Tag.Get("json") == "" {
			t.Fatalf("%s has no name in JSON", f.Name)
		}
	}
	return j
}

func TestEveryOptionOfAJobSurvivesJSON(t *testing.T) {
	want := full(t)
	text, err := want.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var got stint.NewJob
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(retry.Policy{})); d != "" {
		t.Error(d)
	}
}

func TestJSONSaysNothingOfWhatAJobDoesNotSay(t *testing.T) {
	if text, err := (stint.NewJob{Kind: "k"}).MarshalJSON(); err != nil || string(text) != `{"kind":"k"}` {
		t.Errorf("%s, %v", text, err)
	}
	was := full(t)
	was.StartBy = time.Time{}
	got := was
	if err := got.UnmarshalJSON([]byte(`{"priority": 0, "max_losses": null, "queue": "", "tags": ["b", "a"], "limits": ["erp"], "start_by": "2026-03-01T09:00:00Z"}`)); err != nil {
		t.Fatal(err)
	}
	was.Limits = append(was.Limits, "erp")
	was.Priority, was.Tags, was.StartBy, was.StartWithin = 0, []string{"a", "b"}, time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), 0
	if d := cmp.Diff(was, got, cmpopts.EquateComparable(retry.Policy{})); d != "" {
		t.Error(d)
	}
}

func TestJSONOfAJobThatIsWrongIsRefusedByItsField(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                          "job: ",
		`{"kind":"k","colour":"red"}`: "colour: ",
		`{"kind":7}`:                  "kind: ",
		`{"run_at":"noon"}`:           "run at: ",
		`{"timeout":"soon"}`:          "timeout: ",
		`{"timeout":5}`:               "timeout: ",
		`{"retry":"often"}`:           "retry: ",
		`{"max_losses":"3"}`:          "max losses: ",
		`{"tags":"a"}`:                "tags: ",
	} {
		j := stint.NewJob{Kind: "before"}
		if err := json.Unmarshal([]byte(text), &j); !errors.Is(err, stint.ErrInvalid) || !strings.HasPrefix(err.Error(), want) || j.Kind != "before" {
			t.Errorf("%s: %v, %+v", text, err, j)
		}
	}
	if text, err := (stint.NewJob{Kind: "k", Args: json.RawMessage(`1,"kind":"other"`)}).MarshalJSON(); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("%s, %v", text, err)
	}
}
