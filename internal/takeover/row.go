package takeover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

// row is a row of river_job.
type row struct {
	id                   int64
	state, queue, kind   string
	args, metadata       []byte
	priority             int
	tags                 []string
	attempt, maxAttempts int
	created, scheduled   pgtype.Timestamptz
	failed, unique       bool
	stale                bool // held by an import that was interrupted so long ago that stint may have forgotten its key
}

// batch is what was read at once.
type batch struct {
	fit      []row
	jobs     []stint.NewJob // of those
	refusals []Refusal      // of the others
	last     int64          // the last id of all
	more     bool           // there were any
}

func (b *batch) add(w row, job stint.NewJob, why error) {
	b.last, b.more = w.id, true
	if why != nil {
		b.refusals = append(b.refusals, Refusal{w.id, w.queue, w.kind, why.Error()})
		return
	}
	b.fit, b.jobs = append(b.fit, w), append(b.jobs, job)
}

func (b *batch) ids() []int64 {
	all := make([]int64, len(b.fit))
	for i, w := range b.fit {
		all[i] = w.id
	}
	return all
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// read returns the next rows that wait after one, in the order of their ids. The keys of stint are
// remembered for a day at least.
func (r *River) read(ctx context.Context, db querier, after int64, lock string) (b batch, err error) {
	rows, err := db.Query(ctx, `
		select id, coalesce(metadata -> 'stint_import' ->> 'state', state::text), queue, kind, args::text, metadata::text,
			priority, tags, attempt, max_attempts, created_at, scheduled_at, coalesce(cardinality(errors), 0) > 0, unique_key is not null,
			coalesce((metadata -> 'stint_import' ->> 'at')::timestamptz < now() - interval '23 hours', false)
		from `+r.table("river_job")+`
		where id > $1 and ($2::text[] is null or queue = any($2)) and ($3::text[] is null or kind = any($3))
			and (state in ('available', 'scheduled', 'retryable') or state = 'pending' and ($4 or metadata ? 'stint_import'))
		order by id limit $5 `+lock, after, r.Queues, r.Kinds, r.Pending, cmp.Or(r.Batch, 1000))
	if err != nil {
		return b, err
	}
	var w row
	_, err = pgx.ForEachRow(rows, []any{
		&w.id, &w.state, &w.queue, &w.kind, &w.args, &w.metadata, &w.priority, &w.tags, &w.attempt, &w.maxAttempts,
		&w.created, &w.scheduled, &w.failed, &w.unique, &w.stale,
	}, func() error {
		job, why := r.job(w)
		b.add(w, job, why)
		w = row{} // its bytes are kept
		return nil
	})
	return b, err
}

// job makes the job of a row. The error says why there is none.
func (r *River) job(w row) (stint.NewJob, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(w.metadata, &members) != nil || members == nil {
		return stint.NewJob{}, errors.New("metadata: it must be a JSON object")
	}
	switch _, taken := members["stint_job"]; {
	case taken:
		return stint.NewJob{}, errors.New("it was imported before, and then made to wait again in River")
	case w.stale:
		return stint.NewJob{}, errors.New("an import was interrupted more than 23 hours ago, and stint may have the job already")
	case w.created.InfinityModifier != pgtype.Finite || w.scheduled.InfinityModifier != pgtype.Finite:
		return stint.NewJob{}, errors.New("its time is infinity")
	}
	delete(members, "stint_import")
	if _, taken := members["river"]; !taken {
		members["river"], _ = json.Marshal(map[string]any{ // any number and time can be encoded
			"id": w.id, "attempt": w.attempt, "max_attempts": w.maxAttempts, "created_at": w.created.Time.UTC(),
		})
	}
	metadata, err := json.Marshal(members)
	if err != nil {
		return stint.NewJob{}, err
	}
	job := stint.NewJob{
		Kind:     cmp.Or(r.Rename[w.kind], w.kind),
		Args:     w.args,
		Queue:    w.queue,
		Priority: w.priority - 1, // both run the lowest first; River's normal is 1, and 0 is stint's
		RunAt:    w.scheduled.Time,
		Retry:    attemptsLeft(w.attempt, w.maxAttempts),
		Source:   "river",
		Metadata: metadata,

		// Ids begin again in another database of River's, and in one that was made anew.
		IdempotencyKey: fmt.Sprintf("river:%d:%d", w.id, w.created.Time.UnixMicro()),
	}
	stint.Tag(w.tags...)(&job)
	job.Fill()
	return job, job.Check(stint.Limits{})
}

// attemptsLeft is the policy for a job that was tried so often, of at most so many times. After its
// nth attempt River waits n⁴ seconds. This policy waits as long the first time, then twice as long
// each time, at most as long as River before its last attempt of 25, and a tenth more or less.
func attemptsLeft(attempt, most int) retry.Policy {
	wait := func(n int) time.Duration { return time.Duration(n*n*n*n) * time.Second }
	return retry.Exponential(max(0, most-attempt-1), wait(min(attempt+1, 24))).MaxDelay(wait(24)).Jitter(0.1)
}
