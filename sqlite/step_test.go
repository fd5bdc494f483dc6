package sqlite

import (
	"testing"

	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/storetest"
)

// Whoever audits the store finds steps whose job is gone.
func TestAnAuditFindsStepsWithoutTheirJob(t *testing.T) {
	s := open(t, Memory)
	id := enqueueKind(t, s, "k")
	for _, job := range []int64{int64(id), 999} {
		err := s.write(t.Context(), func(c *conn) (bool, error) {
			_, err := c.exec(`insert into stint_steps (job, name, pos, began, ended, result) values (?1, 'a', 1, 5, 5, '1'), (?1, 'b', 1, 5, 5, '1')`, job)
			return true, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := s.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if wrong := check.Invariants(storetest.Facts(l)); len(wrong) != 1 || wrong[0].Rule != check.RuleStep || wrong[0].Job != 999 {
		t.Errorf("it finds %v, want the steps of job 999", wrong)
	}
}
