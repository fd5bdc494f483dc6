// Package gateway has workers in any language take part in a store over HTTP.
//
// A worker is a row of the roster: it joins, claims, finishes, beats and leaves like an engine, and the
// database fences it like one. The gateway runs an engine for each ([engine.Config.Beside]), so limits, rates,
// priorities, retry policies, timeouts, steps and cancellations are what they are in a Go program. Instead of
// calling a handler that engine hands the job out, and waits until the worker says how it ended.
//
//	worker ── claim, long poll ──▶ gateway ◀── handler's call ── engine ◀── store
//	       ◀─ jobs ───────────────
//	       ── finish ────────────▶         ──── handler returns ──▶ engine ──▶ store
//	       ◀─ ok: recorded ────────────────────────────────────────────────
//
// The engine of a worker beats only when the worker does. So a worker that dies is buried after its time to
// live, whatever becomes of the gateway.
//
// # When a gateway dies
//
// What a gateway knows of a worker is lost with it, and can be: the roster has the worker, and the worker has
// a receipt for each job. Any other gateway records by these receipts what came of the jobs, and passes on
// the worker's heartbeats ([engine.Caretaker]). New jobs the worker gets under a new name: it joins again.
//
// A receipt names the job's entry and the number of 63 random bits that was drawn for its claim. The
// database compares that number, so a receipt cannot be made up, and needs no signature.
package gateway
