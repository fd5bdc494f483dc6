//go:build unix

package chaos

import "context"

// advance are statements that have every number which rises go on from another
// one: positions, the claims of each lane, and changes.
var (
	advance = []string{
		`select setval('stint.positions', $1)`,
		`select setval('stint.change_numbers', $1)`,
		`update stint.claims c set n = c.n + $1 - m.n, pending_n = c.pending_n + $1 - m.n
		 from (select lane, max(n) as n from stint.claims group by lane) m where m.lane = c.lane`,
	}
	advanceFile = []string{
		`update sqlite_sequence set seq = $1 where name = 'stint_entries'`,
		`update sqlite_sequence set seq = $1 where name = 'stint_changes'`,
		`update stint_claims set n = stint_claims.n + $1 - m.n
		 from (select lane, max(n) as n from stint_claims group by lane) m where m.lane = stint_claims.lane`,
	}
)

// Advance has every number that rises go on behind another one. Nobody may work
// meanwhile.
func (g *Ground) Advance(ctx context.Context, to int64) error {
	list := advance
	if g.file != nil {
		list = advanceFile
	}
	tx, err := g.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.rollback(context.WithoutCancel(ctx)) }()
	for _, text := range list {
		if err := tx.exec(ctx, text, to); err != nil {
			return err
		}
	}
	return tx.commit(ctx)
}
