// Package sim runs fleets of engines in fake time over the real SQLite store,
// and does to them what networks, kernels and operators do.
//
//	                    ┌ producer ─ process ┐
//	seed ──▶ machines ──┤ engine ─── process ├─ fate of each call ─▶ planted bug ─▶ SQLite file
//	                    └ engine ─── process ┘                                         │
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
// # Proof
//
// A simulator that finds nothing may be blind. [Bugs] are faults to plant
// below the calls, and a test demands that each is found within a few seeds.
package sim
