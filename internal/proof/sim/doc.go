// Package sim runs fleets of engines in fake time over the real SQLite store,
// and does to them what networks, kernels and operators do.
//
//	                    ┌ producer ─ process ┐
//	                    ├ people ─── process │
//	seed ──▶ machines ──┤ engine ─── process ├─ fate of each call ─▶ planted bug ─▶ SQLite file
//	                    └ caller ─── process ┘                                         │
//	                           │                                                       │
//	                        history ───────────────▶ check.Compare ◀──────────────── audit
//
// # A seed
//
// A seed stands for one run: two minutes of trouble in a synctest bubble,
// three to six machines, some two hundred jobs of mixed policies. Then the
// trouble ends, everything that was asked for must be done before long, the
// engines are stopped, and package check compares what handlers and producers
// wrote down with what the database says.
//
// Of the jobs, clients cancel every sixth: while it waits, when it is promoted,
// while it runs or its end is recorded, when it is over, and around the burial
// of its engine. Some handlers heed that and some do not. Every eighth job is
// completed by its handler, in a transaction that leaves a row beside the
// outcome. Jobs of one kind go on when their engine was buried.
//
// # The trouble
//
// A machine starts one [process] after the other, as a supervisor does. A
// process can be killed, frozen, cut off, or asked to stop. All that it wants
// of the store goes through it, and each call has a [fate]: it travels for a
// while in both directions, is refused, loses its answer, is half answered, or
// arrives twice. A call under way when its process is killed or its caller
// gives up may arrive later all the same; one under way when the process is
// frozen arrives during the freeze, or at its end.
//
// Frozen are the calls, the handlers and the events of an engine: whatever it
// does passes one of these. Its timers go on, as they do for a real process
// that wakes up and finds them all due.
//
// # Cancellations
//
// The world knows when a marker was committed, whatever its client was told.
// From then on no engine may begin an attempt that it had not read by then,
// nothing may follow the attempt that was under way, and only that one may end
// the job otherwise. An engine that hears well must tell a handler within a
// quarter of its time to live and a second. Answers must be true, the first
// reason must stand, no marker may be left in the end, and at any moment the
// counts that people see must be those of the jobs.
//
// # People
//
// An operator has jobs run again, does ended ones again as new ones and deletes
// some; clients do so too, of every twelfth job and often at the very moment
// that it ends. What is deleted the database sets aside, as a part of the
// deletion: so the judge asks of it all that it asks of other jobs, and it must
// have ended; and nothing may be left of it, whatever an engine repeats. A job
// that does another one again names it, once for each time that somebody was
// told so; and who was told of a time before which a job does not run was told
// the truth.
//
// A porter pauses queues and resumes them. From the moment that an engine has
// heard that a queue is paused, nothing of it reaches a handler there; and
// unless something keeps it from hearing, it has heard within a quarter of its
// time to live and a second: that is how often it asks, and what its question
// may take. In every
// fifth seed one queue stays paused after the trouble, until all else is done.
//
// # Callers
//
// Some processes run jobs of their own ([engine.Engine.RunNow]) beside their
// engines, and at a desk there are only these. What was brought along runs
// where it was enqueued, or nowhere the first time; it is charged when it dies
// with its process; and what its caller was told is what is recorded. No pause
// and no slots hold it up. All others never run more at once than there are
// slots, in some engines a few for each queue.
//
// # Decisions
//
// Some jobs ask a retry function, and only some engines have it. What fails
// where it is missing is followed by a decision, made once, or by what people
// want, and never by an attempt.
//
// # Schedules
//
// In every eighth seed the engines declare schedules when they join: intervals,
// minutes, a function that few engines have, and in half of these seeds, which
// begin just before a clock jumps, a time of that night. Somebody pauses them,
// resumes, removes and runs them, and declares them with other settings. A firing
// may stand still between what it read and what it does, and is repeated, lost and
// late like any other call.
//
// The database keeps a journal: each state of a schedule, each job that one makes
// and its recorded end, in their order and as a part of their transactions. The
// judge goes through it with a recurrence of his own. Whenever a schedule moves on,
// each occurrence behind it has its one job, due then and with the next number, or
// is counted as its policy says; nothing is fired while it is paused; what is
// unique waits for the recorded end of the job before it; a change was asked for
// by somebody at that time; and what somebody was told was done is in the journal.
// Half a minute after the trouble nothing may be due any more.
//
// # Retention
//
// In a third of the seeds jobs are kept for seconds only, and deleted by whichever
// engine has the lease for it. What goes had ended, as long ago as its queue and its
// end say; the database sets it aside, with its claims and its engine's history, so
// that the judge holds it to account like any other.
//
// # Transactions of handlers
//
// Most begin when their commit arrives, so that nobody waits for them: so a
// commit can take seconds, arrive when its handler has given up or its process
// is dead, and meet its engine's burial, as on a server. A fifth are open while
// their handler works, as SQLite has it: from begin to commit everybody else who
// writes waits, beats included, and for as long as the process is frozen. Such
// a commit ends with its caller, for there is no connection on which it could
// go on alone. What the commit came to and what the handler wrote must agree
// with each other and with what the handler was told; a handler may return
// anything after that.
//
// Waiting for SQLite's lock passes fake time, since the driver sleeps. But
// nothing may hold a mutex while a call is under way that another goroutine of
// the bubble wants, or time stands still: an engine holds that of an attempt
// while it completes, so handlers complete on their own goroutine.
//
// # What is played
//
// SQLite has neither sessions to evict nor burials that are cut short. Both are
// played: a transaction that is held by a frozen process blocks the burial of
// its engine until it is evicted; and now and then a burial leaves some of the
// claims behind, which a sweep must find, as where an engine believed that it
// had done with them. The sweep is written down here, as that of PostgreSQL
// works. Not played are a store's knowledge of who lives (its locks are
// released, so that beats decide), orders to drain, and the failover of a
// server. Cancelled jobs that are not begun yet may still begin when an engine
// had read them before.
//
// # Replay
//
// What is enqueued, what each job does, what happens to the machines and when,
// and the fate of the n-th call of each kind by each process come from the seed
// alone. How goroutines that are ready at the same instant take turns does
// not, nor which ready case a select takes, nor the jitter of the engine's
// back-off. So a seed run again is much the same run and usually, but not
// certainly, fails the same way: the test repeats a seed that it is given by
// hand (STINT_SIM_REPEAT). Seeds that found a bug are kept in
// testdata/seeds.txt and run each time.
//
// What is added to the workload later has dice of its own, and is left out of
// the seeds that were kept from before ([Age]): so they still mean what they say.
//
// # Proof
//
// A simulator that finds nothing may be blind. [Bugs] are faults to plant
// below the calls, and a test demands that each is found within a few seeds.
package sim
