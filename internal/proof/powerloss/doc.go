// Package powerloss is a disk below SQLite whose power can be cut, and which can
// be full.
//
// What a program writes is in the cache of its system. It is on the disk for
// certain when the file was synced, and its name when the directory was:
//
//	write, truncate ──▶ cache ──sync─────────────▶ disk
//	create, delete  ──▶ cache ──sync of the──────▶ names on the disk
//	                              directory
//
// A [Disk] keeps the two apart. Programs see the cache, which is real files in a
// real directory with real locks and shared memory, so that all of SQLite is at
// work. When the power goes every operation fails from then on, and [Disk.Left]
// puts into another directory what a disk might have kept: what was synced, and
// of the rest as much as a [Loss] says. Nothing is taken for granted that neither
// POSIX nor SQLite promise: not the order of writes, and not that a file's sync
// brings its name along. What a write does not cover it does not damage.
//
// A sync counts only if it empties the cache of the drive, too (SYNC_FULL): on
// macOS others do not.
package powerloss
