package shelljob

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-go/stint"
)

// environ is a command's environment; of a name that is there twice the last
// one counts. STINT_JOB, STINT_ATTEMPT, STINT_QUEUE and STINT_CORRELATION tell the
// command who it is, so nothing may replace them. By the last, what it enqueues
// with the command stint belongs to the job.
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
