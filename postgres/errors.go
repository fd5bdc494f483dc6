package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// wrap adds to the error that a function returns what was tried.
func wrap(err *error, what string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), *err)
	}
}

// errWritten is what stint.claim answers in a transaction that wrote before.
var errWritten = errors.New("a claim must be a transaction of its own")

// ownCodes are the errors of the schema's functions.
var ownCodes = map[string]error{
	"ST001": errIsolation, "ST002": store.ErrBuried, "ST003": store.ErrClaimGone, "ST004": errWritten,
	"ST005": stint.ErrKeyConflict, "ST006": store.ErrDuplicate, "ST008": store.ErrDuplicate, "ST009": stint.ErrNotFound, "ST010": stint.ErrEnded, "ST013": stint.ErrNotAsked, "ST015": stint.ErrNoAnswer, "ST020": store.ErrNotHeld,
}

// awayError is an error of the connection or of a server that starts, stops or is full. It says the same, and matches
// [store.ErrAway].
type awayError struct{ error }

func (e awayError) Unwrap() error        { return e.error }
func (e awayError) Is(target error) bool { return target == store.ErrAway }

// isAway reports whether an error is one of these. Other refusals of a server stay.
func isAway(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return slices.Contains([]string{"53300", "57P01", "57P02", "57P03"}, pg.Code) || strings.HasPrefix(pg.Code, "08")
	}
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connect || network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// ownError is an error of the schema's functions. The server's stays inside and is not printed, which would add
// codes that mean nothing to people.
type ownError struct {
	own  error
	pg   error
	text string
}

func (e *ownError) Error() string   { return e.text }
func (e *ownError) Unwrap() []error { return []error{e.own, e.pg} }

// explainOwn words an error of the schema's functions. Those that people call write whole sentences, which begin
// with the name of the program.
func explainOwn(own, err error, message string) error {
	text, whole := strings.CutPrefix(message, "stint: ")
	if !whole {
		text = own.Error() + ": " + message
	}
	return &ownError{own, err, text}
}

// translate says in stint's words what PostgreSQL said by code, and what is wrong with the connection. The
// server's error stays inside.
func translate(err error) error {
	if isAway(err) {
		return awayError{err}
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	if own := ownCodes[pg.Code]; own != nil {
		return explainOwn(own, err, pg.Message)
	}
	switch {
	case strings.HasPrefix(pg.Code, "28"):
		return fmt.Errorf("%w: %w", store.ErrLogin, err)
	case pg.Code == "ST007":
		return valid.Invalid("unique", "%s", strings.TrimPrefix(pg.Message, "stint: "))
	case pg.Code == "ST012":
		return valid.Invalid("needs", "%s", strings.TrimPrefix(pg.Message, "stint: "))
	case pg.Code == "ST011":
		return valid.Invalid("signal", "%s", strings.TrimPrefix(pg.Message, "stint: "))
	case pg.Code == "26000", pg.Code == "42P05":
		return explainPooled(err)
	case pg.Code == "42501":
		return fmt.Errorf("%w (postgres.Roles and stint migrate roles give each role its own): %w", store.ErrDenied, err)
	case pg.Code == "42P01", pg.Code == "3F000", pg.Code == "42883":
		return fmt.Errorf("%w: it is not installed, or part of it is missing, which stint doctor finds: %w", store.ErrSchema, err)
	case pg.ConstraintName == "entries_start_by": // see stint.start_by; in the same words as SQLite
		return valid.Invalid("start by", "the job is due only after that")
	case pg.Code == "2200H":
		return fmt.Errorf("the numbers of a sequence are used up: %w", err) // which is of no value's making
	case strings.HasPrefix(pg.Code, "22"), strings.HasPrefix(pg.Code, "54"):
		// Data exceptions and program limits: the same value will be refused
		// each time.
		return fmt.Errorf("%w: %w", stint.ErrUnstorable, err)
	}
	return err
}
