package postgres

import (
	"testing"

	"github.com/stint-go/stint"
)

// The history of an engine stays while what it claimed is to be looked through.
func TestAnEngineIsForgottenOnceItsClaimsWereLookedThrough(t *testing.T) {
	s := verified(t)
	w := (&bench{t, s, nil}).join()
	w.Leave()
	exec(t, s, `update stint.engine_history set ended = ended - interval '6 days', swept = false`)
	for _, want := range []int{0, 1} {
		done, err := s.Retain(t.Context(), stint.RetainStep{Part: stint.RetainEngines, Limit: 10})
		if err != nil || done.Deleted != want {
			t.Errorf("a step says %+v, error %v; want %d forgotten", done, err, want)
		}
		exec(t, s, `update stint.engine_history set swept = true`)
	}
}
