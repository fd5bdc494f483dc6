package cli

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
)

// jobFlags are the options of a job. Each flag adds its option when it is set.
type jobFlags struct {
	opts  []stint.Option
	tags  []string
	force bool
}

func (f *jobFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	numbers := syntax[int]{name: "int", form: "a number", parse: strconv.Atoi, format: strconv.Itoa}
	metadata := syntax[string]{name: "string", format: itself, parse: func(text string) (string, error) {
		if strings.TrimSpace(text) == "" {
			return "", errors.New("it is empty")
		}
		return text, nil
	}}
	f.name(flags, "queue", stint.Queue, "the queue; what the kind says, otherwise default")
	option(f, flags, numbers, "priority", stint.Priority, "lower first, from -100 to 100")
	option(f, flags, durations, "delay", stint.Delay, "run it this much later, by the database's clock: 90s, 2h")
	option(f, flags, instants, "run-at", stint.RunAt, `run it not before: 2026-03-01T09:00:00+01:00, or local "2026-03-01 09:00", 09:00 (when it is that time next)`)
	flags.StringArrayVar(&f.tags, "tag", nil, "a label to find it by; may be given many times")
	f.name(flags, "urn", stint.URN, "a name of the thing that the job is about")
	f.name(flags, "source", stint.Source, "where it comes from")
	f.name(flags, "correlation", stint.Correlation, "an id that it shares with other jobs and with those that it enqueues (default its own id)")
	orEnv(flags, "STINT_CORRELATION", "correlation") // which sh jobs get
	f.name(flags, "idempotency-key", stint.IdempotencyKey, "store it only if no job was stored with this key before; a repetition prints the first id")
	option(f, flags, retryPolicies, "retry", stint.Retry, "what happens after a failure: none, fixed:2:1s, forever:30s, exponential:10:1m, exponential-within:1d:1m, timetable:5m=1m,1h=5m, function:name, default; and after a comma jitter=0.1, max=1h, deadline=1d, faulty=3, only=timeout|no_rows, except=no_rows; what the kind says, otherwise exponential:10:1m")
	option(f, flags, durations, "timeout", stint.Timeout, "bound each attempt; otherwise what the kind says, or nothing")
	option(f, flags, instants, "start-by", stint.StartBy, "do not begin it or try it again after this time: then it fails, as expired; a time as for --run-at")
	option(f, flags, durations, "start-within", stint.StartWithin, "the same, counted from when it is due by the database's clock (default what the kind says, or no bound)")
	option(f, flags, numbers, "max-losses", stint.MaxLosses, "how often it may be lost with an engine that died while it ran; 0 runs it at most once")
	flags.Lookup("max-losses").DefValue = strconv.Itoa(stint.DefaultMaxLosses)
	f.name(flags, "description", stint.Description, "a line for people; lists and pages show it")
	option(f, flags, metadata, "metadata", func(text string) stint.Option { return stint.Metadata(json.RawMessage(text)) }, "a JSON object that is kept beside the arguments")
	flags.BoolVar(&f.force, "force", false, "enqueue even if no engine ever declared the kind")
}

// option defines a flag for an option.
func option[T any](f *jobFlags, flags *pflag.FlagSet, s syntax[T], name string, opt func(T) stint.Option, usage string) {
	parse := s.parse
	s.parse = func(text string) (T, error) {
		v, err := parse(text)
		if err == nil {
			f.opts = append(f.opts, opt(v))
		}
		return v, err
	}
	flags.VarPF(s.in(new(T)), name, "", usage).DefValue = ""
}

// name defines a flag for an option that is a name. An empty one is a mistake, most often of a
// variable in a script, and must not mean the default.
func (f *jobFlags) name(flags *pflag.FlagSet, name string, opt func(string) stint.Option, usage string) {
	option(f, flags, checked("string", func(text string) error { return valid.Name(name, text) }), name, opt, usage)
}

// ofOneJob are the flags for one job, and not for all jobs of a schedule.
var ofOneJob = []string{"delay", "run-at", "start-by", "idempotency-key"}

// addLasting adds the flags for all jobs of a schedule.
func (f *jobFlags) addLasting(flags *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.add(all)
	delete(all.Lookup("correlation").Annotations, envMark) // which is that of the current job
	all.Lookup("correlation").Usage = "an id that all of its jobs share (default the id of each)"
	all.Lookup("start-within").Usage = "how long after its occurrence the last attempt may begin; otherwise what the kind says, or no bound"
	all.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(ofOneJob, flag.Name) {
			flags.AddFlag(flag)
		}
	})
}

// options are those of the flags that were given.
func (f *jobFlags) options(flags *pflag.FlagSet) ([]stint.Option, error) {
	for _, both := range [][2]string{{"delay", "run-at"}, {"start-by", "start-within"}} {
		if flags.Changed(both[0]) && flags.Changed(both[1]) {
			return nil, usagef("--%s and --%s exclude each other", both[0], both[1])
		}
	}
	return append(f.opts, stint.Tag(f.tags...)), nil
}
