package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

const jobsCancelHelp = `cancel [ID]...: Cancel jobs, also running ones

Cancel ends jobs. A job that waits or is available does not run. A job that runs is
asked to stop: the context of its handler is cancelled. When the handler returns an
error, the job is cancelled and not tried again.

` + selectionHelp + `
Without --state they choose among the jobs that have not ended.

` + timesHelp + `

The exit code is 1 when a job that was named was not there or had ended already.

Examples:
  stint jobs cancel 42 43 --why "the customer left"
  stint jobs cancel --tag customer:42 --dry-run`

func (a *app) cancelCommand(help *cobra.Command, flows bool) *cobra.Command {
	var why string
	cmd := onJobs(a, help, verb[stint.CancelStatus]{
		flows: flows, name: "cancel", past: "cancelled", of: cancelled,
		do: func(ctx context.Context, db *database, s ops.Selection) (ops.Done[stint.CancelStatus], error) {
			return ops.CancelJobs.Call(ctx, db, ops.CancelInput{Body: ops.Cancelling{Selection: s, Why: ops.Why{Why: why}}})
		},
	})
	cmd.Flags().StringVar(&why, "why", "", "the reason that is kept with the job")
	return cmd
}

func cancelled(answer stint.CancelStatus) fate {
	return map[stint.CancelStatus]fate{
		stint.CancelledNow:    {text: "is cancelled"},
		stint.CancelRequested: {text: "was asked to stop"},
		stint.CancelTooLate:   {text: "had ended already", failed: true},
		stint.CancelNotFound:  {text: "does not exist", failed: true},
	}[answer]
}

const jobsRetryHelp = `retry|recover [ID]...: Run jobs again: what waits now, what ended as a new job

Retry runs jobs again. A job that waits becomes ready at once, or at the time of
--delay or --run-at; this does not count as an attempt. A job that ended is recovered:
a new job gets the same arguments, starts with its first attempt, and names the old job
as its origin. The old job stays as it is. A new job may start at any time, even if the
old one had a time to start by. A job that waits keeps that time, and expires then.

Of a job in a flow that has ended the flow is run again, as a new one: the job with what
depends on it, and what did not complete. In a flow that is still open the new job takes
the place of the old one. See stint flows retry.

` + selectionHelp + `
Without --state they choose the jobs that are failed or retrying. A job that was
recovered before is skipped: filters say how many they skipped, and of a job that is
named the job is printed that runs it again already. --force recovers it once more, as
one more job. Each new job is printed after the old one: job 12 → job 34.

` + timesHelp + `

The exit code is 1 when a job that was named is ready or runs already, waits for other
jobs, was recovered before, or was not there.

Examples:
  stint jobs retry 42
  stint jobs recover 42 --delay 1h
  stint jobs retry --outcome lost --finished-after 12h --dry-run`

func (a *app) retryCommand(help *cobra.Command, flows bool) *cobra.Command {
	var (
		again stint.RerunOptions
		at    time.Time
		force bool
	)
	cmd := onJobs(a, help, verb[stint.RerunResult]{
		flows: flows, name: "retry", past: "run again", of: retried,
		do: func(ctx context.Context, db *database, s ops.Selection) (ops.Done[stint.RerunResult], error) {
			return ops.RetryJobs.Call(ctx, db, ops.RetryOf(s, again))
		},
	})
	cmd.Flags().BoolVar(&force, "force", false, "recover jobs that are named also if they were recovered before, as one more job")
	cmd.Flags().BoolVar(&again.Whole, "whole", false, "of a flow all jobs, and not only those that did not complete")
	durationFlag(cmd.Flags(), &again.Delay, "delay", 0, "run them that much later, by the database's clock: 90s, 2h")
	cmd.Flags().Var(instants.in(&at), "run-at", `run them not before: 2026-03-01T09:00:00+01:00, or local "2026-03-01 09:00", 09:00 (when it is that time next)`)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if again.Delay != 0 && !at.IsZero() {
			return usagef("--delay and --run-at exclude each other")
		}
		again.RunAt, again.Once = at, !force
		return again.Check()
	}
	return cmd
}

