package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/stint-go/stint/bench/contest"
)

// recording keeps throughput over time, for a plot.
type recording struct {
	names []string // in the order in which they first came
	turns map[string][][]float64
}

func (r *recording) add(name string, series []float64) {
	if r.turns == nil {
		r.turns = map[string][][]float64{}
	}
	if r.turns[name] == nil {
		r.names = append(r.names, name)
	}
	r.turns[name] = append(r.turns[name], series)
}

// medians are those of each slice over all turns.
func (r *recording) medians(name string) []float64 {
	turns := r.turns[name]
	all := make([]float64, len(turns[0]))
	for i := range all {
		var at []float64
		for _, series := range turns {
			at = append(at, series[i])
		}
		all[i] = contest.Median(at)
	}
	return all
}

// write writes the plot, and its figures as CSV and JSON.
func (r *recording) write(path string) error {
	slices.Sort(r.names)
	if err := r.writeCSV(path + ".csv"); err != nil {
		return err
	}
	text, err := json.MarshalIndent(map[string]any{"seconds": slice.Seconds(), "turns": r.turns}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".json", append(text, '\n'), 0o666); err != nil {
		return err
	}
	return r.plot(path + ".svg")
}

func (r *recording) writeCSV(path string) error {
	table := [][]string{append([]string{"seconds"}, r.names...)}
	for i := range r.medians(r.names[0]) {
		row := []string{fmt.Sprint(float64(i+1) * slice.Seconds())}
		for _, name := range r.names {
			row = append(row, fmt.Sprintf("%.0f", r.medians(name)[i]))
		}
		table = append(table, row)
	}
	return contest.WriteCSV(path, table)
}
