package sim

import (
	"context"
	"errors"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// see returns the jobs that exist, with the attempts that are recorded. A store
// shows an attempt of a cancelled job before an engine records it; such a job
// has not ended yet.
func (w *world) see(ctx context.Context, ids []stint.ID) map[stint.ID]*stint.JobInfo {
	seen := make(map[stint.ID]*stint.JobInfo, len(ids))
	for _, id := range ids {
		job, err := w.real.Job(context.WithoutCancel(ctx), id)
		if err != nil {
			continue
		}
		var recorded int
		if w.ground.db.QueryRow(`select count(*) from stint_executions where ifnull(job, pos) = ?`, int64(id)).Scan(&recorded) == nil {
			job.Attempts = job.Attempts[:min(recorded, len(job.Attempts))]
		}
		seen[id] = job
	}
	return seen
}

// checkRetried checks what somebody was told who had jobs run again.
func (w *world) checkRetried(ctx context.Context, before map[stint.ID]*stint.JobInfo, answers map[stint.ID]stint.RerunResult) {
	for id, r := range answers {
		job, err := w.real.Job(context.WithoutCancel(ctx), id)
		switch {
		case r.Answer == stint.RerunNotFound:
			if err == nil {
				w.wrong("job %d: somebody who wanted it run again was told that it is not there", id)
			}
		case err != nil:
			if !errors.Is(err, stint.ErrNotFound) || !w.mayBeGone(id) {
				w.wrong("job %d: somebody was told that it is %s, and nobody sees it: %v", id, r.Answer, err)
			}
		case r.Answer == stint.RerunReady:
			if was := before[id]; waits(job.State) && was != nil && len(was.Attempts) == len(job.Attempts) {
				w.wrong("job %d: somebody was told that it is ready, and it is %s", id, job.State)
			}
		case r.Answer == stint.RerunRecovered, r.Answer == stint.RerunRecoveredBefore:
			// One that is cancelled shows as running once more when it is claimed.
			if _, cancelled := w.cancels.of(id); !job.State.Final() && !cancelled {
				w.wrong("job %d: it was %s as job %d, and has not ended: it is %s", id, r.Answer, r.ID, job.State)
			}
			w.checkRecovered(ctx, id, r.ID)
		}
	}
}

func waits(s stint.State) bool { return s == stint.Scheduled || s == stint.Retrying }

// checkRecovered checks that a job names the one that it does again.
func (w *world) checkRecovered(ctx context.Context, old, anew stint.ID) {
	switch job, err := w.real.Job(context.WithoutCancel(ctx), anew); {
	case errors.Is(err, stint.ErrNotFound) && w.mayBeGone(anew):
	case err != nil:
		w.wrong("job %d: job %d is to do it again, and nobody sees that: %v", old, anew, err)
	case job.Origin.Recovered != old:
		w.wrong("job %d: job %d is to do it again, and says that it does job %d", old, anew, job.Origin.Recovered)
	}
}

// checkDeleted checks what somebody was told who deleted jobs.
func (w *world) checkDeleted(ctx context.Context, before map[stint.ID]*stint.JobInfo, answers map[stint.ID]store.DeleteStatus) {
	for id, answer := range answers {
		_, err := w.real.Job(context.WithoutCancel(ctx), id)
		there := err == nil
		switch was := before[id]; {
		case answer == store.DeleteNotFinal && was != nil && hasEnded(was):
			w.wrong("job %d: somebody was told that it is too early to delete it, and it had ended", id)
		case answer != store.DeleteNotFinal && there:
			w.wrong("job %d: somebody was told %q, and it is there", id, answer)
		}
	}
}

func hasEnded(job *stint.JobInfo) bool {
	n := len(job.Attempts)
	return n > 0 && job.Attempts[n-1].Final
}

// mayBeginYet checks that an attempt begins no earlier than somebody said that
// the job is to run.
func (w *world) mayBeginYet(p *process, job stint.ID, h holding) {
	if o := w.operations.of(job); o.postponed != 0 && h.read > o.postponed && time.Now().Before(o.until) {
		w.wrong("job %d: %s began it %v before the time that somebody named", job, p.name, time.Until(o.until))
	}
}

// checkOperations checks that jobs were done again and deleted when somebody
// asked for that, and only then.
func (j *judging) checkOperations(l *operations, e *erased) {
	doubtful := map[stint.ID]int{}
	for id, t := range j.told {
		old := t.info.Origin.Recovered
		switch answered, known := l.recovered[id]; {
		case known && answered != old:
			j.wrong(id, "somebody was told that it does job %d again, and it does job %d", answered, old)
		case !known && old != 0:
			doubtful[old]++
		}
	}
	for old, n := range doubtful {
		if o := l.of(old); n > o.doubt {
			j.wrong(old, "%d more jobs do it again than anybody was told of, and %d calls are in doubt", n, o.doubt)
		}
	}
	for id, old := range l.recovered {
		if _, there := j.told[id]; !there {
			j.wrong(id, "somebody was told that it does job %d again, and it is not there", old)
		}
	}
	for id := range j.gone {
		if !l.deleting(id) && e.when(id).IsZero() {
			j.wrong(id, "it was deleted, and nobody asked for that")
		}
	}
	for id, o := range l.jobs {
		if o.deleted && !j.gone[id] {
			j.wrong(id, "somebody was told that it is deleted, and it is not")
		}
	}
}
