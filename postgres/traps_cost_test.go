package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// many is how many rows are in the way. Costs are counted in blocks, so more
// would only take longer.
const many = 20_000

// few is how many blocks a probe may ask for.
const few = 60

// blocks counts what f asks of the given relations, in one transaction.
func (b *bench) blocks(f func(tx pgx.Tx), relations ...string) int64 {
	b.Helper()
	tx := begin(b, b.s)
	defer tx.Rollback(b.Context())
	count := func() int64 {
		return value[int64](b, tx, `select sum(pg_stat_get_xact_blocks_fetched(r::regclass)) from unnest($1::text[]) r`, relations)
	}
	before := count()
	f(tx)
	return count() - before
}

// look counts what seeing one lane costs, and tells what was seen.
func (b *bench) look() (cost int64, seen, settle bool) {
	b.Helper()
	cost = b.blocks(func(tx pgx.Tx) {
		rows, err := tx.Query(b.Context(), `select settle from stint.sight($1)`, normal)
		b.must(err)
		_, err = pgx.ForEachRow(rows, []any{&settle}, func() error { seen = true; return nil })
		b.must(err)
	}, "stint.entries", "stint.entries_lane")
	return cost, seen, settle
}

var costTraps = []trap{
	{"The uncommitted rows of a bulk load do not cost each claim", func(b *bench) error {
		w := b.join()
		b.load(many)
		b.enqueue(1)
		w.Claim(normal, 10) // passes them
		for range 3 {
			b.enqueue(1)
			cost := b.blocks(func(tx pgx.Tx) {
				at, err := b.claimIn(tx, w, 10)
				b.must(err)
				if len(at) != 1 {
					b.Fatalf("claimed %v", at)
				}
			}, "stint.entries", "stint.entries_lane")
			if cost > few {
				return fmt.Errorf("a claim of one entry asked for %d blocks", cost)
			}
			w.Claim(normal, 10)
		}
		return nil
	}},
	{"What cannot be seen is looked for as new once", func(b *bench) error {
		b.enqueue(1)
		look := func(since store.Mark) store.Appended {
			a, err := b.s.LookSince(b.Context(), since)
			b.must(err)
			return a
		}
		a := look(store.Mark{})
		tx := b.load(10 * many)
		defer tx.Rollback(b.Context())
		a = look(a.Until)
		cost := b.blocks(func(tx pgx.Tx) {
			_, err := tx.Exec(b.Context(), `select from stint.look_since($1, $2::pg_snapshot)`, int64(a.Until.Pos), a.Until.Seen)
			b.must(err)
		}, "stint.entries", "stint.entries_pkey")
		if cost > few {
			return fmt.Errorf("a second look for what is new asked for %d blocks", cost)
		}
		b.enqueue(1)
		if a = look(a.Until); len(a.Heads) != 1 {
			return fmt.Errorf("behind what cannot be seen a look sees %v", a.Heads)
		}
		return nil
	}},
	{"What was stepped over is not stepped over again", func(b *bench) error {
		w := b.join()
		b.enqueue(1)
		tx := b.load(many)
		w.Claim(normal, 10)
		for i, end := range []func(){func() {}, func() { b.must(tx.Rollback(b.Context())) }} {
			end()
			// A first look may have to find out, and must say so: the newest
			// transaction of all is beyond a frontier that passed everything.
			cost, seen, settle := b.look()
			if cost > few && !settle {
				return fmt.Errorf("stage %d: a look asked for %d blocks and does not say so (seen %v)", i, cost, seen)
			}
			if settle {
				_, err := w.TryClaim(b.Context(), store.ClaimRequest{Lane: normal, Max: 10, Wait: true, Settle: true})
				b.must(err)
			}
			if cost, seen, _ := b.look(); cost > few || seen {
				return fmt.Errorf("stage %d: the look after asked for %d blocks (seen %v)", i, cost, seen)
			}
		}
		return nil
	}},
	{"An unchanged list of open transactions is pointed to", func(b *bench) error {
		// The transactions of other databases count too: a server of its own.
		b = b.at(pgtest.Start(b, pgtest.Options{}).New(b))
		for range 5 {
			b.enqueueIn(Tx(begin(b, b.s)), 1)
		}
		w := b.join()
		for range 4 {
			b.enqueue(1)
			w.Claim(normal, 10)
		}
		if n := value[int64](b, b.s.pool, `select count(*) from stint.claims where pending_n = 1`); n != 3 {
			return fmt.Errorf("of 3 claims %d point to the list of the first", n)
		}
		return nil
	}},
	{"The newest claim is found past those of other lanes", func(b *bench) error {
		exec(b, b.s, `insert into stint.claims (lane, n, nonce, engine, serial, xid, pos, positions)
			select case when i = 1 then $1::bigint else 7 end, i, 0, 0, 0, '5', 0, '{}' from generate_series(1, $2::int) i`, int64(normal), many)
		for range 2 { // without statistics, and with
			cost := b.blocks(func(tx pgx.Tx) {
				if n := value[int64](b, tx, `select n from stint.frontier($1)`, normal); n != 1 {
					b.Fatalf("the newest claim is %d", n)
				}
			}, "stint.claims", "stint.claims_pkey")
			if cost > few {
				return fmt.Errorf("finding the newest claim asked for %d blocks", cost)
			}
			exec(b, b.s, `analyze stint.claims`)
		}
		return nil
	}},
}

func judge(e *store.Entry, begun bool) store.Completion { return storetest.Judge(e, begun) }
