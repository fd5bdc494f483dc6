package postgres

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// deafConn stops reading when told to, as a frozen program does.
type deafConn struct {
	net.Conn
	deaf chan struct{} // closed when it stops
	end  chan struct{}
	once *sync.Once
}

func (c deafConn) Read(b []byte) (int, error) {
	select {
	case <-c.deaf:
		<-c.end
		return 0, net.ErrClosed
	default:
		return c.Conn.Read(b)
	}
}

func (c deafConn) Close() error {
	c.once.Do(func() { close(c.end) })
	return c.Conn.Close()
}

// deafStore opens a database through connections that stop reading once stop
// is called.
func deafStore(t testing.TB, s *Store) (_ *Store, stop func()) {
	t.Helper()
	config, err := pgxpool.ParseConfig(s.url())
	must(t, err)
	config.MaxConns = 1
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // nothing to prepare, so a claim is one message
	deaf, end, once := make(chan struct{}), make(chan struct{}), &sync.Once{}
	t.Cleanup(func() { once.Do(func() { close(end) }) })
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		_ = c.(*net.TCPConn).SetReadBuffer(64 << 10)
		return deafConn{c, deaf, end, once}, nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	again, err := New(t.Context(), pool, s.config)
	must(t, err)
	again.sql = s.sql
	return again, func() { close(deaf) }
}
