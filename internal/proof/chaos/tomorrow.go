//go:build unix

package chaos

import (
	"context"

	"github.com/stint-go/stint/internal/steps"
	"github.com/stint-go/stint/postgres"
)

// today is the version of the schema that programs know by themselves. It goes up
// with each step that is released.
const today = 1

// tomorrow are steps as later programs will have them: a column, an index of
// it, and the end of programs that know neither.
func tomorrow() []steps.Step {
	return []steps.Step{
		{Version: today + 1, Oldest: 1, Text: `alter table stint.entries add column note text;`},
		{Version: today + 2, Oldest: 1, Online: true, Text: `create index concurrently if not exists entries_note on stint.entries (note) where note is not null;`},
		{Version: today + 3, Oldest: today + 1, Text: `comment on column stint.entries.note is 'Of tomorrow.';`},
	}
}

// upgrade is what stint migrate up does.
func (w *Worker) upgrade(ctx context.Context) error {
	store, err := postgres.Open(ctx, w.DB, postgres.Config{SkipCheck: true})
	if err != nil {
		return err
	}
	defer store.Close()
	_, err = store.Migrate(ctx)
	return err
}
