package takeover

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
)

// Report is what an import did, or would do.
type Report struct {
	Jobs  int64   `json:"jobs"`  // all of Taken
	Taken []Count `json:"taken"` // in the order of queue, kind and state
	Known int64   `json:"known"` // were in stint already, from an import that was interrupted
	Left  []Count `json:"left"`  // are in River when it ends: those that run, are pending, came meanwhile or do not fit

	Refused  int64     `json:"refused"`  // do not fit
	Refusals []Refusal `json:"refusals"` // the first hundred of them

	// Of Taken: what has no place in stint.
	Failed int64    `json:"failed"` // have errors of earlier attempts
	Unique int64    `json:"unique"` // held a unique key in River, and hold none in stint
	Paused []string `json:"paused"` // queues that River has paused
}

// Count is how many jobs of a queue, a kind and a state of River's there are.
type Count struct {
	Queue string `json:"queue"`
	Kind  string `json:"kind"`
	State string `json:"state"`
	Jobs  int64  `json:"jobs"`
}

// Refusal is a job that stays in River because stint cannot accept it.
type Refusal struct {
	ID    int64  `json:"id"` // in River
	Queue string `json:"queue"`
	Kind  string `json:"kind"`
	Why   string `json:"why"`
}

// newReport is an empty one, whose lists are [] in JSON.
func newReport() *Report {
	return &Report{Taken: []Count{}, Left: []Count{}, Refusals: []Refusal{}, Paused: []string{}}
}

// add counts a batch whose jobs have these receipts.
func (r *Report) add(b batch, receipts []stint.Receipt) {
	for i, w := range b.fit {
		if receipts[i].Duplicate {
			r.Known++
		} else {
			r.take(w)
		}
	}
	r.Refused += int64(len(b.refusals))
	r.Refusals = append(r.Refusals, b.refusals[:min(len(b.refusals), 100-len(r.Refusals))]...)
}

func (r *Report) take(w row) {
	r.Jobs++
	if w.failed {
		r.Failed++
	}
	if w.unique {
		r.Unique++
	}
	one := Count{w.queue, w.kind, w.state, 1}
	i, there := slices.BinarySearchFunc(r.Taken, one, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.State, b.State))
	})
	if there {
		r.Taken[i].Jobs++
	} else {
		r.Taken = slices.Insert(r.Taken, i, one)
	}
}

// finish adds what is in River now, of some states.
func (r *River) finish(ctx context.Context, report *Report, states ...string) error {
	rows, err := r.Pool.Query(ctx, `
		select queue, kind, state::text, count(*) from `+r.table("river_job")+`
		where state::text = any($1) and not metadata ? 'stint_import'
			and ($2::text[] is null or queue = any($2)) and ($3::text[] is null or kind = any($3))
		group by 1, 2, 3 order by 1, 2, 3`, states, r.Queues, r.Kinds)
	if err != nil {
		return err
	}
	if report.Left, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Count]); err != nil {
		return err
	}
	rows, err = r.Pool.Query(ctx, `select name from `+r.table("river_queue")+` where paused_at is not null order by name`)
	if err != nil {
		return err
	}
	paused, err := pgx.CollectRows(rows, pgx.RowTo[string])
	report.Paused = slices.DeleteFunc(paused, func(name string) bool {
		return !slices.ContainsFunc(report.Taken, func(c Count) bool { return c.Queue == name })
	})
	return err
}
