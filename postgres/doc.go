// Package postgres keeps stint's jobs in PostgreSQL 13 or newer, shared by any
// number of programs and machines.
//
// # The log and its frontier
//
// A job that is ready is a row of the log. Rows of the log are never updated,
// so what has been taken is not written on them: each claim appends a row that
// says how far its lane has been read.
//
//	          frontier (xid, pos)
//	                 │
//	lane  ─■─■─□─■─■─┼─○─○─○─ ─ ▶        ■ claimed, □ not visible when the
//	           │                            frontier passed: pending
//	           └─ pending: its xid         ○ claimable
//
// Positions are drawn before their transactions commit, so commits arrive out
// of order. A claim reads everything visible past the frontier in the order
// (transaction number, position), and notes with the new frontier which
// transactions its snapshot saw in progress. What those wrote before the
// frontier is taken by the first later claim that sees them finished. Nothing
// waits for them.
//
// The outcome of an attempt is a row of executions: history, acknowledgement
// and the job's final state at once. Its successor, if it has one, is written
// with it. What a job's state is follows from these rows and is shown by the
// view stint.jobs; see the schema folder, which is written to be read.
//
// # Sessions
//
// The store works on any pgx pool, also through a pooler in transaction mode:
// it keeps no session state. Where it opens connections itself and finds a
// pooler, it prepares no statements; a pool that is given to [New] must do so
// itself there, by default_query_exec_mode=cache_describe. Listening has a
// connection of its own, and where that is never rung, engines poll: see
// docs/poolers.md. Where a role or database defaults to another isolation than
// read committed, every transaction says so itself.
//
// Texts are UTF-8. The store's own sessions say so; those of a program's pool or
// transaction must have the client_encoding UTF8 as well, which is the default, and
// are refused if a role or database defaults to another one: text beyond ASCII would
// be stored as something else. The database's encoding must be UTF8.
//
// How durable an enqueue is remains the caller's matter: where synchronous_commit
// is off, a crash of the server may lose the last ones. What an engine records
// waits for the disk whatever is set.
package postgres
