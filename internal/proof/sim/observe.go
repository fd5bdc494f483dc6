package sim

import (
	"context"
	"maps"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// observe passes a while, and now and then looks.
func (w *world) observe(ctx context.Context, d dice, long time.Duration) {
	end := time.After(long)
	for {
		select {
		case <-time.After(d.between(0, long/3)):
			w.look(ctx)
		case <-end:
			return
		}
	}
}

// look checks that the numbers which people see are those of the jobs that they
// see, unless something happens between the two.
func (w *world) look(ctx context.Context) {
	before, err := w.real.Counts(ctx)
	if err != nil {
		w.wrong("count the jobs: %v", err)
		return
	}
	shown, err := w.ground.states(ctx)
	if err != nil {
		w.wrong("see the jobs: %v", err)
		return
	}
	after, err := w.real.Counts(ctx)
	if err != nil || !maps.Equal(before, after) {
		return
	}
	for _, state := range store.States {
		if before[state] != shown[state] {
			w.wrong("%d jobs are counted as %s, and %d are shown", before[state], state, shown[state])
		}
	}
}

// finish resumes the queues and waits until everything is done. In some seeds
// one is left alone at first: what is in the others ends all the same.
func (w *world) finish(ctx context.Context, people *people) {
	people.timekeeper.settle(ctx)
	if w.seed.Age < Twisted && roll(w.seed.N, "shelf", 0).chance(20) {
		shelf := queues[1]
		if _, err := people.porter.Pause(ctx, shelf, "", "for now"); err != nil {
			w.wrong("pause the queue %s: %v", shelf, err)
		}
		people.porter.reopen(shelf)
		w.drain(ctx, shelf)
	}
	people.porter.reopen()
	w.drain(ctx, "")
}

// drain waits until every job is final and no cancellation is left to be
// heeded, but for what waits in a paused queue. That it comes to that is the
// promise: with all engines well, nothing stays behind.
func (w *world) drain(ctx context.Context, paused string) {
	for until := time.Now().Add(drained); ; time.Sleep(500 * time.Millisecond) {
		counts, err := w.counts(ctx, paused)
		if err != nil {
			w.wrong("count the jobs: %v", err)
			return
		}
		open := int64(0)
		for state, n := range counts {
			if !state.Final() {
				open += n
			}
		}
		marks := 0
		if open == 0 && paused == "" {
			if marks, err = w.ground.count(ctx, `select count(*) from stint_cancellations`); err != nil {
				w.wrong("count the cancellations: %v", err)
				return
			}
		}
		if open == 0 && marks == 0 {
			return
		}
		if time.Now().After(until) {
			w.wrong("%v after the trouble %d jobs are not done (%v) and %d cancellations are left", drained, open, counts, marks)
			return
		}
	}
}

// counts counts the jobs, but for those of a paused queue that nobody has in
// hand.
func (w *world) counts(ctx context.Context, paused string) (map[stint.State]int64, error) {
	if paused == "" {
		return w.real.Counts(ctx)
	}
	list, err := w.real.Queues(ctx)
	if err != nil {
		return nil, err
	}
	all := map[stint.State]int64{}
	for _, queue := range list {
		for state, n := range queue.Counts {
			if queue.Name != paused || state == stint.Running {
				all[state] += n
			}
		}
	}
	return all, nil
}
