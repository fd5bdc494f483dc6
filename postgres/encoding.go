package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint/store"
)

// Go's texts are UTF-8, and the server takes them for what the session says that
// they are. One whose role has another client_encoding stores each letter beyond
// ASCII as several others, without an error, and reads them back as they were, so
// only others see it. The store's own sessions say what they speak as they are
// opened. Those of programs are asked and not changed: a program may rely on what
// its sessions are like.

// speakUTF8 has connections say that they speak UTF-8. Said as they are opened it
// costs no round trip, and goes before what is set for the role and the database.
// Through a pooler nothing is said: it would change sessions that others use as
// well. There a role that speaks something else is refused.
func speakUTF8(config *pgx.ConnConfig) { config.RuntimeParams["client_encoding"] = "UTF8" }

// checkSpoken refuses a connection that speaks another encoding than UTF-8. The server
// tells with each change what the session speaks, so nothing needs to be asked. A
// pooler that does not tell is believed: it was asked when the store was opened.
func checkSpoken(conn *pgx.Conn) error {
	if spoken := conn.PgConn().ParameterStatus("client_encoding"); spoken != "" {
		return checkEncoding(spoken)
	}
	return nil
}

// checkEncoding refuses a client_encoding in which the server would not take Go's
// texts as they are. It takes those of SQL_ASCII for what the database's are.
// Poolers may tell the name as their client wrote it.
func checkEncoding(spoken string) error {
	if spoken == "UTF8" {
		return nil
	}
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(spoken)) {
	case "utf8", "unicode", "sqlascii":
		return nil
	}
	return fmt.Errorf("the session has the client_encoding %s, in which text beyond ASCII would be stored as something else: put client_encoding=UTF8 into the URL of its pool", spoken)
}

// checkDatabase refuses a database that cannot hold every text. A dump may have been
// restored into one.
func checkDatabase(encoding string) error {
	if encoding != "UTF8" {
		return fmt.Errorf("%w: the database's encoding is %s, and stint needs UTF8", store.ErrSchema, encoding)
	}
	return nil
}

// spoken runs f on a connection of a pool that speaks UTF-8.
func spoken(ctx context.Context, pool *pgxpool.Pool, f func(*pgxpool.Conn) error) error {
	return pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		if err := checkSpoken(c.Conn()); err != nil {
			return err
		}
		return f(c)
	})
}

// checkSpokenSQL is checkSpoken for a transaction of database/sql, which does not
// say what the server told: it has to be asked, and is only when a text goes beyond ASCII.
func checkSpokenSQL(ctx context.Context, tx *sql.Tx, args []any) error {
	if !slices.ContainsFunc(args, beyondASCII) {
		return nil
	}
	var encoding string
	if err := tx.QueryRowContext(ctx, "select current_setting('client_encoding')").Scan(&encoding); err != nil {
		return translate(err)
	}
	return checkEncoding(encoding)
}

func beyondASCII(arg any) bool {
	text, ok := arg.(string)
	return ok && strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}
