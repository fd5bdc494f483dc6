package faktory

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// figuresAge is how old the figures of INFO may be: to find them is to count all jobs that wait.
const figuresAge = 2 * time.Second

// figures are those of the store that INFO tells.
type figures struct {
	mu     sync.Mutex // held while they are found
	found  time.Time
	queues map[string]int64 // how many jobs of each wait to be taken
	states map[stint.State]int64
	ended  int64 // attempts
	failed int64
}

func (f *figures) find(ctx context.Context, st Store) error {
	if time.Since(f.found) < figuresAge {
		return nil
	}
	queues, err := st.Queues(ctx)
	if err != nil {
		return err
	}
	sums, err := st.Stats(ctx, report.StatsFilter{})
	if err != nil {
		return err
	}
	f.queues, f.states, f.ended, f.failed = map[string]int64{}, map[stint.State]int64{}, 0, 0
	for _, q := range queues {
		f.queues[q.Name] = q.Counts[stint.Available]
		for state, n := range q.Counts {
			f.states[state] += n
		}
	}
	for _, sum := range sums {
		switch sum.Outcome {
		case stint.OutcomeFailed:
			f.failed += sum.Attempts
			f.ended += sum.Attempts
		case stint.OutcomeCompleted:
			f.ended += sum.Attempts
		}
	}
	f.found = time.Now()
	return nil
}

// tell answers INFO.
func (s *Server) tell(ctx context.Context) (reply, error) {
	f := &s.info
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.find(ctx, s.store); err != nil {
		return nil, err
	}
	s.mu.Lock()
	conns := len(s.conns)
	s.mu.Unlock()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	size := func(n int64) map[string]int64 { return map[string]int64{"size": n} }
	now := time.Now().UTC()
	text, err := json.Marshal(map[string]any{
		"now":             now,
		"server_utc_time": now.Format("15:04:05 UTC"),
		"faktory": map[string]any{
			"queues": f.queues, "total_queues": len(f.queues), "total_enqueued": f.states[stint.Available],
			"total_processed": f.ended, "total_failures": f.failed,
			"tasks": map[string]any{
				"Busy": size(f.states[stint.Running]), "Scheduled": size(f.states[stint.Scheduled]), "Retries": size(f.states[stint.Retrying]), "Dead": size(f.states[stint.Failed]),
			},
		},
		"server": map[string]any{
			"description": "stint", "faktory_version": s.config.Version, "uptime": int64(time.Since(s.began).Seconds()),
			"connections": conns, "command_count": s.commands.Load(), "used_memory_mb": memory.Sys >> 20,
		},
	})
	return bulk(text), err
}

// newOps does operations in the name of who knows the password.
func newOps(st Store) *ops.Local {
	return &ops.Local{Store: st, Way: store.WayAPI, As: &guard.Identity{Name: "faktory", Role: guard.Operator}}
}

// queue obeys QUEUE PAUSE and QUEUE RESUME.
func (s *Server) queue(ctx context.Context, text []byte) (reply, error) {
	verb, names := parseCommand(text)
	if verb != "PAUSE" && verb != "RESUME" {
		return nil, errors.New("of QUEUE only PAUSE and RESUME are supported: see stint queues and stint jobs delete")
	}
	queues, err := []string{}, error(nil)
	switch string(names) {
	case "":
		err = errors.New("name queues, or * for all")
	case "*":
		queues, err = s.queues(ctx)
	default:
		queues, err = queuesOf(names)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range queues {
		in := ops.QueueName{Queue: name}
		if verb == "PAUSE" {
			_, err = ops.PauseQueue.Call(ctx, s.ops, ops.QueueWhy{QueueName: in})
		} else {
			_, err = ops.ResumeQueue.Call(ctx, s.ops, in)
		}
		if err != nil {
			return nil, err
		}
	}
	return replyOK, nil
}

func (s *Server) queues(ctx context.Context) (names []string, err error) {
	all, err := s.store.Queues(ctx)
	for _, q := range all {
		names = append(names, q.Name)
	}
	return slices.Clip(names), err
}
