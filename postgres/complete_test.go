package postgres

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stint-go/stint/store"
)

// muteConn is a connection that goes silent when it is told to roll back.
type muteConn struct{ net.Conn }

func (c muteConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("rollback")) {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// A handler that is cut off has to end before its job runs elsewhere, wherever it
// is: also where its completion was refused, and its transaction is to be ended.
func TestACompletionThatIsRefusedWaitsForASilentConnectionNoLongerThanItMay(t *testing.T) {
	s := newStore(t)
	config, err := pgxpool.ParseConfig(s.url())
	must(t, err)
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return muteConn{c}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}) // which is refused
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- s.FinishTx(ctx, Tx(tx), 1, store.ClaimRef{}, store.Completion{Pos: 1, Job: 1, Attempt: 1})
	}()
	select {
	case err := <-done:
		if err == nil || ctx.Err() == nil {
			t.Errorf("it ended with %v, and its time was over: %v", err, ctx.Err())
		}
	case <-time.After(10 * time.Second):
		t.Error("it still waits")
		pool.Reset()
		tx.Conn().PgConn().Conn().Close()
	}
}
