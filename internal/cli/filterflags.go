package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// filterFlags choose jobs.
type filterFlags struct {
	filter                 store.Filter
	created, due, finished [2]timeBound // after, before
	names                  []string     // of the flags
}

var outcomes = []stint.Outcome{
	stint.OutcomeCompleted, stint.OutcomeFailed, stint.OutcomeSnoozed, stint.OutcomeReturned, stint.OutcomeLost,
	stint.OutcomeCancelled, stint.OutcomeExpired,
}

func (f *filterFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = false
	own.Var(listValue[stint.State]{&f.filter.States, "states", oneOf(store.States...)}, "state", "only jobs in one of these states: "+listed(store.States, ", "))
	own.StringVar(&f.filter.Kind, "kind", "", "only jobs of this kind")
	own.StringVar(&f.filter.Queue, "queue", "", "only jobs of this queue")
	own.StringVar(&f.filter.Tag, "tag", "", "only jobs with this tag")
	own.StringVar(&f.filter.URN, "urn", "", "only jobs about this thing")
	own.StringVar(&f.filter.Source, "source", "", "only jobs from this source")
	own.StringVar(&f.filter.Correlation, "correlation", "", "only jobs with this correlation id: a given one, or the id of the first job")
	own.StringVar(&f.filter.Schedule, "schedule", "", "only jobs that this schedule made")
	own.BoolVar(&f.filter.Faulty, "faulty", false, "only jobs that failed so often that they need a look before they fail for good")
	own.VarPF(syntax[stint.Outcome]{name: "word", parse: oneOf(outcomes...), format: stint.Outcome.String}.in(&f.filter.Outcome), "outcome", "", "only jobs with an attempt that ended so: "+listed(outcomes, ", ")).DefValue = ""
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

// given reports whether one of the flags was given.
func (f *filterFlags) given(cmd *cobra.Command) bool {
	return slices.ContainsFunc(f.names, cmd.Flags().Changed)
}

// check finds values that can never be right. An empty one is a mistake, most often of a
// variable in a script, and must not mean all.
func (f *filterFlags) check(cmd *cobra.Command) error {
	if err := named("kind", "queue", "tag", "urn", "source", "correlation", "schedule")(cmd, nil); err != nil {
		return err
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
