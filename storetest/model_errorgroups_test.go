package storetest_test

import (
	"cmp"
	"context"
	"slices"

	"github.com/stint-go/stint"
)

func (m *model) Errors(_ context.Context, f stint.ErrorFilter) (stint.ErrorReport, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []stint.FailedAttempt
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
		a := stint.FailedAttempt{Job: r.id, Kind: r.entry.Kind, Class: x.Error.Class, Message: message, Stack: x.Error.Stack, Ended: x.finished}
		if m.is("sees no places") {
			a.Stack = ""
		}
		all = append(all, a)
	}
	more := m.is("cuts errors off")
	if len(all) > stint.MaxErrors && !m.is("groups any number of errors") {
		slices.SortFunc(all, func(a, b stint.FailedAttempt) int { return cmp.Compare(b.Job, a.Job) })
		all, more = all[:stint.MaxErrors], true
	}
	return stint.GroupErrors(all, more), nil
}
