// Package stepjob is the built-in kind steps: a job that runs a list of steps,
// one after the other.
//
//	{"steps": [
//	  {"do": "report.build", "args": {"month": "2026-03"}},
//	  {"do": "report.send", "args": {"to": "sales@example.com"}, "name": "tell sales"}
//	]}
//
// A step names one of the operations that the engine's program offers, and has
// arguments for it. Each is handed what the one before it came to, and which
// attempt of which job this is: the last one may want to say so.
//
//	args ──▶ report.build ──result──▶ report.send ──result──▶ …
//	              ▲                        ▲
//	              └── job, attempt ────────┘
//
// # One attempt
//
// The steps of an attempt run in one slot and under one timeout, the job's. The
// first that fails ends the attempt, and the error names it: by its place in the
// list, counted from 1, and by its name. A step may also snooze or cancel the
// job. Between two steps the attempt ends when the engine stops or the job was
// cancelled.
//
// The next attempt starts from the first step again. So a step should be able to
// tell that its work is done already, as every handler should; and steps that
// are dear or must not be repeated are jobs of their own.
//
// # What can never be right
//
// An operation that nobody offers, arguments that do not fit and fields that do
// not exist fail the job for good, before its first step runs. [Operations.Check]
// finds the same before the job is enqueued.
//
// # What is kept
//
// The result holds that of each step that ran, whether the attempt failed or
// not.
package stepjob

import (
	"github.com/stint-go/stint"
	"github.com/stint-go/stint/jobs"
)

// Kind is the kind steps. It has no timeout of its own: give jobs one with
// [stint.Timeout] when a step may hang.
var Kind = stint.NewResultKind[Args, Result]("steps")

// Register adds the kind to a mux, with the operations that its steps may name.
// Like [stint.Mux.Add] it panics when the mux has it already.
func Register(m *stint.Mux, ops *Operations) { m.Add(Kind.Declaration(), Handler(ops)) }

// Handler runs the steps of a job. Programs that want the kind under another
// name, or several with operations of their own, add it to their mux themselves.
func Handler(ops *Operations) stint.Handler { return jobs.Strict(ops.run) }
