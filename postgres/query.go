package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"

	"github.com/stint-go/stint/event"
)

// traceQueries has a function told what connections of a configuration run,
// beside the tracer that it has.
func traceQueries(config *pgx.ConnConfig, tell func(event.Query)) {
	switch before := config.Tracer; {
	case tell == nil:
	case before == nil:
		config.Tracer = queryTracer{tell}
	default:
		config.Tracer = multitracer.New(before, queryTracer{tell})
	}
}

// traceAsWell is traceQueries for connections with the settings of the program's
// pool, which are traced already if the store opened that.
func (s *Store) traceAsWell(config *pgx.ConnConfig) {
	if !s.owned {
		traceQueries(config, s.config.OnQuery)
	}
}

// queryTracer reports what goes through pgx; what goes past it, in a
// [pipeline], is told by [answers].
type queryTracer struct{ tell func(event.Query) }

var (
	_ pgx.QueryTracer    = queryTracer{}
	_ pgx.BatchTracer    = queryTracer{}
	_ pgx.CopyFromTracer = queryTracer{}
)

// running is a statement that was sent, under its key in a context.
type running struct {
	text  string
	since time.Time
}

type runningKey struct{}

func clocked(ctx context.Context, text string) context.Context {
	return context.WithValue(ctx, runningKey{}, running{text, time.Now()})
}

func (t queryTracer) end(ctx context.Context, rows int64, err error) {
	if r, ok := ctx.Value(runningKey{}).(running); ok {
		event.Query{Text: r.text, Took: time.Since(r.since), Rows: rows, Err: err}.TellTo(t.tell)
	}
}

// TraceQueryStart implements [pgx.QueryTracer].
func (queryTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return clocked(ctx, data.SQL)
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (t queryTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	t.end(ctx, data.CommandTag.RowsAffected(), data.Err)
}

// TraceBatchStart implements [pgx.BatchTracer].
func (queryTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements [pgx.BatchTracer]: a statement of a batch took from
// when its answer was the next to be read.
func (t queryTracer) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	event.Query{Text: data.SQL, Took: time.Since(data.ReadStartTime), Rows: data.CommandTag.RowsAffected(), Err: data.Err}.TellTo(t.tell)
}

// TraceBatchEnd implements [pgx.BatchTracer].
func (queryTracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TraceCopyFromStart implements [pgx.CopyFromTracer].
func (queryTracer) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromStartData) context.Context {
	return clocked(ctx, "copy "+data.TableName.Sanitize()+" from stdin")
}

// TraceCopyFromEnd implements [pgx.CopyFromTracer].
func (t queryTracer) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromEndData) {
	t.end(ctx, data.CommandTag.RowsAffected(), data.Err)
}

// answers knows what was sent in a pipeline, and tells of each statement when its
// answer has been read. Nil reports nothing.
type answers struct {
	tell  func(event.Query)
	texts []string // in the order of their answers
	next  int
	since time.Time // when the answer to the next was the one to wait for
}

// hear returns answers that tell the hook, or nil without one.
func (s *Store) hear() *answers {
	if s.config.OnQuery == nil {
		return nil
	}
	return &answers{tell: s.config.OnQuery, since: time.Now()}
}

// endOfPart stands among the texts for a Sync: after an error, nothing is
// answered up to there.
const endOfPart = ""

func (a *answers) sent(text string) {
	if a != nil {
		a.texts = append(a.texts, text)
	}
}

func (a *answers) answered(rows int64, err error) {
	if a == nil || a.next >= len(a.texts) || a.texts[a.next] == endOfPart {
		return
	}
	now := time.Now()
	event.Query{Text: a.texts[a.next], Took: now.Sub(a.since), Rows: rows, Err: err}.TellTo(a.tell)
	a.next, a.since = a.next+1, now
}

func (a *answers) synced() {
	if a == nil {
		return
	}
	for a.next < len(a.texts) && a.texts[a.next] != endOfPart {
		a.next++
	}
	a.next++
	a.since = time.Now()
}

// SendPipelineSync ends a part.
func (p pipeline) SendPipelineSync() {
	p.heard.sent(endOfPart)
	p.Pipeline.SendPipelineSync()
}

// Sync ends the last part, and sends what was not sent yet.
func (p pipeline) Sync() error {
	p.heard.sent(endOfPart)
	return p.Pipeline.Sync()
}
