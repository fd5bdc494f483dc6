package postgres

import (
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed roles.sql
var rolesSQL string

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
