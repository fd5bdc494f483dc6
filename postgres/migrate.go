package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
)

// knownVersion is the schema version that this program works on.
const knownVersion = 1

// migrateLock is the advisory lock under which schemas are changed, so that
// ten programs that start at once install one.
const migrateLock = 0x7374696e74 // "stint"

// Schema implements [stint.Migrator].
func (s *Store) Schema(ctx context.Context) (stint.SchemaInfo, error) {
	info, err := s.installed(ctx, s.pool)
	if err != nil {
		return info, fmt.Errorf("read the schema's version: %w", translate(err))
	}
	return info, nil
}

func (s *Store) installed(ctx context.Context, q interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (stint.SchemaInfo, error) {
	info := stint.SchemaInfo{Where: s.schema, Known: knownVersion}
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
		return fmt.Errorf("%w: there is none in schema %q of this database; run the migration first", stint.ErrSchema, s.schema)
	case info.Installed == 0:
		if _, err := s.Migrate(ctx); err != nil {
			return err
		}
	case info.Oldest > knownVersion:
		return s.tooNew(info)
	case info.Installed < knownVersion && s.config.Upgrade:
		if _, err := s.Migrate(ctx); err != nil {
			return err
		}
	case info.Installed < knownVersion:
		return fmt.Errorf("%w: schema %q has version %d, this program needs %d; run the migration",
			stint.ErrSchema, s.schema, info.Installed, knownVersion)
	}
	return s.rebaseIfMoved(ctx)
}

// tooNew is the error of a schema that refuses this program, or nil.
func (s *Store) tooNew(info stint.SchemaInfo) error {
	if info.Oldest <= knownVersion {
		return nil
	}
	return fmt.Errorf("%w: schema %q has version %d and needs programs of version %d or newer; this one knows version %d",
		stint.ErrSchema, s.schema, info.Installed, info.Oldest, knownVersion)
}

// Migrate implements [stint.Migrator]. The first installation is one
// transaction.
func (s *Store) Migrate(ctx context.Context) (stint.SchemaInfo, error) {
	var info stint.SchemaInfo
	err := s.transact(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, migrateLock)
		if err != nil {
			return err
		}
		info, err = s.installed(ctx, tx)
		if err != nil || info.Installed >= knownVersion {
			return errors.Join(err, s.tooNew(info))
		}
		if err := checkServer(ctx, tx); err != nil {
			return err
		}
		text, err := s.PrintSchema(info.Installed)
		if err != nil {
			return err
		}
		// The simple protocol takes many statements at once.
		if _, err := tx.Conn().PgConn().Exec(ctx, text).ReadAll(); err != nil {
			return err
		}
		info, err = s.installed(ctx, tx)
		return err
	})
	if err != nil {
		return info, fmt.Errorf("install schema %q: %w", s.schema, err)
	}
	return info, nil
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
		return fmt.Errorf("%w: the server is PostgreSQL %d, and stint needs 13 or newer", stint.ErrSchema, version/10000)
	case encoding != "UTF8":
		return fmt.Errorf("%w: the database's encoding is %s, and stint needs UTF8", stint.ErrSchema, encoding)
	}
	return nil
}

// Uninstall implements [stint.Migrator].
func (s *Store) Uninstall(ctx context.Context) error {
	err := s.transact(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, migrateLock); err != nil {
			return err
		}
		info, err := s.installed(ctx, tx)
		if err != nil {
			return err
		}
		if info.Installed == 0 {
			return errors.New("it is not installed")
		}
		_, err = tx.Exec(ctx, "drop schema "+s.sql.schema+" cascade")
		return err
	})
	if err != nil {
		return fmt.Errorf("remove schema %q: %w", s.schema, err)
	}
	return nil
}

// PrintSchema implements [stint.Migrator].
func (s *Store) PrintSchema(from int) (string, error) {
	names, err := fs.Glob(schemaFiles, "schema/*.sql")
	if err != nil {
		return "", err
	}
	slices.Sort(names) // version, then the order in which the parts build on each other
	var b strings.Builder
	for _, name := range names {
		version, err := strconv.Atoi(strings.TrimPrefix(name, "schema/")[:4])
		if err != nil {
			return "", fmt.Errorf("schema file %s has no version", name)
		}
		if version <= from {
			continue
		}
		text, err := schemaFiles.ReadFile(name)
		if err != nil {
			return "", err
		}
		b.WriteString(s.sql.in(string(text)))
		b.WriteString("\n")
	}
	return b.String(), nil
}
