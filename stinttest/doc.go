// Package stinttest tests programs that work with stint: it performs their jobs
// in the test's own process, all of them and in order, without waiting for
// anything, and says what became of them.
//
//	w := stinttest.New(t, mux)              // a database in memory; stinttest.On takes one of yours
//	register(ctx, w.Client(), "ada")        // the code under test enqueues
//	stinttest.Enqueued(t, w.Store(), Welcome, stinttest.InQueue("mail"))
//	report := w.Drain()                     // now, tomorrow, and what those jobs enqueue
//
// What runs is the engine itself, one job at a time, or one batch ([stint.HandleMany]) of
// those that are ready one after the other, with its middleware, hooks,
// timeouts, retries and transactions. There is no second implementation that
// could differ from it.
//
// # Time
//
// [Worker.Drain] does not wait for what is due later: it performs jobs in the
// order of their times, and time jumps ahead to each. How far that goes
// depends on where the test runs.
//
//	in a bubble of testing/synctest   time.Now, timers, the database and the engine agree; SQLite only
//	anywhere else                     jobs run early, in the order of their times; time.Now is the real time
//
// Outside of a bubble the jobs that a handler enqueues for "in an hour" follow
// those that were due before that hour, counted from when the handler should
// have run. Code that compares instants with a clock does not see this: a handler
// that looks at time.Now, a job that has a start-by time, an absolute date
// that a handler computes from anything but time.Now. Use a bubble for these, and
// for schedules and for what happens when a signal does not come: schedules are declared anywhere, but fire
// only in a bubble, for as long as a drain says ([Within]). A job that awaits a signal is left until the
// test sends it: Drain, then Client.Signal, then Drain; one that asks people until Client.Answer. In a bubble its wait also ends when time passes its end.
//
// # Crashes
//
// [KillBefore], [KillAfter] and [EachKill] have the process die while a handler runs: the engine is buried and
// the job runs again, as after a crash.
//
// # What it looks at
//
// What handlers say of themselves while they run is there as well ([Worker.Log], [Worker.Progress]).
//
// Assertions look at the database, as any other process would. They do not see what an open
// transaction has enqueued: assert after the commit.
package stinttest
