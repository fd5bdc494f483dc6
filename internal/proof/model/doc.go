// Package model holds a model of stint's heart in Promela, the language of
// the model checker Spin: producers, claim, finish, beat, fence, bury,
// reconcile, leave and rejoin, on a database in read committed. It has no
// code, only a test that has Spin search every state of several small
// configurations, and that breaks the model in each way that it must not
// survive.
//
// "make model" runs it. docs/design/model.md explains it, with what was found.
package model
