//go:build unix

package chaos_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/retry"
)

// Jobs of twenty steps go on through kills and ended sessions: whatever a run was told that a step came to,
// every other run is told as well.
func TestEachStepIsAcceptedOnceWhoeverIsKilled(t *testing.T) {
	t.Parallel()
	const steps = 20
	w := newWorld(t, pgtest.New(t))
	var keepers []*chaos.Keeper
	for i := range 4 {
		keepers = append(keepers, w.Keep(chaos.Worker{Name: fmt.Sprint("worker-", i), DB: w.url, Slots: 10, TimeToLive: pace.Of(2 * time.Second), MaxOutage: pace.Of(10 * time.Second)}))
	}
	w.until("they have joined", `select count(*) = 4 from stint.engines`)
	ids := w.enqueue("stepped", 0, jobs(t, 100), func(int) chaos.Args {
		return chaos.Args{Steps: steps, Work: 20, Grant: -1}
	}, stint.Retry(retry.Forever(20*time.Millisecond)), stint.MaxLosses(1000))
	kills := 0
	for dice := w.dice(99); w.number(`select count(*) from stint.jobs where state <> 'completed'`) > 0; kills++ {
		keepers[dice.IntN(len(keepers))].Process().Kill()
		w.endSessions(500 * time.Millisecond)
	}
	for _, k := range keepers {
		k.Stop()
	}
	accepted := map[string]string{}
	for _, id := range ids {
		recorded, err := w.store.Steps(t.Context(), id)
		if err != nil || len(recorded) != steps {
			t.Fatalf("job %d has %d steps, %v", id, len(recorded), err)
		}
		for _, r := range recorded {
			accepted[fmt.Sprint(id, " ", r.Name)] = string(r.Result)
		}
	}
	seen, err := os.Open(filepath.Join(filepath.Dir(w.Dir), chaos.StepsSeen))
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Close()
	told := 0
	for {
		var job, step, value string
		if _, err := fmt.Fscanln(seen, &job, &step, &value); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if told++; value != accepted[job+" "+step] {
			t.Errorf("a run of job %s was told %s by step %s, which came to %s", job, value, step, accepted[job+" "+step])
		}
	}
	t.Logf("%d kills; %d jobs were told %d times what one of their %d steps had come to", kills, len(ids), told, steps)
	if kills < 4 || told < len(ids)*steps+steps {
		t.Error("too little was repeated to prove anything")
	}
	w.apart()
}
