package postgres

import (
	"testing"
	"time"

	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/report"
)

func TestTheOldestMarkOfErrorsIsForgottenWhenThereAreTooMany(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, server *pgtest.Server) {
		s := openStore(t, installed.On(t, server))
		_, err := s.pool.Exec(t.Context(), `
			insert into stint.error_groups (key, state, at)
			select lpad(to_hex(n), 16, '0'), 'muted', clock_timestamp() - n * interval '1 second' from generate_series(1, $1) n`, report.MaxErrorMarks)
		must(t, err)
		left := func(want int64, oldest string) {
			t.Helper()
			var n int64
			var key string
			must(t, s.pool.QueryRow(t.Context(), `select count(*), (array_agg(key order by at))[1] from stint.error_groups`).Scan(&n, &key))
			if n != want || key != oldest {
				t.Errorf("there are %d marks, the oldest of %s; want %d, of %s", n, key, want, oldest)
			}
		}
		for _, key := range []string{"0000000000000001", "0000000000002710"} { // 10,000
			_, err = s.MarkErrors(t.Context(), report.ErrorMark{Key: key, State: report.ErrorsResolved})
			must(t, err)
		}
		left(report.MaxErrorMarks, "000000000000270f") // none is new
		begin := time.Now()
		_, err = s.MarkErrors(t.Context(), report.ErrorMark{Key: "ffffffffffffffff", State: report.ErrorsResolved})
		must(t, err)
		left(report.MaxErrorMarks, "000000000000270e")
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("one more took %v", took)
		}
	})
}
