package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/stint-go/stint/internal/steps"
	"github.com/stint-go/stint/store"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// schemaSteps are the steps of the program's own schema. None is online: SQLite
// has one writer, and no other connection reads what it has not committed.
func schemaSteps() []steps.Step { return steps.Must(schemaFiles) }

// metaTable is where the version stands.
const metaTable = "stint_meta"

const (
	metaThereSQL = `select 1 from sqlite_schema where name = ?`
	versionSQL   = `select version, oldest from stint_meta`
	anyJobSQL    = `select 1 from stint_entries limit 1`
)

// Schema implements [store.Migrator].
func (s *Store) Schema(ctx context.Context) (store.SchemaInfo, error) {
	return reading(ctx, s, "read the schema's version", s.installed)
}

func (s *Store) installed(c *conn) (store.SchemaInfo, error) {
	info := store.SchemaInfo{Where: s.config.Prefix, Known: len(s.steps)}
	there, err := c.found(metaThereSQL, s.named("stint_meta"))
	if err != nil || !there {
		return info, err
	}
	return info, c.query(versionSQL, nil, func(q *stmt) error {
		info.Installed, info.Oldest = q.ColumnInt(0), q.ColumnInt(1)
		return nil
	})
}

// ready makes sure that the schema is there and fits. It writes nothing when
// everything is well.
func (s *Store) ready(ctx context.Context) error {
	info, err := s.Schema(ctx)
	if err != nil {
		return err
	}
	if err := s.fits(info); err != nil {
		return err
	}
	mayInstall := !s.config.NoInstall && !s.config.ReadOnly
	switch {
	case info.Installed >= info.Known:
		return nil
	case info.Installed == 0 && !mayInstall:
		return fmt.Errorf("%w: the file has no tables %s*; run the migration first", store.ErrSchema, s.config.Prefix)
	case mayInstall && (info.Installed == 0 || s.config.Upgrade):
		_, err := s.Migrate(ctx)
		return err
	}
	holds := false
	err = s.read(ctx, func(c *conn) (err error) { holds, err = c.found(anyJobSQL); return err })
	if err == nil && !holds && mayInstall {
		_, err = s.Migrate(ctx)
		return err
	}
	return errors.Join(err, fmt.Errorf("%w: the file has version %d and this program needs %d; run the migration, or open with Upgrade",
		store.ErrSchema, info.Installed, info.Known))
}

// fits refuses a schema that is too new for this program.
func (s *Store) fits(info store.SchemaInfo) error {
	if info.Oldest > info.Known {
		return fmt.Errorf("%w: the file has version %d and needs programs of version %d or newer; this one knows version %d",
			store.ErrSchema, info.Installed, info.Oldest, info.Known)
	}
	return nil
}

// Migrate implements [store.Migrator]. The first installation is one
// transaction; an upgrade is one for each step, during which others wait to
// write.
func (s *Store) Migrate(ctx context.Context) (store.SchemaInfo, error) {
	for {
		var info store.SchemaInfo
		before := 0
		err := s.write(ctx, func(c *conn) (_ bool, err error) {
			if info, err = s.installed(c); err != nil || info.Installed >= info.Known {
				return false, errors.Join(err, s.fits(info))
			}
			before = info.Installed
			text := steps.Install(s.steps, metaTable)
			if before > 0 {
				text = s.steps[before].AtOnce() + "\n" + s.steps[before].Record(metaTable)
			}
			if err := c.script(s.named(text)); err != nil {
				return false, err
			}
			info, err = s.installed(c)
			return false, err
		})
		switch {
		case err != nil && before > 0:
			return info, fmt.Errorf("upgrade the schema to version %d: %w", before+1, err)
		case err != nil:
			return info, fmt.Errorf("install the schema: %w", err)
		case info.Installed >= info.Known:
			return info, nil
		}
	}
}

// created finds what a step creates. Indexes go with their tables.
var created = regexp.MustCompile(`(?m)^create (table|view) (stint_\w+)`)

// Uninstall implements [store.Migrator]. It drops what the steps create, by
// name: another prefix may begin with this one.
func (s *Store) Uninstall(ctx context.Context) error {
	var drops []string
	for _, object := range created.FindAllStringSubmatch(steps.Install(s.steps, metaTable), -1) {
		drops = append(drops, s.named("drop "+object[1]+" if exists "+object[2]))
	}
	slices.Reverse(drops) // views look at tables
	_, err := writing(ctx, s, "remove the schema", func(c *conn) (info store.SchemaInfo, wake bool, err error) {
		if info, err = s.installed(c); err == nil && info.Installed == 0 {
			err = errors.New("it is not installed")
		} else if err == nil {
			err = c.script(strings.Join(drops, ";"))
		}
		return info, false, err
	})
	return err
}

// PrintSchema implements [store.Migrator].
func (s *Store) PrintSchema(from int) (string, error) {
	text, err := steps.Print(s.steps, metaTable, from)
	return s.named(text), err
}
