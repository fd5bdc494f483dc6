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

// LacksGrants reports whether the server has such roles and what is installed was not granted to them, as between the
// installation or an upgrade and the next run of the script.
func (s *Store) LacksGrants(ctx context.Context) (lacks bool, err error) {
	err = s.pool.QueryRow(ctx, `
		select exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		                 join pg_catalog.pg_roles r on r.rolname = $1 || '_engine'
		               where n.nspname = $1 and c.relkind in ('r', 'v')
		                 and not (has_schema_privilege(r.oid, n.oid, 'usage') and has_table_privilege(r.oid, c.oid, 'select')))`, s.schema).Scan(&lacks)
	return lacks, translate(err)
}

// OnlyReads reports whether the login has the right to write down neither a job nor who changes what, so that nothing
// can be changed by it.
func (s *Store) OnlyReads(ctx context.Context) (only bool, err error) {
	err = s.pool.QueryRow(ctx, s.sql.in(`
		select not (has_any_column_privilege('stint.entries', 'insert') or has_table_privilege('stint.changes', 'insert'))`)).Scan(&only)
	return only, translate(err)
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
