package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// Exit codes. Scripts and supervisors rely on them.
const (
	exitOK           = 0
	exitFailed       = 1
	exitUsage        = 2 // the command line or an input can never be right
	exitStillRunning = 3 // stopped while handlers were still running
	exitMemory       = 4 // stopped because of --memory-limit; to be started again
)

// errReported says that the command failed and has printed why.
var errReported = errors.New("reported")

type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// hintedError carries advice. The outermost hint is shown.
type hintedError struct {
	err  error
	hint string
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

func withHint(err error, format string, args ...any) error {
	return &hintedError{err, fmt.Sprintf(format, args...)}
}

func exitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, engine.ErrStillRunning):
		return exitStillRunning
	case isMemory(err):
		return exitMemory
	case errors.As(err, &usage), errors.Is(err, stint.ErrInvalid), errors.Is(err, retry.ErrInvalid), errors.Is(err, cron.ErrInvalid):
		return exitUsage
	}
	return exitFailed
}

// isMemory reports whether an engine left because its process had grown too
// large.
func isMemory(err error) bool {
	_, ok := errors.AsType[*engine.MemoryError](err)
	return ok
}

// negative is what follows the sign of a negative number, or of a time.
var negative = regexp.MustCompile(`^\.?[0-9]`)

// asUsage words the errors of the parser of the command line.
func asUsage(err error, cmd *cobra.Command) error {
	var (
		usage   *usageError
		unknown *pflag.NotExistError
		invalid *pflag.InvalidValueError
		number  *strconv.NumError
	)
	switch {
	case errors.As(err, &usage):
		return err
	case errors.As(err, &invalid) && errors.As(err, &number):
		return settingf(invalid.GetFlag().Name, "%q is not a number that fits", number.Num)
	case errors.As(err, &invalid):
		return &usageError{&settingError{flag: invalid.GetFlag().Name, err: invalid.Unwrap()}}
	case !errors.As(err, &unknown):
	case negative.MatchString(unknown.GetSpecifiedShortnames()):
		return withHint(usagef("-%s is negative, and no flag", unknown.GetSpecifiedShortnames()), "it is used as: %s", cmd.UseLine())
	case unknown.GetSpecifiedName() == "since" && cmd.Flags().Lookup("created-after") != nil: // jobs have several times
		return withHint(&usageError{err}, "did you mean --created-after or --finished-after?")
	default:
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if meant := similar(unknown.GetSpecifiedName(), names); meant != "" {
			return withHint(&usageError{err}, "did you mean --%s?", meant)
		}
	}
	return withHint(&usageError{err}, "%s --help explains its use", cmd.CommandPath())
}

