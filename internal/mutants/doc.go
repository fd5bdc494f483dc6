// Package mutants takes the mends of known traps out of the sources, one at a
// time, and demands that a test notices. It is all tests:
//
//	go test ./internal/mutants             each mutant still fits its source, and names a test that exists
//	go test ./internal/mutants -mutants    each is built and run, and must fail (make mutants)
//
// A mutant is one text of one file and what stands there instead. The go
// command builds it by an overlay, so the tree is never touched.
//
// What can be taken out of the SQL alone is tried elsewhere, on every run of
// the tests: see mutants_test.go of package postgres. The faults of storetest's
// model and of internal/model's show that those can see at all. The page
// docs/design/traps.md lists every trap with its check and its mutants.
package mutants
