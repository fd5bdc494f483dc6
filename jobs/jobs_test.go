package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/jobs"
	"github.com/stint-go/stint/store"
)

type dish struct {
	Name  string `json:"name"`
	Price int    `json:"price"`
}

func (d dish) Check() error {
	if d.Price < 0 {
		return &stint.InvalidError{Field: "args.price", Problem: "it is negative"}
	}
	return nil
}

func TestStrictArgumentsAreNamedWhenTheyAreWrong(t *testing.T) {
	for args, want := range map[string]string{
		`{"name":"soup","price":3}`: "",
		`{}`:                        "",
		`{"nmae":"soup"}`:           `args: unknown field "nmae"`,
		`{"price":"3"}`:             "args.price: got a JSON string, want int",
		`{"price":-1}`:              "args.price: it is negative",
		`{} {}`:                     "args: more than one JSON value",
		`{`:                         "args: unexpected EOF",
	} {
		_, err := jobs.Decode[dish](json.RawMessage(args))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", args, got, want)
		}
	}
}

func TestAStrictHandlerKeepsTheResultOfAFailureAndRetriesNoBadArguments(t *testing.T) {
	failure := errors.New("burnt")
	h := jobs.Strict(func(_ context.Context, _ *stint.Job, d dish) (*dish, error) {
		if d.Name == "" {
			return nil, failure
		}
		return &d, failure
	})
	for args, want := range map[string]string{`{"name":"soup"}`: `{"name":"soup","price":0}`, `{}`: ``} {
		got, err := h(t.Context(), &stint.Job{Args: json.RawMessage(args)})
		if string(got) != want || err != failure {
			t.Errorf("%s gives %s, %v", args, got, err)
		}
	}
	_, err := h(t.Context(), &stint.Job{Args: json.RawMessage(`[]`)})
	x := store.Conclude(&store.Entry{Job: stint.Job{Attempt: 1}}, store.Result{Outcome: stint.OutcomeFailed, Err: err}, time.Now(), 0)
	if err == nil || !x.Final {
		t.Errorf("wrong arguments give %v, which is tried again", err)
	}
}

func TestATextThatWasCutLosesHalfACharacterOnly(t *testing.T) {
	for in, want := range map[string]string{
		"soup": "soup", "": "", "sö": "sö", "s\xc3": "s", "€"[:2]: "", "a\x00b": "a\uFFFDb", "a\xff": "a\uFFFD", "a\xffb": "a\uFFFDb",
	} {
		if got := valid.CleanCut(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

func TestArgumentsThatCheckNothingAreStrictAndExactAllTheSame(t *testing.T) {
	if _, err := jobs.Decode[struct{ A int }](json.RawMessage(`{"b": 1}`)); err == nil {
		t.Error("an unknown field was ignored")
	}
	args, err := jobs.Decode[map[string]any](json.RawMessage(`{"n": 12345678901234567890}`))
	if n, ok := args["n"].(json.Number); err != nil || !ok || n != "12345678901234567890" {
		t.Errorf("got %v, %v", args, err)
	}
}