// similar returns the name that was probably meant; empty for none.
func similar(text string, names []string) string {
	known := &cobra.Command{SuggestionsMinimumDistance: min(2, max(1, len(text)-2))} // which knows how to find similar names
	for _, name := range names {
		known.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	if found := known.SuggestionsFor(text); len(found) > 0 {
		return found[0]
	}
	return ""
}

// report prints an error: one line, and one with a hint where there is one.
func (a *app) report(err error) {
	if errors.Is(err, errReported) {
		return
	}
	fmt.Fprintln(a.err, "stint: "+oneLine(err.Error()))
	var hinted *hintedError
	if errors.As(err, &hinted) {
		fmt.Fprintln(a.err, "hint: "+hinted.hint)
	}
}

// oneLine makes one line of a message, which may have several, and removes names of
// programs and packages that it repeats.
func oneLine(message string) string {
	lines := strings.FieldsFunc(message, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	message = words.Visible(strings.Join(lines, " "))
	message = strings.ReplaceAll(message, ": stint: ", ": ")
	for _, prefix := range []string{"stint: ", "engine: "} {
		message = strings.TrimPrefix(message, prefix)
	}
	return message
}

// explain adds to an error what it means to the user of the command. Other errors pass
// through.
func (a *app) explain(err error) error {
	var hinted *hintedError
	switch {
	case errors.As(err, &hinted), errors.Is(err, errReported):
		return err
	case a.server.asked:
		return a.explainServer(err)
	case errors.Is(err, store.ErrSchema):
		return a.explainSchema(err)
	case errors.Is(err, engine.ErrStillRunning):
		return withHint(err, "their jobs run again on other engines once this one counts as dead; handlers should return when their context ends")
	case isMemory(err):
		return withHint(err, "what ran has ended and is recorded; start this engine again (exit code %d)", exitMemory)
	case a.db.isPostgres():
		return a.explainPostgres(err)
	case errors.Is(err, os.ErrPermission):
		return withHint(err, "the file and its directory must be writable: SQLite keeps its journal beside the file")
	}
	return err
}

func (a *app) explainSchema(err error) error {
	db, openErr := a.open(context.Background(), migrating)
	if openErr != nil {
		return err
	}
	defer db.Close()
	info, schemaErr := db.roles.Schema(context.Background())
	switch {
	case schemaErr != nil:
		return err
	case info.Installed == 0:
		return withHint(fmt.Errorf("%s has no schema %q", a.db.place(), info.Where), "stint migrate up installs it, as does stint work")
	case info.Oldest > info.Known:
		return withHint(fmt.Errorf("the schema in %s is too new: it needs programs of version %d, this one knows %d", a.db.place(), info.Oldest, info.Known),
			"use a newer stint; this one is %s", version())
	case info.Installed < info.Known:
		return withHint(fmt.Errorf("the schema in %s is of version %d, this program needs %d", a.db.place(), info.Installed, info.Known),
			"stint migrate up upgrades it")
	}
	return withHint(err, "the schema is installed, and part of it is missing: stint doctor says what that is and how to put it back")
}

// explainPostgres words errors of connections. The driver's messages name every address
// that it tried, over several lines.
func (a *app) explainPostgres(err error) error {
	var (
		malformed *pgconn.ParseConfigError
		refused   *pgconn.PgError
		unknown   *net.DNSError
		connect   *pgconn.ConnectError
	)
	if errors.As(err, &malformed) {
		if setting := (*settingError)(nil); !errors.As(err, &setting) {
			err = &usageError{malformed}
		}
		return withHint(err, `write for example postgres://user:password@host:5432/name or "host=… user=… dbname=…"`)
	}
	c, parseErr := pgconn.ParseConfig(a.db.url)
	if parseErr != nil {
		return err
	}
	server := net.JoinHostPort(c.Host, fmt.Sprint(c.Port))
	if errors.As(err, &refused) {
		return a.explainRefusal(err, refused, c, server)
	}
	if !errors.As(err, &connect) {
		return err
	}
	switch {
	case errors.As(err, &unknown):
		return withHint(fmt.Errorf("the host %q of the database is not known", c.Host), "check the host in --db or STINT_DB")
	case pgconn.Timeout(err), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return withHint(fmt.Errorf("no PostgreSQL server answered at %s in time", server), "check host and port in --db or STINT_DB, and what lies between")
	}
	inner := innermost(connect)
	if strings.Contains(inner.Error(), "refused TLS") { // the driver has no type for it
		return withHint(fmt.Errorf("the PostgreSQL server at %s has no TLS, and sslmode asks for it", server),
			"switch ssl on there; or say sslmode=disable in --db or STINT_DB, if the network is private")
	}
	return withHint(fmt.Errorf("no PostgreSQL server answers at %s: %w", server, inner), "is it running, and are host and port in --db or STINT_DB right?")
}

// explainRefusal explains an error code of a server.
func (a *app) explainRefusal(err error, pg *pgconn.PgError, c *pgconn.Config, server string) error {
	switch pg.Code {
	case "28P01", "28000":
		return withHint(fmt.Errorf("%s does not let the user %q in: %s", server, c.User, pg.Message),
			"check user and password in --db or STINT_DB; PGPASSWORD and ~/.pgpass are read too")
	case "3D000":
		return withHint(fmt.Errorf("there is no database %q on %s", c.Database, server), "create it with createdb %s, or check the name in --db or STINT_DB", c.Database)
	case "42501":
		return withHint(fmt.Errorf("the user %q may not do this: %s", c.User, pg.Message), "%s", a.whatGivesRights())
	case "53300":
		return withHint(fmt.Errorf("%s has no connection left: %s", server, pg.Message), "an engine uses up to %s; add pool_max_conns=4 to the URL, or raise max_connections", engineConnections)
	case "57P03":
		return withHint(fmt.Errorf("%s takes no connections now: %s", server, pg.Message), "try again in a moment")
	}
	return err
}

// whatGivesRights says what gives a login of the database the rights that it lacks.
func (a *app) whatGivesRights() string {
	const members = "a login has the rights of the roles that it is a member of, such as stint_engine; stint migrate roles prints the script that makes these"
	ctx, cancel := context.WithTimeout(context.Background(), explainTime)
	defer cancel()
	db, err := a.open(ctx, migrating)
	if err != nil {
		return members
	}
	defer db.Close()
	s, ok := db.roles.(*postgres.Store)
	if !ok {
		return members
	}
	if lacks, err := s.LacksGrants(ctx); err == nil && lacks {
		return "the roles have no rights on what was installed last: run the script again: " + grantCommand
	}
	if info, err := s.Schema(ctx); err == nil && info.Installed == 0 {
		return "stint migrate roles prints a script that gives each role its rights; the owner of the schema installs it with stint migrate up"
	}
	return members
}

// explainTime bounds how long an error waits for the database that it is about.
const explainTime = 10 * time.Second

// innermost is the error that all others wrap, on the last of the branches.
func innermost(err error) error {
	for {
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			if e.Unwrap() == nil {
				return err
			}
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			all := e.Unwrap()
			if len(all) == 0 {
				return err
			}
			err = all[len(all)-1]
		default:
			return err
		}
	}
}

// place names the database for people, without its password.
func (f databaseFlags) place() string {
	if !f.isPostgres() {
		return f.url
	}
	c, err := pgconn.ParseConfig(f.url)
	if err != nil {
		return "the database"
	}
	return fmt.Sprintf("the PostgreSQL database %s on %s", c.Database, net.JoinHostPort(c.Host, fmt.Sprint(c.Port)))
}
