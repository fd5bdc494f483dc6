package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/storetest"
)

func TestWhatACutShortBurialLeftIsSweptUp(t *testing.T) {
	s := verified(t)
	ctx := t.Context()
	if _, err := stint.NewClient(s).EnqueueMany(ctx, []stint.NewJob{{Kind: "k"}, {Kind: "k"}}); err != nil {
		t.Fatal(err)
	}
	w := storetest.Join(t, s, "k")
	w.Claim(stint.LaneOf(stint.DefaultQueue, 0, stint.PartNormal, "").ID, 2)
	// It believed that all of its claims are done, and its burier died behind
	// the first of its transactions.
	if _, err := s.pool.Exec(ctx, `update stint.beats set low = 100`); err != nil {
		t.Fatal(err)
	}
	err := s.transact(ctx, func(tx pgx.Tx) error {
		_, err := s.condemn(ctx, tx, stint.Burial{Engine: w.Info.Token})
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
