package postgres

import (
	"context"
	"fmt"

	"github.com/stint-go/stint/store"
)

var _ store.SessionTerminator = (*Store)(nil)

// Evict implements [store.SessionTerminator]: a session that shares the engine's advisory
// lock is a claim, an outcome or a beat of it that does not end. A burial holds it
// alone, and is left to its end. The role needs no special right for sessions of
// its own; for others', pg_signal_backend.
func (s *Store) Evict(ctx context.Context, engine store.EngineID) (int, error) {
	var n int
	err := s.work().QueryRow(ctx, `
		select count(*) filter (where pg_terminate_backend(l.pid)) from pg_locks l
		where l.locktype = 'advisory' and l.objsubid = 1 and l.granted and l.mode = 'ShareLock' and l.pid <> pg_backend_pid()
		  and l.database = (select d.oid from pg_database d where d.datname = current_database())
		  and l.classid::bigint = $1::bigint >> 32 and l.objid::bigint = $1::bigint & 4294967295`, engine).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("end the sessions of engine %d: %w", engine, translate(err))
	}
	return n, nil
}
