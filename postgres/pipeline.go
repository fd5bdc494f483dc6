package postgres

import (
	"cmp"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pipeline sends statements with binary parameters and reads the answers up
// to each Sync: each part is a transaction of its own.
type pipeline struct{ *pgconn.Pipeline }

func (p pipeline) send(text string, params ...param) {
	values, oids, formats := make([][]byte, len(params)), make([]uint32, len(params)), make([]int16, len(params))
	for i, q := range params {
		values[i], oids[i], formats[i] = q.value, q.oid, pgx.BinaryFormatCode
	}
	p.SendQueryParams(text, values, oids, formats, []int16{pgx.BinaryFormatCode})
}

// part reads results up to the next Sync and returns the first error among them.
func (p pipeline) part(read func(*pgconn.ResultReader) error) error {
	var first error
	for {
		results, err := p.GetResults()
		if err != nil {
			first = cmp.Or(first, err)
			if p.broken(err) {
				return first
			}
			continue
		}
		switch r := results.(type) {
		case *pgconn.PipelineSync:
			return first
		case *pgconn.ResultReader:
			err := read(r)
			_, closeErr := r.Close()
			if first == nil {
				first = errors.Join(err, closeErr)
			}
		case nil:
			return cmp.Or(first, errors.New("the server's answers ended early"))
		}
	}
}

// broken tells errors of the connection, after which nothing comes, from the
// server's answers.
func (p pipeline) broken(err error) bool {
	var pg *pgconn.PgError
	return !errors.As(err, &pg) || pg.Severity == "FATAL"
}
