package stint

import "context"

// Hook is told of an attempt that ended, after its outcome was recorded: what
// it learns is true, and nothing that it does changes it. The record says how the
// attempt ended, whether that was final, and otherwise in which time it is tried again.
// Neither job nor record are to be written to.
//
// The context ends after a minute, or two seconds after the grace of a stop is
// over. It leads to a client ([ClientFrom]) and to the job.
//
// An error or a panic is told as an event ([event.EventTrouble]) and has no other
// consequence; the next hook is called all the same.
type Hook func(ctx context.Context, job *Job, x *Attempt) error

// Hooks are called after an attempt, in this order. Nil ones are passed over.
//
//	the attempt                     calls
//	completed                       AfterSuccess,                   Finally
//	failed, was lost or expired     AfterFailure,                   Finally
//	  and was the last              AfterFailure, AfterLastFailure, Finally
//	was cancelled, snoozed or
//	  ended by a stop                                               Finally
//
// A hook is called at most once for an attempt. It is not called at all when
// the process dies between the record and the hook, when the outcome was not
// recorded because the engine had lost its place, when the job was cancelled
// before it began, or when a person buried the engine by hand. So hooks are for
// telling people and counters. What must happen is done in the handler, or is
// a job that it enqueues in the transaction of its own work.
//
// A job that expired did not begin. Its hooks are called all the same, with a
// record that has no start.
//
// Hooks are called by the engine that recorded the outcome, beside its slots.
// After an attempt that was lost with its engine that is the engine that
// buried the other, when it handles the kind as well. And when a failure turns
// out to be the last only later, since the engine at hand did not have the
// function that a policy names, AfterLastFailure is called by the engine that
// decides, when it handles the kind. The hooks of one attempt
// are called one after the other, those of different attempts side by side. When
// hooks cannot keep up, the engine begins jobs of kinds that have some more
// slowly.
type Hooks struct {
	AfterSuccess     Hook // the job completed
	AfterFailure     Hook // the attempt failed, for whatever reason
	AfterLastFailure Hook // and it was the last: the job has failed
	Finally          Hook // the attempt ended, however that was
}

// Hook adds hooks for the jobs of every kind, also of those that are added
// later. The hooks of one sort are called in the order of their adding, the
// mux's before a kind's. It panics once an engine runs.
func (m *Mux) Hook(h Hooks) {
	m.mustBeUnused("hooks")
	m.hooks = append(m.hooks, h)
}

// Hook adds hooks for the jobs of this kind. It panics once an engine runs.
func (r *Registration) Hook(h Hooks) *Registration {
	r.mux.mustBeUnused("hooks")
	r.hooks = append(r.hooks, h)
	return r
}
