package postgres

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

func TestNewsOfPermitsIsAboutThoseOnly(t *testing.T) {
	for payload, want := range map[string]store.News{
		"permits 0 smtp":                  {Permits: "smtp"},
		"permits 42 tenant=work 7":        {Permits: "tenant=work 7", Engine: 42},
		"permits 9223372036854775807 x=ä": {Permits: "x=ä", Engine: 1<<63 - 1},
		"permits":                         {},
		"work 7":                          {Ready: true, Lot: 7},
		"":                                {},
	} {
		if got := newsOf(payload); got != want {
			t.Errorf("%q is %+v, want %+v", payload, got, want)
		}
	}
}

// Each engine declares what its program says when it joins.
func TestALimitThatIsDeclaredAgainIsNotTouched(t *testing.T) {
	s := newStore(t)
	declare := func(smtp int) string {
		t.Helper()
		must(t, s.DeclareLimits(t.Context(), map[string]stint.LimitRule{"smtp": {AtOnce: smtp}, "other": {}}))
		return value[string](t, s.pool, `select string_agg(xmin || ' ' || xmax, ',' order by name) from stint.limits`)
	}
	first := declare(3)
	if again := declare(3); again != first {
		t.Errorf("declared again, the rows are %s, and were %s", again, first)
	}
	if changed := declare(4); changed == first {
		t.Errorf("another rule left the rows as they were: %s", changed)
	}
	must(t, s.DeclareLimits(t.Context(), nil))
}

// A snapshot that is older than the lock shows states that are gone.
func TestPermitsAreNotTidiedUnderAnOlderSnapshot(t *testing.T) {
	tx := begin(t, newStore(t), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	_, err := tx.Exec(t.Context(), `select stint.tidy_permits(1)`)
	if err = translate(err); !errors.Is(err, errIsolation) {
		t.Errorf("it gives %v", err)
	}
}

func TestAGateThatAnEngineAskedForLongAgoIsForgotten(t *testing.T) {
	s := newStore(t)
	w := storetest.Join(t, s, "k").Info.Token
	for since, want := range map[string]int{"2 minutes": 1, "10 seconds": 0} {
		_, err := s.pool.Exec(t.Context(), `insert into stint.permits (gate, n, engine, engines, held, asked, since)
			values ($2::text, 1, $1, array[$1::bigint], '{0}', '{1}', array[clock_timestamp() - $2::text::interval])`, w, since)
		must(t, err)
		if n, err := s.TidyPermits(t.Context()); n != want || err != nil {
			t.Errorf("asked for %s ago, %d gates are forgotten, error %v; want %d", since, n, err, want)
		}
	}
}

func TestARuleWrittenByHandThatCannotBeReadLetsNothingPassAndHoldsUpNoOtherLimit(t *testing.T) {
	s := newStore(t)
	w := storetest.Join(t, s, "k").Info.Token
	exec(t, s, `insert into stint.limits (name, fixed) values ('x', 'many')`)
	for gate, want := range map[string]int{"x": 0, "y": 1} {
		holds, err := s.Permits(t.Context(), w, store.PermitRequest{Take: []store.Taking{{Gates: []store.TakingGate{{Gate: gate}}, Want: 1}}})
		must(t, err)
		if holds[0].Permits != want {
			t.Errorf("of %s it holds %d, want %d", gate, holds[0].Permits, want)
		}
	}
}
