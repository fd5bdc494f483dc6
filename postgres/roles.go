package postgres

import (
	"context"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed roles.sql
var rolesSQL string

// HasRoles reports whether the server has a role that the script of [Roles] makes for the schema.
func (s *Store) HasRoles(ctx context.Context) (has bool, err error) {
	err = s.pool.QueryRow(ctx, `select exists (select from pg_catalog.pg_roles where rolname = $1)`, s.schema+"_engine").Scan(&has)
	return has, err
}

// Roles is a script that makes six roles for a schema, named after it, and
// gives each the rights that it needs: stint_owner, stint_engine,
// stint_producer, stint_caller, stint_worker and stint_viewer. Its comments say which
// role runs it and when; running it again does no harm, nor does running it while
// programs work. The schema is "stint" when it is empty; its name must be one that
// [Config] takes.
func Roles(schema string) (string, error) {
	schema, err := schemaOr(schema)
	if err != nil || schema == defaultSchema {
		return rolesSQL, err
	}
	return strings.NewReplacer(
		"stint_", schema+"_",
		"stint.", pgx.Identifier{schema}.Sanitize()+".",
		"schema stint ", "schema "+pgx.Identifier{schema}.Sanitize()+" ",
		"nspname = 'stint'", "nspname = '"+schema+"'",
	).Replace(rolesSQL), nil
}
