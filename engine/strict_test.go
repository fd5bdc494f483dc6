package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

func TestAStrictEngineDoesNotStartWhileItsNameHoldsJobs(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		id := enqueue(t, s, "work", `{}`)
		w := storetest.Join(t, s, "work")
		w.Claim(store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID, 1)
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		strict := engine.Config{Instance: w.Info.Instance, StrictInstance: true}
		e, err := engine.New(s, mux, strict)
		if err != nil {
			t.Fatal(err)
		}
		err = e.Run(t.Context())
		taken, ok := errors.AsType[*engine.NameTakenError](err)
		if !ok || len(taken.Jobs) != 1 || taken.Jobs[0] != id || !strings.Contains(err.Error(), "engines bury") {
			t.Fatalf("it started, or said %v", err)
		}
		w.Leave()
		start(t, s, mux, strict)
		until(t, s, id, stint.Completed)
	})
}
