package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// jobFlags are the options of a job. Each flag adds its option when it is set.
type jobFlags struct {
	opts   []stint.Option
	tags   []string
	limits []string
	force  bool
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
	uniqueness := syntax[string]{name: "string", format: itself, parse: func(text string) (string, error) {
		if text == "none" {
			return text, nil
		}
		_, err := stint.ParseUniqueness(text)
		return text, err
	}}
	option(f, flags, uniqueness, "unique", func(text string) stint.Option { return func(j *stint.NewJob) { j.Unique = text } },
		"store it only if no other job of its kind and arguments is there: until-ended, until-started, within:1h or slot:24h; and after a comma by=/id|/tenant for a part of the arguments, by=none for the kind alone, across=NAME for several kinds, replace, replace-keep-time, debounce:1m or cancel-old; none; what the kind says, otherwise none")
	flags.StringArrayVar(&f.limits, "limit", nil, "a limit that it waits for, beside those of its kind: smtp, tenant=acme, or \"tenant by /tenant\" for a part of the arguments, 3*smtp to count as three starts; may be given many times; none for not those of its kind")
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

// name defines a flag for an option that is a name. An empty one must not mean the default.
func (f *jobFlags) name(flags *pflag.FlagSet, name string, opt func(string) stint.Option, usage string) {
	option(f, flags, checked("string", func(text string) error { return valid.Name(name, text) }), name, opt, usage)
}

// ofOneJob are the flags for one job, and not for all jobs of a schedule.
var ofOneJob = []string{"delay", "run-at", "start-by", "idempotency-key", "unique"}

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
	opts := append(f.opts, stint.Tag(f.tags...))
	for _, limit := range f.limits {
		if limit == "none" {
			opts = append(opts, stint.Unlimited())
		} else {
			opts = append(opts, stint.Limited(limit))
		}
	}
	return opts, nil
}

type filterFlags struct {
	filter                 store.Filter
	created, due, finished [2]timeBound // after, before
	names                  []string     // of the flags
}

var outcomes = []stint.Outcome{
	stint.OutcomeCompleted, stint.OutcomeFailed, stint.OutcomeSnoozed, stint.OutcomeReturned, stint.OutcomeLost,
	stint.OutcomeCancelled, stint.OutcomeExpired, stint.OutcomeSkipped,
}

// add adds the flags that choose jobs, or flows.
func (f *filterFlags) add(flags *pflag.FlagSet, flows bool) {
	flags.SortFlags = false
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = false
	own.Var(listValue[stint.State]{&f.filter.States, "states", oneOf(store.States...)}, "state", "only jobs in one of these states: "+listed(store.States, ", "))
	nameFlag(own, &f.filter.Kind, "kind", "only jobs of this kind")
	nameFlag(own, &f.filter.Queue, "queue", "only jobs of this queue")
	nameFlag(own, &f.filter.Tag, "tag", "only jobs with this tag")
	nameFlag(own, &f.filter.URN, "urn", "only jobs about this thing; order:47* is all that begins so")
	nameFlag(own, &f.filter.Source, "source", "only jobs from this source")
	nameFlag(own, &f.filter.Correlation, "correlation", "only jobs with this correlation id: a given one, or the id of the first job")
	nameFlag(own, &f.filter.Schedule, "schedule", "only jobs that this schedule made")
	idFlag(own, &f.filter.Flow, "flow", "only jobs of this flow")
	own.BoolVar(&f.filter.Flows, "flows", flows, "only flows")
	own.BoolVar(&f.filter.NotRetried, "not-retried", false, "leave out jobs that ended and that a newer job repeats")
	own.BoolVar(&f.filter.Faulty, "faulty", false, "only jobs that failed so often that they need a look before they fail for good")
	own.VarPF(syntax[stint.Outcome]{name: "word", parse: oneOf(outcomes...), format: stint.Outcome.String}.in(&f.filter.Outcome), "outcome", "", "only jobs with an attempt that ended so: "+listed(outcomes, ", ")).DefValue = ""
	own.StringVar(&f.filter.Error, "error", "", "only jobs with an attempt whose error says this")
	countFlag(own, &f.filter.Attempts, "attempts", 0, "only jobs with more attempts than this", oneAttempt)
	longerFlag(own, &f.filter.Longer, 0, "only jobs with an attempt that took longer than this")
	nameFlag(own, &f.filter.Class, "error-class", "only jobs with an attempt whose error is of this class")
	for _, span := range []struct {
		ends *[2]timeBound
		name string
		what string
	}{
		{&f.created, "created", "were enqueued"}, {&f.due, "due", "became ready, or will,"}, {&f.finished, "finished", "ended their last attempt"},
	} {
		own.Var(timeBounds.in(&span.ends[0]), span.name+"-after", "only jobs that "+span.what+" at this time or later")
		own.Var(timeBounds.in(&span.ends[1]), span.name+"-before", "only jobs that "+span.what+" before this time")
	}
	idFlag(own, &f.filter.After, "after", "only jobs with a higher id")
	own.Lookup("flows").Hidden = flows
	own.VisitAll(func(flag *pflag.Flag) { f.names = append(f.names, flag.Name) })
	flags.AddFlagSet(own)
}

// timesHelp explains how times are written in filters.
const timesHelp = `Times are instants (2026-03-01T09:00:00+01:00, local "2026-03-01 09:00"), times
of today (09:00), or how long ago (90s, 2d); +2d is in two days.`

// given reports whether one of the flags was given.
func (f *filterFlags) given(cmd *cobra.Command) bool {
	return slices.ContainsFunc(f.names, cmd.Flags().Changed)
}

// check finds what would mean all, instead of a choice.
func (f *filterFlags) check(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("faulty") && !f.filter.Faulty:
		return usagef("--faulty: there is no filter for those that are not")
	case cmd.Flags().Changed("flows") && !f.filter.Flows:
		return usagef("--flows: there is no filter for those that are none")
	case cmd.Flags().Changed("not-retried") && !f.filter.NotRetried:
		return usagef("--not-retried: there is no filter for those that were")
	case cmd.Flags().Changed("error") && f.filter.Error == "":
		return usagef("--error: it is empty")
	}
	return nil
}

// chosen is the filter of the flags. Times such as 2h ago count by the database's clock.
func (f *filterFlags) chosen(ctx context.Context, db *database) (store.Filter, error) {
	now, err := db.now(ctx)
	if err != nil {
		return f.filter, err
	}
	span := func(ends [2]timeBound) store.TimeRange {
		return store.TimeRange{From: ends[0].at(now), To: ends[1].at(now)}
	}
	filter := f.filter
	filter.Created, filter.Due, filter.Finished = span(f.created), span(f.due), span(f.finished)
	return filter, nil
}
