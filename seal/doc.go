// Package seal encrypts what jobs carry, so that whoever reads the database, its backups or
// its log does not read that: arguments, results and what steps recorded.
//
// A value that is sealed is JSON still, so that columns, views and tools of a store go on to
// work:
//
//	{"$sealed": {"c": "5yuPq…", "k": "2026-11"}}
//
// k is the id of the key, and c the ciphertext in base64 (RFC 4648, URL alphabet, no
// padding). Where equal values have to be recognised, for idempotency and unique keys, there
// is an m as well: a MAC of the value, which is the same for the same value.
//
// What is sealed is bound to the kind of its job and to its place: an argument of one kind
// does not open as that of another, nor as a result.
//
// A program gets its keys from a [Ring], or from a service that has them, by [Keys]. See
// stint.Sealed and stint.Client.Seal for how they are used.
package seal
