package shelljob

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
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
		return valid.Invalid("args", "one of argv and shell is needed")
	case len(a.Argv) > 0 && a.Shell != "":
		return valid.Invalid("args", "argv and shell exclude each other")
	case len(a.Argv) > 0 && a.Argv[0] == "":
		return valid.Invalid("args.argv", "the program's name is empty")
	}
	for i, arg := range a.Argv {
		if hasNUL(arg) {
			return valid.Invalid("args.argv", "argument %d holds a NUL character", i)
		}
	}
	if hasNUL(a.Shell) {
		return valid.Invalid("args.shell", "it holds a NUL character")
	}
	if hasNUL(a.Dir) {
		return valid.Invalid("args.dir", "it holds a NUL character")
	}
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		switch {
		case name == "":
			return valid.Invalid("args.env", "a variable's name is empty")
		case strings.Contains(name, "=") || hasNUL(name):
			return valid.Invalid("args.env", "%q cannot be a variable's name", name)
		case hasNUL(a.Env[name]):
			return valid.Invalid("args.env", "the value of %s holds a NUL character", name)
		}
	}
	return nil
}

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }

// environ is a command's environment; of a name that is there twice the last
// one counts. STINT_JOB, STINT_ATTEMPT, STINT_QUEUE and STINT_CORRELATION tell the
// command who it is, and STINT_MAY_HAVE_RUN whether an engine died with the job, so
// nothing may replace them. By the correlation what it enqueues with the command
// stint belongs to the job.
func (c Config) environ(job *stint.Job, extra map[string]string) []string {
	allowed := c.Env
	if allowed == nil {
		allowed = inherited
	}
	var env []string
	for _, kv := range os.Environ() {
		// Windows has hidden variables whose names begin with "=".
		if name, _, ok := strings.Cut(kv, "="); ok && name != "" && matches(allowed, name) {
			env = append(env, kv)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		env = append(env, name+"="+extra[name])
	}
	return append(env,
		"STINT_JOB="+job.ID.String(),
		"STINT_ATTEMPT="+strconv.Itoa(job.Attempt),
		"STINT_MAY_HAVE_RUN="+strconv.FormatBool(job.MayHaveRun),
		"STINT_QUEUE="+job.Queue,
		"STINT_CORRELATION="+cmp.Or(job.Correlation, job.ID.String()),
	)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			return len(name) >= len(prefix) && sameName(name[:len(prefix)], prefix)
		}
		return sameName(name, p)
	})
}
