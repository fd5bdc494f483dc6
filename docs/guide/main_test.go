// Package guide compiles and runs the code that the pages of the guide show: each piece stands here, in the file that
// is called like its page.
package guide

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/sqlite"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openSQLite(t *testing.T) *sqlite.Store {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	must(t, err)
	t.Cleanup(func() { store.Close() })
	return store
}

func openPostgres(t *testing.T) (*postgres.Store, string) {
	url := pgtest.New(t)
	store, err := postgres.Open(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { store.Close() })
	return store, url
}

// exec runs statements that prepare what an example needs.
func exec(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := db.ExecContext(t.Context(), s)
		must(t, err)
	}
}

// shown is a job as the store has it.
func shown(ctx context.Context, t *testing.T, client *stint.Client, id stint.ID) *stint.JobInfo {
	t.Helper()
	job, err := client.Job(ctx, id)
	must(t, err)
	return job
}
