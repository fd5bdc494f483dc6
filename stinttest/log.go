package stinttest

import (
	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Log returns the lines that the runs of a job logged with [stint.Logger], the first one first. It fails the test if the store keeps
// none.
//
//	run := stinttest.Perform(w, Import, File{"a.csv"})
//	lines := w.Log(run.Job.ID)
func (w *Worker) Log(job stint.ID) []stint.LogLine {
	w.t.Helper()
	lines, err := w.logs().Log(w.t.Context(), job, store.LogFilter{})
	if err != nil {
		w.t.Fatalf("stinttest: %v", err)
	}
	return lines
}

// Progress returns what the last of a job's runs that called [stint.SetProgress] said last; nil if none did. It
// fails the test if the store keeps none.
func (w *Worker) Progress(job stint.ID) *stint.Progress {
	w.t.Helper()
	all, err := w.logs().Progress(w.t.Context(), job)
	if err != nil {
		w.t.Fatalf("stinttest: %v", err)
	}
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

func (w *Worker) logs() store.LogReader {
	w.t.Helper()
	l, ok := w.store.(store.LogReader)
	if !ok {
		w.t.Fatalf("stinttest: the store %T keeps nothing of what handlers say", w.store)
	}
	return l
}
