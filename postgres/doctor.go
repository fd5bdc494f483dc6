package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
)

var _ stint.Examiner = (*Store)(nil)

// norms say from when on what is normal for a while is worth a word.
type norms struct {
	held      time.Duration // a transaction that pins the horizon
	idle      time.Duration // a transaction that nobody goes on with
	blocked   time.Duration // a session of stint that waits for a lock
	queued    time.Duration // a session that waits to lock one of stint's tables
	stands    time.Duration // whatever waits for so long is a problem
	look      time.Duration // one question to the server
	whole     time.Duration // all of them, beside the time that the network takes
	ring      time.Duration // from NOTIFY to whoever listens
	frozen    int64         // transactions since the oldest row of the database was frozen; the server stops near 2,100 million
	dead      int64         // dead rows of a table with few live ones
	keptWAL   int64         // bytes that a replication slot keeps
	history   time.Duration // the age of the oldest outcome
	fullShare float64       // connections in use, of those that there are
}

var usual = norms{
	held: 5 * time.Minute, idle: 30 * time.Second, blocked: 5 * time.Second, queued: time.Second, stands: time.Minute,
	look: 3 * time.Second, whole: 5 * time.Second, ring: 2 * time.Second,
	frozen: 1_000_000_000, dead: 50_000, keptWAL: 10 << 30, history: 60 * 24 * time.Hour, fullShare: 0.85,
}

// Once it is known that somebody is blocked, whatever has to wait for a lock
// waits as well.
const lookBlocked = 200 * time.Millisecond

// examination is one run of Examine.
type examination struct {
	*Store
	normal  norms
	version int       // of the server: 150003
	role    string    // whose rights it looks with
	sees    bool      // all that other sessions do
	standby bool      // the server only repeats what another one does
	until   time.Time // when the whole look ends
	recent  bool      // a schema that was sound a moment ago need not be compared again
	stuck   []string  // who was found to wait for a lock
	signs   stint.Signs
}

// question is one thing to look at. Each has a transaction and a time-out of
// its own, so that one that is refused or takes long costs its own answer only.
type question struct {
	about  string
	tables bool // it reads stint's tables, which must be there in this version
	ask    func(x *examination, ctx context.Context, tx pgx.Tx) error
}

// questions begin with those that need none of stint's tables: who locks one
// is known before anything waits for it.
var questions = []question{
	{"the server", false, (*examination).server},
	{"sessions that are blocked", false, (*examination).blocked},
	{"the server's settings", false, (*examination).settings},
	{"transaction numbers", false, (*examination).wraparound},
	{"connections", false, (*examination).connections},
	{"sessions that pin the horizon", false, (*examination).horizonSessions},
	{"prepared transactions", false, (*examination).horizonPrepared},
	{"replication slots", false, (*examination).horizonSlots},
	{"standbys", false, (*examination).horizonStandbys},
	{"the objects of the schema", true, (*examination).drift},
	{"where the log was written", true, (*examination).identity},
	{"tables", true, (*examination).tables},
	{"what is ready", true, (*examination).ready},
	{"what is undecided", true, (*examination).undecided},
	{"what silent engines hold", true, (*examination).holds},
}

// Examine implements [stint.Examiner].
func (s *Store) Examine(ctx context.Context, e stint.Examination) (stint.Signs, error) {
	x := &examination{Store: s, normal: usual, recent: !e.Deep}
	return x.run(ctx)
}

// run asks all questions.
func (x *examination) run(ctx context.Context) (stint.Signs, error) {
	x.hurry(ctx)
	asked := false // for the version
	var info stint.SchemaInfo
	for _, q := range questions {
		if q.tables && !asked {
			asked = true
			info = x.installedVersion(ctx)
		}
		if q.tables && (info.Installed == 0 || info.Installed != info.Known) {
			continue
		}
		if err := x.put(ctx, q); err != nil {
			x.notLookedAt(q, err)
		}
		if ctx.Err() != nil {
			return x.signs, ctx.Err()
		}
	}
	x.listening(ctx)
	return x.signs, ctx.Err()
}

