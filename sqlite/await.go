package sqlite

import (
	"context"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.Awaiter = (*Store)(nil)

// endedSQL chooses those jobs that may have ended or are gone, by keys alone: the
// view, which tells exactly, is asked about those only. A job has ended with a final
// execution; one that is cancelled may have ended by its marker.
const endedSQL = `
select a.value from json_each(?) a
where exists (select 1 from stint_executions x where x.pos = a.value and x.job is null and x.final = 1)
   or exists (select 1 from stint_executions x where x.job = a.value and x.final = 1)
   or exists (select 1 from stint_cancellations k where k.job = a.value)
   or not exists (select 1 from stint_entries e where e.pos = a.value and e.job is null)`

// Await implements [store.Awaiter].
func (s *Store) Await(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	return s.waits.Await(ctx, id)
}

// ended returns those of the jobs that ended; nil for those that do not exist.
func (s *Store) ended(ctx context.Context, ids []stint.ID) (ended map[stint.ID]*stint.JobInfo, err error) {
	err = s.read(ctx, func(c *conn) error {
		maybe, err := allRows(c, firstNumber[stint.ID], endedSQL, arrayOf(ids))
		ended = make(map[stint.ID]*stint.JobInfo, len(maybe))
		for _, id := range maybe {
			if err != nil {
				break
			}
			var job *stint.JobInfo
			if job, err = s.show(c, id); job == nil || job.State.Final() {
				ended[id] = job
			}
		}
		return err
	})
	return ended, err
}
