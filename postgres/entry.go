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
	seen   int                    // rows
	last   *store.Entry
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
  retry, args, metadata, tags, urn, source, correlation, max_losses, start_by, recovered, schedule, nth, occurrence, limits, cancelled, flow`

// row reads one of these.
func (r *entryReader) row(v [][]byte) {
	next := func() (b []byte) {
		b, v = v[0], v[1:]
		return b
	}
	pos := store.Position(int64of(next()))
	i, ok := r.place(r.seen, pos)
	if r.seen++; !ok {
		return
	}
	e, last := &r.list[i], r.last // most have the last one's queue and kind, and many its arguments
	r.last = e
	e.Pos, e.ID = pos, stint.ID(cmp.Or(int64of(next()), int64(pos)))
	queue := next()
	e.Priority = int(int16of(next()))
	if kind := next(); last != nil && string(queue) == last.Queue && string(kind) == last.Kind {
		e.Queue, e.Kind = last.Queue, last.Kind
	} else {
		e.Queue, e.Kind = string(queue), string(kind)
	}
	e.Attempt, e.Losses, e.Suspect = cmp.Or(int(int32of(next())), 1), int(int16of(next())), int(int16of(next()))
	e.Ready = timeOf(next())
	e.Created, e.Due = e.Ready, e.Ready
	if created := next(); created != nil {
		e.Created = timeOf(created)
	}
	if due := next(); due != nil {
		e.Due = timeOf(due)
	}
	e.Timeout = time.Duration(int64of(next())) * time.Millisecond
	r.policy[i] = int64of(next())
	if policy := next(); policy != nil {
		// A policy that cannot be read is one that SQL wrote by hand. The
		// default serves until it is fixed.
		if err := json.Unmarshal(policy[1:], &e.Retry); err != nil {
			e.Retry = retry.Default()
		}
	}
	if args := next(); last != nil && len(last.Args) > 0 && len(args) > 0 && bytes.Equal(args[1:], last.Args) {
		e.Args = slices.Clip(last.Args)
	} else {
		e.Args = jsonOf(args)
	}
	e.Metadata = jsonOf(next())
	array(next(), func(tag []byte) { e.Tags = append(e.Tags, string(tag)) })
	e.URN, e.Source, e.Correlation = string(next()), string(next()), string(next())
	e.MaxLosses = stint.DefaultMaxLosses
	if losses := next(); losses != nil {
		e.MaxLosses = int(int16of(losses))
	}
	e.StartBy = timeOf(next())
	e.Origin = stint.Origin{Recovered: stint.ID(int64of(next())), Schedule: string(next()), Nth: int64of(next()), Occurrence: timeOf(next())}
	if limits := next(); last != nil && string(limits) == last.Limits {
		e.Limits = last.Limits
	} else {
		e.Limits = string(limits)
	}
	cancelled := next()
	e.Cancelled = len(cancelled) == 1 && cancelled[0] == 1
	e.Flow = stint.ID(int64of(next()))
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
