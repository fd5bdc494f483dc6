package stint

import "context"

// Hook is called after the outcome of an attempt was recorded, and cannot change it. x
// says how the attempt ended, whether that was final, and otherwise after which time the
// job is retried. Neither job nor x may be changed.
//
// The context ends after a minute, or two seconds after the grace of a stop is
// over. It carries a client ([ClientFrom]) and the job.
//
// An error or a panic is reported as an event ([event.EventTrouble]) and has no other
// consequence; the next hook is still called.
type Hook func(ctx context.Context, job *Job, x *Attempt) error

// Hooks are called after an attempt, in this order. Nil ones are skipped.
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
// recorded because the engine was buried, when the job was cancelled
// before it began, or when a person buried the engine. So hooks are for messages and
// counters. What must happen belongs into the handler, or into a job that it enqueues in
// the transaction of its own work.
//
// A job that expired did not begin. Its hooks are still called, with an attempt that
// has no start.
//
// The engine that recorded the outcome calls the hooks, outside of its slots. After an
// attempt that was lost with its engine, that is the engine that buried the other, if it
// handles the kind. If an engine did not have the retry function that a policy names, the
// engine that decides later calls AfterLastFailure, if it handles the kind. The hooks of
// one attempt are called one after the other, those of different attempts concurrently.
// When hooks cannot keep up, the engine starts jobs of kinds with hooks more slowly.
type Hooks struct {
	AfterSuccess     Hook // the job completed
	AfterFailure     Hook // the attempt failed, for whatever reason
	AfterLastFailure Hook // and it was the last: the job has failed
	Finally          Hook // the attempt ended, however that was
}

// Hook adds hooks for the jobs of every kind, also of kinds that are added
// later. Hooks are called in the order in which they were added, the mux's before a
// kind's. It panics once an engine runs.
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
