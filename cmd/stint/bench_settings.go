package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/ncruces/go-sqlite3"
)

// settings are what a figure depends on. A figure without them means nothing
// a month later.
type settings map[string]any

// serverSettings are PostgreSQL's that decide about the price of a commit,
// and about how much fits.
var serverSettings = []string{
	"server_version", "synchronous_commit", "synchronous_standby_names", "fsync", "full_page_writes", "wal_level", "wal_compression",
	"shared_buffers", "max_wal_size", "max_connections",
}

func (a *app) settings(ctx context.Context, g *ground) settings {
	s := settings{
		"stint": version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
		"processors": runtime.GOMAXPROCS(0), "history": "kept",
	}
	if g.flags.isPostgres() {
		s["database"] = "PostgreSQL"
		s.askPostgres(ctx, g.flags.withDefaults())
	} else {
		s["database"], s["synchronous_commit"] = "SQLite", "on" // the store opens with synchronous=FULL
		s.askSQLite()
	}
	return s
}

// askPostgres adds what the server says of itself; what it does not say is
// missing.
func (s settings) askPostgres(ctx context.Context, url string) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return
	}
	defer pool.Close()
	for _, name := range serverSettings {
		var value string
		if pool.QueryRow(ctx, "select current_setting($1)", name).Scan(&value) == nil {
			s[name] = value
		}
	}
}

func (s settings) askSQLite() {
	db, err := sqlite3.Open(":memory:")
	if err != nil {
		return
	}
	defer db.Close()
	q, _, err := db.Prepare("select sqlite_version()")
	if err != nil {
		return
	}
	defer q.Close()
	if q.Step() {
		s["server_version"] = q.ColumnText(0)
	}
}

func (s settings) print(w io.Writer) {
	fmt.Fprintln(w)
	t := newTable(w)
	for _, name := range slices.Sorted(maps.Keys(s)) {
		t.AppendRow([]any{strings.ReplaceAll(name, "_", " "), s[name]})
	}
	t.Render()
}
