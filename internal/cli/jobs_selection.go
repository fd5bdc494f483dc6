package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

// verb is an operation on jobs that are named by id or chosen by filters, and answers
// with an A of each.
type verb[A any] struct {
	name, past string // "cancel", "cancelled"
	do         func(ctx context.Context, db *database, s ops.Selection) (ops.Done[A], error)
	of         func(A) fate
}

// fate is what came of one job.
type fate struct {
	text   string   // after "job 42 "
	sum    string   // after a number of jobs
	made   stint.ID // the new job that does it again, if there is one
	failed bool
}

const selectionHelp = `Jobs are named by their ids, or chosen by filters: those that fit all of them.
Filters change jobs in batches of 500, the newest first; --dry-run only tells how
many jobs fit, and shows the first few.`

// onJobs is a command that does something to jobs.
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
		case cmd.Flags().Changed("limit") && limit < 1:
			return usagef("--limit: %d is too few", limit)
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
	cmd.Flags().SortFlags = false
	flags.add(cmd.Flags())
	cmd.Flags().BoolVar(&all, "all", false, "every job, instead of filters")
	cmd.Flags().BoolVar(&yes, "yes", false, "with --all: really every job")
	cmd.Flags().IntVar(&limit, "limit", 0, "no more than this many of the jobs that filters choose")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing: tell how many jobs the filters choose, and which first few")
	return cmd
}

// toNamed does it to jobs that were named, and tells of each.
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

// toSelected does it to the jobs that a filter chooses, and tells how many came
// to what.
func (v verb[A]) toSelected(ctx context.Context, a *app, db *database, filter store.Filter) error {
	answers, sums := map[stint.ID]A{}, map[string]int{}
	var order []string
	n := 0
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
		for _, id := range slices.Backward(slices.Sorted(maps.Keys(done.Answers))) {
			f := v.of(done.Answers[id])
			if sums[f.sum]++; sums[f.sum] == 1 {
				order = append(order, f.sum)
			}
			if f.made != 0 && !a.json {
				fmt.Fprintf(a.out, "job %d → job %d\n", id, f.made)
			}
		}
		if a.json {
			maps.Copy(answers, done.Answers)
		}
	}
	if a.json {
		if err := a.printJSON(answers); err != nil {
			return err
		}
		return failure
	}
	for _, sum := range order {
		fmt.Fprintf(a.out, "%s %s\n", words.Counted(sums[sum], "job"), sum)
	}
	if n == 0 && failure == nil {
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

// tellSelected tells which jobs a filter chooses.
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
	fmt.Fprintf(a.out, "would %s %s\n", v.name, words.Counted(matched, "job"))
	if matched > 0 {
		fmt.Fprintln(a.out)
		a.listJobs(first, engines, store.Filter{}) // nothing is to be said of further pages
	}
	if more := matched - len(first); more > 0 {
		fmt.Fprintf(a.out, "and %s more\n", words.Count(more))
	}
	return nil
}
