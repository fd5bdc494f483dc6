package sim

import (
	"context"
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
func (w *world) hire() (*people, error) {
	all := new(people)
	for name, at := range map[string]**process{"operator": &all.operator, "porter": &all.porter, "timekeeper": &all.timekeeper} {
		if name == "timekeeper" && w.calendar == nil {
			continue
		}
		p, err := w.newProcess(name, weathers[roll(w.seed.N, name+"weather", 0).IntN(len(weathers))])
		if err != nil {
			return nil, err
		}
		*at = p
	}
	if w.seed.Age < Twisted {
		all.busy.Go(func() { all.operator.operate(roll(w.seed.N, "operator", 0)) })
		all.busy.Go(func() { all.porter.pauseSome(roll(w.seed.N, "porter", 0)) })
	}
	if w.calendar != nil {
		all.busy.Go(func() { all.timekeeper.keepTime(roll(w.seed.N, "timekeeper", 0)) })
	}
	return all, nil
}

// rest passes a while; false says that the trouble is over before.
func (w *world) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
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
