package storetest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

func (m *model) Signal(ctx context.Context, tx stint.Tx, job stint.ID, s stint.Signal) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	in, _ := tx.Handle.(*modelTx)
	if tx.Handle != nil && in == nil {
		return errors.New("not a transaction of the model")
	}
	all := m.signals(job)
	if in != nil {
		all = append(all, m.sentIn(in, job)...)
	}
	known := s.Key != "" && slices.ContainsFunc(all, func(o *row) bool { return o.signal.Key == s.Key }) && !m.is("keeps every signal of a key")
	if known && !m.is("looks for the job of a signal before its key") {
		return nil
	}
	if err := m.maySignal(in, job); err != nil || known {
		return err
	}
	size := len(s.Value)
	for _, o := range all {
		size += len(o.signal.Value)
	}
	if size > 16<<20 && !m.is("keeps any number of signals") {
		return valid.Invalid("signal", "the job has as many as it gets")
	}
	if m.is("knows a signal's key for all jobs") && slices.ContainsFunc(m.rows, func(o *row) bool { return o.signal != nil && s.Key != "" && o.signal.Key == s.Key }) {
		return nil
	}
	if m.is("sends before the commit") {
		in = nil
	}
	m.send(in, job, s)
	if in == nil && !m.is("does not ring for signals") {
		m.ring()
	}
	return nil
}

// maySignal reports whether a job is there and has not ended, as a transaction sees it.
func (d *database) maySignal(in *modelTx, job stint.ID) error {
	r := d.jobs[job]
	_, marked := d.cancelled[job]
	switch {
	case marked && d.is("takes who is to stop for ended"):
		return stint.ErrEnded
	case (r == nil || r.tx != nil && r.tx != in) && !d.is("sends to anybody"):
		if d.is("takes a place in the log for its job") && slices.ContainsFunc(d.rows, func(e *row) bool { return e.entry != nil && e.num == int64(job) }) {
			return nil
		}
		return stint.ErrNotFound
	case r != nil && d.stateIn(in, job).Final() && !d.is("answers too late as sent"):
		return stint.ErrEnded
	}
	return nil
}

func (d *database) send(in *modelTx, job stint.ID, s stint.Signal) {
	if waits := slices.ContainsFunc(d.rows, func(r *row) bool { return r.wait != nil && r.id == job }); !waits && d.is("keeps signals for those who wait only") {
		return
	}
	n := d.draw()
	sent := &stint.SentSignal{N: n, Name: s.Name, Sent: time.Now(), Key: s.Key, Value: slices.Clone(s.Value)}
	if d.is("tells no time of a signal") {
		sent.Sent = time.Time{}
	}
	d.rows = append(d.rows, &row{tx: in, num: n, signal: sent, to: job})
}

// signals lists those of a job that are committed.
func (d *database) signals(job stint.ID) []*row {
	all := d.visible(func(r *row) bool { return r.signal != nil && r.to == job })
	slices.SortFunc(all, func(a, b *row) int { return cmp.Compare(a.num, b.num) })
	return all
}

// sentIn lists those that a transaction sent and did not commit.
func (d *database) sentIn(in *modelTx, job stint.ID) (all []*row) {
	for _, r := range d.rows {
		if r.tx == in && r.signal != nil && r.to == job {
			all = append(all, r)
		}
	}
	return all
}

func (m *model) Signals(_ context.Context, job stint.ID) ([]stint.SentSignal, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []stint.SentSignal
	for _, r := range m.signals(job) {
		s := *r.signal
		if m.is("forgets who took a signal") {
			s.Step = ""
		}
		all = append(all, s)
	}
	if m.is("lists the newest signal first") {
		slices.Reverse(all)
	}
	return all, nil
}

// stepOrder is the order in which the steps of a call are recorded.
func (d *database) stepOrder(steps []store.StepRecord) []int {
	order := make([]int, len(steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if steps[a].Signal == "" || steps[b].Signal == "" || d.is("gives signals in any order of the steps") {
			return cmp.Compare(steps[a].Signal, steps[b].Signal)
		}
		return cmp.Or(cmp.Compare(steps[a].Job, steps[b].Job), cmp.Compare(steps[a].Name, steps[b].Name))
	})
	return order
}

