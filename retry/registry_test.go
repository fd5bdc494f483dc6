package retry_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/retry"
)

func decideWith(t *testing.T, fn retry.Func, p retry.Policy, f retry.Failure, cause error) retry.Decision {
	t.Helper()
	var r retry.Registry
	if err := r.Register("f", fn); err != nil {
		t.Fatal(err)
	}
	d, err := r.Decide(p, f, cause)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAFunctionSeesTheFailure(t *testing.T) {
	f := retry.Failure{Charged: 3, Classes: []string{"a"}, Created: due, Due: due.Add(1), Now: due.Add(2), Took: time.Second}
	var got retry.Failure
	decideWith(t, func(cause error, seen retry.Failure) retry.Decision {
		if cause != io.EOF {
			t.Errorf("cause is %v", cause)
		}
		got = seen
		seen.Classes[0] = "changed"
		return retry.Again(0)
	}, retry.Function("f"), f, io.EOF)
	if got.Charged != 3 || !got.Created.Equal(due) || got.Took != time.Second || got.Age() != 1 {
		t.Errorf("the function saw %+v", got)
	}
	if f.Classes[0] != "a" {
		t.Error("the function changed its caller's failure")
	}
}

func TestAFunctionDecides(t *testing.T) {
	p := retry.Function("f")
	for _, tt := range []struct {
		name         string
		p            retry.Policy
		answer, want retry.Decision
	}{
		{"wait", p, retry.Again(time.Hour), retry.Again(time.Hour)},
		{"other queue", p, retry.Again(0).To("slow"), retry.Again(0).To("slow")},
		{"final", p, retry.Final("customer left"), retry.Final("customer left")},
		{"final without a reason", p, retry.Decision{}, retry.Final("policy gave no date")},
		{"in the past", p, retry.Again(-time.Hour), retry.Again(0)},
		{"beyond all dates", p, retry.Again(1<<63 - 1), retry.Again(retry.MaxWait)},
		{"both", p, retry.Decision{Retry: true, Reason: "x"}, retry.Again(0)},
		{"with maximum", p.MaxDelay(time.Minute), retry.Again(time.Hour), retry.Again(time.Minute)},
		{"behind deadline", p.Deadline(time.Minute), retry.Again(time.Hour), retry.Final("policy gave no date")},
		{"filtered", p.Only("a"), retry.Again(time.Hour), retry.Final("error not retriable")},
		{"in a case", retry.ByError(retry.On("a", p), retry.Otherwise(p)), retry.Again(1), retry.Again(1)},
		{"text that cannot be stored", p, retry.Final("a\x00b\xff"), retry.Final("a b")},
		{"queue that cannot exist", p, retry.Again(1).To("a\x00"),
			retry.Decision{Retry: true, Wait: 1, Note: `it stays in its queue: queue "a\x00" has a control character`}},
	} {
		fn := func(error, retry.Failure) retry.Decision { return tt.answer }
		if got := decideWith(t, fn, tt.p, retry.Failure{}, io.EOF); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestAPanickingFunctionCountsAsTheDefault(t *testing.T) {
	fn := func(error, retry.Failure) retry.Decision { panic("oh no") }
	d := decideWith(t, fn, retry.Function("f").MaxDelay(3*time.Minute), retry.Failure{Charged: 2}, io.EOF)
	if !d.Retry || d.Wait != 2*time.Minute || !strings.Contains(d.Note, "oh no") {
		t.Errorf("decided %+v, want 2m and a note", d)
	}
	d = decideWith(t, fn, retry.Function("f"), retry.Failure{Charged: 11}, io.EOF)
	if d.Retry || d.Reason != "retries exhausted" || d.Note == "" {
		t.Errorf("decided %+v, want the default's end and a note", d)
	}
	d = decideWith(t, fn, retry.Function("f").Deadline(time.Second), retry.Failure{}, io.EOF)
	if d.Retry || d.Reason != "policy gave no date" || d.Note == "" {
		t.Errorf("decided %+v, want an end at the deadline and a note", d)
	}
}

func TestAnUnknownFunctionLeavesTheDecisionToOthers(t *testing.T) {
	p := retry.ByError(retry.On("a", retry.Function("g")), retry.Otherwise(retry.Fixed(1, 0)))
	for _, r := range []*retry.Registry{nil, new(retry.Registry)} {
		if _, err := r.Decide(p, retry.Failure{Classes: []string{"a"}}, io.EOF); !errors.Is(err, retry.ErrUnknownFunc) {
			t.Errorf("error is %v", err)
		}
		// Where the function is not needed, neither is another process.
		for _, f := range []retry.Failure{{}, {Lost: true}, {NoRetry: true, Classes: []string{"a"}}} {
			if _, err := r.Decide(p, f, io.EOF); err != nil {
				t.Errorf("%+v: %v", f, err)
			}
		}
	}
	if d := p.Decide(retry.Failure{Classes: []string{"a"}}); d.Wait != time.Minute || !strings.Contains(d.Note, "g") {
		t.Errorf("without a registry: %+v, want the default and a note", d)
	}
}

func TestANameIsRegisteredOnce(t *testing.T) {
	var r retry.Registry
	fn := func(error, retry.Failure) retry.Decision { return retry.Again(0) }
	for _, tt := range []struct {
		name string
		fn   retry.Func
		want string
	}{{"f", fn, ""}, {"f", fn, "registered already"}, {"", fn, "name is empty"}, {"g", nil, "it is nil"}} {
		err := r.Register(tt.name, tt.fn)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("register %q: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestAFunctionMayAnswerWithADate(t *testing.T) {
	f := retry.Failure{Charged: 1, Now: due}
	for _, tt := range []struct {
		date time.Time
		p    retry.Policy
		want retry.Decision
	}{
		{due.Add(90 * time.Minute), retry.Function("f"), retry.Again(90 * time.Minute)},
		{due.Add(-time.Hour), retry.Function("f"), retry.Again(0)},
		{due.AddDate(500, 0, 0), retry.Function("f"), retry.Again(retry.MaxWait)},
		{due.Add(time.Hour), retry.Function("f").MaxDelay(time.Minute), retry.Again(time.Minute)},
	} {
		fn := func(error, retry.Failure) retry.Decision { return retry.At(tt.date) }
		if got := decideWith(t, fn, tt.p, f, io.EOF); got != tt.want {
			t.Errorf("at %v: %+v, want %+v", tt.date, got, tt.want)
		}
	}
}

func TestWhenIsAPredicateAndADelay(t *testing.T) {
	fn := retry.When(
		func(cause error) bool { return errors.Is(cause, io.EOF) },
		func(n int) time.Duration {
			if n > 3 {
				return -1
			}
			return time.Duration(n) * time.Second
		})
	p := retry.Function("f")
	for n, want := range map[int]retry.Decision{1: retry.Again(time.Second), 3: retry.Again(3 * time.Second), 4: retry.Final(retry.ReasonNoDate)} {
		if got := decideWith(t, fn, p, retry.Failure{Charged: n}, io.EOF); got != want {
			t.Errorf("after %d attempts: %+v, want %+v", n, got, want)
		}
	}
	if got := decideWith(t, fn, p, retry.Failure{Charged: 1}, io.ErrNoProgress); got != retry.Final(retry.ReasonNotRetriable) {
		t.Errorf("of another error: %+v", got)
	}
}

func TestWhatAnotherProcessSawIsToldByItsText(t *testing.T) {
	fn := func(cause error, f retry.Failure) retry.Decision {
		if cause != retry.Told("no paper") || f.Message != "no paper" {
			t.Errorf("the cause is %#v, the message %q", cause, f.Message)
		}
		return retry.Again(0)
	}
	decideWith(t, fn, retry.Function("f"), retry.Failure{Charged: 1, Message: "no paper"}, nil)
}

func TestAnUnknownFunctionIsNamed(t *testing.T) {
	var r retry.Registry
	_, err := r.Decide(retry.Function("billing"), retry.Failure{}, io.EOF)
	if unknown, ok := errors.AsType[*retry.UnknownFuncError](err); !ok || unknown.Name != "billing" || !errors.Is(err, retry.ErrUnknownFunc) {
		t.Errorf("the error is %v", err)
	}
	if err := r.Register("b", retry.When(nil, nil)); err != nil {
		t.Fatal(err)
	}
	if err := r.Register("a", retry.When(nil, nil)); err != nil {
		t.Fatal(err)
	}
	if got := r.Names(); len(got) != 2 || got[0] != "a" || (*retry.Registry)(nil).Names() != nil {
		t.Errorf("the names are %v", got)
	}
}
