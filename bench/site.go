package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/bench/floor"
	"github.com/stint-go/stint/bench/load"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// anyStore is one of either kind.
type anyStore interface {
	store.Store
	api.Store
	Uninstall(ctx context.Context) error
}

// site is where something is measured: an empty store in a schema of its own, or
// in a file of its own.
type site struct {
	*bench
	schema string // of PostgreSQL
	dir    string // of SQLite, which keeps files beside the database
	store  anyStore
}

func (b *bench) isPostgres() bool {
	return strings.HasPrefix(b.db, "postgres://") || strings.HasPrefix(b.db, "postgresql://")
}

// url is the database's, with as many connections as an engine wants, or else as
// there are producers of single jobs.
func (b *bench) url() string {
	if strings.Contains(b.db, "pool_max_conns=") {
		return b.db
	}
	connections, separator := 8, "?"
	if b.name == "single" {
		connections = b.producers + 1 // and what wakes
	}
	if strings.Contains(b.db, "?") {
		separator = "&"
	}
	return b.db + separator + "pool_max_conns=" + strconv.Itoa(connections)
}

// on opens a site, has something done there, and leaves nothing behind. A signal
// must not cut the installation short: what it had committed would stay.
func (b *bench) on(ctx context.Context, do func(s *site) error) (err error) {
	var random [4]byte
	rand.Read(random[:])
	name := "stint_bench_" + hex.EncodeToString(random[:])
	s := &site{bench: b, schema: name, dir: filepath.Join(filepath.Dir(b.db), name)}
	last := context.WithoutCancel(ctx)
	if !b.isPostgres() {
		if err := os.Mkdir(s.dir, 0o700); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	}
	var closeStore func()
	if s.store, closeStore, err = s.open(last); err != nil {
		return err
	}
	defer closeStore()
	if b.isPostgres() {
		defer func() { err = errors.Join(err, s.store.Uninstall(last)) }()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return do(s)
}

// jointly are entrants that are measured together on a site.
func (b *bench) jointly(names []string, measure func(ctx context.Context, s *site) ([]contest.Figures, error)) (all []contest.Entrant) {
	for i, turn := range contest.Jointly(len(names), func(ctx context.Context) (figures []contest.Figures, err error) {
		err = b.on(ctx, func(s *site) error {
			figures, err = measure(ctx, s)
			return err
		})
		return figures, err
	}) {
		all = append(all, contest.Entrant{Name: names[i], Turn: turn})
	}
	return all
}

// open opens the store once more.
func (s *site) open(ctx context.Context) (anyStore, func(), error) {
	if s.isPostgres() {
		p, err := postgres.Open(ctx, s.url(), postgres.Config{Schema: s.schema})
		if err != nil {
			return nil, nil, err
		}
		return p, p.Close, nil
	}
	f, err := sqlite.Open(ctx, filepath.Join(s.dir, "stint.db"))
	if err != nil {
		return nil, nil, err
	}
	return f, func() { _ = f.Close() }, nil
}

// queue is stint by the settings. It lives as long as the site.
func (s *site) queue(o load.Options) *load.Queue {
	o.Engines, o.Slots, o.OneByOne = s.engines, s.slots, s.oneByOne
	o.Open = func(ctx context.Context) (store.Store, func(), error) { return s.open(ctx) }
	return load.New(s.store, o, func() error { return nil })
}

// log has something done to a log that is kept by hand.
func (b *bench) log(ctx context.Context, do func(s *site, q contest.Queue) error) error {
	return b.on(ctx, func(s *site) (err error) {
		var q contest.Queue
		if b.isPostgres() {
			q, err = floor.NewPostgresLog(context.WithoutCancel(ctx), b.url(), s.schema+"_floor", b.producers)
		} else {
			q, err = floor.NewSQLiteLog(filepath.Join(s.dir, "floor.db"))
		}
		if err != nil {
			return err
		}
		err = do(s, q)
		return errors.Join(err, q.Close())
	})
}

// serverSettings are PostgreSQL's that decide about the price of a commit, and
// about how much fits.
var serverSettings = []string{
	"server_version", "synchronous_commit", "synchronous_standby_names", "fsync", "full_page_writes", "wal_level", "wal_compression",
	"shared_buffers", "max_wal_size", "max_connections",
}

// about adds what of the machine and the database figures depend on.
func (b *bench) about(ctx context.Context, all map[string]string) error {
	all["go"], all["platform"], all["processors"] = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH, fmt.Sprint(runtime.GOMAXPROCS(0))
	all["database"] = "SQLite, synchronous=FULL"
	if !b.isPostgres() {
		return aboutSQLite(all)
	}
	all["database"] = "PostgreSQL"
	conn, err := pgx.Connect(ctx, b.db)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, name := range serverSettings {
		var value string
		if err := conn.QueryRow(ctx, "select current_setting($1)", name).Scan(&value); err != nil {
			return err
		}
		all[name] = value
	}
	return nil
}

func aboutSQLite(all map[string]string) error {
	db, err := sqlite3.Open(":memory:")
	if err != nil {
		return err
	}
	defer db.Close()
	q, _, err := db.Prepare("select sqlite_version()")
	if err != nil {
		return err
	}
	if q.Step() {
		all["server_version"] = q.ColumnText(0)
	}
	return errors.Join(q.Err(), q.Close())
}
