package main

import (
	"context"
	"fmt"

	"github.com/stint-go/stint/internal/pgload"
)

// spent is what a server spent on jobs. Of SQLite there is none: everything
// happens in this process.
type spent struct {
	WALPerJob     float64  `json:"wal_bytes_per_job"`
	CommitsPerJob float64  `json:"commits_per_job"`                    // of transactions that wrote
	CPUPerMillion *float64 `json:"server_cpu_s_per_million,omitempty"` // absent where it cannot be read
	Multixacts    int64    `json:"multixacts"`
}

// spending runs something and tells what the server spent on that many jobs
// meanwhile; nil where there is no server.
func (g *ground) spending(ctx context.Context, jobs int, run func(context.Context) error) (*spent, error) {
	if !g.flags.isPostgres() {
		return nil, run(ctx)
	}
	probe, err := pgload.NewProbe(ctx, g.flags.withDefaults())
	if err != nil {
		return nil, err
	}
	defer probe.Close()
	before, err := probe.Read(ctx)
	if err != nil {
		return nil, err
	}
	if err := run(ctx); err != nil {
		return nil, err
	}
	after, err := probe.Read(ctx)
	if err != nil {
		return nil, err
	}
	u := after.Since(before)
	s := &spent{WALPerJob: float64(u.WAL) / float64(jobs), CommitsPerJob: float64(u.Transactions) / float64(jobs), Multixacts: u.Multixacts}
	if u.CPUKnown {
		s.CPUPerMillion = new(u.CPU.Seconds() * 1e6 / float64(jobs))
	}
	return s, nil
}

// printSpent prints a line for each figure, with that of the limit beside it if
// there is one; nothing where there is no server.
func (a *app) printSpent(s, limit *spent) {
	if s == nil {
		return
	}
	head := []any{"of the server", ""}
	if limit != nil {
		head = append(head, "limit")
	}
	fmt.Fprintln(a.out)
	t := newTable(a.out, head...)
	defer t.Render()
	line := func(name, format string, figure func(*spent) any) {
		row := []any{name, fmt.Sprintf(format, figure(s))}
		if limit != nil {
			row = append(row, fmt.Sprintf(format, figure(limit)))
		}
		t.AppendRow(row)
	}
	line("WAL, bytes per job", "%.0f", func(s *spent) any { return s.WALPerJob })
	line("commits per job", "%.5f", func(s *spent) any { return s.CommitsPerJob })
	if s.CPUPerMillion != nil && (limit == nil || limit.CPUPerMillion != nil) {
		line("server CPU, seconds per million jobs", "%.2f", func(s *spent) any { return *s.CPUPerMillion })
	}
	line("multixacts", "%d", func(s *spent) any { return s.Multixacts })
}
