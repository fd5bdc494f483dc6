package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

const (
	defaultFile   = "stint.db"
	defaultPrefix = "stint_"
)

type databaseFlags struct {
	url, schema string
	prefix      string // of an SQLite file's tables
	schemaGiven bool
	connections int // of a PostgreSQL pool whose size the URL does not say; 0 is the size for an engine
	logSQL      sqlLog
}

func (f *databaseFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&f.url, "db", defaultFile, "the database: an SQLite file, or PostgreSQL by URL or key=value")
	flags.StringVar(&f.schema, "schema", "stint", "the schema within a PostgreSQL database")
	flags.StringVar(&f.prefix, "prefix", defaultPrefix, "what the names of the tables in an SQLite file begin with")
	flags.Var(sqlLogs.in(&f.logSQL), "log-sql", "log every statement with its time, or with --log-sql=50ms those that took as long (default none)")
	flags.Lookup("log-sql").NoOptDefVal = everyStatement
	elsewhere(flags, "", "db", "schema", "prefix", "log-sql")
}

// fullStore is everything that a command may ask of a database. Its value may have
// optional roles as well.
type fullStore interface {
	store.Store
	ops.Store
	store.Migrator
}

// reads is what commands ask of a store or of a server (package remote) without an
// operation of package ops.
type reads interface {
	stint.Enqueuer
	store.Inspector
	store.Operator
	store.Pauser
	store.ScheduleKeeper
	store.LogReader
	report.LiveStats

	Engines(ctx context.Context) ([]store.EngineInfo, error)
	FormerEngines(ctx context.Context, f store.FormerFilter) ([]store.FormerEngine, error)
	EngineMetrics(ctx context.Context) ([]report.Metrics, error)
	Changes(ctx context.Context, f store.ChangeFilter) ([]store.Change, error)
	Errors(ctx context.Context, f report.ErrorFilter) (report.ErrorReport, error)
}

// database is an open database, or one that a server has. It does operations, here or on
// the server. Pass on its store, not the database itself, which hides optional roles.
type database struct {
	reads
	ops.Caller
	roles fullStore // nil if a server has it
	Close func()
}

// opened is a database that this process opened.
func (a *app) opened(st fullStore, end func()) *database {
	var known []stint.KindInfo
	if !a.shared() {
		known = builtin.declarations()
	}
	return &database{ops.Show(st), &ops.Local{
		Store: st, Builtin: known, CheckArgs: checkArgs, Way: store.WayCommand, As: &guard.Identity{Name: a.by(), Role: guard.Admin}, Bounded: boundedKinds(),
		Bury: func(ctx context.Context, e store.EngineID, why string) (int, error) {
			return engine.Bury(ctx, st, e, why)
		},
		Failed: func(_ context.Context, _ string, err error) { a.note("stint: %v", err) },
	}, st, end}
}

// now is the time by the clock of the database.
func (db *database) now(ctx context.Context) (time.Time, error) {
	c, err := ops.ReadClock.Call(ctx, db, ops.None{})
	return c.Now, err
}

// access says what opening a database may change.
type access int

const (
	looking    access = iota // it must exist, and is not changed
	changing                 // it must exist
	creating                 // it is created or, a local file, upgraded
	migrating                // it must exist, with any schema
	installing               // the same, and a local file is created
	examining                // it must exist, with any schema, and is not changed
)

// connectTimeout keeps a command from waiting minutes for an address that drops
// packets.
const connectTimeout = "10"

// engineConnections is the size of the pool of an engine.
const engineConnections = "8"

var (
	keyValue = regexp.MustCompile(`^\s*[a-z_]+\s*=`)
	scheme   = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]+)://`)
)

// isPostgres reports whether the address is a URL or key=value string of PostgreSQL, and
// not a path.
func (f databaseFlags) isPostgres() bool {
	return strings.HasPrefix(f.url, "postgres://") || strings.HasPrefix(f.url, "postgresql://") || keyValue.MatchString(f.url)
}

// check finds an address that can never be right, before anything is opened.
func (f databaseFlags) check() error {
	if f.isPostgres() {
		if _, err := pgconn.ParseConfig(f.url); err != nil {
			return settingf("db", "%w", err)
		}
		if f.prefix != defaultPrefix && f.prefix != "" {
			return usagef("--prefix is for SQLite, and this is %s", f.place())
		}
		return nil
	}
	switch {
	case f.url == "":
		return withHint(settingf("db", "it is empty"), "name an SQLite file or a PostgreSQL URL, or leave --db out for %s", defaultFile)
	case scheme.MatchString(f.url):
		return withHint(settingf("db", "stint knows no database of the kind %q", scheme.FindStringSubmatch(f.url)[1]),
			"write a path for SQLite, or postgres://user@host/name")
	case strings.ContainsRune(f.url, 0):
		return settingf("db", "the path holds a NUL character")
	case f.schemaGiven:
		return usagef("--schema is for PostgreSQL, and %s is an SQLite file", f.url)
	}
	return f.checkPath()
}

// checkPath finds a path that no option could fix.
func (f databaseFlags) checkPath() error {
	if info, err := os.Stat(f.url); err == nil && info.IsDir() {
		return withHint(fmt.Errorf("%s is a directory", f.url), "name a file in it: --db %s", shellQuote(filepath.Join(f.url, defaultFile)))
	}
	dir := filepath.Dir(f.url)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return withHint(fmt.Errorf("there is no directory %s", dir), "create it first, or name another file by --db or STINT_DB")
	}
	return nil
}

// absent reports whether the database is a local file that does not exist yet.
func (f databaseFlags) absent() bool {
	if f.isPostgres() || f.url == sqlite.Memory {
		return false
	}
	_, err := os.Stat(f.url)
	return errors.Is(err, fs.ErrNotExist)
}

func (a *app) open(ctx context.Context, how access) (*database, error) {
	if a.server.asked {
		return a.openServer()
	}
	return a.openSchema(ctx, how, a.db)
}

func (a *app) openSchema(ctx context.Context, how access, f databaseFlags) (*database, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.isPostgres() {
		s, err := postgres.Open(ctx, f.withDefaults(), postgres.Config{
			Schema: f.schema, NoInstall: how <= changing, SkipCheck: how >= migrating, OnQuery: a.onQuery(),
		})
		if err != nil {
			return nil, err
		}
		return a.opened(s, s.Close), nil
	}
	mayCreate := how == creating || how == installing
	if !mayCreate && f.absent() {
		return nil, withHint(errors.New("there is no database file "+f.url), "stint up creates it; --db or STINT_DB names another one")
	}
	s, err := sqlite.Open(ctx, f.url, sqlite.Config{
		Upgrade: how == creating, NoInstall: !mayCreate, SkipCheck: how >= migrating, ReadOnly: how == looking || how == examining,
		OnQuery: a.onQuery(), Prefix: f.prefix,
	})
	if err != nil {
		return nil, err
	}
	return a.opened(s, func() { _ = s.Close() }), nil
}

func (f databaseFlags) withDefaults() string {
	connections := engineConnections
	if f.connections > 0 {
		connections = strconv.Itoa(f.connections)
	}
	for _, setting := range [][2]string{{"connect_timeout", connectTimeout}, {"pool_max_conns", connections}} {
		name, value := setting[0], setting[1]
		switch {
		case strings.Contains(f.url, name+"="):
		case keyValue.MatchString(f.url):
			f.url += " " + name + "=" + value
		case strings.Contains(f.url, "?"):
			f.url += "&" + name + "=" + value
		default:
			f.url += "?" + name + "=" + value
		}
	}
	return f.url
}
