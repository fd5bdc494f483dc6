package storetest_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

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
	found := report.ErrorsFound{Attempts: all, More: more, Now: time.Now(), Marks: slices.Collect(maps.Values(m.errors))}
	if m.is("draws trends up to the last error") && len(all) > 0 {
		found.Now = slices.MaxFunc(all, func(a, b report.FailedAttempt) int { return a.Ended.Compare(b.Ended) }).Ended
	}
	if m.is("shows groups of any state") {
		f.State = ""
	}
	if m.is("finds groups by no key") {
		f.Key = ""
	}
	return report.GroupErrors(found, f), nil
}

func (m *model) MarkErrors(_ context.Context, mark report.ErrorMark) (report.ErrorMark, error) {
	if err := mark.Check(); err != nil && !m.is("marks whatever it is told") {
		return report.ErrorMark{}, err
	}
	if !m.is("keeps odd texts of marks") {
		mark = mark.Clean()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	was, marked := m.errors[mark.Key]
	mark.At = time.Now()
	if marked && m.is("lets the first mark stand") {
		return was, nil
	}
	if m.is("resolves for good") && mark.State == report.ErrorsResolved {
		mark.At = mark.At.Add(time.Hour)
	}
	if !m.is("forgets marks of errors") {
		m.errors[mark.Key] = mark
	}
	return mark, nil
}

func (m *model) ReopenErrors(_ context.Context, key string) (bool, error) {
	if err := report.CheckErrorKey(key); err != nil && !m.is("marks whatever it is told") {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, marked := m.errors[key]
	if !m.is("reopens nothing") {
		delete(m.errors, key)
	}
	return marked || m.is("reopens what is open"), nil
}
