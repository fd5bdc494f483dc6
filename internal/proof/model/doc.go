// Package model holds two models in Promela, the language of the model checker
// Spin: of stint's heart (producers, claim, finish, beat, fence, bury,
// reconcile, leave and rejoin, on a database in read committed), and of the
// permits of limits and the order that they keep. It has no code, only a test
// that has Spin search every state of several small configurations, and that
// breaks the models in each way that they must not survive.
//
// "make model" runs it. docs/design/model.md explains it, with what was found.
package model
