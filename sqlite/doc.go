// Package sqlite keeps stint's jobs in one SQLite file: nothing to install,
// nothing to run, and shared by as many processes of one machine as like.
//
// # The log and its frontier
//
// A job that is ready is a row of the log. Rows of the log are never updated,
// so what has been taken is not written on them: each claim appends a row that
// says how far its lane has been read.
//
//	      claim 1   claim 2    frontier
//	     ┌───────┐ ┌───────┐      │
//	lane ─■──■──■───■──■──■───────┼──○──○──○─ ─ ▶     ■ claimed  ○ claimable
//	                                          append
//
// SQLite has one writer at a time. A position is drawn and committed under the
// same lock, so the order of positions is the order of commits, and nothing
// ever appears behind a frontier that has passed. That makes the frontier a
// single number, and a claim an interval of its lane: all that a claim stores
// is where it begins and where it ends.
//
// The outcome of an attempt is a row of executions: history, acknowledgement
// and the job's final state at once. Its successor, if it has one, is written
// with it. What state a job is in follows from these rows and is shown by the
// view stint_jobs; see the schema folder, which is written to be read.
//
// # One writer
//
// A process has one connection that writes, and a few that read beside it.
// What many goroutines want to write at once goes into one transaction, each
// part of it after a savepoint of its own, so that they share the wait for
// the disk:
//
//	Enqueue ──┐
//	Claim   ──┼──▶ queue ──▶ begin immediate · part · part · part · commit
//	Finish  ──┘
//
// Everything is durable when a method returns, whatever the power does: the file
// is in WAL mode, every commit is synced (synchronous=FULL; on macOS down to the
// medium, by fullfsync), and so are the names of the file and of its WAL.
//
// A writer keeps all others from writing, in this process and in others.
// A transaction of the user's that has written (see [Tx]) holds up claims,
// outcomes and beats until it ends. Nothing is lost and no engine is taken
// for dead, however long it takes, but no other gets on either: a handler that
// completes in its own transaction ([Store.FinishTx]) does best to do the slow
// part of its work first, and then to begin, write and complete. After
// [Config.Busy], 10 s by default, what waited for its turn fails, and engines
// try it again.
//
// # Which engines live
//
// So beats cannot tell which engines live. The kernel can: an engine's process locks a
// byte of a file beside the database (jobs.db-engines) as long as it lives, and
// all processes can see the lock without writing anything. A process that was
// killed is buried within a second or so, whatever its time to live. One that
// was stopped (SIGSTOP, a debugger, a laptop that sleeps) keeps its jobs and
// goes on with them, and so does one that hangs; kill it to have them run
// elsewhere.
//
// Leave that file alone while engines run; it is empty, and may go with the
// database. In memory, and where files have no such locks (systems other than
// Linux, macOS and Windows), engines live by their beats, and a transaction of
// the user's that stays open for three quarters of their time to live makes
// them stop.
//
// # Time
//
// Every time that is stored comes from [time.Now] of the writing process,
// never from SQLite's clock, so that a program in a testing/synctest bubble
// sees its own time. Processes that share a file share a machine and its
// clock.
package sqlite
