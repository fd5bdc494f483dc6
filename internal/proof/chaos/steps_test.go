//go:build unix

package chaos_test

import (
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/retry"
)

// Jobs of twenty steps go on through kills and ended sessions: whatever a run was told that a step came to,
// every other run is told as well.
func TestEachStepIsAcceptedOnceWhoeverIsKilled(t *testing.T) {
	t.Parallel()
	const steps = 20
	w := newWorld(t, pgtest.New(t))
	keepers := w.keepFour(10)
	var ids []stint.ID
	kills := 0
	for kills < 4 { // where a killed worker takes long to come back, the others are done before
		ids = append(ids, w.enqueue("stepped", len(ids), jobs(t, 100), func(int) chaos.Args {
			return chaos.Args{Steps: steps, Work: 20, Grant: -1}
		}, stint.Retry(retry.Forever(20*time.Millisecond)), stint.MaxLosses(1000))...)
		kills += w.killUntilCompleted(keepers)
	}
	stopAll(keepers)
	w.apart() // and all runs were told the same, which is what is recorded
	told := len(w.history().Told)
	t.Logf("%d kills; %d jobs were told %d times what one of their %d steps had come to", kills, len(ids), told, steps)
	if told < len(ids)*steps+steps {
		t.Error("too little was repeated to prove anything")
	}
}
