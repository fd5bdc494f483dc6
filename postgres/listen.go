package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/store"
)

// keepAlive is how long the listening connection may be silent before it is
// asked whether it is still there.
const keepAlive = 15 * time.Second

// Listen implements [store.Listener]: on the session of an engine that joined by this
// store, or else on a connection of its own, which shows as "stint listen" in
// pg_stat_activity. Where a pooler swallows notifications it says so once, and tries again
// once a minute.
func (s *Store) Listen(ctx context.Context, ring func(store.News)) error {
	for _, p := range s.presences.Range {
		if there, err := p.(*presence).listen(ctx, ring); there {
			return err
		}
	}
	for {
		deaf := s.deaf.Load()
		select {
		case <-time.After(time.Until(time.Unix(0, deaf))):
		case <-ctx.Done():
			return nil
		}
		err := s.listen(ctx, ring)
		if !errors.Is(err, errLent) {
			return err
		}
		s.deaf.Store(time.Now().Add(deafFor).UnixNano())
		if deaf == 0 {
			return err
		}
	}
}

// listen does so on a connection of its own.
func (s *Store) listen(ctx context.Context, ring func(store.News)) error {
	// A server that is down may swallow what is sent to it, and then nothing
	// else says that nothing listens.
	limit, cancel := context.WithTimeout(ctx, s.keepAlive)
	defer cancel()
	conn, err := s.dial(limit, "stint listen")
	if err != nil {
		return listenError(ctx, err)
	}
	defer hangUp(ctx, conn)
	if err := s.ownsSession(limit, conn); err != nil {
		return listenError(ctx, err)
	}
	s.deaf.Store(0)
	if _, err := conn.Exec(limit, "listen "+s.sql.schema); err != nil {
		return listenError(ctx, err)
	}
	ring(store.News{})
	for {
		wait, cancel := context.WithTimeout(ctx, s.keepAlive)
		n, err := conn.WaitForNotification(wait)
		cancel()
		switch {
		case err == nil:
			ring(newsOf(n.Payload))
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

// dial opens a connection beside the pool, with its settings.
func (s *Store) dial(ctx context.Context, name string) (*pgx.Conn, error) {
	config := s.pool.Config().ConnConfig.Copy()
	config.RuntimeParams["application_name"] = name
	s.suit(config)
	if before := s.pool.Config().BeforeConnect; before != nil { // passwords that change, for example
		if err := before(ctx, config); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, config)
}

// hangUp closes a connection. The caller's context may have ended already.
func hangUp(ctx context.Context, conn *pgx.Conn) {
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Close(bye)
}

func listenError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("listen for work: %w", translate(err))
}
