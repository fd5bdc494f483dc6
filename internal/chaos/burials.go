//go:build unix

package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
)

// Burials counts the engines that others buried, and fails the test for each
// that did not have it coming: its process had ended, or stood still, or the
// engine had fenced itself before, or the answer to its joining was lost and
// nobody ever was that engine.
func (f *Fleet) Burials(ctx context.Context, pool *pgxpool.Pool) int {
	f.t.Helper()
	rows, err := pool.Query(ctx, `
		select token, instance, ended from stint.engine_history where ended is not null and why <> 'left'`)
	if err != nil {
		f.t.Fatal(fmt.Errorf("read the burials: %w", err))
	}
	var (
		all      int
		token    int64
		instance string
		ended    time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&token, &instance, &ended}, func() error {
		all++
		if !f.wasHarmed(instance, ended) && !f.fenced(instance, stint.Token(token), ended) {
			f.t.Errorf("%s was buried as engine %d at %v, but it lived and had not fenced itself", instance, token, ended)
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(fmt.Errorf("read the burials: %w", err))
	}
	return all
}

// fenced tells whether an engine had ended its session before a moment, or had
// never begun it.
func (f *Fleet) fenced(process string, engine stint.Token, before time.Time) bool {
	began := false
	for _, e := range f.Events(process) {
		switch {
		case e.Engine != engine:
		case e.Type == stint.EventJoined:
			began = true
		case e.Type == stint.EventBuried:
			return e.At.Before(before)
		}
	}
	return !began
}
