package postgres

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
		"work":                            {Ready: true},
		"due 7":                           {Due: true, Lot: 7},
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

func TestSQLSetsResetsPausesAndResumesLimits(t *testing.T) {
	s := newStore(t)
	for _, do := range []string{
		`select stint.set_limit('smtp', '10,100/1m,burst=5,trip=50%/30s', why => 'a new server', by => 'ann')`,
		`select stint.set_limit('tenant=a by b', '3')`,
		`select stint.set_limit('tenant=a by b', 'any,weight=3')`,
		`select stint.pause_limit('tenant', interval '1 hour', by => 'ann', why => 'they asked', trial => true)`,
	} {
		exec(t, s, do)
	}
	limits, err := s.Limits(t.Context())
	must(t, err)
	var got []string
	for _, l := range limits {
		paused := store.Paused{}
		if l.Paused != nil {
			paused = *l.Paused
		}
		got = append(got, fmt.Sprint(l.Name, " ", l.Rule, " ", l.By != "", " ", l.Why, " ", paused.By, " ", paused.Trial, " ", time.Until(paused.Until) > 59*time.Minute))
	}
	want := []string{"smtp 10,100/1m,burst=5,trip=50%/30s true a new server  false false", "tenant any false  ann true true", "tenant=a by b any,weight=3 true   false false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, c := range []struct {
		ask  string
		want string
	}{
		{`select stint.pause_limit('tenant', interval '1 minute') > now() + interval '59 minutes'`, "true"}, // the longer one stays
		{`select stint.pause_limit('tenant', interval '2 hours') > now() + interval '119 minutes'`, "true"},
		{`select stint.resume_limit('tenant')`, "true"},
		{`select stint.resume_limit('tenant')`, "false"},
		{`select stint.reset_limit('smtp')`, "true"},
		{`select stint.reset_limit('smtp')`, "false"},
		{`select stint.reset_limit('nobody')`, "false"},
	} {
		if got := value[bool](t, s.pool, c.ask); fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", c.ask, got, c.want)
		}
	}
	for _, bad := range []string{
		`stint.set_limit('', '1')`, `stint.set_limit(null, '1')`, `stint.set_limit('a b', '1')`, `stint.set_limit('a=', '1')`, `stint.set_limit('=a', '1')`,
		`stint.set_limit(repeat('l', 101), '1')`, `stint.set_limit('a', null)`, `stint.set_limit('a', '')`, `stint.set_limit('a', 'many')`, `stint.set_limit('a', '1,')`,
		`stint.pause_limit('a b', '1 s')`, `stint.pause_limit('a', null)`, `stint.pause_limit('a', '0 s')`, `stint.pause_limit('a', '-1 s')`, `stint.pause_limit('a', '25 h')`,
		`stint.pause_limit('a=' || repeat('k', 256), '1 s')`,
	} {
		_, err := s.pool.Exec(t.Context(), s.sql.in(`select `+bad))
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "22023" {
			t.Errorf("%s gives %v", bad, err)
		}
	}
}
