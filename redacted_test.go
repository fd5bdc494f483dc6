package stint_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stint-go/stint"
)

type syncArgs struct {
	User  int    `json:"user"`
	Token string `json:"token"`
}

func TestAKindSaysWhatIsRedactedOfItsArguments(t *testing.T) {
	kind := stint.NewKind[syncArgs]("sync", stint.Redact("/token"))
	if got := kind.Declaration().Redacted; !slices.Equal(got, []string{"/token"}) {
		t.Errorf("the declaration has %q", got)
	}
	job, err := kind.New(syncArgs{Token: "s3cret"})
	if err != nil || !strings.Contains(string(job.Args), "s3cret") || job.Check(stint.Limits{}) != nil {
		t.Errorf("a job has %s, %v", job.Args, err)
	}
	if got := stint.NewKind[syncArgs]("sync", stint.Redact()).Declaration().Redacted; !slices.Equal(got, []string{""}) {
		t.Errorf("without pointers the declaration has %q", got)
	}
	for says, wrong := range map[string][]stint.Option{
		"nothing at /tokne to redact":        {stint.Redact("/tokne")},
		"one in the other":                   {stint.Redact("/token", "/token/a")},
		"redacted":                           {stint.Redact("token")},
		"would show what is redacted":        {stint.Redact("/token"), stint.LimitedBy("tenant", "/token")},
		"by /Token would show what is":       {stint.Redact("/token"), stint.LimitedBy("tenant", "/Token")},
		"limits: a limit by /user would sho": {stint.Redact(), stint.LimitedBy("tenant", "/user")},
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, says) {
					t.Errorf("the panic is %q, want one that says %q", got, says)
				}
			}()
			stint.NewKind[syncArgs]("sync", wrong...)
		}()
	}
	stint.NewKind[syncArgs]("sync", stint.Redact("/token"), stint.LimitedBy("user", "/user"))
	stint.NewKind[syncArgs]("sync", stint.Redact("/token"), stint.Sealed("/token"), stint.LimitedBy("tenant", "/token"))
}

func TestWhatWasShownIsNotStoredInPlaceOfWhatWasRedacted(t *testing.T) {
	kind := stint.KindInfo{Name: "sync", Redacted: []string{"/token"}}
	for args, refused := range map[string]bool{
		`{"token":"[redacted]"}`: true, `{"TOKEN": "[redacted]"}`: true, `{"token":"a","note":"[redacted]"}`: false, `{"token":"[redacted]!"}`: false, `{}`: false,
	} {
		err := kind.Job(json.RawMessage(args)).Check(stint.Limits{})
		if errors.Is(err, stint.ErrInvalid) != refused || refused && !strings.Contains(err.Error(), "at /token") {
			t.Errorf("%s gives %v", args, err)
		}
	}
}

func TestNoErrorQuotesArgumentsThatMayBeRedacted(t *testing.T) {
	type number struct {
		Token int8 `json:"token"`
	}
	mux := stint.NewMux()
	kind := stint.NewKind[number]("sync", stint.Redact("/token"))
	stint.Handle(mux, kind, func(context.Context, *stint.Job, number) error { return nil })
	_, err := mux.Handler("sync")(t.Context(), &stint.Job{Kind: "sync", Args: json.RawMessage(`{"token":4711}`)})
	if err == nil || strings.Contains(err.Error(), "4711") {
		t.Errorf("the error is %v", err)
	}
}
