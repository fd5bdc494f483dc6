package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

func TestWhatACutShortBurialLeftIsSweptUp(t *testing.T) {
	s := verified(t)
	ctx := t.Context()
	if _, err := stint.NewClient(s).EnqueueMany(ctx, []stint.NewJob{{Kind: "k"}, {Kind: "k"}}); err != nil {
		t.Fatal(err)
	}
	w := storetest.Join(t, s, "k")
	w.Claim(store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID, 2)
	// It believed that all of its claims are done, and its burier died behind
	// the first of its transactions.
	if _, err := s.pool.Exec(ctx, `update stint.beats set low = 100`); err != nil {
		t.Fatal(err)
	}
	err := s.transact(ctx, func(tx pgx.Tx) error {
		_, err := s.condemn(ctx, tx, store.Burial{Engine: w.Info.Token})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		age  string
		want int
	}{{"1 s", 0}, {"1 min", 2}, {"1 min", 0}} { // whoever buries has a while to sweep by himself
		if _, err := s.pool.Exec(ctx, `update stint.engine_history set ended = clock_timestamp() - $1::interval`, step.age); err != nil {
			t.Fatal(err)
		}
		n, err := s.Sweep(ctx, storetest.Judge)
		if err != nil || n != step.want {
			t.Errorf("after %s it swept up %d, %v; want %d", step.age, n, err, step.want)
		}
	}
}

// A long life leaves millions of claims: they are read a hundred at a time, from the
// newest on, and none of them twice.
func TestASweepGoesOnWhereTheOneBeforeEnded(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	const claims = 2*sweepClaims + 50
	b.enqueue(claims)
	w := b.join()
	for range claims {
		w.Claim(store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID, 1)
	}
	exec(t, s, `update stint.beats set low = 1000000`) // it made most of its requests in vain
	dead := deceased{engine: w.Info.Token}
	must(t, s.transact(t.Context(), func(tx pgx.Tx) error {
		_, err := s.condemn(t.Context(), tx, store.Burial{Engine: w.Info.Token})
		return err
	}))
	for i, want := range []struct {
		n, zombies int
		more       bool
	}{{sweepClaims, sweepClaims, true}, {sweepClaims, sweepClaims, true}, {50, 50, false}, {0, 0, false}} {
		if n := value[int](t, s.pool, `select count(*) from stint.claimed where zombie`); n != want.zombies {
			t.Errorf("before step %d it shows %d zombies, want %d", i+1, n, want.zombies)
		}
		n, more, err := s.sweep(t.Context(), dead, storetest.Judge)
		if err != nil || n != want.n || more != want.more {
			t.Errorf("step %d swept up %d, more %t, error %v; want %d, %t", i+1, n, more, err, want.n, want.more)
		}
		if i == 0 { // somebody else is at it
			must(t, s.transact(t.Context(), func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), s.sql.in(`select from stint.engine_history for update`)); err != nil {
					return err
				}
				if n, more, err := s.sweep(t.Context(), dead, storetest.Judge); n != 0 || more || err != nil {
					t.Errorf("beside another one it swept up %d, more %t, error %v", n, more, err)
				}
				return nil
			}))
		}
	}
	if open := value[int](t, s.pool, `select count(*) from stint.engine_history where not swept`); open != 0 {
		t.Errorf("%d engines are still to be swept", open)
	}
	if gone, err := s.FormerEngines(t.Context(), store.FormerFilter{}); err != nil || len(gone) != 1 || gone[0].Freed != claims {
		t.Errorf("told is %+v, error %v; want that %d were taken over", gone, err, claims)
	}
}

func TestBehindAnEngineThatClosedNoClaimNothingIsSwept(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	b.enqueue(3)
	w := b.join()
	w.ClaimAll()
	must(t, s.transact(t.Context(), func(tx pgx.Tx) error {
		_, err := s.condemn(t.Context(), tx, store.Burial{Engine: w.Info.Token})
		if err == nil {
			err = s.conclude(t.Context(), tx, &deceased{engine: w.Info.Token}, 0, 100, storetest.Judge)
		}
		return err
	}))
	if !value[bool](t, s.pool, `select swept from stint.engine_history`) {
		t.Error("it is to be swept")
	}
}

// Each of many is swept by its own bound, also behind more that were swept long ago
// than are looked at in one go.
func TestOfSeveralEnginesEachIsSweptByItsOwnBound(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	b.enqueue(3)
	first, second := b.join(), b.join()
	first.Claim(normal, 1)
	second.Claim(normal, 1)
	second.Claim(normal, 1)
	for w, low := range map[*storetest.Worker]int64{first: 2, second: 100} {
		exec(t, s, `update stint.beats set low = $2 where token = $1`, w.Info.Token, low)
		must(t, s.transact(t.Context(), func(tx pgx.Tx) error {
			_, err := s.condemn(t.Context(), tx, store.Burial{Engine: w.Info.Token})
			return err
		}))
	}
	exec(t, s, `update stint.engine_history set ended = clock_timestamp() - interval '1 min'`)
	exec(t, s, `
		insert into stint.engine_history (token, instance, host, pid, version, joined, ended, swept)
		select i, 'i', 'h', 1, 'v', now(), now() - interval '1 hour', true from generate_series(1, 20) i`)
	if n := value[int](t, s.pool, `select count(*) from stint.claimed where zombie`); n != 3 {
		t.Errorf("it shows %d zombies, want the 3 that they hold", n)
	}
	if n, _, err := s.sweep(t.Context(), deceased{engine: second.Info.Token}, storetest.Judge); err != nil || n != 2 {
		t.Errorf("of the second it swept up %d, error %v; want 2", n, err)
	}
	if n, err := s.Sweep(t.Context(), storetest.Judge); err != nil || n != 1 {
		t.Errorf("then it swept up %d, error %v; want the one of the first", n, err)
	}
}
