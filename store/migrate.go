package store

import "context"

// Migrator changes a store's schema, in steps. Many processes may call it at
// once; each step is done by one of them, once, and what was cut off is done
// again. Work goes on meanwhile, by programs that the schema allows: an engine
// of one that it does not allow any more is asked to drain by its next beat.
type Migrator interface {
	// Schema tells which version is installed (0 for none) and which one
	// this program knows.
	Schema(ctx context.Context) (SchemaInfo, error)

	// Migrate installs the schema or brings it up to this program's version.
	// After an error the steps that were done stay, and another call goes on
	// behind them. [ErrSchema] when the schema is too new for this program.
	Migrate(ctx context.Context) (SchemaInfo, error)

	// Uninstall removes the schema with everything in it.
	Uninstall(ctx context.Context) error

	// PrintSchema is the text of every step after the given version, 0 for
	// all, with how each is to be run: for teams that run their own tool. An
	// error when the program knows no such version.
	PrintSchema(from int) (string, error)
}

// SchemaInfo compares the database with the program.
type SchemaInfo struct {
	Where     string `json:"where"`     // the schema's name, or the table prefix
	Installed int    `json:"installed"` // the version in the database; 0 for none
	Known     int    `json:"known"`     // the newest that this program can work on
	Oldest    int    `json:"oldest"`    // the oldest program version that may still work on the installed schema
}
