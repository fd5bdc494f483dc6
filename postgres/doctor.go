package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
)

var _ stint.Examiner = (*Store)(nil)

// norms say from when on what is normal for a while is worth a word.
type norms struct {
	held      time.Duration // a transaction that pins the horizon
	blocked   time.Duration // a session of stint that waits for a lock
	look      time.Duration // one question to the server
	ring      time.Duration // from NOTIFY to whoever listens
	frozen    int64         // transactions since the oldest row of the database was frozen; the server stops near 2,100 million
	dead      int64         // dead rows of a table with few live ones
	keptWAL   int64         // bytes that a replication slot keeps
	history   time.Duration // the age of the oldest outcome
	fullShare float64       // connections in use, of those that there are
}

var usual = norms{
	held: 5 * time.Minute, blocked: 5 * time.Second, look: 3 * time.Second, ring: 2 * time.Second,
	frozen: 1_000_000_000, dead: 50_000, keptWAL: 10 << 30, history: 60 * 24 * time.Hour, fullShare: 0.85,
}

// examination is one run of Examine.
type examination struct {
	*Store
	normal  norms
	version int    // of the server: 150003
	role    string // whose rights it looks with
	sees    bool   // all that other sessions do
	standby bool   // the server only repeats what another one does
	signs   stint.Signs
}

// question is one thing to look at. Each has a transaction and a time-out of
// its own, so that one that is refused or takes long costs its own answer only.
type question struct {
	about  string
	tables bool // it reads stint's tables, which must be there in this version
	ask    func(x *examination, ctx context.Context, tx pgx.Tx) error
}

var questions = []question{
	{"the server", false, (*examination).server},
	{"the server's settings", false, (*examination).settings},
	{"transaction numbers", false, (*examination).wraparound},
	{"connections", false, (*examination).connections},
	{"sessions that pin the horizon", false, (*examination).horizonSessions},
	{"prepared transactions", false, (*examination).horizonPrepared},
	{"replication slots", false, (*examination).horizonSlots},
	{"standbys", false, (*examination).horizonStandbys},
	{"sessions that are blocked", false, (*examination).blocked},
	{"the objects of the schema", true, (*examination).drift},
	{"where the log was written", true, (*examination).identity},
	{"tables", true, (*examination).tables},
	{"what is ready", true, (*examination).ready},
	{"what is undecided", true, (*examination).undecided},
	{"what silent engines hold", true, (*examination).holds},
}

// Examine implements [stint.Examiner].
func (s *Store) Examine(ctx context.Context, _ stint.Examination) (stint.Signs, error) {
	return s.examine(ctx, usual)
}

func (s *Store) examine(ctx context.Context, n norms) (stint.Signs, error) {
	x := &examination{Store: s, normal: n}
	info, _ := s.Schema(ctx) // whoever cannot read it says so
	for _, q := range questions {
		if q.tables && (info.Installed == 0 || info.Installed != info.Known) {
			continue
		}
		if err := x.put(ctx, q); err != nil {
			x.notLookedAt(q.about, err)
		}
		if ctx.Err() != nil {
			return x.signs, ctx.Err()
		}
	}
	x.listening(ctx)
	return x.signs, ctx.Err()
}

// put asks one question. The names of stint's own objects are looked up
// without their schema, so that their definitions read alike wherever they are.
func (x *examination) put(ctx context.Context, q question) error {
	ctx, cancel := context.WithTimeout(ctx, 2*x.normal.look)
	defer cancel()
	opts := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, x.pool, opts, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select set_config('statement_timeout', $1, true), set_config('lock_timeout', $1, true), set_config('search_path', $2, true)`,
			fmt.Sprint(x.normal.look.Milliseconds()), x.sql.schema)
		if err != nil {
			return err
		}
		return q.ask(x, ctx, tx)
	})
}

func (x *examination) find(f stint.Finding) { x.signs.Findings = append(x.signs.Findings, f) }

// notLookedAt tells what was not answered. A right that is missing is worth a
// note: the rest is found without it.
func (x *examination) notLookedAt(about string, err error) {
	f := stint.Finding{
		Severity: stint.SeverityWarning, Code: stint.CodeNotLookedAt, Subject: about,
		Problem: "it could not be looked at: " + err.Error(), Remedy: "see whether the server answers, and look again",
	}
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) {
		f.Problem = "it could not be looked at: " + refused.Message
		if errors.Is(translate(err), stint.ErrSchema) {
			f.Remedy = "put back what is missing in the schema, and look again"
		}
		switch refused.Code {
		case "42501": // insufficient privilege
			f.Severity = stint.SeverityNote
			f.Remedy = fmt.Sprintf("look as another role, or: grant pg_monitor to %s; grant select on all tables in schema %s to %[1]s",
				pgx.Identifier{x.role}.Sanitize(), x.sql.schema)
		case "57014": // query cancelled
			f.Problem = fmt.Sprintf("it took longer than %v to look at", x.normal.look)
		}
	}
	x.find(f)
}

// ask collects rows of one type.
func ask[T any](ctx context.Context, tx pgx.Tx, text string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}
