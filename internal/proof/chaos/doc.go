// Package chaos runs stint as a fleet of real processes on a real database,
// does to them what production does, and has the outcome judged.
//
//	test process ── starts, stops, kills, freezes ──▶ worker processes: engine + logged handlers
//	     │                                                  │
//	     │                                                proxies ── cut, stall, halve, mute, slow down, deafen
//	     │                                                  │
//	     ├── producers ── proxy ──▶ database ◀──────────────┘
//	     │                           │ restarted, away, sessions ended, connections taken, full, its clock set, a standby in its place
//	     └── history ────────────────┴── audit ──▶ check.Compare
//
// A worker is the test binary itself, started again: see [Main]. A [Proxy]
// understands the protocol well enough to act at a certain message, so that
// the directed tests lose the answer to just this commit or freeze a process
// inside just this claim. [Mixed] does everything at once, as a seed says: to
// processes and connections, and, as [People] do, to jobs and queues.
//
// When a server is lost that knew more than the one that takes its place, the
// judge is given the rows of both: see [Fleet.FailedOver] and [check.Failover].
//
// A [Ground] is the database, SQLite's as well where nothing is done to
// connections and servers. What is done to a file below SQLite is done in that
// package, on the disk of internal/proof/powerloss.
//
// What is judged beside the history: work resumes in time, burials were
// deserved ([Fleet.Burials]), no engine gives up by itself ([Fleet.Keep]), one
// that leaves in good order leaves nothing behind, and a job that completes in
// a transaction has its effect exactly once.
package chaos
