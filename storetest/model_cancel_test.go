package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// mark says why and when a job was cancelled.
type mark struct {
	why  string
	at   time.Time
	told bool // of a flow: its jobs were cancelled
}

func (m *model) Cancel(ctx context.Context, ids []stint.ID, why string) (map[stint.ID]stint.CancelStatus, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.is("cancels the first only") {
		ids = ids[:min(1, len(ids))]
	}
	answers := map[stint.ID]stint.CancelStatus{}
	for _, id := range ids {
		answers[id] = m.cancel(id, valid.CleanText(why, 1<<10))
	}
	if !m.is("does not ring for the cancelled") {
		m.ring()
	}
	return answers, nil
}

func (d *database) cancel(id stint.ID, why string) stint.CancelStatus {
	jobs := d.visible(func(r *row) bool { return r.job != nil && r.id == id })
	if len(jobs) == 0 {
		if d.is("cancels what is not there") {
			return stint.CancelledNow
		}
		return stint.CancelNotFound
	}
	rows := d.visible(func(r *row) bool { return r.id == id && r.job == nil })
	final := stint.Outcome(0)
	for _, x := range d.done {
		if x.Job == id && x.Final {
			final = x.Outcome
		}
	}
	switch {
	case final == stint.OutcomeCancelled, final == stint.OutcomeSkipped && !d.is("comes too late for what was skipped"), final != 0 && d.is("never comes too late"):
		return stint.CancelledNow
	case final != 0:
		return stint.CancelTooLate
	}
	wait := slices.IndexFunc(rows, func(r *row) bool { return r.wait != nil })
	running := slices.ContainsFunc(rows, func(r *row) bool { return r.entry != nil && r.taken && d.done[r.entry.Pos] == nil })
	isFlow := wait >= 0 && jobs[0].isFlow
	answer := stint.CancelledNow
	if running || isFlow {
		answer = stint.CancelRequested
	}
	if wait < 0 && d.is("cancels what waits only") {
		return answer
	}
	if _, twice := d.cancelled[id]; !twice || d.is("takes the last reason") {
		d.cancelled[id] = mark{why: why, at: time.Now()}
	}
	if d.is("forgets why") {
		d.cancelled[id] = mark{at: time.Now()}
	}
	d.cancelCalls(jobs[0], why)
	ready := slices.IndexFunc(rows, func(r *row) bool { return r.entry != nil && !r.taken && d.done[r.entry.Pos] == nil })
	switch {
	case isFlow: // it ends when its jobs have
	case wait >= 0 && !d.is("marks what waits and leaves it waiting"):
		d.cancelWaiting(jobs[0], rows[wait])
	case wait < 0 && ready >= 0 && !d.is("marks what is ready and leaves it to engines"):
		d.cancelReady(rows[ready])
	}
	return answer
}

// cancelWaiting ends a job that waits, by an entry in the lane that nobody
// claims.
func (d *database) cancelWaiting(job, wait *row) {
	d.rows = slices.DeleteFunc(d.rows, func(o *row) bool { return o == wait })
	pos, now := d.draw(), time.Now()
	d.append(nil, job, pos, now, wait.next)
	d.cancelReady(d.rows[len(d.rows)-1])
}

// cancelReady ends a job at an entry that nobody claimed and that nobody will.
func (d *database) cancelReady(r *row) {
	if !d.is("ends what is ready and leaves it in its lane") {
		r.lane = store.NoLane
	}
	now := time.Now()
	d.record(0, store.Completion{
		Pos: r.entry.Pos, Job: r.id, Attempt: r.entry.Attempt, Ended: now, Started: now,
		Outcome: stint.OutcomeCancelled, Final: true,
	})
}

// markOf says why and when a job was cancelled, itself or with its flow or with what called it.
func (d *database) markOf(id stint.ID) (mark, bool) {
	m, marked := d.cancelled[id]
	if r := d.jobs[id]; !marked && r != nil && r.flow != 0 && !d.is("begins what was not marked of a flow that is cancelled") {
		if m, marked = d.cancelled[r.flow]; marked {
			m.why = d.whyWith(r.flow, m.why)
		}
	}
	return m, marked
}

// whyWith is what is said of the jobs of a flow that is cancelled, or of what a job has called that is.
func (d *database) whyWith(parent stint.ID, why string) string {
	text := fmt.Sprintf("its flow %d was cancelled", parent)
	if r := d.jobs[parent]; r == nil || !r.isFlow {
		text = fmt.Sprintf("job %d, which called it, was cancelled", parent)
	}
	if why == "" || d.is("tells jobs of a flow nothing of why") {
		return text
	}
	return text + ": " + why
}

// heed is what becomes of an outcome if somebody cancelled the job.
func (d *database) heed(x store.Completion) store.Completion {
	mark, cancelled := d.cancelled[x.Job]
	if x.Outcome == stint.OutcomeCancelled {
		mark, cancelled = d.markOf(x.Job)
	}
	switch {
	case !cancelled || x.Final && x.Outcome != stint.OutcomeCancelled && !d.is("cancels what completed"):
	case x.Outcome != stint.OutcomeCancelled && d.is("retries the cancelled"):
	case x.Outcome == stint.OutcomeCancelled && x.Reason != "":
	default:
		x.Outcome, x.Final, x.Reason, x.Next = stint.OutcomeCancelled, true, mark.why, nil
	}
	return x
}

func (m *model) Cancelling(_ context.Context, ids []stint.ID) ([]stint.ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []stint.ID
	for id := range m.jobs {
		_, marked := m.cancelled[id]
		if _, with := m.markOf(id); (marked || with && !m.ended(id)) && (slices.Contains(ids, id) || m.is("tells of everything cancelled")) {
			all = append(all, id)
		}
	}
	return all, nil
}

func (m *model) FinishTx(_ context.Context, tx stint.Tx, engine store.EngineID, claim store.ClaimRef, x store.Completion) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	in, ok := tx.Handle.(*modelTx)
	if !ok {
		return errors.New("not a transaction of the model")
	}
	if in.ended && !m.is("completes before the commit") {
		return errEnded
	}
	err := m.mayRecord(engine, []store.ClaimRef{claim})
	switch {
	case errors.Is(err, store.ErrBuried) && m.is("completes for the buried"), errors.Is(err, store.ErrClaimGone) && m.is("completes without a claim"):
		err = nil
	case err == nil && m.done[x.Pos] != nil && !m.is("completes what has an outcome"):
		err = errors.New("it has an outcome")
	case err == nil && m.deleted[x.Pos] && !m.is("completes what was deleted"):
		err = errors.New("it had an outcome")
	}
	if err != nil {
		if !m.is("keeps what could not complete") {
			in.back(0)
			in.ended = true
		}
		return err
	}
	if m.is("loses results of transactions") {
		x.Result = nil
	}
	if x.Log != nil && !m.is("hears nothing in transactions") {
		m.keepLog(engine, x.Log)
	}
	m.record(engine, x)
	if !m.is("completes and leaves the rest open") {
		in.commit()
	}
	return nil
}
