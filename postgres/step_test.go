package postgres

import (
	"testing"

	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/storetest"
)

// Whoever audits the store finds steps whose job is gone.
func TestAnAuditFindsStepsWithoutTheirJob(t *testing.T) {
	s := newStore(t)
	id := (&bench{t, s, nil}).enqueue(1)[0]
	for _, job := range []int64{int64(id), 999} {
		exec(t, s, `insert into stint.steps (job, name, pos, began, ended, result) select $1::bigint, 'step ' || i, 1, now(), now(), '1' from generate_series(1, 2) i`, job)
	}
	l, err := s.Audit(t.Context())
	must(t, err)
	if wrong := check.Invariants(storetest.Facts(l)); len(wrong) != 1 || wrong[0].Rule != check.RuleStep || wrong[0].Job != 999 {
		t.Errorf("it finds %v, want the steps of job 999", wrong)
	}
}
