// Package check decides whether a history of work is right.
//
// A test under load cannot know beforehand what will happen: processes are
// killed, answers are lost, jobs run again. So it writes down what did
// happen, outside the database, and afterwards the two accounts are compared.
//
//	producers ──intend, committed, rolled back──▶ ┌─────────┐
//	                                              │ History │──┐
//	handlers ───start, end──────────────────────▶ └─────────┘  │ Compare ──▶ Report
//	                                              ┌─────────┐  │
//	database ───audit───────────────────────────▶ │  Facts  │──┘
//	                                              └─────────┘
//
// # The history
//
// Each process writes a file of its own in a directory that they share
// ([Create]). A producer writes the key of a job before it sends the commit,
// and what became of it afterwards; a key without a second word is one whose
// fate is unknown, which is what kill -9 leaves behind. A handler writes its
// start before it works, what it was told that its steps came to, and its end after it. Every record is one write(2),
// so whatever was written outlives its process; only the last line can be
// torn, and then what it announced had not happened yet. [Read] merges the
// files. Instants are read from the clock that all processes of a machine
// share, because overlaps are judged by them.
//
// # The facts
//
// [Facts] are the rows that decide the fate of jobs, as plain structs. The
// package knows no store; whoever uses it turns an audit into Facts.
//
// # The comparison
//
// [Invariants] looks at the facts alone, and suits the cleanup of any test
// that touches a store. [Compare] does the same and holds the history against
// them: nothing lost, nothing doubled, and every second run explained by a
// retry, a snooze, a return or a loss; every loss, every overlap of two runs and
// every run above a limit explained in turn by a [Disturbance] that the test
// caused. Each [Rule] says what it demands. Everything is sorted once and walked
// job by job, and what limits are about once more limit by limit, so a million
// jobs take seconds. Then each job of a flow is held against those that it needs, and
// each flow against its jobs.
//
// Take the facts and the history when nothing is going on: every process has
// ended or idles. A history that moves on while it is read looks wrong.
package check
