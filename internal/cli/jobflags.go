package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
)

// jobFlags are the options of a job.
type jobFlags struct {
	queue    string
	priority int
	delay    time.Duration
	runAt    time.Time
	tags     []string
	urn      string
	source   string
	key      string
	correl   string
	retry    retry.Policy
	timeout  time.Duration
	startBy  time.Time
	within   time.Duration
	losses   int
	descript string
	metadata string
	force    bool
}

func (f *jobFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&f.queue, "queue", "", "the queue; what the kind says, otherwise default")
	flags.IntVar(&f.priority, "priority", 0, "lower first, from -100 to 100")
	durationFlag(flags, &f.delay, "delay", 0, "run it this much later, by the database's clock: 90s, 2h")
	flags.Var(instants.in(&f.runAt), "run-at", `run it not before: 2026-03-01T09:00:00+01:00, or local "2026-03-01 09:00", 09:00 (when it is that time next)`)
	flags.StringArrayVar(&f.tags, "tag", nil, "a label to find it by; may be given many times")
	flags.StringVar(&f.urn, "urn", "", "a name of the thing that the job is about")
	flags.StringVar(&f.source, "source", "", "where it comes from")
	flags.StringVar(&f.correl, "correlation", "", "an id that it shares with other jobs and with those that it enqueues (default its own id)")
	orEnv(flags, "STINT_CORRELATION", "correlation") // which sh jobs get
	flags.StringVar(&f.key, "idempotency-key", "", "store it only if no job was stored with this key before; a repetition prints the first id")
	flags.VarPF(retryPolicies.in(&f.retry), "retry", "", "what happens after a failure: none, fixed:2:1s, forever:30s, exponential:10:1m, exponential-within:1d:1m, timetable:5m=1m,1h=5m, function:name, default; and after a comma jitter=0.1, max=1h, deadline=1d, faulty=3, only=timeout|no_rows, except=no_rows; what the kind says, otherwise exponential:10:1m").DefValue = ""
	durationFlag(flags, &f.timeout, "timeout", 0, "bound each attempt; otherwise what the kind says, or nothing")
	flags.Var(instants.in(&f.startBy), "start-by", "do not begin it or try it again after this time: then it fails, as expired; a time as for --run-at")
	durationFlag(flags, &f.within, "start-within", 0, "the same, counted from when it is due by the database's clock (default what the kind says, or no bound)")
	flags.IntVar(&f.losses, "max-losses", stint.DefaultMaxLosses, "how often it may be lost with an engine that died while it ran; 0 runs it at most once")
	flags.StringVar(&f.descript, "description", "", "a line for people; lists and pages show it")
	flags.StringVar(&f.metadata, "metadata", "", "a JSON object that is kept beside the arguments")
	flags.BoolVar(&f.force, "force", false, "enqueue even if no engine ever declared the kind")
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
	given := flags.Changed
	if given("delay") && given("run-at") {
		return nil, usagef("--delay and --run-at exclude each other")
	}
	if given("start-by") && given("start-within") {
		return nil, usagef("--start-by and --start-within exclude each other")
	}
	// An empty name is a mistake, most often of a variable in a script. It must not mean the
	// default.
	for _, name := range []string{"queue", "urn", "source", "description", "correlation", "idempotency-key"} {
		if given(name) {
			if err := valid.Name(name, flags.Lookup(name).Value.String()); err != nil {
				return nil, err
			}
		}
	}
	if given("metadata") && strings.TrimSpace(f.metadata) == "" {
		return nil, usagef("--metadata: it is empty")
	}
	opts := []stint.Option{stint.Tag(f.tags...)}
	if f.correl != "" { // it may be from the environment
		opts = append(opts, stint.Correlation(f.correl))
	}
	for _, o := range []struct {
		flag string
		opt  stint.Option
	}{
		{"queue", stint.Queue(f.queue)},
		{"priority", stint.Priority(f.priority)},
		{"delay", stint.Delay(f.delay)},
		{"run-at", stint.RunAt(f.runAt)},
		{"urn", stint.URN(f.urn)},
		{"source", stint.Source(f.source)},
		{"idempotency-key", stint.IdempotencyKey(f.key)},
		{"retry", stint.Retry(f.retry)},
		{"timeout", stint.Timeout(f.timeout)},
		{"start-by", stint.StartBy(f.startBy)},
		{"start-within", stint.StartWithin(f.within)},
		{"max-losses", stint.MaxLosses(f.losses)},
		{"description", stint.Description(f.descript)},
		{"metadata", stint.Metadata(json.RawMessage(f.metadata))},
	} {
		if given(o.flag) {
			opts = append(opts, o.opt)
		}
	}
	return opts, nil
}
