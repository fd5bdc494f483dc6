package storetest_test

import (
	"cmp"
	"context"
	"slices"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
)

func (m *model) Errors(_ context.Context, f report.ErrorFilter) (report.ErrorReport, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []report.FailedAttempt
	for _, r := range m.visible(func(r *row) bool { return r.entry != nil && m.done[r.entry.Pos] != nil }) {
		x := m.done[r.entry.Pos]
		failed := x.Outcome == stint.OutcomeFailed && (x.Final || !m.is("forgets errors that were tried again")) ||
			x.Outcome == stint.OutcomeLost && !m.is("takes the lost for well")
		fits := (f.Kind == "" || r.entry.Kind == f.Kind) && (f.Queue == "" || r.entry.Queue == f.Queue) && !x.finished.Before(f.Since)
		if !failed || !fits && !m.is("groups errors of everything") {
			continue
		}
		message := x.Error.Message
		if runes := []rune(message); len(runes) > 1000 && !m.is("tells all of a message") {
			message = string(runes[:1000])
		}
		a := report.FailedAttempt{Job: r.id, Kind: r.entry.Kind, Class: x.Error.Class, Message: message, Stack: x.Error.Stack, Ended: x.finished}
		if m.is("sees no places") {
			a.Stack = ""
		}
		all = append(all, a)
	}
	more := m.is("cuts errors off")
	if len(all) > report.MaxErrors && !m.is("groups any number of errors") {
		slices.SortFunc(all, func(a, b report.FailedAttempt) int { return cmp.Compare(b.Job, a.Job) })
		all, more = all[:report.MaxErrors], true
	}
	return report.GroupErrors(all, more), nil
}
