package main

import (
	"fmt"
	"slices"

	"github.com/stint-go/stint/internal/load"
	"github.com/stint-go/stint/internal/words"
)

// steadyReport is what --json prints.
type steadyReport struct {
	load.SteadyResult
	Limit *limitReport `json:"limit,omitempty"`
	Ratio *steadyRatio `json:"ratio,omitempty"` // to the limit

	Without      *steadyReport `json:"without,omitempty"` // the same with nothing held open
	WithoutRatio *steadyRatio  `json:"without_ratio,omitempty"`

	Settings settings `json:"settings,omitempty"`
}

// steadyRatio is the jobs worked per second against those of something else.
type steadyRatio struct {
	Worked    float64   `json:"worked"` // over the whole time
	First     float64   `json:"first"`
	Last      float64   `json:"last"`
	Median    float64   `json:"median"` // of the medians of both
	Least     float64   `json:"least"`
	Intervals []float64 `json:"intervals"` // in the same seconds
}

func (r steadyReport) over(o load.SteadyResult) *steadyRatio {
	all := &steadyRatio{
		Worked: ratio(r.WorkedPerSecond, o.WorkedPerSecond), First: ratio(r.First, o.First),
		Last: ratio(r.Last, o.Last), Median: ratio(r.Median, o.Median), Least: ratio(r.Least, o.Least),
	}
	for i := range min(len(r.Intervals), len(o.Intervals)) {
		all.Intervals = append(all.Intervals, ratio(r.Intervals[i].WorkedPerSecond, o.Intervals[i].WorkedPerSecond))
	}
	return all
}

// evenly is a load that was always the same.
func evenly(perSecond float64, intervals int) load.SteadyResult {
	return load.SteadyResult{
		WorkedPerSecond: perSecond, First: perSecond, Last: perSecond, Median: perSecond, Least: perSecond,
		Intervals: slices.Repeat([]load.Interval{{WorkedPerSecond: perSecond}}, intervals),
	}
}

// ratio is 0 where there is nothing to compare with.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (a *app) printSteady(r steadyReport) error {
	if a.json {
		return a.printJSON(r)
	}
	t := newTable(a.out, r.head("seconds", "enqueued/s", "backlog", "longest wait ms")...)
	for i, x := range r.Intervals {
		t.AppendRow(r.row(
			func(s load.SteadyResult) float64 {
				if i < len(s.Intervals) {
					return s.Intervals[i].WorkedPerSecond
				}
				return 0
			},
			fmt.Sprintf("%.0f", x.At), words.Count(int64(x.EnqueuedPerSecond)), words.Count(x.Backlog), fmt.Sprintf("%.0f", x.LongestWait),
		))
	}
	t.Render()
	fmt.Fprintln(a.out)
	t = newTable(a.out, r.head("")...)
	t.AppendRow(r.row(func(s load.SteadyResult) float64 { return s.WorkedPerSecond }, "whole time"))
	t.AppendRow(r.row(func(s load.SteadyResult) float64 { return s.First }, "first interval"))
	t.AppendRow(r.row(func(s load.SteadyResult) float64 { return s.Last }, "last interval"))
	t.AppendRow(r.row(func(s load.SteadyResult) float64 { return s.Median }, "median interval"))
	t.AppendRow(r.row(func(s load.SteadyResult) float64 { return s.Least }, "least interval"))
	t.Render()
	fmt.Fprintln(a.out)
	if l := r.Limit; l != nil {
		fmt.Fprintf(a.out, "the limit takes in and works off %s jobs/s\n", words.Count(int64(l.JobsPerSecond)))
	}
	fmt.Fprintf(a.out, "all %s ended; the last of them %.1f s behind the last enqueue\n", words.Counted(r.Enqueued, "job"), r.DrainSeconds)
	r.Settings.print(a.out)
	return nil
}

// head are the columns of a table whose rows are made by row.
func (r steadyReport) head(columns ...any) []any {
	columns = append(columns, "worked/s")
	if r.Limit != nil {
		columns = append(columns, "of the limit")
	}
	if r.Without != nil {
		columns = append(columns, "without", "ratio")
	}
	return columns
}

// row adds a figure of jobs worked per second to some cells, and what it is
// compared with.
func (r steadyReport) row(figure func(load.SteadyResult) float64, cells ...any) []any {
	this := figure(r.SteadyResult)
	cells = append(cells, words.Count(int64(this)))
	if r.Limit != nil {
		cells = append(cells, fmt.Sprintf("%.2f", ratio(this, r.Limit.JobsPerSecond)))
	}
	if r.Without != nil {
		that := figure(r.Without.SteadyResult)
		cells = append(cells, words.Count(int64(that)), fmt.Sprintf("%.2f", ratio(this, that)))
	}
	return cells
}
