package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// keepAlive is how long the listening connection may be silent before it is
// asked whether it is still there.
const keepAlive = 15 * time.Second

// Listen implements [stint.Listener] on a connection of its own, which shows
// as "stint listen" in pg_stat_activity.
func (s *Store) Listen(ctx context.Context, ring func()) error {
	conn, err := s.listener(ctx)
	if err != nil {
		return listenError(ctx, err)
	}
	defer func() {
		// The caller's context may have ended already.
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		conn.Close(bye)
	}()
	if _, err := conn.Exec(ctx, "listen "+s.sql.schema); err != nil {
		return listenError(ctx, err)
	}
	ring()
	for {
		wait, cancel := context.WithTimeout(ctx, s.keepAlive)
		_, err := conn.WaitForNotification(wait)
		cancel()
		switch {
		case err == nil:
			ring()
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			// A peer that was cut off does not answer, and nothing else tells.
			ask, cancel := context.WithTimeout(ctx, s.keepAlive/3)
			err := conn.Ping(ask)
			cancel()
			if err != nil {
				return listenError(ctx, err)
			}
		default:
			return listenError(ctx, err)
		}
	}
}

// listener connects to listen, with the program's settings for connections.
func (s *Store) listener(ctx context.Context) (*pgx.Conn, error) {
	config := s.pool.Config().ConnConfig.Copy()
	config.RuntimeParams["application_name"] = "stint listen"
	if before := s.pool.Config().BeforeConnect; before != nil { // passwords that change, for example
		if err := before(ctx, config); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, config)
}

func listenError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("listen for work: %w", translate(err))
}
