package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

// entryReader collects the rows of stint.fetch.
type entryReader struct {
	list   []stint.Entry
	policy []int64 // of each entry; 0 for none
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

func (r *entryReader) rows(rr *pgconn.ResultReader) {
	for rr.NextRow() {
		v := rr.Values()
		e := stint.Entry{
			Pos:     stint.Position(int64of(v[colPos])),
			Ready:   timeOf(v[colReady]),
			Suspect: int(int16of(v[colSuspect])),
			Job: stint.Job{
				ID:       stint.ID(int64of(v[colJob])),
				Queue:    string(v[colQueue]),
				Priority: int(int16of(v[colPriority])),
				Kind:     string(v[colKind]),
				Attempt:  int(int32of(v[colAttempt])),
				Losses:   int(int16of(v[colLosses])),
				Created:  timeOf(v[colCreated]),
				Due:      timeOf(v[colDue]),
				Timeout:  time.Duration(int64of(v[colTimeout])) * time.Millisecond,
				StartBy:  timeOf(v[colStartBy]),
				Args:     jsonOf(v[colArgs]),
				Metadata: jsonOf(v[colMetadata]),
				URN:      string(v[colURN]),
				Source:   string(v[colSource]),

				MaxLosses: stint.DefaultMaxLosses,
				Provenance: stint.Provenance{
					Recovered: stint.ID(int64of(v[colRecovered])), Schedule: string(v[colSchedule]),
					Nth: int64of(v[colNth]), Occurrence: timeOf(v[colOccurrence]),
				},
			},
			Cancelled: len(v[colCancelled]) == 1 && v[colCancelled][0] == 1,
		}
		if v[colMaxLosses] != nil {
			e.MaxLosses = int(int16of(v[colMaxLosses]))
		}
		if e.Correlation = string(v[colCorrelation]); e.Correlation == "" {
			e.Correlation = e.ID.String()
		}
		array(v[colTags], func(tag []byte) { e.Tags = append(e.Tags, string(tag)) })
		if v[colRetry] != nil {
			// A policy that cannot be read is one that SQL wrote by hand. The
			// default serves until somebody mends it.
			if err := json.Unmarshal(v[colRetry][1:], &e.Retry); err != nil {
				e.Retry = retry.Default()
			}
		}
		r.list = append(r.list, e)
		r.policy = append(r.policy, int64of(v[colPolicy]))
	}
}

// entries completes what was read with the policies that entries refer to.
// Those that this process does not know are read on the connection that the
// caller holds: to take another from the pool could wait for ever.
func (s *Store) entries(ctx context.Context, q queryer, r *entryReader) ([]stint.Entry, error) {
	var missing []int64
	for i, id := range r.policy {
		if id == 0 {
			continue
		}
		policy, ok := s.policies.get(id)
		if !ok {
			missing = append(missing, id)
		}
		r.list[i].Retry = policy
	}
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

// jsonOf is a jsonb value: its text behind a version byte. It is copied, since
// the reader's memory is used again.
func jsonOf(b []byte) json.RawMessage {
	if b == nil {
		return nil
	}
	return bytes.Clone(b[1:])
}

func positionsOf(b []byte) []stint.Position {
	var list []stint.Position
	array(b, func(e []byte) { list = append(list, stint.Position(int64of(e))) })
	return list
}
