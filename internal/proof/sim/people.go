package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// people are those who mind the jobs and the queues while the trouble lasts.
type people struct {
	operator, porter *process
	timekeeper       *process
	busy             sync.WaitGroup
}

// hire lets them begin.
func (w *world) hire() *people {
	start := func(name string) *process {
		return w.newProcess(name, weathers[roll(w.seed.N, name+"weather", 0).IntN(len(weathers))])
	}
	all := &people{operator: start("operator"), porter: start("porter")}
	if w.seed.Age < Twisted {
		all.busy.Go(func() { all.operator.operate(roll(w.seed.N, "operator", 0)) })
		all.busy.Go(func() { all.porter.pauseSome(roll(w.seed.N, "porter", 0)) })
	}
	if w.calendar != nil {
		all.timekeeper = start("timekeeper")
		all.busy.Go(func() { all.timekeeper.keepTime(roll(w.seed.N, "timekeeper", 0)) })
	}
	return all
}

// rest passes a while; false says that the trouble is over before.
func (w *world) rest(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-w.calm:
		return false
	}
}

// operate has somebody run jobs again, do ended ones again and delete some.
func (p *process) operate(d dice) {
	for p.w.rest(d.between(0, 10*time.Second)) {
		if d.chance(60) {
			p.againSome(d, p.find(d, stint.Scheduled, stint.Retrying, stint.Retrying, stint.Failed, stint.Cancelled, stint.Completed, ""))
		} else {
			p.deleteSome(d, p.find(d, stint.Failed, stint.Cancelled, stint.Completed, stint.Completed, ""))
		}
	}
}

// find chooses some jobs of one of these states, or of any where it is empty.
func (p *process) find(d dice, states ...stint.State) []stint.ID {
	f := store.Filter{Limit: 20}
	if state := states[d.IntN(len(states))]; state != "" {
		f.States = []stint.State{state}
	}
	limit, n := d.between(time.Second, 10*time.Second), 1+d.IntN(3)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	found, err := p.Find(ctx, f)
	if err != nil || len(found) == 0 {
		return nil
	}
	var ids []stint.ID
	for range n {
		ids = append(ids, found[d.IntN(len(found))])
	}
	if d.chance(10) {
		ids = append(ids, stint.ID(1<<40+d.Int64N(1<<40)))
	}
	return ids
}

// againSome has jobs run again, and asks once more when it does not know what
// came of it.
func (p *process) againSome(d dice, ids []stint.ID) {
	if len(ids) == 0 {
		return
	}
	again := stint.RerunOptions{Once: d.chance(40)}
	switch later := d.between(0, 6*time.Second); d.IntN(5) {
	case 0:
		again.Delay = later
	case 1:
		again.RunAt = time.Now().Add(later - time.Second)
	}
	p.insist(d, func(ctx context.Context) (bool, error) {
		_, err := p.Retry(ctx, ids, again)
		again.Once = true
		return true, err
	})
}

// deleteSome deletes jobs, and asks once more when it does not know what came
// of it.
func (p *process) deleteSome(d dice, ids []stint.ID) {
	if len(ids) == 0 {
		return
	}
	p.insist(d, func(ctx context.Context) (bool, error) {
		_, err := p.Delete(ctx, ids)
		return true, err
	})
}

// tidy deletes a job that is about to end, as soon as it can.
func (p *process) tidy(d dice, id stint.ID) {
	p.insist(d, func(ctx context.Context) (bool, error) {
		answers, err := p.Delete(ctx, []stint.ID{id})
		return answers[id] != store.DeleteNotFinal, err
	})
}

// insist does something until it is done, for a while, or until it is given up.
func (p *process) insist(d dice, do func(ctx context.Context) (done bool, err error)) {
	for range 6 {
		ctx, cancel := context.WithTimeout(context.Background(), d.between(time.Second, 10*time.Second))
		done, err := do(ctx)
		cancel()
		if err == nil && done || d.chance(15) || !p.w.rest(d.between(0, 5*time.Millisecond)) {
			return
		}
	}
}

// pauseSome has somebody pause queues and resume them.
func (p *process) pauseSome(d dice) {
	for p.w.rest(d.between(0, 20*time.Second)) {
		queue := queues[d.IntN(len(queues))]
		p.insist(d, func(ctx context.Context) (bool, error) {
			_, err := p.Pause(ctx, queue, p.name, fmt.Sprintf("pause %d", p.count(opPause)))
			return true, err
		})
		if p.w.rest(d.between(0, 12*time.Second)) && d.chance(90) {
			p.insist(d, func(ctx context.Context) (bool, error) {
				_, err := p.Resume(ctx, queue)
				return true, err
			})
		}
	}
}

// reopen resumes all queues, but for those that are to stay as they are.
func (p *process) reopen(but ...string) {
	for _, queue := range queues {
		if len(but) > 0 && queue == but[0] {
			continue
		}
		if _, err := p.Resume(context.Background(), queue); err != nil {
			p.w.wrong("resume the queue %s: %v", queue, err)
		}
	}
}

func (p *process) Retry(ctx context.Context, ids []stint.ID, again stint.RerunOptions) (map[stint.ID]stint.RerunResult, error) {
	return ask(ctx, p, opRetry, func(ctx context.Context) (map[stint.ID]stint.RerunResult, error) {
		before, asked := p.w.see(ctx, ids), p.w.operations.asks(ids)
		answers, err := p.store.Retry(ctx, ids, again)
		p.w.note(p.name, numbers(ids), "run again, %+v: %v, %v", again, answers, err)
		p.w.operations.retried(p.w.tick(), asked, again, answers, err)
		p.w.checkRetried(ctx, before, answers)
		return answers, err
	})
}

