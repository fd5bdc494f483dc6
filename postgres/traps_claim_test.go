package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/store"
)

var claimTraps = []trap{
	{"Claims refuse every isolation but read committed", func(b *bench) error {
		b.enqueue(5)
		w := b.join()
		for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
			tx := begin(b, b.s, pgx.TxOptions{IsoLevel: level})
			if at, err := b.claimIn(tx, w, 5); !errors.Is(err, errIsolation) {
				return fmt.Errorf("under %s %d entries were claimed, error %v", level, len(at), err)
			}
		}
		return nil
	}},
	{"A claim that waited for the lane reads what was claimed meanwhile", func(b *bench) error {
		b.enqueue(10)
		first, second := b.join(), b.join()
		tx := begin(b, b.s)
		one, err := b.claimIn(tx, first, 5)
		b.must(err)
		var two []store.Position
		done := make(chan error)
		go func() {
			c, err := second.TryClaim(b.Context(), store.ClaimRequest{Lane: normal, Max: 5, Wait: true})
			two = c.Positions
			done <- err
		}()
		b.must(b.blocked())
		b.must(tx.Commit(b.Context()))
		if err := <-done; err != nil {
			return err
		}
		if len(one) != 5 || len(two) != 5 || slices.ContainsFunc(two, func(p store.Position) bool { return slices.Contains(one, p) }) {
			return fmt.Errorf("one took %v, the other %v", one, two)
		}
		return nil
	}},
	{"Of several lanes none is waited for while another one's lock is held", func(b *bench) error {
		b.enqueue(2)
		b.enqueue(2, stint.Queue("other"))
		other := store.LaneOf("other", 0, store.PartNormal, "").ID
		first, second := b.join(), b.join()
		tx := begin(b, b.s)
		if _, err := b.claimIn(tx, first, 1); err != nil {
			return err
		}
		var all []store.Claim
		err := b.soon("a claim of a lane that is locked, and of another,", func(ctx context.Context) (err error) {
			all, err = second.TryClaimLanes(ctx, 9, other, normal)
			return err
		})
		if err == nil && (len(all) != 2 || len(all[0].Entries) != 2 || !all[1].Busy || len(all[1].Positions) != 0) {
			err = fmt.Errorf("it was answered %+v", all)
		}
		return err
	}},
	{"A lane whose list of what is in progress names the transaction that claims it loses nothing", func(b *bench) error {
		w, between := b.join(), b.join()
		var got []stint.ID
		b.enqueue(1, stint.Queue("other"))
		tx := begin(b, b.s)
		_, err := tx.Exec(b.Context(), b.s.sql.in(`select stint.claim($1, 1000000, 0, 1, $2, 10, false, false)`),
			w.Info.Token, store.LaneOf("other", 0, store.PartNormal, "").ID)
		b.must(err)
		var own uint64
		b.must(tx.QueryRow(b.Context(), `select pg_current_xact_id_if_assigned()::text::bigint`).Scan(&own))

		late := begin(b, b.s)
		want := b.enqueueIn(Tx(late), 2)
		want = append(want, b.enqueue(2)...)
		got = append(got, ids(between.Claim(normal, 10))...) // its frontier is behind both numbers
		if !value[bool](b, b.s.pool, b.s.sql.in(`select $1::text::xid8 = any (pending_xid) from stint.claims where lane = $2 order by n desc limit 1`),
			fmt.Sprint(own), normal) {
			return errors.New("the claim between does not list it")
		}
		want = append(want, b.enqueue(2)...)
		var at []store.Position
		b.must(tx.QueryRow(b.Context(), b.s.sql.in(`select positions from stint.claim($1, 1000001, 0, 1, $2, 10, false, false, true)`),
			w.Info.Token, normal).Scan(&at))
		b.must(tx.Commit(b.Context()))
		entries, err := b.s.Fetch(b.Context(), at)
		b.must(err)
		got = append(got, ids(entries)...)
		b.must(late.Commit(b.Context()))
		return b.take(w, 10, got, want)
	}},
	{"Late rows come over several claims, each once", func(b *bench) error {
		w := b.join()
		var got []stint.ID
		var want [][]stint.ID
		var open []pgx.Tx
		for range 4 {
			tx := begin(b, b.s)
			open = append(open, tx)
			want = append(want, b.enqueueIn(Tx(tx), 5), b.enqueue(2))
			got = append(got, ids(w.Claim(normal, 7))...)
		}
		for _, tx := range open {
			want = append(want, b.enqueue(1))
			b.must(tx.Commit(b.Context()))
			got = append(got, ids(w.Claim(normal, 3))...)
		}
		return b.take(w, 3, got, want...)
	}},
	{"Late rows come though claims before pointed to their list", func(b *bench) error {
		// The transactions of other databases count too: a server of its own.
		b = b.at(pgtest.Start(b, pgtest.Options{}).New(b))
		w := b.join()
		var got []stint.ID
		var want [][]stint.ID
		var open []pgx.Tx
		claim := func() {
			want = append(want, b.enqueue(1))
			got = append(got, ids(w.Claim(normal, 1))...) // the newest is taken: the frontier does not jump
		}
		for range 3 {
			tx := begin(b, b.s)
			open = append(open, tx)
			want = append(want, b.enqueueIn(Tx(tx), 2))
		}
		for _, tx := range open {
			for range 4 {
				claim()
			}
			if n := value[int64](b, b.s.pool, `select n - pending_n from stint.claims order by n desc limit 1`); n < 2 {
				return fmt.Errorf("the newest claim points to one %d before", n)
			}
			b.must(tx.Commit(b.Context()))
			claim() // one of the two that are late
		}
		return b.take(w, 3, got, want...)
	}},
	{"What commits while a claim reads is not lost", func(b *bench) error {
		const producers, claims = 4, 60
		w := b.join()
		var (
			wg   sync.WaitGroup
			mu   sync.Mutex
			want []stint.ID
			got  []stint.ID
			over = make(chan struct{})
		)
		made := func(ids []stint.ID) {
			mu.Lock()
			defer mu.Unlock()
			want = append(want, ids...)
		}
		for range producers {
			wg.Go(func() {
				for {
					made(b.enqueue(1))
					select {
					case <-over:
						return
					case <-time.After(3 * time.Millisecond): // or all of it could fit between two claims
					}
				}
			})
		}
		for i := range claims {
			// What is open while one claims is listed, so that the next one reads a list.
			var open pgx.Tx
			if i%2 == 0 {
				open = begin(b, b.s)
				made(b.enqueueIn(Tx(open), 1))
			}
			got = append(got, ids(w.Claim(normal, 1000))...) // more than there is: the frontier goes to the snapshot's end
			if open != nil {
				b.must(open.Commit(b.Context()))
			}
		}
		close(over)
		wg.Wait()
		return b.take(w, 100, got, want)
	}},
	{"A claim in a transaction that wrote before is refused", func(b *bench) error {
		w := b.join()
		tx := begin(b, b.s)
		first := b.enqueueIn(Tx(tx), 1) // its number is that of the transaction
		other := b.enqueue(1)           // a later one, which the frontier passes
		at, err := b.claimIn(tx, w, 10)
		if errors.Is(err, errWritten) {
			return nil
		}
		b.must(err)
		late := b.enqueueIn(Tx(tx), 1)
		b.must(tx.Commit(b.Context()))
		var got []stint.ID
		for _, pos := range at {
			got = append(got, stint.ID(pos))
		}
		if err := b.take(w, 10, got, first, other, late); err != nil {
			return err
		}
		return errors.New("it claims")
	}},
	{"Claims of several sessions follow each other", func(b *bench) error {
		want := b.enqueue(6)
		w := b.join()
		sessions := []*pgx.Conn{connect(b, b.s), connect(b, b.s)}
		var got []stint.ID
		for i := range 6 {
			tx, err := sessions[i%2].Begin(b.Context())
			b.must(err)
			at, err := b.claimIn(tx, w, 1)
			b.must(err)
			b.must(tx.Commit(b.Context()))
			for _, pos := range at {
				got = append(got, stint.ID(pos))
			}
		}
		return b.take(w, 10, got, want)
	}},
	{"A stale frontier is a unique violation", func(b *bench) error {
		b.enqueue(2)
		b.join().Claim(normal, 1)
		_, err := b.s.pool.Exec(b.Context(), b.s.sql.in(`
			insert into stint.claims (lane, n, nonce, engine, serial, xid, pos, positions)
			select lane, n, nonce + 1, engine, serial, xid, pos, positions from stint.claims`))
		if pg := new(pgconn.PgError); !errors.As(err, &pg) || pg.Code != "23505" {
			return fmt.Errorf("a second claim under the number of another gives %v", err)
		}
		return nil
	}},
	{"A claim survives the server's death", func(b *bench) error {
		// The writer of the log sleeps, so what nobody flushed is lost.
		server := pgtest.Start(b, pgtest.Options{Settings: map[string]string{"wal_writer_delay": "10s"}})
		url := server.New(b)
		c := b.at(url)
		c.enqueue(50)
		w := c.join()
		var last store.Claim
		for range 20 {
			var err error
			last, err = w.TryClaim(b.Context(), store.ClaimRequest{Lane: normal, Max: 1, Wait: true})
			b.must(err)
		}
		server.Kill()
		server.Start()
		again := openStore(b, url)
		if n := value[int64](b, again.pool, `select coalesce(max(n), 0) from stint.claims`); n != last.N {
			return fmt.Errorf("%d claims were answered, and %d are left", last.N, n)
		}
		return nil
	}},
	{"Claims of several lanes survive the server's death", func(b *bench) error {
		server := pgtest.Start(b, pgtest.Options{Settings: map[string]string{"wal_writer_delay": "10s"}})
		url := server.New(b)
		c := b.at(url)
		c.enqueue(5)
		c.enqueue(5, stint.Queue("other"))
		w := c.join()
		for range 5 {
			_, err := w.TryClaimLanes(b.Context(), 2, store.LaneOf("none", 0, store.PartNormal, "").ID, normal, store.LaneOf("other", 0, store.PartNormal, "").ID)
			b.must(err)
		}
		server.Kill()
		server.Start()
		again := openStore(b, url)
		if n := value[int](b, again.pool, `select count(*) from stint.claims`); n != 6 {
			return fmt.Errorf("6 claims were answered, and %d are left", n)
		}
		return nil
	}},
	{"What an engine was told survives the server's death, also where nobody else waits for the disk", func(b *bench) error {
		server := pgtest.Start(b, pgtest.Options{Settings: map[string]string{"wal_writer_delay": "10s", "synchronous_commit": "off"}})
		url := server.New(b)
		c := b.at(url)
		c.enqueue(5)
		w := c.join()
		dies := func() *Store {
			server.Kill()
			server.Start()
			c.s.pool.Reset()
			c.s.work().Reset()
			return openStore(b, url)
		}
		at := w.Claim(normal, 5)
		again := dies()
		if n := value[int](b, again.pool, `select count(*) from stint.claims`); n != 1 {
			return fmt.Errorf("a claim was answered, and %d are left", n)
		}
		w.Heartbeat(at[0].Pos)
		again = dies()
		if n := value[int](b, again.pool, `select cardinality(running) from stint.beats`); n != 1 {
			return fmt.Errorf("one job was announced, and %d are left", n)
		}
		if n, err := w.TryFinish(b.Context(), w.Conclude(at[0], store.Result{Outcome: stint.OutcomeCompleted})); n != 1 || err != nil {
			return fmt.Errorf("%d outcomes were recorded, %v", n, err)
		}
		again = dies()
		if n := value[int](b, again.pool, `select count(*) from stint.executions`); n != 1 {
			return fmt.Errorf("an outcome was recorded, and %d are left", n)
		}
		return nil
	}},
	{"An engine that stops reading holds neither lane nor fence", func(b *bench) error {
		big := make([]byte, 1_000_000)
		for i := range big {
			big[i] = 'a'
		}
		args := append(append([]byte(`"`), big...), '"')
		jobs := make([]stint.NewJob, 60)
		for i := range jobs {
			jobs[i] = stint.KindInfo{Name: "k"}.Job(args)
		}
		if _, err := stint.NewClient(b.s).EnqueueMany(b.Context(), jobs); err != nil {
			return err
		}
		deaf, stop := deafStore(b, b.s)
		w, other := b.join(), b.join()
		stop()
		failed := make(chan error, 1)
		go func() {
			_, err := deaf.Claim(context.WithoutCancel(b.Context()), store.ClaimRequest{
				Engine: w.Info.Token, Serial: 1, Nonce: 1, Lane: normal, Max: 50, Wait: true})
			failed <- err
		}()
		err := b.soon("its claim", func(ctx context.Context) error {
			for value[int64](b, b.s.pool, `select count(*) from stint.claims`) == 0 {
				select {
				case err := <-failed:
					return err
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Millisecond):
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		err = b.soon("another engine's claim", func(ctx context.Context) error {
			c, err := b.s.Claim(ctx, store.ClaimRequest{Engine: other.Info.Token, Serial: 1, Nonce: 2, Lane: normal, Max: 5, Wait: true})
			if err == nil && len(c.Entries) != 5 {
				err = fmt.Errorf("it took %d", len(c.Entries))
			}
			return err
		})
		if err != nil {
			return err
		}
		_, err = b.s.Bury(b.Context(), store.Burial{Engine: w.Info.Token}, judge)
		return err
	}},
}
