package main

import (
	"context"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/load"
	"github.com/stint-go/stint/internal/pgload"
	"github.com/stint-go/stint/internal/sqliteload"
)

// Floors are what is compared with: the least that the same database must do.
// Each stands in a schema of its own, or in a file beside the ground's, and is
// closed before the ground is left. As that one, it is opened whole or not at
// all, whatever signal comes.

// takenAtOnce is how many jobs an engine claims at most at a time.
const takenAtOnce = 2000

// log opens a hand-written log that is filled by so many producers in batches of
// that size.
func (g *ground) log(ctx context.Context, producers, batch int) (log load.Log, closeLog func() error, err error) {
	if !g.flags.isPostgres() {
		l, err := sqliteload.NewLog(g.floorFile(), sqliteload.LogOptions{Batch: batch, Taken: takenAtOnce})
		if err != nil {
			return nil, nil, err
		}
		return l, l.Close, nil
	}
	l, err := pgload.NewLog(context.WithoutCancel(ctx), g.flags.withDefaults(), g.floorSchema(),
		pgload.LogOptions{Producers: producers, Batch: batch, Taken: takenAtOnce})
	if err != nil {
		return nil, nil, err
	}
	return l, l.Close, nil
}

// inserts opens a table for bare rows like those that jobs are stored in.
func (g *ground) inserts(ctx context.Context, producers int) (insert load.Insert, closeTable func() error, err error) {
	if !g.flags.isPostgres() {
		r, err := sqliteload.NewRows(g.floorFile())
		if err != nil {
			return nil, nil, err
		}
		return r.Insert, r.Close, nil
	}
	i, err := pgload.NewInserts(context.WithoutCancel(ctx), g.flags.withDefaults(), g.floorSchema(), producers,
		pgx.Identifier{g.flags.schema, "entries"}, []pgload.Column{
			{Name: "lane", Value: int64(stint.LaneOf(stint.DefaultQueue, 0, stint.PartNormal, "").ID)},
			{Name: "queue", Value: stint.DefaultQueue},
			{Name: "priority", Value: int16(0)},
			{Name: "kind", Value: "load_single"},
			{Name: "args", Value: "{}"},
		})
	if err != nil {
		return nil, nil, err
	}
	return i.Insert, i.Close, nil
}

// rounds opens a table for rows that are inserted, told of and read.
func (g *ground) rounds(ctx context.Context) (round load.Round, closeTable func() error, err error) {
	if !g.flags.isPostgres() {
		r, err := sqliteload.NewRows(g.floorFile())
		if err != nil {
			return nil, nil, err
		}
		return r.Round, r.Close, nil
	}
	r, err := pgload.NewRounds(context.WithoutCancel(ctx), g.flags.withDefaults(), g.floorSchema())
	if err != nil {
		return nil, nil, err
	}
	return r.Round, r.Close, nil
}

func (g *ground) floorSchema() string { return g.flags.schema + "_floor" }

func (g *ground) floorFile() string { return filepath.Join(filepath.Dir(g.flags.url), "floor.db") }