func (p *process) Delete(ctx context.Context, ids []stint.ID) (map[stint.ID]store.DeleteStatus, error) {
	return ask(ctx, p, opDelete, func(ctx context.Context) (map[stint.ID]store.DeleteStatus, error) {
		before := p.w.see(ctx, ids)
		p.w.operations.deletes(ids)
		answers, err := p.store.Delete(ctx, ids)
		p.w.note(p.name, numbers(ids), "delete: %v, %v", answers, err)
		p.w.operations.deleted(answers)
		p.w.checkDeleted(ctx, before, answers)
		return answers, err
	})
}

func (p *process) Find(ctx context.Context, f store.Filter) ([]stint.ID, error) {
	return ask(ctx, p, opFind, func(ctx context.Context) ([]stint.ID, error) { return p.store.Find(ctx, f) })
}

// operations are what people did to jobs, or tried to do.
type operations struct {
	mu        sync.Mutex
	jobs      map[stint.ID]*operated
	recovered map[stint.ID]stint.ID // what is done again, by the job that does it, as somebody was told
}

// operated is what is known of one job.
type operated struct {
	asked    int       // calls that had it run again
	open     int       // of these, under way
	doubt    int       // of these, that failed: nobody knows what came of them
	deleting time.Time // since when somebody has been trying to delete it; zero when nobody has
	deleted  bool      // somebody was told that it is gone

	// A job that waits does not begin before until, if it was read after the
	// instant postponed, as the world counts; 0 when that is not known.
	postponed int64
	until     time.Time
}

// asking is a call that has jobs run again, when it began.
type asking struct {
	at    time.Time
	asked map[stint.ID]int // which call of each it is
}

func newOperations() *operations {
	return &operations{jobs: map[stint.ID]*operated{}, recovered: map[stint.ID]stint.ID{}}
}

// of is what is known of a job.
func (l *operations) of(job stint.ID) operated {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.jobs[job]; o != nil {
		return *o
	}
	return operated{}
}

func (l *operations) lockedOf(id stint.ID) *operated { return madeIn(l.jobs, id) }

// madeIn is what a map has for a key, made when it is not there.
func madeIn[K comparable, V any](all map[K]*V, key K) *V {
	if all[key] == nil {
		all[key] = new(V)
	}
	return all[key]
}

// asks notes that somebody is about to have jobs run again: from now on nobody
// knows when they may.
func (l *operations) asks(ids []stint.ID) asking {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := asking{time.Now(), map[stint.ID]int{}}
	for _, id := range ids {
		if a.asked[id] != 0 {
			continue
		}
		o := l.lockedOf(id)
		o.asked++
		o.open++
		o.postponed = 0
		a.asked[id] = o.asked
	}
	return a
}

// retried notes what the store says came of it.
func (l *operations) retried(tick int64, a asking, again stint.RerunOptions, answers map[stint.ID]stint.RerunResult, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := again.RunAt
	if again.Delay > 0 {
		until = a.at.Add(again.Delay)
	}
	for id, n := range a.asked {
		o, r := l.lockedOf(id), answers[id]
		o.open--
		if err != nil {
			o.doubt++
			continue
		}
		if r.Answer == stint.RerunRecovered {
			l.recovered[r.ID] = id
			id, n = r.ID, 0
		} else if r.Answer != stint.RerunScheduled {
			continue
		}
		// Of two at the same time nobody knows which was the last.
		if o = l.lockedOf(id); o.open == 0 && o.asked == n && until.After(a.at) {
			o.postponed, o.until = tick, until.Add(-time.Millisecond) // stores round
		}
	}
}

func (l *operations) deletes(ids []stint.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if o := l.lockedOf(id); o.deleting.IsZero() {
			o.deleting = time.Now()
		}
	}
}

func (l *operations) deleted(answers map[stint.ID]store.DeleteStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, answer := range answers {
		o := l.lockedOf(id)
		o.deleted = o.deleted || answer == store.DeletedNow
	}
}

// deleting tells whether somebody may have deleted a job by now.
func (l *operations) deleting(job stint.ID) bool { return !l.of(job).deleting.IsZero() }

// mayBeGone tells whether a job may have been deleted by now, by whomever.
func (w *world) mayBeGone(job stint.ID) bool {
	return w.retention.Shortest() != store.Forever || w.operations.deleting(job)
}

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
			w.checkRecovered(ctx, id, r)
		}
	}
}

func waits(s stint.State) bool { return s == stint.Scheduled || s == stint.Retrying }

// checkRecovered checks that a job names the one that it does again. Of a job of a flow that is done again, the answer
// may be that flow.
func (w *world) checkRecovered(ctx context.Context, old stint.ID, r stint.RerunResult) {
	anew := r.ID
	switch job, err := w.real.Job(context.WithoutCancel(ctx), anew); {
	case errors.Is(err, stint.ErrNotFound) && w.mayBeGone(anew):
	case err != nil:
		w.wrong("job %d: job %d is to do it again, and nobody sees that: %v", old, anew, err)
	case job.IsFlow && r.Answer == stint.RerunRecoveredBefore:
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
		case answer == store.DeleteNotFinal && was != nil && hasEnded(was) && was.Flow == 0: // its flow may be open
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
func (w *world) mayBeginYet(p *process, a args, job stint.ID, h holding) {
	// A signal or an answer wakes a job before that.
	if o := w.operations.of(job); len(a.Acts) == 0 && o.postponed != 0 && h.read > o.postponed && time.Now().Before(o.until) {
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
		case !known && old != 0 && !t.info.IsFlow && t.info.Flow == j.told[old].info.Flow: // and not with its flow
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
