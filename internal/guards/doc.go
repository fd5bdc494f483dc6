// Package guards finds every condition, lock, conflict clause and constraint in
// the SQL of the two stores, takes them out one at a time, and asks which test
// notices. The page docs/design/guards.md lists each with its killer:
//
//	go test ./internal/guards           the page lists what is in the sources, and names tests that exist
//	go test ./internal/guards -guards   what has no killer on the page yet is run, and the page written (make guards)
//
// What is taken out is found by the words of SQL, not by hand, so that a new
// condition without a test is noticed. The mends of known traps, which are
// often more than one clause, are taken out by package mutants.
//
// All mutants of a store are one program: its texts are asked, when it starts,
// whether another one is to stand in their place. So a mutant costs the tests
// that it takes to notice it, and nothing to build.
package guards