func retried(r stint.RerunResult) fate {
	return map[stint.RerunStatus]fate{
		stint.RerunReady:           {text: "is ready now"},
		stint.RerunScheduled:       {text: "waits until then"},
		stint.RerunRecovered:       {text: fmt.Sprintf("had ended; job %d runs it again", r.ID), made: r.ID},
		stint.RerunRecoveredBefore: {text: fmt.Sprintf("had ended, and job %d runs it again already", r.ID), failed: true},
		stint.RerunAvailable:       {text: "is ready already", failed: true},
		stint.RerunBlocked:         {text: "waits for other jobs", failed: true},
		stint.RerunRunning:         {text: "is running", failed: true},
		stint.RerunNotUnique:       {text: fmt.Sprintf("had ended, and job %d has its unique key", r.ID), failed: true},
		stint.RerunNotFound:        {text: "does not exist", failed: true},
	}[r.Answer]
}

const jobsDeleteHelp = `delete|rm [ID]...: Delete jobs that have ended

Delete removes jobs that have ended, with all of their attempts. Cancel other jobs
first. A deleted job cannot be restored.

` + selectionHelp + `
Without --state they choose among the jobs that have ended.

` + timesHelp + `

The exit code is 1 when a job that was named was not there or has not ended.

Examples:
  stint jobs delete 42
  stint jobs delete --state completed --finished-before 30d --dry-run`

func (a *app) jobsDeleteCommand() *cobra.Command {
	return onJobs(a, page(jobsDeleteHelp), verb[store.DeleteStatus]{
		name: "delete", past: "deleted", of: deleted,
		do: func(ctx context.Context, db *database, s ops.Selection) (ops.Done[store.DeleteStatus], error) {
			return ops.DeleteJobs.Call(ctx, db, ops.DeleteInput{Body: s})
		},
	})
}

func deleted(answer store.DeleteStatus) fate {
	return map[store.DeleteStatus]fate{
		store.DeletedNow:     {text: "is deleted"},
		store.DeleteNotFinal: {text: "has not ended: cancel it first (stint jobs cancel)", failed: true},
		store.DeleteNotFound: {text: "does not exist", failed: true},
	}[answer]
}

// verb is an operation on jobs that are named by id or chosen by filters. It has an
// answer A for each.
type verb[A any] struct {
	flows      bool   // it is for flows only
	name, past string // "cancel", "cancelled"
	do         func(ctx context.Context, db *database, s ops.Selection) (ops.Done[A], error)
	of         func(A) fate
}

// fate is the result for one job.
type fate struct {
	text   string   // after "job 42 "
	made   stint.ID // the new job, if one was made
	failed bool
}

const selectionHelp = `Name jobs by their ids, or choose them by filters: those that fit all of them.
Filters change jobs in batches of 500, the newest first; --dry-run only counts the
jobs that fit, and shows the first few.`

// onJobs makes a command that does something to jobs.
func onJobs[A any](a *app, cmd *cobra.Command, v verb[A]) *cobra.Command {
	var (
		flags            filterFlags
		all, yes, dryRun bool
		limit            int
	)
	cmd = a.withJSON(a.does(cmd, func(ctx context.Context, cmd *cobra.Command, args []string) error {
		ids, err := jobIDs(args)
		if err != nil {
			return err
		}
		filters := flags.given(cmd)
		switch {
		case len(ids) > 0 && (filters || all || dryRun || cmd.Flags().Changed("limit")):
			return withHint(usagef("ids and filters exclude each other"), "name the jobs, or choose them by filters")
		case len(ids) == 0 && !filters && !all:
			return withHint(usagef("no jobs are named"), "give their ids, or filters such as --state failed --kind sh, or --all for every job")
		case filters && all:
			return usagef("--all and filters exclude each other")
		}
		if err := flags.check(cmd); err != nil {
			return err
		}
		how := changing
		if dryRun || all && !yes {
			how = looking
		}
		db, err := a.open(ctx, how)
		if err != nil {
			return err
		}
		defer db.Close()
		if v.flows {
			if err := checkFlows(ctx, db, v.name, ids); err != nil {
				return err
			}
		}
		if len(ids) > 0 {
			return v.toNamed(ctx, a, db, ids)
		}
		filter, err := flags.chosen(ctx, db)
		if err != nil {
			return err
		}
		filter.Limit = limit
		if dryRun {
			return v.tellSelected(ctx, a, db, filter)
		}
		if all && !yes {
			matched, _, err := v.matched(ctx, db, filter)
			if err != nil {
				return err
			}
			return withHint(usagef("this would %s %s of %s", v.name, words.Counted(matched, "job"), a.place()), "give --yes if that is meant; --dry-run shows the first few")
		}
		return v.toSelected(ctx, a, db, filter)
	}))
	flags.add(cmd.Flags(), v.flows)
	cmd.Flags().BoolVar(&all, "all", false, "every job, instead of filters")
	cmd.Flags().BoolVar(&yes, "yes", false, "with --all: really every job")
	countFlag(cmd.Flags(), &limit, "limit", 0, "no more than this many of the jobs that filters choose", "")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing: count the jobs that the filters choose, and show the first few")
	return cmd
}

