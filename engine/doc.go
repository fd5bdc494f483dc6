// Package engine is the running worker: it claims jobs from a store, performs
// them with the handlers of a [stint.Mux], and records how they ended.
//
// # Three stages
//
//	          ready              ended
//	claim ──────────▶ execute ──────────▶ finish
//	  ▲      foreign     │                  │
//	  │     ─────────▶   │                  │
//	  └── bell ◀─────────┴── capacity ◀─────┘
//
// Each stage owns the channels that it sends on and closes them when it
// returns; that is the whole shutdown protocol. When the engine is told to
// stop, claim returns; execute lets its slots finish, hands back what they had
// not begun, and returns; finish writes what is left, and returns.
//
// What is recorded may have hooks ([stint.Hooks]). They are called beside the
// stages, by as many goroutines as there are slots, so that the last stage
// waits for none. What bounds them is that a job of a kind with hooks begins
// only while fewer than a thousand recorded attempts wait for theirs. A stop waits
// for the last hooks within the grace, after the engine has left the roster.
//
// The slots are one pool, or one for each queue that has slots of its own. Pools
// meet in the claim stage, which asks only for lanes whose queue has room, and
// in the finish stage.
//
// Beside the stages run the signals and chores: beat says that the engine
// lives, listen rings the bell when the store has news, promote moves jobs
// whose time has come, fire makes the jobs of schedules, decide asks this
// program's retry functions about failures of engines that do not have them,
// watch buries the dead, and sumUp keeps statistics cheap to read.
//
// What one engine does for all is led by the one that holds the lease for it
// ([stint.Leaser]); the others ask for it now and then. An engine that stops
// gives its leases back at once.
//
// # Guests
//
// [Engine.RunNow] performs a job that was enqueued in the caller's hands. It
// skips the first stage and has no slot, but it is announced, performed and
// recorded like any other: as a guest of the session that the engine works in,
// or of one that is entered for it alone.
//
// # Two contexts
//
// The context given to [Engine.Run] stops claiming. The work has another one,
// which ends when the grace is over, or at once when the engine finds that it
// lost its place in the roster; its cause says which. A handler's context is of
// that one, and leads to a client of the engine's store, to the job and to its
// previous run: [stint.ClientFrom], [stint.JobFrom], [stint.Previous].
//
// # Signs of life
//
// Loops that claim and beat leave a mark each time that they go round, so
// [Engine.Alive] tells a process that is stuck from one whose database is away;
// [Engine.Ready] asks the database too. An engine ends when the context of Run
// does, or by [Engine.Drain], with all the time that what runs may need: told by
// the program, by the roster, or, with Config.MemoryLimit, by its own size.
//
// # Sessions
//
// A membership in the roster is a session, under a random token. An engine
// that was buried ends its session, records nothing more under it, and joins
// anew.
package engine
