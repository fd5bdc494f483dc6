package postgres

import (
	"errors"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// What follows an attempt is written with it or nothing is: a job whose entry is
// gone, after a failover that lost it, would have an outcome that is not final and
// nothing behind it.
func TestAnOutcomeIsNotRecordedWithoutWhatFollowsIt(t *testing.T) {
	s := newStore(t)
	for name, end := range map[string]store.Result{
		"another attempt": {Outcome: stint.OutcomeFailed, Err: errors.New("no")},
		"its return":      returned,
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{t, s, nil}
			b.enqueue(2)
			w := storetest.Join(t, s, "k")
			done := conclude(w, end, w.Claim(normal, 2))
			exec(t, s, `delete from stint.entries where pos = $1`, done[0].Pos)
			if n, err := w.TryFinish(t.Context(), done...); err == nil {
				t.Errorf("%d outcomes were recorded", n)
			}
			if n := value[int](t, s.pool, `select count(*) from stint.executions where engine = $1`, w.Info.Token); n != 0 {
				t.Errorf("%d executions are there", n)
			}
			if n, err := w.TryFinish(t.Context(), done[1]); err != nil || n != 1 {
				t.Errorf("of the other %d outcomes were recorded, error %v", n, err)
			}
		})
	}
}
