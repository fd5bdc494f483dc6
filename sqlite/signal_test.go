package sqlite

import (
	"errors"
	"testing"

	"github.com/stint-go/stint"
)

// A job gets as many signals as it may have steps.
func TestAJobGetsTenThousandSignals(t *testing.T) {
	s := open(t, Memory)
	full, other := enqueueKind(t, s, "k"), enqueueKind(t, s, "k")
	err := s.write(t.Context(), func(c *conn) (bool, error) {
		_, err := c.exec(`
			with recursive n(i) as (select 1 union all select i + 1 from n where i < 9999)
			insert into stint_signals (job, name, sent, value) select ?, 'a', 5, '1' from n`, int64(full))
		return true, err
	})
	if err != nil {
		t.Fatal(err)
	}
	send := func(id stint.ID) error {
		return s.Signal(t.Context(), stint.Tx{}, id, stint.Signal{Name: "a", Value: []byte("1")})
	}
	if err := send(full); err != nil {
		t.Errorf("the last one gives %v", err)
	}
	if err := send(full); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("one more gives %v", err)
	}
	if err := send(other); err != nil {
		t.Errorf("the other job's gives %v", err)
	}
}
