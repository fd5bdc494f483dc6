package shelljob

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stint-go/stint"
)

// Args are the arguments of a job: exactly one of Argv and Shell, and what
// else the command needs.
type Args struct {
	// Argv is a program and its arguments, passed on as they are. A name
	// without a slash is looked for in the engine's PATH.
	Argv []string `json:"argv,omitempty"`

	// Shell is a line for /bin/sh -c, on Windows cmd /c.
	Shell string `json:"shell,omitempty"`

	// Dir is the working directory. Empty means the engine's own.
	Dir string `json:"dir,omitempty"`

	// Env are variables beside the inherited ones, which they replace.
	Env map[string]string `json:"env,omitempty"`

	// Stdin is what the command reads. Empty means that it reads nothing.
	Stdin string `json:"stdin,omitempty"`
}

// Check reports the first thing that can never be right, as a
// [stint.InvalidError], or nil.
func (a Args) Check() error {
	switch {
	case len(a.Argv) == 0 && a.Shell == "":
		return invalid("args", "one of argv and shell is needed")
	case len(a.Argv) > 0 && a.Shell != "":
		return invalid("args", "argv and shell exclude each other")
	case len(a.Argv) > 0 && a.Argv[0] == "":
		return invalid("args.argv", "the program's name is empty")
	}
	for i, arg := range a.Argv {
		if hasNUL(arg) {
			return invalid("args.argv", "argument %d holds a NUL character", i)
		}
	}
	if hasNUL(a.Shell) {
		return invalid("args.shell", "it holds a NUL character")
	}
	if hasNUL(a.Dir) {
		return invalid("args.dir", "it holds a NUL character")
	}
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		switch {
		case name == "":
			return invalid("args.env", "a variable's name is empty")
		case strings.Contains(name, "=") || hasNUL(name):
			return invalid("args.env", "%q cannot be a variable's name", name)
		case hasNUL(a.Env[name]):
			return invalid("args.env", "the value of %s holds a NUL character", name)
		}
	}
	return nil
}

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }

func invalid(field, format string, args ...any) error {
	return &stint.InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)}
}
