package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// entryReader collects the rows of stint.fetch, which come in any order, in the
// order of the positions that were asked for.
type entryReader struct {
	list   []store.Entry
	policy []int64 // of each entry; 0 for none
	at     []store.Position
	places map[store.Position]int // in at; nil while rows come in that order
}

// reading returns a reader of the entries at some positions.
func reading(at []store.Position) entryReader {
	return entryReader{list: make([]store.Entry, len(at)), policy: make([]int64, len(at)), at: at}
}

// place is where the nth row belongs, if anywhere.
func (r *entryReader) place(n int, pos store.Position) (int, bool) {
	if r.places == nil {
		if n < len(r.at) && r.at[n] == pos {
			return n, true
		}
		r.places = make(map[store.Position]int, len(r.at))
		for i, pos := range r.at {
			r.places[pos] = i
		}
	}
	i, ok := r.places[pos]
	return i, ok
}

// compact leaves out positions of which no row came.
func (r *entryReader) compact() {
	n := 0
	for i := range r.list {
		if r.list[i].Pos == 0 {
			continue
		}
		if n < i {
			r.list[n], r.policy[n] = r.list[i], r.policy[i]
		}
		n++
	}
	r.list, r.policy = r.list[:n], r.policy[:n]
}

// entryColumns are the columns of stint.fetch. Statements that are prepared
// name them, so that one which a later schema adds does not end them.
const entryColumns = `pos, job, queue, priority, kind, attempt, losses, suspect, ready, created, due, timeout, policy,
  retry, args, metadata, tags, urn, source, correlation, max_losses, start_by, recovered, schedule, nth, occurrence, cancelled`

const (
	colPos = iota
	colJob
	colQueue
	colPriority
	colKind
	colAttempt
	colLosses
	colSuspect
	colReady
	colCreated
	colDue
	colTimeout
	colPolicy
	colRetry
	colArgs
	colMetadata
	colTags
	colURN
	colSource
	colCorrelation
	colMaxLosses
	colStartBy
	colRecovered
	colSchedule
	colNth
	colOccurrence
	colCancelled
)

// rows reads the rows of one answer.
func (r *entryReader) rows(rr *pgconn.ResultReader) {
	var last *store.Entry // most have its queue and kind, and many its arguments
	for n := 0; rr.NextRow(); n++ {
		v := rr.Values()
		pos := store.Position(int64of(v[colPos]))
		i, ok := r.place(n, pos)
		if !ok {
			continue
		}
		e := &r.list[i]
		r.policy[i] = int64of(v[colPolicy])
		e.Pos, e.Suspect = pos, int(int16of(v[colSuspect]))
		e.Cancelled = len(v[colCancelled]) == 1 && v[colCancelled][0] == 1
		e.ID, e.Priority = stint.ID(cmp.Or(int64of(v[colJob]), int64(pos))), int(int16of(v[colPriority]))
		e.Attempt, e.Losses, e.MaxLosses = cmp.Or(int(int32of(v[colAttempt])), 1), int(int16of(v[colLosses])), stint.DefaultMaxLosses
		if last != nil && string(v[colQueue]) == last.Queue && string(v[colKind]) == last.Kind {
			e.Queue, e.Kind = last.Queue, last.Kind
		} else {
			e.Queue, e.Kind = string(v[colQueue]), string(v[colKind])
		}
		e.Ready = timeOf(v[colReady])
		e.Created, e.Due = e.Ready, e.Ready
		if v[colCreated] != nil {
			e.Created = timeOf(v[colCreated])
		}
		if v[colDue] != nil {
			e.Due = timeOf(v[colDue])
		}
		if args := v[colArgs]; last != nil && len(last.Args) > 0 && len(args) > 0 && bytes.Equal(args[1:], last.Args) {
			e.Args = slices.Clip(last.Args)
		} else {
			e.Args = jsonOf(args)
		}
		e.Correlation = string(v[colCorrelation])
		r.options(e, v)
		last = e
	}
}

// options reads what few entries say.
func (r *entryReader) options(e *store.Entry, v [][]byte) {
	e.Timeout = time.Duration(int64of(v[colTimeout])) * time.Millisecond
	e.StartBy = timeOf(v[colStartBy])
	e.Metadata, e.URN, e.Source = jsonOf(v[colMetadata]), string(v[colURN]), string(v[colSource])
	e.Origin = stint.Origin{
		Recovered: stint.ID(int64of(v[colRecovered])), Schedule: string(v[colSchedule]),
		Nth: int64of(v[colNth]), Occurrence: timeOf(v[colOccurrence]),
	}
	if v[colMaxLosses] != nil {
		e.MaxLosses = int(int16of(v[colMaxLosses]))
	}
	array(v[colTags], func(tag []byte) { e.Tags = append(e.Tags, string(tag)) })
	if v[colRetry] != nil {
		// A policy that cannot be read is one that SQL wrote by hand. The
		// default serves until it is fixed.
		if err := json.Unmarshal(v[colRetry][1:], &e.Retry); err != nil {
			e.Retry = retry.Default()
		}
	}
}

// entries completes what was read with what entries do not say themselves, such as
// the policies that they refer to.
// Those that this process does not know are read on the connection that the
// caller holds: to take another from the pool could wait for ever.
func (s *Store) entries(ctx context.Context, q queryer, r *entryReader) ([]store.Entry, error) {
	r.compact()
	store.Correlate(r.list)
	missing := s.policies.fill(r)
	if missing == nil {
		return r.list, nil
	}
	found, err := s.readPolicies(ctx, q, missing)
	if err != nil {
		return nil, fmt.Errorf("read retry policies: %w", err)
	}
	for i, id := range r.policy {
		if policy, ok := found[id]; ok {
			r.list[i].Retry = policy
		}
	}
	return r.list, nil
}

// queryer is a connection or transaction.
type queryer interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}

func (s *Store) readPolicies(ctx context.Context, q queryer, ids []int64) (map[int64]retry.Policy, error) {
	slices.Sort(ids)
	rows, err := q.Query(ctx, s.sql.in(`select id, body from stint.policies where id = any($1)`), slices.Compact(ids))
	if err != nil {
		return nil, translate(err)
	}
	var (
		id    int64
		body  []byte
		found = map[int64]retry.Policy{}
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &body}, func() error {
		var p retry.Policy
		if err := json.Unmarshal(body, &p); err != nil {
			p = retry.Default() // a newer program's; the job must not wait for ours to be upgraded
		}
		found[id] = p
		s.policies.add(id, p)
		return nil
	})
	return found, translate(err)
}

// epoch is where PostgreSQL's binary timestamps begin, in microseconds of Unix.
const epoch = 946684800_000_000

func timeOf(b []byte) time.Time {
	if b == nil {
		return time.Time{}
	}
	return time.UnixMicro(int64of(b) + epoch).UTC()
}

// jsonOf is a jsonb value: its text after a version byte. It is copied, since
// the reader's memory is used again.
func jsonOf(b []byte) json.RawMessage {
	if b == nil {
		return nil
	}
	return bytes.Clone(b[1:])
}

func positionsOf(b []byte) []store.Position {
	var list []store.Position
	array(b, func(e []byte) { list = append(list, store.Position(int64of(e))) })
	return list
}
