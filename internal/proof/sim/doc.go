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
// A seed stands for one run: two minutes of trouble in a synctest bubble, three
// to six machines, some two hundred jobs of mixed policies. Then the trouble
// ends, everything must be done soon, the engines stop, and package check
// compares what handlers and producers wrote with what the database says.
//
// Clients cancel every sixth job, at any moment of its life. Handlers complete
// every eighth job in a transaction that leaves a row beside the outcome. Jobs
// of one kind go on when their engine was buried.
//
// # The trouble
//
// A machine starts one [process] after the other, as a supervisor does. A
// process can be killed, frozen, cut off, or asked to stop. Each call to the
// store has a [fate]: it takes time in both directions, is refused, loses its
// answer, is half answered, or arrives twice. A call whose process is killed or
// whose caller gives up may arrive later. A call of a frozen process arrives
// during the freeze or after it.
//
// A freeze stops the calls, handlers and events of an engine. Its timers go on,
// as for a real process that wakes up and finds them all due.
//
// # Cancellations
//
// The world knows when a marker was committed, whatever the client was told.
// From then on no engine may begin an attempt that it had not read before,
// nothing may follow the attempt that was under way, and only that attempt may
// end the job otherwise. An engine must tell a handler within a quarter of its
// time to live and a second. Answers must be true, the first reason stands, no
// marker may be left in the end, and the counts that people see must always be
// those of the jobs.
//
// # People
//
// An operator retries, recovers and deletes jobs; clients do so with every
// twelfth job, often at the moment that it ends. The database sets deleted rows
// aside in the deletion's transaction, so the judge treats deleted jobs like
// others: they must have ended, and nothing may be left of them. A job that does
// another one again names it. A job does not begin before the time that an
// answer gave.
//
// A porter pauses and resumes queues. Once an engine has read that a queue is
// paused, no job of it reaches a handler there; an engine must read it within a
// quarter of its time to live and a second. In every fifth seed one queue stays
// paused after the trouble until all other work is done.
//
// # Callers
//
// Some processes also run jobs of their own ([engine.Engine.RunNow]); a desk
// does nothing else. Such a job runs first where it was enqueued, is charged
// when it dies with its process, and its caller is told what is recorded. No
// pause and no slot holds it up. Other jobs never exceed the slots of an engine
// or, in some engines, of their queue.
//
// # Limits
//
// A third of the jobs wait for limits: so many at once, by name and by key, in order, at a rate. A tuner
// sets, pauses and resumes one of them. No more than a rule allows ran at once, by the handlers' own clocks. Of
// the attempts that engines recorded no more began than its rate has, and where an order is kept no job began
// between the first start of another one and its end.
//
// # Unique jobs
//
// One of ten jobs is one of three of which no second one is stored while the first has not ended. Of each all
// runs of one job are over before another one begins, as under a limit.
//
// # Flows and steps
//
// In two of five seeds a planner enqueues flows: graphs with edges on success, on failure and on any end, chains, joins,
// flows within flows; and jobs that do several things, each as a step: they work, sleep, await signals, ask, call
// another job, and add jobs to their flow. What they record may take its time, and arrive when its process is dead. A
// writer sends signals before, while and after a job waits for them, some twice under one key, and answers questions; once the
// trouble is over, all that is wanted. Clients cancel, retry and delete flows and what is in them, as other jobs.
//
// No attempt begins before what its job needs has ended. A step is recorded only for an attempt that has not ended, in an engine that
// stands, and takes the first signal that is there; a wait is not over while one is. A caller goes on when what it called has ended.
// What was accepted of messages is there in the end, each is taken by one step, and nothing was added or
// called twice. Package check has the rest: what became of each job for what it needs, how flows ended, and that all runs
// were told the same of a step.
//
// # Decisions
//
// Some jobs ask a retry function, and only some engines have it. Their failure
// is followed by one decision, or by what people want, and never by an attempt.
//
// # Schedules
//
// In every eighth seed the engines declare schedules: intervals, minutes, a
// function that few engines have, and in half of these seeds a time of a night
// in which a clock jumps. People pause, resume, remove, run and redeclare them.
// A firing may stand still between reading and writing.
//
// Triggers keep a journal of each state of a schedule, each job that it makes
// and each recorded end. The judge follows it with a recurrence of its own: each
// occurrence has one job, due then and with the next number, or is counted as
// its policy says; nothing fires while paused; a unique schedule waits for its
// last job; each change was asked for at that time; and each answer is in the
// journal. Half a minute after the trouble nothing may be due.
//
// # Retention
//
// In a third of the seeds jobs are kept for seconds only. What is deleted for
// its age must have ended as long ago as its queue and its end require.
//
// # Transactions of handlers
//
// Most begin when their commit arrives, so nobody waits for them: a commit can
// take seconds, arrive after its handler gave up or its process died, and meet
// its engine's burial, as on a server. A fifth are open while their handler
// works: all other writers wait, beats included. Such a commit ends with its
// caller. The outcome, what the handler wrote and what it was told must agree;
// a handler may return anything after that.
//
// The driver's sleep on SQLite's lock passes fake time. But nothing may hold a
// mutex during a call that another goroutine of the bubble wants, or time stops.
// An engine holds an attempt's mutex while it completes, so handlers complete
// on their own goroutine.
//
// # What is played
//
// SQLite has neither sessions to end nor burials that are cut short. The
// simulator plays both: the transaction of a frozen process blocks its engine's
// burial until it is ended, and some burials leave claims that a sweep must
// find, which is written here as PostgreSQL's works. The sessions
// by which a server knows who lives are played; orders to drain and failovers are
// not.
//
// # Replay
//
// The workload, what happens to the machines and when, and the fate of the n-th
// call of each kind by each process come from the seed alone. The order of ready
// goroutines, the choice among ready select cases and the jitter of back-offs do
// not. So a seed usually fails again in the same way, but not certainly, and the
// test repeats one that is given by hand (STINT_SIM_REPEAT). Seeds that found a
// bug are kept in testdata/seeds.txt and run each time.
//
// A later part of the workload has dice of its own and is left out of older
// seeds ([Age]), which so keep their meaning.
//
// # Proof
//
// [Bugs] are faults to plant below the calls. A test requires that each is found
// within a few seeds.
package sim
