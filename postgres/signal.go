package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.Signaler = (*Store)(nil)

const (
	signalSQL = `select stint.signal($1::bigint, $2::text, $3::text::jsonb, $4::text, $5::boolean)`

	signalsSQL = `
	select s.n, s.name, s.sent, coalesce(s.key, ''), coalesce((select t.name from stint.steps t where t.signal = s.n), ''), s.value
	from stint.signals s where s.job = $1 order by s.n`
)

// Signal implements [store.Signaler].
func (s *Store) Signal(ctx context.Context, tx stint.Tx, job stint.ID, signal stint.Signal) (err error) {
	defer wrap(&err, "send the signal %q to job %d", signal.Name, job)
	send := []statement{{s.sql.in(signalSQL), []any{int64(job), signal.Name, string(signal.Value), nilText(signal.Key), !tx.Quiet}}}
	scan := func(row func(...any) error) error { return row(new(int64)) }
	if tx.Handle != nil {
		return runIn(ctx, tx, send, scan)
	}
	if s.explicit.Load() { // where transactions are serializable, two that send to one job would fail on each other
		return runCommitted(ctx, s.pool, send, scan)
	}
	return spoken(ctx, s.pool, func(c *pgxpool.Conn) error { return runBatch(ctx, c, send, scan) })
}

// Signals implements [store.SignalReader].
func (s *Store) Signals(ctx context.Context, job stint.ID) ([]stint.SentSignal, error) {
	return collect(ctx, s.pool, fmt.Sprintf("read the signals of job %d", job), s.sql.in(signalsSQL), []any{job},
		func(row pgx.CollectableRow) (r stint.SentSignal, err error) {
			err = scan(row, &r.N, &r.Name, &r.Sent, &r.Key, &r.Step, &r.Value)
			return r, err
		})
}
