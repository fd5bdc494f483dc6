package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

var _ report.Checker = (*Store)(nil)

// norms are the limits from which on something is a finding.
type norms struct {
	held      time.Duration // a transaction that pins the horizon
	idle      time.Duration // an open transaction that runs no statement
	blocked   time.Duration // a session of stint that waits for a lock
	queued    time.Duration // a session that waits to lock one of stint's tables
	stands    time.Duration // whatever waits for so long is a problem
	look      time.Duration // one question to the server
	whole     time.Duration // all of them, beside the time that the network takes
	ring      time.Duration // from NOTIFY to a listener
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

// Once it is known that a session is blocked, a question that needs a lock would
// wait as well.
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
	stuck   []string  // sessions that wait for a lock
	signs   report.Facts
}

var problem, warning, note = report.SeverityProblem.Rule, report.SeverityWarning.Rule, report.SeverityNote.Rule

// question is one thing to look at. Each has a transaction and a timeout of
// its own, so that one that is refused or takes long costs its own answer only.
type question struct {
	about  string
	tables bool // it reads stint's tables, which must be there in this version

	// Most are a query, each row of which is a finding by the rule: see rows.
	rule report.Rule
	sql  string

	ask func(x *examination, ctx context.Context, tx pgx.Tx) error // the others
}

// questions begin with those that need none of stint's tables: which session locks
// one is known before anything waits for it.
var questions = []question{
	{about: "the server", ask: (*examination).server},
	{about: "sessions that are blocked", ask: (*examination).blocked},
	{about: "the server's settings", ask: (*examination).settings},
	wraparound,
	connections,
	{about: "sessions that pin the horizon", ask: (*examination).horizonSessions},
	horizonPrepared,
	{about: "replication slots", ask: (*examination).horizonSlots},
	horizonStandbys,
	{about: "the objects of the schema", tables: true, ask: (*examination).drift},
	identity,
	{about: "tables", tables: true, ask: (*examination).tables},
	{about: "what is ready", tables: true, ask: (*examination).ready},
	{about: "what is undecided", tables: true, ask: (*examination).undecided},
	{about: "flows", tables: true, ask: (*examination).flows},
	{about: "what silent engines hold", tables: true, ask: (*examination).holds},
}

// Examine implements [report.Checker].
func (s *Store) Examine(ctx context.Context, e report.Options) (report.Facts, error) {
	x := &examination{Store: s, normal: usual, recent: !e.Deep}
	return x.run(ctx)
}

// run asks all questions.
func (x *examination) run(ctx context.Context) (report.Facts, error) {
	x.hurry(ctx)
	asked := false // for the version
	var info store.SchemaInfo
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
// takes of it, which is no finding.
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

// installedVersion returns the version of the schema, as far as it can be read: if it cannot, that is a
// finding elsewhere.
func (x *examination) installedVersion(ctx context.Context) store.SchemaInfo {
	ctx, cancel := context.WithTimeout(ctx, x.patience())
	defer cancel()
	info, _ := x.Schema(ctx)
	return info
}

// patience is for how long the next question may take: it leaves time for
// those after it.
func (x *examination) patience() time.Duration {
	left := max(time.Until(x.until)/2, 100*time.Millisecond)
	if len(x.stuck) > 0 {
		left = min(left, lookBlocked)
	}
	return min(left, x.normal.look)
}

// askingSQL sets what a question is asked under. What changes how the server reads
// a query's text, and writes definitions and values, is as it was for the
// manifest, whatever is set for the database or the role.
const askingSQL = `
select set_config(name, value, true) from (values
  ('statement_timeout', $1), ('lock_timeout', $2), ('search_path', $3),
  ('standard_conforming_strings', 'on'), ('quote_all_identifiers', 'off'), ('intervalstyle', 'postgres'), ('datestyle', 'ISO, MDY'),
  ('timezone', 'UTC'), ('extra_float_digits', '1'), ('bytea_output', 'hex')) as s(name, value)`

// put asks one question. The names of stint's own objects are looked up
// without their schema, so that their definitions read alike wherever they are.
func (x *examination) put(ctx context.Context, q question) error {
	look := min(x.normal.look, max(time.Until(x.until), 100*time.Millisecond))
	wait := x.patience()
	ctx, cancel := context.WithTimeout(ctx, 2*x.normal.look)
	defer cancel()
	opts := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, x.pool, opts, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, askingSQL, fmt.Sprint(look.Milliseconds()), fmt.Sprint(wait.Milliseconds()), x.sql.schema); err != nil {
			return err
		}
		if q.ask != nil {
			return q.ask(x, ctx, tx)
		}
		return x.rows(ctx, tx, q)
	})
}

func (x *examination) find(f report.Finding) { x.signs.Findings = append(x.signs.Findings, f) }

// rows makes a finding of each row that a question's query returns. Its column subject says
// what the finding is about, and severity, where there is one, that it matters
// more or less than the rule says; the others are figures.
func (x *examination) rows(ctx context.Context, tx pgx.Tx, q question) error {
	rows, err := tx.Query(ctx, x.sql.in(q.sql), pgx.NamedArgs{
		"schema": x.sql.schema, "name": x.schema, "held": x.normal.held,
		"frozen": x.normal.frozen, "full_share": x.normal.fullShare,
	})
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToMap)
	for _, figures := range all {
		rule := q.rule.With("schema", x.sql.schema)
		if severity, is := figures["severity"].(string); is {
			rule.Severity = report.Severity(severity)
		}
		subject := figures["subject"].(string)
		maps.DeleteFunc(figures, func(name string, value any) bool { return value == nil || name == "subject" || name == "severity" })
		for name, value := range figures {
			if at, is := value.(time.Time); is {
				figures[name] = at.UTC()
			}
		}
		x.find(rule.Find(subject, figures))
	}
	return err
}

// notLookedAt reports what was not answered. A right that is missing is worth a
// note where the rest is found without it: what stint's own tables say is what
// the look is for.
func (x *examination) notLookedAt(q question, err error) {
	why, remedy, severity := err.Error(), x.Advise(err), report.SeverityWarning
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) {
		why = refused.Message
		if refused.Code == "42501" && !q.tables { // insufficient privilege
			severity = report.SeverityNote
		}
		if len(x.stuck) > 0 && (refused.Code == "55P03" || refused.Code == "57014") {
			remedy = "fix what is said of " + strings.Join(x.stuck, ", ") + " (blocked), and look again"
		}
		switch refused.Code {
		case "55P03": // lock not available
			why = "a table that it is about is locked, and was not waited for"
		case "57014": // query cancelled
			why = fmt.Sprintf("it took longer than %v", x.normal.look)
		}
	}
	f := report.NotChecked(q.about, why, remedy)
	f.Severity = severity
	x.find(f)
}

// Advise implements [report.Hinter].
func (s *Store) Advise(err error) string {
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) {
		switch refused.Code {
		case "42501": // insufficient privilege
			name := func(role string) string { return pgx.Identifier{s.schema + "_" + role}.Sanitize() }
			return fmt.Sprintf("look as a login that is in one of the roles %s, %s and %s, which stint migrate roles makes; a login that is in one lacks rights on what was installed since: stint migrate roles | psql \"$ADMIN_URL\" gives them; beside them, pg_monitor shows what other sessions do",
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
