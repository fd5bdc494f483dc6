package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/remote"
	"github.com/stint-go/stint/store"
)

func TestAQuestionIsAnsweredOverAServer(t *testing.T) {
	onBoth(t, func(t *testing.T, st anyStore, server *remote.Store) {
		ctx, client := t.Context(), stint.NewClient(server)
		mux := stint.NewMux()
		stint.Handle(mux, stint.NewKind[struct{}]("asks"), func(ctx context.Context, _ *stint.Job, _ struct{}) (err error) {
			for _, name := range []string{"q", "r <b>", "s"} {
				if _, wrong := stint.Ask(ctx, name, "Pay for <"+name+">?", time.Hour, "yes", "no <b>"); wrong != nil {
					err = wrong
				}
			}
			return err
		})
		var ids []stint.ID
		for range 2 {
			id, err := client.Enqueue(ctx, stint.NewJob{Kind: "asks", Args: json.RawMessage(`{}`)})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		e, err := engine.New(st, mux, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.RunReady(ctx, nil); err != nil {
			t.Fatal(err)
		}
		for _, f := range []store.QuestionFilter{{}, {Limit: 1}, {Limit: 4}, {Before: ids[1]}} {
			want, err := st.(store.Questioner).Questions(ctx, f)
			if err != nil || len(want) < 3 {
				t.Fatalf("open are %v, %v", want, err)
			}
			got, err := server.Questions(ctx, f)
			if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" || err != nil {
				t.Errorf("%+v finds (-want +got): %s %v", f, diff, err)
			}
		}
		id := ids[0]
		if err := client.Answer(ctx, id, "r <b>", stint.Answer{Choice: "no <b>", By: "whoever", Comment: "é"}); err != nil {
			t.Fatal(err)
		}
		steps, err := server.Steps(ctx, id)
		if err != nil || len(steps) != 3 || steps[2].Question == nil || steps[2].Result == nil || steps[0].Result != nil || !steps[0].Ended.IsZero() || steps[0].Question.Text != "Pay for <q>?" {
			t.Errorf("the steps are %+v, %v", steps, err)
		}
		answered, ok := errors.AsType[*stint.AnsweredError](client.Answer(ctx, id, "r <b>", stint.Answer{Choice: "yes", By: "me"}))
		if !ok || answered.Answer.Choice != "no <b>" || answered.Answer.By == "whoever" || answered.Answer.Comment != "é" || answered.Answer.At.IsZero() {
			t.Errorf("another answer gives %+v", answered)
		}
		for what, c := range map[string]struct {
			id       stint.ID
			question string
			choice   string
			want     error
		}{
			"no choice":   {id, "q", "maybe", stint.ErrInvalid},
			"no question": {id, "none", "yes", stint.ErrNotAsked},
			"no job":      {99, "q", "yes", stint.ErrNotFound},
		} {
			if err := client.Answer(ctx, c.id, c.question, stint.Answer{Choice: c.choice, By: "me"}); !errors.Is(err, c.want) {
				t.Errorf("%s gives %v", what, err)
			}
		}
		if err := client.With(stint.Tx{Handle: 1}).Answer(ctx, id, "q", stint.Answer{Choice: "yes", By: "me"}); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("a transaction is answered with %v", err)
		}
		viewer := over(t, st, viewerToken)
		if e, ok := errors.AsType[*remote.Error](stint.NewClient(viewer).Answer(ctx, id, "q", stint.Answer{Choice: "yes", By: "me"})); !ok || e.Status != http.StatusForbidden {
			t.Errorf("a viewer is answered with %v", e)
		}
		if _, err := server.Cancel(ctx, []stint.ID{id}, ""); err != nil {
			t.Fatal(err)
		}
		if err := client.Answer(ctx, id, "q", stint.Answer{Choice: "yes", By: "me"}); !errors.Is(err, stint.ErrEnded) {
			t.Errorf("of one that is cancelled the error is %v", err)
		}
	})
}
