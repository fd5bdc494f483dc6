package postgres

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pipeline sends statements with binary parameters and reads the answers up
// to each Sync: each part is a transaction of its own.
type pipeline struct {
	*pgconn.Pipeline
	names map[string]string // of the texts that the session has prepared
	heard *answers          // nil without a hook
}

// pipeline begins one. The texts that do the work are prepared once for each
// connection: parsing them costs an idle engine as much as many a statement.
func (s *Store) pipeline(ctx context.Context, conn *pgx.Conn, texts ...string) (pipeline, error) {
	p := pipeline{}
	if s.prepares {
		p.names = make(map[string]string, len(texts))
		for _, text := range texts {
			d, err := conn.Prepare(ctx, text, text) // the text as its name: pgx derives one, once
			if err != nil {
				return p, translate(err)
			}
			p.names[text] = d.Name
		}
	}
	p.heard = s.hear()
	p.Pipeline = conn.PgConn().StartPipeline(ctx)
	return p, nil
}

func (p pipeline) send(text string, params ...param) {
	values, oids, formats := make([][]byte, len(params)), make([]uint32, len(params)), make([]int16, len(params))
	for i, q := range params {
		values[i], oids[i], formats[i] = q.value, q.oid, pgx.BinaryFormatCode
	}
	p.heard.sent(text)
	results := []int16{pgx.BinaryFormatCode}
	if name, ok := p.names[text]; ok {
		p.SendQueryPrepared(name, values, formats, results)
	} else {
		p.SendQueryParams(text, values, oids, formats, results)
	}
	if p.heard != nil {
		// Otherwise the server keeps its answers until the Sync, and the first
		// statement would seem to take as long as all of them.
		p.SendFlushRequest()
	}
}

// transaction sends one statement as a transaction of its own. It says its
// isolation itself where the session's default is another.
func (p pipeline) transaction(explicit bool, text string, params ...param) {
	if explicit {
		p.send(beginSQL)
	}
	p.send(text, params...)
	if explicit {
		p.send(commitSQL)
	}
}

// part hands each row of the results up to the next Sync to row, and returns the
// first error among them. The bytes of a row are the driver's again when row returns.
func (p pipeline) part(row func(values [][]byte)) error {
	var first error
	for {
		results, err := p.GetResults()
		if err != nil {
			p.heard.answered(0, err)
			first = cmp.Or(first, err)
			if p.broken(err) {
				return first
			}
			continue
		}
		switch r := results.(type) {
		case *pgconn.PipelineSync:
			p.heard.synced()
			return first
		case *pgconn.ResultReader:
			for r.NextRow() {
				row(r.Values())
			}
			tag, err := r.Close()
			p.heard.answered(tag.RowsAffected(), err)
			first = cmp.Or(first, err)
		case nil:
			return cmp.Or(first, errors.New("the server's answers ended early"))
		}
	}
}

// broken distinguishes errors of the connection, after which nothing comes, from the
// server's answers.
func (p pipeline) broken(err error) bool {
	var pg *pgconn.PgError
	return !errors.As(err, &pg) || pg.Severity == "FATAL"
}

// call sends one statement, and hands each row of its answer to row.
func (p pipeline) call(explicit bool, text string, row func(values [][]byte), params ...param) error {
	p.transaction(explicit, text, params...)
	err := p.Sync()
	if err == nil {
		err = p.part(row)
	}
	return errors.Join(err, p.Close())
}
