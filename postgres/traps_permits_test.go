package postgres

import (
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

var permitTraps = []trap{
	{"A state of a gate that was computed from an old one is not written", func(b *bench) error {
		w := b.join()
		b.permits(w, 1)
		old := b.made(1)
		for _, n := range []int{0, 1, 0, 1} {
			b.permits(w, n)
		}
		b.must(errOf(b.s.TidyPermits(b.Context()))) // what stands after the old one is gone
		for n := int64(2); n <= 6; n++ {            // also as the next one
			if err := b.refused(w, n, old); err != nil {
				return err
			}
		}
		return b.held(1)
	}},
	{"A gate that was forgotten and has begun again is not taken for the one that was read", func(b *bench) error {
		w, other := b.join(), b.join()
		b.permits(w, 1)
		old := b.made(1)
		b.permits(w, 0)
		b.must(errOf(b.s.TidyPermits(b.Context())))
		b.permits(other, 1)
		if err := errors.Join(b.refused(w, 2, old), b.refused(w, 1, time.Time{})); err != nil {
			return err
		}
		return b.held(1)
	}},
	{"A state that was computed before a gate was forgotten is not its first one", func(b *bench) error {
		w := b.join()
		never := value[time.Time](b, b.s.pool, `select made from stint.gates('{x}')`)
		late := never // as it was read for a request whose answer was lost, and which is on its way
		for range 2 { // what the engine asked for after that, until it was sure
			if written, err := b.put(b.s.pool, w, 1, never); err != nil || len(written) != 1 {
				return fmt.Errorf("written was %q, error %v", written, err)
			}
			b.permits(w, 0)
			b.must(errOf(b.s.TidyPermits(b.Context())))
			if err := b.refused(w, 1, late); err != nil {
				return err
			}
			never = value[time.Time](b, b.s.pool, `select made from stint.gates('{x}')`)
		}
		return nil
	}},
	{"A state that is inserted long after its comparison, and behind newer ones, does not count", func(b *bench) error {
		w, other := b.join(), b.join()
		b.permits(other, 1)
		made := b.made(1)
		// Hold it up between the two.
		exec(b, b.s, `create function stint.hold_up() returns trigger language plpgsql as $$ begin
			perform pg_advisory_xact_lock_shared(4711) where new.engine = tg_argv[0]::bigint; return new; end $$`)
		exec(b, b.s, fmt.Sprintf(`create trigger hold_up before insert on stint.permits for each row execute function stint.hold_up(%d)`, w.Info.Token))
		defer exec(b, b.s, `drop function stint.hold_up cascade`)
		hold := begin(b, b.s)
		_, err := hold.Exec(b.Context(), `select pg_advisory_xact_lock(4711)`)
		b.must(err)
		type answer struct {
			written []string
			err     error
		}
		done := make(chan answer, 1)
		go func() {
			written, err := b.put(b.s.pool, w, 2, made)
			done <- answer{written, err}
		}()
		b.must(b.blocked())
		for _, n := range []int{0, 1, 0, 1} {
			b.permits(other, n)
		}
		b.must(errOf(b.s.TidyPermits(b.Context()))) // the state with its number is gone
		b.must(hold.Rollback(b.Context()))
		if got := <-done; got.err != nil || len(got.written) > 0 {
			return fmt.Errorf("written was %q, error %v", got.written, got.err)
		}
		return b.held(1)
	}},
	{"A gate is not forgotten while its next state is written", func(b *bench) error {
		w, other := b.join(), b.join()
		b.rule(1)
		b.permits(w, 1)
		b.permits(w, 0)
		tx := begin(b, b.s)
		if written, err := b.put(tx, w, 3, b.made(2)); err != nil || len(written) != 1 {
			return fmt.Errorf("written was %q, error %v", written, err)
		}
		tidied := make(chan error, 1)
		go func() { tidied <- errOf(b.s.TidyPermits(b.Context())) }()
		waits := b.blocked()
		b.must(tx.Commit(b.Context()))
		b.must(<-tidied)
		holds, err := b.s.Permits(b.Context(), other.Info.Token, store.PermitRequest{
			Take: []store.Taking{{Gates: []store.TakingGate{{Gate: "x"}}, Want: 1}}})
		b.must(err)
		if holds[0].Permits > 0 || waits != nil {
			return fmt.Errorf("another engine got %+v beside the one that was written (%v)", holds[0], waits)
		}
		return b.held(1)
	}},
	{"Who asks for permits waits until what is forgotten is gone", func(b *bench) error {
		w := b.join()
		b.permits(w, 1)
		b.permits(w, 0)
		tx := begin(b, b.s)
		_, err := tx.Exec(b.Context(), `select stint.tidy_permits(10)`)
		b.must(err)
		done := make(chan error, 1)
		go func() {
			_, err := b.s.Permits(b.Context(), w.Info.Token, store.PermitRequest{
				Take: []store.Taking{{Gates: []store.TakingGate{{Gate: "x"}}, Want: 1}}})
			done <- err
		}()
		err = b.blocked()
		b.must(tx.Commit(b.Context()))
		return errors.Join(err, <-done)
	}},
	{"A gate that was unused and has begun again is not forgotten", func(b *bench) error {
		for states := range 2 {
			w := b.join()
			b.permits(w, 1)
			b.permits(w, 0)
			// Stop it between the statement that finds what is unused and the next.
			exec(b, b.s, `insert into stint.limits (name) values ('stop here')`)
			stop := begin(b, b.s)
			_, err := stop.Exec(b.Context(), `select from stint.limits for update`)
			b.must(err)
			done := make(chan error, 1)
			go func() { done <- errOf(b.s.TidyPermits(b.Context())) }()
			b.must(b.blocked())
			exec(b, b.s, `delete from stint.permits`)
			for range states + 1 {
				b.permits(b.join(), 1)
			}
			b.must(stop.Rollback(b.Context()))
			if err := errors.Join(<-done, b.held(int64(states)+1)); err != nil {
				return err
			}
			exec(b, b.s, `delete from stint.permits`)
		}
		return nil
	}},
	{"The buried write no state of a gate, and a burial does not miss one on its way", func(b *bench) error {
		w := b.join()
		b.permits(w, 1)
		made := b.made(1)
		tx := begin(b, b.s)
		if written, err := b.put(tx, w, 2, made); err != nil || len(written) != 1 {
			return fmt.Errorf("written was %q, error %v", written, err)
		}
		if _, err := b.s.Bury(b.Context(), store.Burial{Engine: w.Info.Token}, judge); !errors.Is(err, store.ErrBurialBlocked) {
			return fmt.Errorf("beside a state on its way the burial gives %v", err)
		}
		b.must(tx.Rollback(b.Context()))
		b.must(errOf(storetest.Bury(b.Context(), b.s, store.Burial{Engine: w.Info.Token}, judge)))
		if written, err := b.put(b.s.pool, w, 2, made); !errors.Is(err, store.ErrBuried) {
			return fmt.Errorf("buried it writes %q, error %v", written, err)
		}
		return nil
	}},
	{"What a buried engine held is free", func(b *bench) error {
		w, other := b.join(), b.join()
		b.rule(1)
		b.permits(w, 1)
		b.must(errOf(storetest.Bury(b.Context(), b.s, store.Burial{Engine: w.Info.Token}, judge)))
		b.permits(other, 1)
		return b.held(1)
	}},
	{"The last state that an engine wrote stays, and it goes on at no server that lacks it", func(b *bench) error {
		w, other := b.join(), b.join()
		b.permits(w, 1)
		for _, n := range []int{1, 0, 1, 0} {
			b.permits(other, n)
		}
		for range 2 { // elsewhere it has written later ones
			b.must(errOf(b.s.Permits(b.Context(), w.Info.Token, store.PermitRequest{Keep: []store.Keeping{{Gate: "z", Doubted: true}}})))
		}
		b.must(errOf(b.s.TidyPermits(b.Context())))
		move := func(gate string, n int64) error {
			return b.s.Move(b.Context(), w.Info.Token, store.Proof{Permits: []store.GateRef{{Gate: gate, N: n}}})
		}
		if err := move("x", 1); err != nil {
			return fmt.Errorf("at a server that lost nothing going on gives %v", err)
		}
		for what, err := range map[string]error{
			"a later state": move("x", 6), "another gate": move("y", 1), "one that another engine wrote": move("x", 5),
		} {
			if !errors.Is(err, store.ErrBuried) {
				return fmt.Errorf("with %s in hand going on gives %v", what, err)
			}
		}
		other.Leave()
		b.permits(w, 0)
		b.permits(w, 1)
		b.must(errOf(b.s.TidyPermits(b.Context())))
		if n := value[int](b, b.s.pool, `select count(*) from stint.permits`); n != 1 {
			return fmt.Errorf("with one engine left there are %d states of the gate", n)
		}
		return nil
	}},
}

func errOf[V any](_ V, err error) error { return err }

// rule says how many permits the gate of these checks has.
func (b *bench) rule(n int) {
	b.Helper()
	b.must(b.s.DeclareLimits(b.Context(), map[string]stint.LimitRule{"x": {AtOnce: n}}))
}

// permits has an engine hold so many permits of the gate.
func (b *bench) permits(w *storetest.Worker, n int) {
	b.Helper()
	req := store.PermitRequest{Keep: []store.Keeping{{Gate: "x", Permits: n}}}
	if n > 0 {
		req.Take = []store.Taking{{Gates: []store.TakingGate{{Gate: "x"}}, Want: n}}
		req.Keep = nil
	}
	holds, err := b.s.Permits(b.Context(), w.Info.Token, req)
	b.must(err)
	if holds[0].Permits != n || holds[0].Busy {
		b.Fatalf("it holds %+v, want %d", holds[0], n)
	}
}

// made is when a state of the gate was made.
func (b *bench) made(n int64) time.Time {
	b.Helper()
	return value[time.Time](b, b.s.pool, `select made from stint.permits where gate = 'x' and n = $1`, n)
}

// put writes a state of the gate by hand, with one permit that the engine holds, as the one that follows the one made
// at a time.
func (b *bench) put(q querier, w *storetest.Worker, n int64, made time.Time) (written []string, err error) {
	err = q.QueryRow(b.Context(), `select stint.put_permits($1, '{x}', array[$2::bigint], array[$3::timestamptz], array[null::timestamptz], '{0}', '{1}', array[$1::bigint],
		'{1}', '{0}', array[null::timestamptz], '{}', '{}')`, w.Info.Token, n, nilTime(made)).Scan(&written)
	return written, translate(err)
}

// refused checks that a state is not written.
func (b *bench) refused(w *storetest.Worker, n int64, made time.Time) error {
	before := value[int](b, b.s.pool, `select count(*) from stint.permits`)
	written, err := b.put(b.s.pool, w, n, made)
	if err == nil && (len(written) > 0 || before != value[int](b, b.s.pool, `select count(*) from stint.permits`)) {
		err = fmt.Errorf("state %d was written as the one after that of %v", n, made)
	}
	return err
}

// held checks how many permits of the gate engines hold.
func (b *bench) held(want int64) error {
	gates, err := b.s.Gates(b.Context(), "x", 1)
	b.must(err)
	if len(gates) != 1 || gates[0].Held != want {
		return fmt.Errorf("held are %+v, want %d permits", gates, want)
	}
	return nil
}
