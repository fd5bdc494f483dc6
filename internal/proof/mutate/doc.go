// Package mutate breaks the code on purpose and requires that a test fails. A
// copy of the code with one fault is a mutant. There are two sources of them:
//
//   - table/*.txt lists the fixes of known faults, each taken out again. The
//     page docs/design/traps.md lists each fault with its test and its mutants.
//   - guards.txt lists each condition, lock, conflict clause and constraint in
//     the SQL of the two stores, with a test that fails without it. They are
//     found by reading the SQL, so a new one without a test is noticed.
//
// Three commands:
//
//	go test ./internal/proof/mutate           both still fit the sources and name tests that exist
//	go test ./internal/proof/mutate -mutants  build and run the mutants of table/ (make mutants)
//	go test ./internal/proof/mutate -guards   run the guards that have no test yet, and write guards.txt (make guards)
//
// With -only REGEXP they run a part, and -guards with -all runs those that have
// a test too.
//
// After code was moved or renamed, the tests report everything that no longer
// fits, each with the nearest line, and
//
//	go test ./internal/proof/mutate -refit
//
// corrects what has only one possible answer: files, packages of tests, and
// names, where the same text with other names stands in the file. Look at the
// difference before you commit it.
//
// Both kinds run alike: the go command builds the tests of one package by an
// overlay with the mutant in it, so the tree is never touched; tests run until
// the first one fails.
package mutate
