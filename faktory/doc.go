// Package faktory speaks the Faktory work protocol (version 2), so that workers and producers that were written for
// it use a store without change.
//
//	producer ── PUSH ──▶ server ──────────────▶ store
//	worker ── FETCH ───▶ server ──▶ gateway ──▶ engine beside the host ──▶ store
//	       ◀─ job ──────
//	       ── ACK, FAIL ▶                   ──▶ recorded, then +OK
//
// The connections that name the same worker (wid) are one worker of a [gateway.Gateway]: a row of the roster, which
// the database fences. It takes jobs of any kind, on demand: no more than its connections wait for with FETCH.
//
// The jid of a PUSH is the job's idempotency key. What the protocol says of a job and stint does not know is kept in
// its metadata. By its jid a worker ends a job that it was given, with the receipt that the gateway gave for it: one
// that lost a job cannot end a later run of it elsewhere.
package faktory
