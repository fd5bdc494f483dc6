// Package stinttest tests programs that work with stint: it performs their jobs
// in the test's own process, all of them and in order, without waiting for
// anything, and says what became of them.
//
//	w := stinttest.New(t, mux)              // a database in memory; stinttest.On takes one of yours
//	register(ctx, w.Client(), "ada")        // the code under test enqueues
//	stinttest.Enqueued(t, w.Store(), Welcome, stinttest.InQueue("mail"))
//	report := w.Drain()                     // now, tomorrow, and what those jobs enqueue
//
// What runs is the engine itself, one job at a time, with its middleware, hooks,
// timeouts, retries and transactions. There is no second implementation that
// would agree with the first one only as far as somebody thought of.
//
// # Time
//
// [Worker.Drain] does not wait for what is due later: it performs jobs in the
// order of their times, and time jumps ahead to each. How far that goes
// depends on where the test runs.
//
//	in a bubble of testing/synctest   time.Now, timers, the database and the engine agree; SQLite only
//	anywhere else                     jobs run early, in the order that their times ask for; time.Now stays what it is
//
// Outside of a bubble the jobs that a handler enqueues for "in an hour" follow
// those that were due before that hour, counted from when the handler should
// have run. What compares instants with a clock does not follow: a handler
// that looks at time.Now, a job that is to begin by some time, an absolute date
// that a handler computes from anything but time.Now. Use a bubble for these, and
// for schedules: they are declared anywhere, and fire in a bubble only, for as
// long as a drain says ([Within]).
//
// # What it looks at
//
// Assertions look at the database, as any other process would. What a
// transaction has enqueued that has not committed they do not see: assert
// after the commit.
package stinttest
