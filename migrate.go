package stint

import "context"

// Migrator changes a store's schema. Many processes may call it at once; each
// step is done by one of them, once.
type Migrator interface {
	// Schema tells which version is installed (0 for none) and which one
	// this program knows.
	Schema(ctx context.Context) (SchemaInfo, error)

	// Migrate installs the schema or brings it up to this program's version.
	Migrate(ctx context.Context) (SchemaInfo, error)

	// Uninstall removes the schema with everything in it.
	Uninstall(ctx context.Context) error

	// PrintSchema is the text of every step after the given version, for
	// teams that run their own tool.
	PrintSchema(from int) (string, error)
}

// SchemaInfo compares the database with the program.
type SchemaInfo struct {
	Where     string `json:"where"`     // the schema's name, or the table prefix
	Installed int    `json:"installed"` // the version in the database; 0 for none
	Known     int    `json:"known"`     // the newest that this program can work on
	Oldest    int    `json:"oldest"`    // the oldest program version that may still work on the installed schema
}
