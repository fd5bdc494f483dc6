// Package pgload is what a measurement does to a PostgreSQL server beside the
// thing that it measures. It knows the server and nothing of jobs:
//
//	Probe     counters.go, cpu.go  what the server has spent, before and after
//	Hold      hold.go              transactions that are held open meanwhile
//	Log       floor_limit.go       a log read in order, as fast as it goes by hand
//	Inserts   floor_insert.go      one bare row for each transaction
//	Rounds    floor_notify.go      one insert, one NOTIFY, one select
//
// The last three are floors: the least that anybody must do who keeps the same
// promises with the same server. They work in a schema of their own, which they
// drop when they are closed, and do not measure: whoever calls them has the
// watch.
package pgload
