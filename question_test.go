package stint_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/failure"
)

func ask(ctx context.Context, name string) (stint.Answer, error) {
	return stint.Ask(ctx, name, "Pay?", time.Hour, "pay", "refuse")
}

// isFinal reports whether an error keeps its job from being retried.
func isFinal(err error) bool { _, final := failure.As[*failure.NoRetry](err); return final }

func TestAskNeedsARunThatKeepsQuestions(t *testing.T) {
	if _, err := ask(t.Context(), "a"); !errors.Is(err, stint.ErrNoAttempt) {
		t.Errorf("outside of a handler it gives %v", err)
	}
	if _, err := ask(new(stint.Run).Context(t.Context()), "a"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("in a run without steps it gives %v", err)
	}
}

func TestAskReturnsTheAnswerThatIsRecorded(t *testing.T) {
	q := &stint.Question{Text: "Pay?", Choices: []string{"pay"}}
	before := []stint.RecordedStep{
		{Name: "answered", Question: q, Result: []byte(`{"choice": "pay", "by": "ann", "comment": "ok", "at": "2026-01-02T03:04:05Z"}`)},
		{Name: "over", Question: q, Result: []byte(`{"timeout": true}`)},
		{Name: "a step", Result: []byte(`{"ref": 7}`)},
		{Name: "a text", Result: []byte(`"pay"`)},
		{Name: "open", Question: q},
	}
	run := &stint.Run{Steps: commits{before}}
	ctx := run.Context(t.Context())
	a, err := ask(ctx, "answered")
	if want := (stint.Answer{Choice: "pay", By: "ann", Comment: "ok", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}); err != nil || a != want {
		t.Errorf("the answer is %+v, %v, want %+v", a, err, want)
	}
	if _, err := ask(ctx, "over"); !errors.Is(err, stint.ErrNoAnswer) || isFinal(err) {
		t.Errorf("when the time is over it gives %v", err)
	}
	for _, name := range []string{"a step", "a text"} {
		if _, err := ask(ctx, name); !errors.Is(err, stint.ErrStepChanged) || !isFinal(err) {
			t.Errorf("for %s it gives %v", name, err)
		}
	}
	give := func(context.Context) (int, error) { t.Error("the step was done"); return 1, nil }
	if _, err := stint.Step(ctx, "open", give); !errors.Is(err, stint.ErrStepChanged) || !isFinal(err) {
		t.Errorf("a step in place of a question gives %v", err)
	}
	if _, err := stint.Await[int](ctx, "open", time.Hour); !errors.Is(err, stint.ErrStepChanged) || !isFinal(err) {
		t.Errorf("a signal in place of a question gives %v", err)
	}
	if _, err := stint.Step(ctx, "another", func(context.Context) (int, error) { return 1, nil }); err != nil {
		t.Error(err)
	}
}

// Waits at the same time end the run together, and a handler that drops the error of a question is told of it.
func TestARunThatAsksIsSuspended(t *testing.T) {
	run := &stint.Run{Job: new(stint.Job), Steps: commits{}}
	ctx := run.Context(t.Context())
	for _, name := range []string{"b", "a"} {
		if _, err := ask(ctx, name); err == nil || !strings.Contains(err.Error(), "the handler must return this error") {
			t.Errorf("the question %s gives %v", name, err)
		}
	}
	_, err := run.Settle(nil, nil)
	want := `awaits the answer to "a" or "b" until `
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "did not return the error that stint.Ask gave it") {
		t.Errorf("it ends with %v, want %s", err, want)
	}
	s, _ := failure.As[*failure.Snooze](err)
	if s == nil || len(s.Awaits) != 2 || s.Awaits["a"] != "" {
		t.Errorf("it awaits %+v", s)
	}
}

func TestQuestionsHaveBounds(t *testing.T) {
	run := &stint.Run{Job: new(stint.Job), Steps: commits{}}
	ctx := run.Context(t.Context())
	twenty := make([]string, 21)
	for i := range twenty {
		twenty[i] = fmt.Sprint(i)
	}
	for what, c := range map[string]struct {
		name, text string
		choices    []string
	}{
		"no name":                 {"", "?", []string{"a"}},
		"a long name":             {strings.Repeat("x", 256), "?", []string{"a"}},
		"no text":                 {"q", "", []string{"a"}},
		"a long text":             {"q", strings.Repeat("x", 4097), []string{"a"}},
		"a text with NUL":         {"q", "a\x00", []string{"a"}},
		"a text that is no UTF-8": {"q", "a\xff", []string{"a"}},
		"no choices":              {"q", "?", nil},
		"21 choices":              {"q", "?", twenty},
		"an empty choice":         {"q", "?", []string{"a", ""}},
		"a long choice":           {"q", "?", []string{strings.Repeat("x", 256)}},
		"a choice with an end":    {"q", "?", []string{"a\n"}},
		"a choice twice":          {"q", "?", []string{"a", "b", "a"}},
	} {
		if _, err := stint.Ask(ctx, c.name, c.text, time.Hour, c.choices...); !errors.Is(err, stint.ErrInvalid) || !isFinal(err) {
			t.Errorf("%s gives %v", what, err)
		}
	}
	if _, err := stint.Ask(ctx, strings.Repeat("x", 255), strings.Repeat("x\n", 2048), time.Hour, twenty[:20]...); errors.Is(err, stint.ErrInvalid) {
		t.Errorf("the largest gives %v", err)
	}
	var before []stint.RecordedStep
	for i := range 16 {
		before = append(before, stint.RecordedStep{Name: fmt.Sprint(i), Result: []byte(`"` + strings.Repeat("x", 1<<20-2-250) + `"`)})
	}
	full := (&stint.Run{Job: new(stint.Job), Steps: commits{before}}).Context(t.Context())
	if _, err := stint.Ask(full, "q", strings.Repeat("x", 4096), time.Hour, "a"); err == nil || !strings.Contains(err.Error(), "are more than 16777216 bytes") || !isFinal(err) {
		t.Errorf("in a job that is full it gives %v", err)
	}
}

func TestAnswersAreCheckedBeforeTheyAreSent(t *testing.T) {
	var none *stint.Client
	right := stint.Answer{Choice: "pay", By: "ann"}
	if err := none.Answer(t.Context(), 1, "q", right); !errors.Is(err, stint.ErrNoAttempt) {
		t.Errorf("no client gives %v", err)
	}
	if err := stint.NewClient(struct{ stint.Enqueuer }{}).Answer(t.Context(), 1, "q", right); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a store without questions gives %v", err)
	}
	c := stint.NewClient(answers{t: t})
	for what, one := range map[string]struct {
		question string
		a        stint.Answer
	}{
		"no question":      {"", right},
		"no choice":        {"q", stint.Answer{By: "ann"}},
		"nobody":           {"q", stint.Answer{Choice: "pay"}},
		"a long comment":   {"q", stint.Answer{Choice: "pay", By: "ann", Comment: strings.Repeat("x", 4097)}},
		"a comment of NUL": {"q", stint.Answer{Choice: "pay", By: "ann", Comment: "\x00"}},
	} {
		if err := c.Answer(t.Context(), 1, one.question, one.a); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%s gives %v", what, err)
		}
	}
}

// answers is a store that must get none.
type answers struct {
	stint.Enqueuer
	t *testing.T
}

func (s answers) Answer(_ context.Context, _ stint.Tx, _ stint.ID, question string, a stint.Answer) error {
	s.t.Errorf("the question %q got %+v", question, a)
	return nil
}
