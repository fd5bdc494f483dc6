package sqlite

import (
	"fmt"
	"testing"

	"github.com/stint-go/stint/report"
)

func TestTheOldestMarkOfErrorsIsForgottenWhenThereAreTooMany(t *testing.T) {
	s := open(t, Memory)
	err := s.write(t.Context(), func(c *conn) (bool, error) {
		for n := range report.MaxErrorMarks {
			_, err := c.exec(`insert into stint_error_groups (key, state, at) values (?, 'muted', ?)`, fmt.Sprintf("%016x", n+1), -n-1)
			if err != nil {
				return false, err
			}
		}
		return false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	left := func(want int64, oldest string) {
		t.Helper()
		err := s.read(t.Context(), func(c *conn) error {
			return c.query(`select count(*), (select key from stint_error_groups order by at limit 1) from stint_error_groups`, nil, func(q *stmt) error {
				if n, key := q.ColumnInt64(0), q.ColumnText(1); n != want || key != oldest {
					t.Errorf("there are %d marks, the oldest of %s; want %d, of %s", n, key, want, oldest)
				}
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	mark := func(key string) {
		t.Helper()
		if _, err := s.MarkErrors(t.Context(), report.ErrorMark{Key: key, State: report.ErrorsResolved}); err != nil {
			t.Fatal(err)
		}
	}
	mark("0000000000000001")
	mark("0000000000002710")                       // 10,000
	left(report.MaxErrorMarks, "000000000000270f") // none is new
	mark("ffffffffffffffff")
	left(report.MaxErrorMarks, "000000000000270e")
}