// hurry sets the end of the whole look. A round trip shows what the network
// takes of it, which is nobody's fault.
func (x *examination) hurry(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, x.normal.look)
	defer cancel()
	_, err := x.pool.Exec(limited, "select") // connects
	began := time.Now()
	if err == nil {
		_, _ = x.pool.Exec(limited, "select") // what is wrong is told of by the questions
	}
	const trips = 60 // of all questions together
	x.until = time.Now().Add(x.normal.whole + trips*time.Since(began))
}

// installedVersion is the schema's, as far as it can be read: whoever cannot says so elsewhere.
func (x *examination) installedVersion(ctx context.Context) stint.SchemaInfo {
	ctx, cancel := context.WithTimeout(ctx, x.patience())
	defer cancel()
	info, _ := x.Schema(ctx)
	return info
}

// patience is for how long the next question may take: it leaves room for
// those behind it.
func (x *examination) patience() time.Duration {
	left := max(time.Until(x.until)/2, 100*time.Millisecond)
	if len(x.stuck) > 0 {
		left = min(left, lookBlocked)
	}
	return min(left, x.normal.look)
}

// put asks one question. The names of stint's own objects are looked up
// without their schema, so that their definitions read alike wherever they are.
func (x *examination) put(ctx context.Context, q question) error {
	look := min(x.normal.look, max(time.Until(x.until), 100*time.Millisecond))
	wait := x.patience()
	ctx, cancel := context.WithTimeout(ctx, 2*x.normal.look)
	defer cancel()
	opts := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, x.pool, opts, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true), set_config('search_path', $3, true)`,
			fmt.Sprint(look.Milliseconds()), fmt.Sprint(wait.Milliseconds()), x.sql.schema)
		if err != nil {
			return err
		}
		return q.ask(x, ctx, tx)
	})
}

func (x *examination) find(f stint.Finding) { x.signs.Findings = append(x.signs.Findings, f) }

// notLookedAt tells what was not answered. A right that is missing is worth a
// note where the rest is found without it: what stint's own tables say is what
// the look is for.
func (x *examination) notLookedAt(q question, err error) {
	f := stint.Finding{
		Severity: stint.SeverityWarning, Code: stint.CodeNotLookedAt, Subject: q.about,
		Problem: "it could not be looked at: " + err.Error(), Remedy: x.Advise(err),
	}
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) {
		f.Problem = "it could not be looked at: " + refused.Message
		switch refused.Code {
		case "42501": // insufficient privilege
			if !q.tables {
				f.Severity = stint.SeverityNote
			}
		case "55P03": // lock not available
			f.Problem = "a table that it is about is locked, and was not waited for"
		case "57014": // query cancelled
			f.Problem = fmt.Sprintf("it took longer than %v to look at", x.normal.look)
		}
		if len(x.stuck) > 0 && (refused.Code == "55P03" || refused.Code == "57014") {
			f.Remedy = "mend what is said of " + strings.Join(x.stuck, ", ") + " (blocked), and look again"
		}
	}
	x.find(f)
}

// Advise implements [stint.Adviser].
func (s *Store) Advise(err error) string {
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) {
		switch refused.Code {
		case "42501": // insufficient privilege
			name := func(role string) string { return pgx.Identifier{s.schema + "_" + role}.Sanitize() }
			return fmt.Sprintf("look as a login that is in one of the roles %s, %s and %s, which stint migrate roles makes; beside them, pg_monitor shows what other sessions do",
				name("viewer"), name("engine"), name("owner"))
		case "55P03": // lock not available
			return "see who holds the lock: select pid, pg_blocking_pids(pid), query from pg_stat_activity where wait_event_type = 'Lock'; and look again"
		case "42P01", "42703", "42883": // undefined table, column, function
			return "create what is missing, which the findings schema_missing_object name, and look again"
		}
	}
	return "see whether the server answers, and look again"
}

// ask collects rows of one type.
func ask[T any](ctx context.Context, tx pgx.Tx, text string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}
