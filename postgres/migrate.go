package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/steps"
	"github.com/stint-go/stint/store"
)

// Schema implements [store.Migrator].
func (s *Store) Schema(ctx context.Context) (info store.SchemaInfo, err error) {
	defer wrap(&err, "read the schema's version")
	info, err = s.installed(ctx, s.pool)
	return info, translate(err)
}

func (s *Store) installed(ctx context.Context, q interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (store.SchemaInfo, error) {
	info := store.SchemaInfo{Where: s.schema, Known: len(s.steps)}
	// Read from the catalogue: to_regclass answers from a cache that takes no
	// news while this session waits for the installer's advisory lock, and said
	// that nothing was there when everything was.
	var there bool
	err := q.QueryRow(ctx, `
		select exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		               where n.nspname = $1 and c.relname = 'meta')`, s.schema).Scan(&there)
	if err != nil || !there {
		return info, err
	}
	return info, q.QueryRow(ctx, s.sql.in(`select version, oldest from stint.meta`)).Scan(&info.Installed, &info.Oldest)
}

// ready makes sure that the schema is there and fits, and that the log is
// written in this database's transaction numbers. It takes no lock when
// everything is well.
func (s *Store) ready(ctx context.Context) error {
	info, err := s.Schema(ctx)
	if err != nil {
		return err
	}
	switch {
	case info.Installed == 0 && s.config.NoInstall:
		return fmt.Errorf("%w: there is none in schema %q of this database; run the migration first", store.ErrSchema, s.schema)
	case info.Oldest > info.Known:
		return s.tooNew(info)
	case info.Installed < info.Known:
		if err := s.mayChange(ctx, info); err != nil {
			return err
		}
		if _, err := s.Migrate(ctx); err != nil {
			return err
		}
	}
	return s.rebaseIfMoved(ctx)
}

// mayChange reports whether opening brings the schema to this program's version.
// Never without being asked when it holds jobs: others work on them.
func (s *Store) mayChange(ctx context.Context, info store.SchemaInfo) error {
	if info.Installed == 0 || s.config.Upgrade {
		return nil
	}
	holds := s.config.NoInstall
	if !holds {
		if err := s.pool.QueryRow(ctx, s.sql.in(`select exists (select from stint.entries)`)).Scan(&holds); err != nil {
			return fmt.Errorf("look whether the schema holds jobs: %w", translate(err))
		}
	}
	if !holds {
		return nil
	}
	return fmt.Errorf("%w: schema %q has version %d, this program needs %d; run the migration",
		store.ErrSchema, s.schema, info.Installed, info.Known)
}

// tooNew is the error of a schema that refuses this program, or nil.
func (s *Store) tooNew(info store.SchemaInfo) error {
	if info.Oldest <= info.Known {
		return nil
	}
	return fmt.Errorf("%w: schema %q has version %d and needs programs of version %d or newer; this one knows version %d",
		store.ErrSchema, s.schema, info.Installed, info.Oldest, info.Known)
}

// Migrate implements [store.Migrator]. The first installation is one
// transaction; an upgrade goes on while engines and producers work. A step that
// finds what it changes locked gives way after two seconds and tries again, for
// five minutes. An online step needs a connection of its own from here to the
// server: a pooler that shares sessions among transactions cannot hold its lock.
func (s *Store) Migrate(ctx context.Context) (store.SchemaInfo, error) {
	for {
		info, err := s.Schema(ctx)
		if err != nil {
			return info, err
		}
		switch {
		case info.Installed >= info.Known:
			return info, s.tooNew(info)
		case info.Installed == 0:
			if err = s.install(ctx); err != nil {
				return info, fmt.Errorf("install schema %q: %w", s.schema, err)
			}
		default:
			step := s.steps[info.Installed]
			if err = s.upgrade(ctx, step); err != nil {
				return info, fmt.Errorf("upgrade schema %q to version %d: %w", s.schema, step.Version, err)
			}
		}
	}
}

// install brings an empty database to the newest version, in one transaction:
// a session that sees the schema sees all of it.
func (s *Store) install(ctx context.Context) error {
	return s.alone(ctx, 0, func(tx pgx.Tx) error {
		if err := checkServer(ctx, tx); err != nil {
			return err
		}
		return execMany(ctx, tx.Conn(), s.sql.in(steps.Install(s.steps, metaTable)))
	})
}

// checkServer refuses servers whose transaction numbers wrap (the log needs
// xid8, which came with PostgreSQL 13) and databases that cannot hold every text.
func checkServer(ctx context.Context, tx pgx.Tx) error {
	var version int
	var encoding string
	err := tx.QueryRow(ctx, `select current_setting('server_version_num')::int, current_setting('server_encoding')`).Scan(&version, &encoding)
	switch {
	case err != nil:
		return err
	case version < 130000:
		return fmt.Errorf("%w: the server is PostgreSQL %d, and stint needs 13 or newer", store.ErrSchema, version/10000)
	}
	return checkDatabase(encoding)
}

// Uninstall implements [store.Migrator].
func (s *Store) Uninstall(ctx context.Context) (err error) {
	defer wrap(&err, "remove schema %q", s.schema)
	info, err := s.Schema(ctx)
	switch {
	case err != nil:
		return err
	case info.Installed == 0:
		return errors.New("it is not installed")
	}
	gone := false
	err = s.alone(ctx, info.Installed, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "drop schema "+s.sql.schema+" cascade")
		gone = err == nil
		return err
	})
	if err == nil && !gone {
		err = errors.New("somebody else changed it meanwhile")
	}
	return err
}

// PrintSchema implements [store.Migrator].
func (s *Store) PrintSchema(from int) (string, error) {
	text, err := steps.Print(s.steps, metaTable, from)
	return s.sql.in(text), err
}
