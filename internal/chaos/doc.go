// Package chaos runs stint as a fleet of real processes on a real database,
// does to them what production does, and has the outcome judged.
//
//	test process ── starts, kills ──▶ worker processes: engine + logged handlers
//	     │                                      │
//	     ├── producers ──▶ database ◀───────────┘
//	     │                    │
//	     └── history ─────────┴── audit ──▶ check.Compare
//
// A worker is the test binary itself, started again: see [Main].
package chaos
