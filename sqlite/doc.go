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
// part of it behind a savepoint of its own, so that they share the wait for
// the disk:
//
//	Enqueue ──┐
//	Claim   ──┼──▶ queue ──▶ begin immediate · part · part · part · commit
//	Finish  ──┘
//
// Everything is durable when a method returns: the file is in WAL mode and
// every commit is synced (synchronous=FULL).
//
// Whoever writes keeps all others from writing, in this process and in others.
// A transaction of the user's that has written (see [Tx]) holds up claims,
// outcomes and beats until it ends; one that stays open for longer than
// engines live without a beat makes them stop. Keep such transactions short.
//
// # Time
//
// Every time that is stored comes from [time.Now] of the writing process,
// never from SQLite's clock, so that a program in a testing/synctest bubble
// sees its own time. Processes that share a file share a machine and its
// clock.
package sqlite