// toNamed does it to jobs that were named, and prints the result of each.
func (v verb[A]) toNamed(ctx context.Context, a *app, db *database, ids []stint.ID) error {
	answers := map[stint.ID]A{}
	for some := range slices.Chunk(ids, ops.MostNamed) {
		done, err := v.do(ctx, db, ops.Selection{IDs: some})
		if err != nil {
			return err
		}
		maps.Copy(answers, done.Answers)
	}
	if a.json {
		if err := a.printJSON(answers); err != nil {
			return err
		}
	}
	failed := 0
	for _, id := range ids {
		f := v.of(answers[id])
		if f.failed {
			failed++
		}
		if !a.json {
			fmt.Fprintf(a.out, "job %d %s\n", id, f.text)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d jobs could not be %s", failed, len(ids), v.past)
	}
	return nil
}

// toSelected does it to the jobs that a filter chooses, and prints how many had which
// result.
func (v verb[A]) toSelected(ctx context.Context, a *app, db *database, filter store.Filter) error {
	answers, tally, n := map[stint.ID]A{}, map[string]int{}, 0
	var failure error
	for done, err := range ops.Chosen(filter, func(s ops.Selection) (ops.Done[A], error) {
		s.Each = true
		return v.do(ctx, db, s)
	}) {
		if err != nil {
			failure = fmt.Errorf("after %s: %w", words.Counted(n, "job"), err)
			break
		}
		n += len(done.Answers)
		for answer, count := range done.Tally() {
			tally[answer] += count
		}
		if a.json {
			maps.Copy(answers, done.Answers)
			continue
		}
		for _, id := range slices.Backward(slices.Sorted(maps.Keys(done.Answers))) {
			if made := v.of(done.Answers[id]).made; made != 0 {
				fmt.Fprintf(a.out, "job %d → job %d\n", id, made)
			}
		}
	}
	if a.json {
		if err := a.printJSON(answers); err != nil {
			return err
		}
		return failure
	}
	if n > 0 {
		fmt.Fprintln(a.out, ops.TallyText(tally))
	} else if failure == nil {
		a.note("no jobs fit")
	}
	return failure
}

// matched counts the jobs that a filter chooses, and returns the first few.
func (v verb[A]) matched(ctx context.Context, db *database, filter store.Filter) (n int, first []stint.JobInfo, err error) {
	first = []stint.JobInfo{}
	for done, err := range ops.Chosen(filter, func(s ops.Selection) (ops.Done[A], error) {
		s.DryRun = true
		return v.do(ctx, db, s)
	}) {
		if err != nil {
			return n, first, err
		}
		if n == 0 {
			first = append(first, done.First...)
		}
		n += done.Matched
	}
	return n, first, nil
}

// tellSelected prints which jobs a filter chooses.
func (v verb[A]) tellSelected(ctx context.Context, a *app, db *database, filter store.Filter) error {
	matched, first, err := v.matched(ctx, db, filter)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Matched int             `json:"matched"`
			First   []stint.JobInfo `json:"first"`
		}{matched, first})
	}
	engines, err := view.CrewFor(ctx, db, first...)
	if err != nil {
		return err
	}
	now, err := db.now(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "would %s %s\n", v.name, words.Counted(matched, "job"))
	if matched > 0 {
		fmt.Fprintln(a.out)
		a.listJobs(first, engines, store.Filter{}, now) // which has no further pages
	}
	if more := matched - len(first); more > 0 {
		fmt.Fprintf(a.out, "and %s more\n", words.Count(more))
	}
	return nil
}