// takeSignal records a step that takes a signal, if one is there or the time is over.
func (d *database) takeSignal(engine store.EngineID, s store.StepRecord) (stint.RecordedStep, error) {
	key := d.stepOf(s.Job, s.Name)
	if r, there := d.steps[key]; there && !d.is("takes another signal when the answer was lost") {
		return r, nil
	}
	delete(d.steps, key)
	first := d.nextSignal(s)
	over := !s.Until.After(time.Now()) && !d.is("waits for a signal for ever")
	var err error
	switch given := s.Result; {
	case over && (first == nil || d.is("lets the time win over a signal")):
		first, s.Result = nil, []byte(`{"timeout":true}`)
	case first != nil:
		s.Result, err = json.Marshal(map[string]any{"signal": first.num, "value": first.signal.Value})
	case d.is("takes what it is given for a signal") && given != nil:
	case d.is("records that no signal is there"):
		s.Result = []byte(`null`)
	default:
		s.Result = nil
	}
	waits := s.Result == nil
	fresh, wrong := d.recordStep(engine, s)
	if waits && fresh {
		delete(d.steps, key)
		return stint.RecordedStep{Name: s.Name}, nil
	}
	if first != nil && (fresh || d.is("takes signals for attempts that have ended")) && !d.is("gives a signal to every step") {
		first.signal.Step = s.Name
	}
	if !fresh && d.is("says of the refused that they wait") {
		return stint.RecordedStep{Name: s.Name}, nil
	}
	return d.steps[key], cmp.Or(err, wrong)
}

// nextSignal is the one that a step takes; nil for none.
func (d *database) nextSignal(s store.StepRecord) *row {
	var open []*row
	for _, r := range d.visible(func(r *row) bool { return r.signal != nil }) {
		if (r.to == s.Job || d.is("takes signals of every job")) && r.signal.Step == "" && d.signalIs(r.signal.Name, s.Signal) {
			open = append(open, r)
		}
	}
	if len(open) == 0 {
		return nil
	}
	slices.SortFunc(open, func(a, b *row) int { return cmp.Compare(a.num, b.num) })
	if d.is("takes the newest signal") {
		return open[len(open)-1]
	}
	return open[0]
}

// signalIs reports whether a signal has a name.
func (d *database) signalIs(have, want string) bool {
	return have == want || d.is("takes signals of every name") || d.is("takes names of signals for others") && strings.EqualFold(have, want)
}

// awaited are the names of the signals, and of the questions, that a wait ends with, in order.
func awaited(wait *row) (signals, questions []string) {
	var byStep map[string]string
	_ = json.Unmarshal([]byte(wait.next.Awaits), &byStep) // it is none for most
	for step, signal := range byStep {
		if signal == "" {
			questions = append(questions, step)
		} else {
			signals = append(signals, signal)
		}
	}
	slices.Sort(questions)
	slices.Sort(signals)
	return slices.Compact(signals), questions
}

// blocked is what people see of a wait, and of what.
func (d *database) blocked(wait *row) (state stint.State, signals, questions []string) {
	signals, questions = awaited(wait)
	switch {
	case d.is("shows the blocked as scheduled") && len(signals) > 0:
		return stint.Scheduled, signals, questions
	case d.is("shows one signal that is awaited"):
		signals = signals[:min(1, len(signals))]
	case d.is("shows questions as signals"):
		signals, questions = append(signals, questions...), nil
	}
	return wait.wait.Why, signals, questions
}

// woken are the waits that a signal ends which no step has taken, or an answer.
func (d *database) woken(waits []*row) (woken []*row) {
	for _, w := range waits {
		names, questions := awaited(w)
		if d.is("wakes for the first name only") {
			names = names[:min(1, len(names))]
		}
		if d.is("never wakes") || len(names)+len(questions) == 0 {
			continue
		}
		if slices.ContainsFunc(questions, func(name string) bool { return d.wakesFor(w.id, name) }) {
			woken = append(woken, w)
			continue
		}
		for _, s := range d.signals(w.id) {
			taken := s.signal.Step != "" && !d.is("wakes for what was taken")
			early := d.is("forgets a signal that came before the wait") && s.num <= w.num
			if !taken && !early && (d.is("wakes for any signal") || slices.ContainsFunc(names, func(name string) bool { return d.signalIs(s.signal.Name, name) })) {
				woken = append(woken, w)
				break
			}
		}
	}
	return woken
}

// passSignals gives a job that is recovered the signals that nobody took.
func (d *database) passSignals(old, anew stint.ID) {
	if d.is("forgets signals when it recovers") {
		return
	}
	for _, r := range d.signals(old) {
		if r.signal.Step != "" && !d.is("passes on signals that were taken") {
			continue
		}
		d.send(nil, anew, stint.Signal{Name: r.signal.Name, Key: r.signal.Key, Value: r.signal.Value})
		if d.is("takes signals away from the recovered") {
			r.to = 0
		}
	}
}

// eraseSignals deletes the signals to a job, also those that are not committed.
func (d *database) eraseSignals(job stint.ID) {
	if !d.is("keeps signals of the deleted") {
		d.rows = slices.DeleteFunc(d.rows, func(r *row) bool { return r.signal != nil && r.to == job })
	}
}
