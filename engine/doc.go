// Package engine is the running worker: it claims jobs from a store, performs
// them with the handlers of a [stint.Mux], and records how they ended.
//
// # Three stages
//
//	          ready              ended
//	claim ──────────▶ execute ──────────▶ finish
//	  ▲      foreign     │                  │
//	  │     ─────────▶   │                  │
//	  └─ wakeup ◀────────┴── capacity ◀─────┘
//
// Each stage owns the channels that it sends on and closes them when it
// returns; that is the whole shutdown protocol. When the engine is told to
// stop, claim returns. Then execute lets its slots finish, returns the entries
// that have not started to their lanes, and returns. Then finish writes what is
// left, and returns.
//
// A recorded attempt may have hooks ([stint.Hooks]). They run beside the stages,
// for as many attempts at once as there are slots, so the last stage waits for none
// of them. A job of a kind with hooks starts only while fewer than a thousand
// recorded attempts wait for their hooks. A stop waits for the last hooks within
// the grace, after the engine has left the roster.
//
// The slots are one pool, or one for each queue that has slots of its own. Pools
// meet in the claim stage, which asks only for lanes whose queue has room, and
// in the finish stage.
//
// Jobs of a kind with a handler of batches ([stint.HandleMany]) gather in their
// pool before they wait for a slot: they are claimed, but not announced, and they
// take no slot and no room from others. A batch goes to a slot when it is full, or
// when its wait is over, and takes more jobs until the slot takes it. There each of
// its jobs runs in a goroutine of its own, through its middleware, and they meet
// in the call of the handler. Batches are for backlogs of their kind: give the kind a
// queue of its own, so that a claim for a large batch brings nothing else.
//
// Beside the stages run loops, one goroutine each. beats says that the engine
// lives. listen wakes the others when the store has news. promote moves jobs to
// the log when they are due, fire makes the jobs of schedules, and decide applies
// this program's retry functions to failures that other engines recorded without
// them. watch buries dead engines. rollUpStats keeps statistics cheap to read,
// and tidyPermits forgets gates that nobody uses.
//
// A task that one engine does for all belongs to the engine that holds its lease
// ([store.Leaser]); the others ask for the lease now and then. An engine that
// stops gives its leases back at once, and fires no more schedules.
//
// # Engines beside another one
//
// A process may have any number of engines that work for somebody outside it ([Config.Beside]), each with a place of
// its own in the roster: package gateway has one for each worker in another language. They run the three stages and
// little else. Their host tells them its news, and does for them what engines do for each other.
//
// # Inline runs
//
// [Engine.RunNow] enqueues a job, claimed from the start, and performs it in the
// caller's process. The run skips the first stage and needs no slot. It is
// announced, performed and recorded like any other, in the session of the running
// engine, or in one that joins for this call only.
//
// # Two contexts
//
// The context given to [Engine.Run] stops claiming. The work has another one,
// which ends when the grace is over, or at once when the engine finds that it
// lost its place in the roster; its cause says which. A handler's context is
// derived from that, and leads to a client of the engine's store, to the job and
// to its previous run: [stint.ClientFrom], [stint.JobFrom], [stint.Job.Previous].
//
// # Health
//
// The loops that claim and beat leave a mark each time that they go round. So
// [Engine.Alive] distinguishes a process that is stuck from one whose database is
// away; [Engine.Ready] asks the database too. An engine ends when the context of
// Run ends, or by [Engine.Drain], which gives running jobs all the time that they
// need. The program can call Drain, the roster can ask for it, and
// Config.MemoryLimit does when the process has grown too large.
//
// # Sessions
//
// A membership in the roster is a session, under a random id. An engine that was
// buried ends its session, records nothing more under it, and joins again.
package engine
