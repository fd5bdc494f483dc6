// Package faktory speaks the Faktory work protocol (version 2), so that workers and producers that were written for
// it use a store without change.
//
//	producer ── PUSH ──▶ server ──────────────▶ store
//	worker ── FETCH ───▶ server ──▶ gateway ──▶ engine beside the host ──▶ store
//	       ◀─ job ──────
//	       ── ACK, FAIL ▶                   ──▶ recorded, then +OK
//
// The connections that name the same worker (wid) are one worker of a [gateway.Gateway]: a row of the roster, which
// the database fences. It takes jobs of any kind, on demand: no more than its connections wait for with FETCH. It
// lives while it fetches or sends BEAT; when it is silent for its time to live, its jobs run elsewhere.
//
// # Names of jobs
//
// The jid of a PUSH is the job's idempotency key, so a repeated PUSH is harmless. What the protocol says of a job
// and stint does not know is kept in the job's metadata, under the name "faktory", and comes back with a FETCH. Jobs
// that other programs enqueued have the jid stint-ID.
//
// A worker says by the jid which job has ended. That is accepted of jobs that it holds, by the receipts that the
// gateway gave for them; a worker that lost a job cannot end a later run of it elsewhere.
package faktory
