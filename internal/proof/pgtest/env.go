package pgtest

import (
	"os"
	"slices"
	"strings"
)

// serverEnv is the environment of servers: ours, without the variables that would make them another server than the
// one that is meant, and in a locale that every machine has.
func serverEnv() []string {
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "PG") || strings.HasPrefix(variable, "LC_") ||
			strings.HasPrefix(variable, "LANG") || strings.HasPrefix(variable, "TZ=")
	})
	return append(env, "LC_ALL=C", "TZ=UTC")
}
