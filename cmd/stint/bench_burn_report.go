package main

import (
	"fmt"

	"github.com/stint-go/stint/internal/load"
	"github.com/stint-go/stint/internal/words"
)

// burnReport is what --json prints.
type burnReport struct {
	load.BurnResult
	*spent
	Limit *limitReport `json:"limit,omitempty"`
	Ratio *burnRatio   `json:"ratio,omitempty"` // to the limit

	Without      *burnReport `json:"without,omitempty"` // the same with nothing held open
	WithoutRatio *burnRatio  `json:"without_ratio,omitempty"`

	Settings settings `json:"settings,omitempty"`
}

// burnRatio is the jobs per second against those of something else.
type burnRatio struct {
	Enqueue float64 `json:"enqueue"`
	Work    float64 `json:"work"`
}

func (r burnReport) over(o load.BurnResult) *burnRatio {
	return &burnRatio{ratio(r.EnqueuePerSecond, o.EnqueuePerSecond), ratio(r.WorkPerSecond, o.WorkPerSecond)}
}

func (a *app) printBurn(r burnReport) error {
	if a.json {
		return a.printJSON(r)
	}
	head := []any{"", "jobs", "seconds", "jobs/s"}
	enqueue := []any{"enqueue", words.Count(r.N), fmt.Sprintf("%.2f", r.EnqueueSeconds), words.Count(int64(r.EnqueuePerSecond))}
	work := []any{"work", words.Count(r.N), fmt.Sprintf("%.2f", r.WorkSeconds), words.Count(int64(r.WorkPerSecond))}
	var limit *spent
	if l := r.Limit; l != nil {
		head = append(head, "limit", "ratio")
		enqueue = append(enqueue, words.Count(int64(l.EnqueuePerSecond)), fmt.Sprintf("%.2f", r.Ratio.Enqueue))
		work = append(work, words.Count(int64(l.WorkPerSecond)), fmt.Sprintf("%.2f", r.Ratio.Work))
		limit = l.spent
	}
	t := newTable(a.out, head...)
	t.AppendRow(enqueue)
	t.AppendRow(work)
	t.Render()
	a.printSpent(r.spent, limit)
	if r.Utilization > 0 {
		fmt.Fprintf(a.out, "\nslots had a job in hand for %.1f%% of the time\n", 100*r.Utilization)
	}
	if w := r.Without; w != nil {
		fmt.Fprintf(a.out, "\nwith nothing held open: enqueue %s/s, work %s/s; this is %.2f and %.2f of that\n",
			words.Count(int64(w.EnqueuePerSecond)), words.Count(int64(w.WorkPerSecond)), r.WithoutRatio.Enqueue, r.WithoutRatio.Work)
	}
	r.Settings.print(a.out)
	return nil
}
