package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/stint-go/stint"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// schemaSteps is the text of each version's step; the first is version 1.
// Each step leaves its version in the table meta.
func schemaSteps() []string {
	names, err := fs.Glob(schemaFiles, "schema/*.sql")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	steps := make([]string, len(names))
	for i, name := range names { // sorted by name, which is the version
		text, err := schemaFiles.ReadFile(name)
		if err != nil {
			panic(err)
		}
		steps[i] = string(text)
	}
	return steps
}

const (
	metaThereSQL = `select 1 from sqlite_schema where type = 'table' and name = ?`
	versionSQL   = `select version, oldest from stint_meta`
	anyJobSQL    = `select 1 from stint_entries limit 1`
)

// Schema implements [stint.Migrator].
func (s *Store) Schema(ctx context.Context) (stint.SchemaInfo, error) {
	var info stint.SchemaInfo
	err := s.read(ctx, func(c *conn) (err error) {
		info, err = s.installed(c)
		return err
	})
	if err != nil {
		return info, fmt.Errorf("read the schema's version: %w", err)
	}
	return info, nil
}

func (s *Store) installed(c *conn) (stint.SchemaInfo, error) {
	info := stint.SchemaInfo{Where: s.config.Prefix, Known: len(s.steps)}
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
		return fmt.Errorf("%w: the file has no tables %s*; run the migration first", stint.ErrSchema, s.config.Prefix)
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
		stint.ErrSchema, info.Installed, info.Known))
}

// fits refuses a schema that is too new for this program.
func (s *Store) fits(info stint.SchemaInfo) error {
	if info.Oldest > info.Known {
		return fmt.Errorf("%w: the file has version %d and needs programs of version %d or newer; this one knows version %d",
			stint.ErrSchema, info.Installed, info.Oldest, info.Known)
	}
	return nil
}

// Migrate implements [stint.Migrator]. All steps that are missing are one
// transaction.
func (s *Store) Migrate(ctx context.Context) (stint.SchemaInfo, error) {
	var info stint.SchemaInfo
	err := s.write(ctx, func(c *conn) (_ bool, err error) {
		if info, err = s.installed(c); err != nil || info.Installed >= info.Known {
			return false, errors.Join(err, s.fits(info))
		}
		for _, step := range s.steps[info.Installed:] {
			if err := c.db.Exec(s.named(step)); err != nil {
				return false, err
			}
		}
		info, err = s.installed(c)
		return false, err
	})
	if err != nil {
		return info, fmt.Errorf("install the schema: %w", err)
	}
	return info, nil
}

// created finds what a step creates. Indexes go with their tables.
var created = regexp.MustCompile(`(?m)^create (table|view) (stint_\w+)`)

// Uninstall implements [stint.Migrator]. It drops what the steps create, by
// name: another prefix may begin with this one.
func (s *Store) Uninstall(ctx context.Context) error {
	var drops []string
	for _, object := range created.FindAllStringSubmatch(strings.Join(s.steps, "\n"), -1) {
		drops = append(drops, s.named("drop "+object[1]+" if exists "+object[2]))
	}
	slices.Reverse(drops) // views look at tables
	err := s.write(ctx, func(c *conn) (bool, error) {
		info, err := s.installed(c)
		if err == nil && info.Installed == 0 {
			err = errors.New("it is not installed")
		}
		if err != nil {
			return false, err
		}
		return false, c.db.Exec(strings.Join(drops, ";"))
	})
	if err != nil {
		return fmt.Errorf("remove the schema: %w", err)
	}
	return nil
}

// PrintSchema implements [stint.Migrator]. Run the text in one transaction.
func (s *Store) PrintSchema(from int) (string, error) {
	if from < 0 || from > len(s.steps) {
		return "", fmt.Errorf("there is no version %d: this program knows 1 to %d", from, len(s.steps))
	}
	return s.named(strings.Join(s.steps[from:], "\n")), nil
}
