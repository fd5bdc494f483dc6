package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// filterFlags choose jobs.
type filterFlags struct {
	filter                   store.Filter
	outcome                  string
	created, due, finished   [2]timeBound // after, before
	names                    []string     // of the flags
	kind, queue, tag, urn    string
	source, correl, schedule string
}

var outcomes = []stint.Outcome{
	stint.OutcomeCompleted, stint.OutcomeFailed, stint.OutcomeSnoozed, stint.OutcomeReturned, stint.OutcomeLost,
	stint.OutcomeCancelled, stint.OutcomeExpired,
}

func (f *filterFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = false
	own.Var(listValue[stint.State]{&f.filter.States, "states", parseState}, "state", "only jobs in one of these states: "+strings.Join(stateNames(), ", "))
	own.StringVar(&f.kind, "kind", "", "only jobs of this kind")
	own.StringVar(&f.queue, "queue", "", "only jobs of this queue")
	own.StringVar(&f.tag, "tag", "", "only jobs with this tag")
	own.StringVar(&f.urn, "urn", "", "only jobs about this thing")
	own.StringVar(&f.source, "source", "", "only jobs from this source")
	own.StringVar(&f.correl, "correlation", "", "only jobs that come from each other: an id that they were given, or the first one's own")
	own.StringVar(&f.schedule, "schedule", "", "only jobs that this schedule made")
	own.BoolVar(&f.filter.Faulty, "faulty", false, "only jobs that failed so often that one should look at them before they have failed for good")
	var words []string
	for _, o := range outcomes {
		words = append(words, o.String())
	}
	choiceFlag(own, &f.outcome, "outcome", "", "only jobs with an attempt that ended so", words...)
	own.StringVar(&f.filter.Error, "error", "", "only jobs with an attempt whose error says this")
	own.IntVar(&f.filter.Attempts, "attempts", 0, "only jobs with more attempts than this")
	durationFlag(own, &f.filter.Longer, "longer", 0, "only jobs with an attempt that took longer than this")
	own.StringVar(&f.filter.Class, "error-class", "", "only jobs with an attempt whose error is of this class")
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
	own.Int64Var((*int64)(&f.filter.After), "after", 0, "only jobs with a higher id")
	own.VisitAll(func(flag *pflag.Flag) { f.names = append(f.names, flag.Name) })
	flags.AddFlagSet(own)
}

// timesHelp explains how times are written in filters.
const timesHelp = `Times are instants (2026-03-01T09:00:00+01:00, local "2026-03-01 09:00"), times
of today (09:00), or how long ago (90s, 2d); +2d is in two days.`

// given tells whether any of the flags was.
func (f *filterFlags) given(cmd *cobra.Command) bool {
	return slices.ContainsFunc(f.names, cmd.Flags().Changed)
}

// check finds what can never be right. An empty value is a mistake, most often
// of a variable in a script, and must not mean all.
func (f *filterFlags) check(cmd *cobra.Command) error {
	for _, flag := range []struct {
		name  string
		value string
		into  *string
	}{
		{"kind", f.kind, &f.filter.Kind}, {"queue", f.queue, &f.filter.Queue}, {"tag", f.tag, &f.filter.Tag},
		{"urn", f.urn, &f.filter.URN}, {"source", f.source, &f.filter.Source},
		{"correlation", f.correl, &f.filter.Correlation}, {"schedule", f.schedule, &f.filter.Schedule},
	} {
		if !cmd.Flags().Changed(flag.name) {
			continue
		}
		if err := valid.Name("--"+flag.name, flag.value); err != nil {
			return err
		}
		*flag.into = flag.value
	}
	if cmd.Flags().Changed("faulty") && !f.filter.Faulty {
		return usagef("--faulty: there is no filter for those that are not")
	}
	if cmd.Flags().Changed("attempts") && f.filter.Attempts < 1 {
		return usagef("--attempts: %d is too few: every job has an attempt", f.filter.Attempts)
	}
	if cmd.Flags().Changed("after") && f.filter.After < 1 {
		return usagef("--after: %d is not the id of a job", f.filter.After)
	}
	if cmd.Flags().Changed("longer") && f.filter.Longer <= 0 {
		return usagef("--longer: every attempt takes longer than that")
	}
	for name, value := range map[string]string{"error": f.filter.Error, "error-class": f.filter.Class} {
		if cmd.Flags().Changed(name) && value == "" {
			return usagef("--%s: it is empty", name)
		}
	}
	for _, o := range outcomes {
		if o.String() == f.outcome {
			f.filter.Outcome = o
		}
	}
	return nil
}

// chosen is the filter of the flags. How long ago something was is counted by
// the database's clock.
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

func stateNames() []string {
	var names []string
	for _, s := range stint.States {
		names = append(names, string(s))
	}
	return names
}

// parseState reads a state.
func parseState(text string) (stint.State, error) {
	state := stint.State(text)
	if !slices.Contains(stint.States, state) {
		return "", fmt.Errorf("%q is not one of %s", text, strings.Join(stateNames(), ", "))
	}
	return state, nil
}
