package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.Awaiter = (*Store)(nil)

// endedSQL chooses those jobs that may have ended or are gone, by keys alone: the
// view, which tells exactly, is asked about those only. A job has ended with a final
// execution; one that is cancelled may have ended by its marker.
const endedSQL = `
	select a.id from unnest($1::bigint[]) as a(id)
	where exists (select from stint.executions x where x.pos = a.id and x.final)
	   or exists (select from stint.executions x where x.job = a.id and x.final)
	   or exists (select from stint.cancellations k where k.job = a.id)
	   or not exists (select from stint.entries e where e.pos = a.id and e.job is null)`

// Await implements [store.Awaiter].
func (s *Store) Await(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	return s.waits.Await(ctx, id)
}

// ended returns those of the jobs that ended; nil for those that do not exist.
func (s *Store) ended(ctx context.Context, ids []stint.ID) (map[stint.ID]*stint.JobInfo, error) {
	rows, err := s.pool.Query(ctx, s.sql.in(endedSQL), ids)
	if err != nil {
		return nil, translate(err)
	}
	maybe, err := pgx.CollectRows(rows, pgx.RowTo[stint.ID])
	if err != nil || len(maybe) == 0 {
		return nil, translate(err)
	}
	jobs, err := s.show(ctx, "j.id = any($1)", maybe)
	if err != nil {
		return nil, err
	}
	ended := make(map[stint.ID]*stint.JobInfo, len(maybe))
	for _, id := range maybe {
		ended[id] = nil
	}
	for _, job := range jobs {
		if ended[job.ID] = job; !job.State.Final() {
			delete(ended, job.ID)
		}
	}
	return ended, nil
}
