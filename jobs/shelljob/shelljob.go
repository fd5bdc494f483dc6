// Package shelljob is the built-in kind sh: a job that runs a command.
//
// A job names a program and its arguments, which no shell ever sees:
//
//	{"argv": ["pg_dump", "--file", "/backup/shop.sql", "shop"], "dir": "/backup"}
//
// or, when it asks for one, a line for the shell (/bin/sh, on Windows cmd):
//
//	{"shell": "du -s /home/* | sort -n | tail -3"}
//
// # One attempt, one process group
//
//	engine ──start──▶ command ──▶ its children ──▶ theirs
//	                  └───────── one process group ────────┘
//
// The command leads a process group of its own, and the attempt lasts until
// the whole group is gone. When the attempt is cancelled, or when the command
// ends and leaves children behind, the group is asked to end (TERM), and after
// a grace it is killed. So what a finished attempt started does not run on
// beside the next one. A process that leaves the group, as setsid does, is on
// its own: it must not hold the command's output, which is closed.
//
// On Windows the group is a job object. A console program is sent CTRL_BREAK
// before it is killed.
//
// An engine that is itself killed cannot end anything. Linux then kills the
// command, though not the command's children; Windows ends the whole group;
// elsewhere the command runs on. A command that must never run twice at once
// takes a lock of its own.
//
// # What is kept
//
// The result holds the exit code and the output, both streams in the order in
// which they arrived, whether the attempt failed or not. Of a long output the
// beginning and the end are kept. An exit code other than 0 is a failure, and
// its message shows the end of the output. While the command runs, the lines that it
// writes are those that the job logs: see [stint.Logger].
//
// Arguments that can never be right fail for good. Everything else, a missing
// program too, is left to the job's retry policy: programs, directories
// and permissions come and go with deployments.
//
// # Trust
//
// Whoever may enqueue sh jobs may do whatever the engine's user may do. On a
// database that others write to, register the kind only where that is meant.
package shelljob

import (
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/jobs"
)

// Kind is the kind sh. It has no timeout of its own: give jobs one with
// [stint.Timeout], since a command that hangs holds a slot for ever.
var Kind = stint.NewResultKind[Args, Result]("sh")

// Config says how commands are run. The zero value works.
type Config struct {
	// Env lists the variables that commands inherit from the engine; a star
	// at the end stands for any rest, as in "LC_*". Nil means the few
	// that programs need to find files, users and languages. Everything else
	// is withheld, since an engine's environment tends to hold passwords.
	// Empty but not nil means none.
	Env []string

	// OutputLimit is how many bytes of output are kept, a quarter of them
	// from the beginning and the rest from the end. Default 64 KiB.
	OutputLimit int

	// Grace is the time between asking a process group to end and killing
	// it. Default 5 s. An engine that stops waits 3 s at most, because it
	// soon exits, and would leave the command's children behind; one that was
	// fenced off half a second, because the job may already be running
	// elsewhere.
	Grace time.Duration
}

// Register adds the kind to a mux. Like [stint.Mux.Add] it panics when the
// mux has it already.
func Register(m *stint.Mux, c Config) { m.Add(Kind.Declaration(), Handler(c)) }

// Handler runs commands. Programs that want the kind under another name, or
// one with other defaults, add it to their mux themselves.
func Handler(c Config) stint.Handler { return jobs.Strict(c.run) }
