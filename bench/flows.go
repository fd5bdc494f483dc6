package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/engine"
)

// hops is how long a chain is, and how many plain jobs it is compared with.
const hops = 100

// flows measures how soon a job begins after the last one that it needs has ended: in a chain, and after many.
func flows(ctx context.Context, b *bench) error {
	bout := contest.Bout{
		Name: "flows", Figures: timesFigures,
		About: fmt.Sprintf("%d times: %d single jobs, a chain of %d, and a job that needs %d others; each takes %v", b.rounds, hops, hops, b.jobs, b.work),
	}
	bout.Entrants = b.jointly([]string{"enqueue to start", "end to start in a chain", "last end to start of the join"}, func(ctx context.Context, s *site) (all []contest.Figures, err error) {
		times, err := s.flows(ctx)
		for _, one := range times {
			all = append(all, contest.Quantiles(one))
		}
		return all, err
	})
	return b.hold(ctx, bout)
}

// moments are when jobs ran.
type moments struct {
	mu         sync.Mutex
	began      map[stint.ID]time.Time
	ended      map[stint.ID]time.Time
	last, join time.Time // when the last that is no join ended, and when the last join began
}

// of is when a job began and ended.
func (m *moments) of(job stint.ID) (began, ended time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.began[job], m.ended[job]
}

// gap is how long it took from the last of those that a join needs to it.
func (m *moments) gap() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.join.Sub(m.last)
}

// flows measures on a site.
func (s *site) flows(ctx context.Context) (times [3][]time.Duration, err error) {
	m := &moments{began: map[stint.ID]time.Time{}, ended: map[stint.ID]time.Time{}}
	kind := stint.NewKind[int]("load_flow")
	mux := stint.NewMux()
	stint.Handle(mux, kind, func(_ context.Context, job *stint.Job, isJoin int) error {
		began := time.Now()
		time.Sleep(s.work)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.began[job.ID], m.ended[job.ID] = began, time.Now()
		if isJoin == 1 {
			m.join = began
		} else {
			m.last = m.ended[job.ID]
		}
		return nil
	})
	e, err := engine.New(s.store, mux, engine.Config{Slots: s.slots})
	if err != nil {
		return times, err
	}
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- e.Run(working) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	client := stint.NewClient(s.store)
	for range s.rounds {
		for range hops {
			called := time.Now()
			id, err := kind.Enqueue(ctx, client, 0)
			if err != nil {
				return times, err
			}
			if _, err := client.Await(ctx, id); err != nil {
				return times, err
			}
			began, _ := m.of(id)
			times[0] = append(times[0], began.Sub(called))
		}
		chain := stint.NewFlow("chain")
		nodes := []*stint.Node{kind.Add(chain, "", 0)}
		for i := range hops {
			nodes = append(nodes, kind.Add(chain, "", 0, stint.Needs(nodes[i])))
		}
		if err := played(ctx, client, chain); err != nil {
			return times, err
		}
		for i := range hops {
			_, ended := m.of(nodes[i].ID())
			began, _ := m.of(nodes[i+1].ID())
			times[1] = append(times[1], began.Sub(ended))
		}
		join := stint.NewFlow("join")
		kind.Add(join, "", 1, stint.Needs(kind.Each(join, make([]int, s.jobs))...))
		if err := played(ctx, client, join); err != nil {
			return times, err
		}
		times[2] = append(times[2], m.gap())
	}
	return times, nil
}

// played enqueues a flow and waits for its end.
func played(ctx context.Context, client *stint.Client, f *stint.Flow) error {
	id, err := f.Enqueue(ctx, client)
	if err != nil {
		return err
	}
	_, err = client.Await(ctx, id)
	return err
}
