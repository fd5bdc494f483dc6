package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/internal/words"
)

// verb is what is done to jobs that are named by id or chosen by filters.
type verb struct {
	name   string        // as in "would cancel"
	states []stint.State // of the jobs that filters choose which name no state

	// named does it to up to bulkSize jobs, and chosen to those that a filter
	// chooses, some at a time.
	named  func(ctx context.Context, db *database, ids []stint.ID) (map[stint.ID]fate, error)
	chosen func(ctx context.Context, db *database, f stint.Filter) iter.Seq2[map[stint.ID]fate, error]
}

// fate is what came of one job.
type fate struct {
	text   string // behind "job 42 "
	sum    string // behind a number of jobs
	failed bool
	answer any // in JSON
}

// fates are answers as people are told of them.
func fates[A any](answers map[stint.ID]A, of func(A) fate) map[stint.ID]fate {
	all := make(map[stint.ID]fate, len(answers))
	for id, answer := range answers {
		all[id] = of(answer)
	}
	return all
}

// eachFates is fates of some answers at a time.
func eachFates[A any](some iter.Seq2[map[stint.ID]A, error], of func(A) fate) iter.Seq2[map[stint.ID]fate, error] {
	return func(yield func(map[stint.ID]fate, error) bool) {
		for answers, err := range some {
			if !yield(fates(answers, of), err) {
				return
			}
		}
	}
}

// countSize is how many ids a dry run looks up at a time: it changes nothing, so that
// it may be many. FirstFew is how many jobs it shows.
const (
	countSize = 10_000
	firstFew  = 10
)

const selectionHelp = `Jobs are named by their ids, or chosen by filters: those that fit all of them.
Filters change jobs in batches of 500, the newest first; --dry-run only tells how
many jobs fit, and shows the first few.`

// onJobs is a command that does something to jobs.
func (a *app) onJobs(cmd *cobra.Command, v verb) *cobra.Command {
	var (
		flags       filterFlags
		all, dryRun bool
		limit       int
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
		if dryRun {
			how = looking
		}
		db, err := a.open(ctx, how)
		if err != nil {
			return err
		}
		defer db.Close()
		if len(ids) > 0 {
			return a.toNamed(ctx, db, v, ids)
		}
		filter, err := flags.chosen(ctx, db)
		if err != nil {
			return err
		}
		if len(filter.States) == 0 {
			filter.States = v.states
		}
		filter.Limit = limit
		if dryRun {
			return a.tellSelected(ctx, db, v, filter)
		}
		return a.toSelected(ctx, db, v, filter)
	}))
	cmd.Flags().SortFlags = false
	flags.add(cmd.Flags())
	cmd.Flags().BoolVar(&all, "all", false, "every job, instead of filters")
	cmd.Flags().IntVar(&limit, "limit", 0, "no more than this many of the jobs that filters choose")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing: tell how many jobs the filters choose, and which first few")
	return cmd
}

// toNamed does it to jobs that were named, and tells of each.
func (a *app) toNamed(ctx context.Context, db *database, v verb, ids []stint.ID) error {
	came := map[stint.ID]fate{}
	for some := range slices.Chunk(ids, bulkSize) {
		got, err := v.named(ctx, db, some)
		if err != nil {
			return err
		}
		maps.Copy(came, got)
	}
	if a.json {
		if err := a.printFates(came); err != nil {
			return err
		}
	}
	failed := 0
	for _, id := range ids {
		if came[id].failed {
			failed++
		}
		if !a.json {
			fmt.Fprintf(a.out, "job %d %s\n", id, came[id].text)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d jobs could not be %s", failed, len(ids), past[v.name])
	}
	return nil
}

var past = map[string]string{"cancel": "cancelled", "retry": "run again", "delete": "deleted"}

func (a *app) printFates(came map[stint.ID]fate) error {
	answers := make(map[stint.ID]any, len(came))
	for id, f := range came {
		answers[id] = f.answer
	}
	return a.printJSON(answers)
}

// toSelected does it to the jobs that a filter chooses, and tells how many came
// to what.
func (a *app) toSelected(ctx context.Context, db *database, v verb, filter stint.Filter) error {
	came, sums := map[stint.ID]fate{}, map[string]int{}
	var order []string
	n := 0
	var failure error
	for got, err := range v.chosen(ctx, db, filter) {
		if err != nil {
			failure = fmt.Errorf("after %s: %w", words.Counted(n, "job"), err)
			break
		}
		n += len(got)
		for _, id := range slices.Backward(slices.Sorted(maps.Keys(got))) {
			f := got[id]
			if sums[f.sum]++; sums[f.sum] == 1 {
				order = append(order, f.sum)
			}
		}
		if a.json {
			maps.Copy(came, got)
		}
	}
	if a.json {
		if err := a.printFates(came); err != nil {
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

// selected is what a dry run tells.
type selected struct {
	Matched int             `json:"matched"`
	First   []stint.JobInfo `json:"first"`
}

// tellSelected tells which jobs a filter chooses.
func (a *app) tellSelected(ctx context.Context, db *database, v verb, filter stint.Filter) error {
	var s selected
	for ids, err := range stint.Selected(ctx, db, filter, countSize) {
		if err != nil {
			return err
		}
		s.Matched += len(ids)
	}
	few := filter
	few.Limit = firstFew
	if filter.Limit > 0 {
		few.Limit = min(firstFew, filter.Limit)
	}
	jobs, err := db.Jobs(ctx, few)
	if err != nil {
		return err
	}
	engines, err := view.CrewFor(ctx, db, jobs...)
	if err != nil {
		return err
	}
	s.First = append([]stint.JobInfo{}, jobs...)
	if a.json {
		return a.printJSON(s)
	}
	fmt.Fprintf(a.out, "would %s %s\n", v.name, words.Counted(s.Matched, "job"))
	if s.Matched > 0 {
		fmt.Fprintln(a.out)
		few.Limit = 0 // nothing is to be said of further pages
		a.listJobs(jobs, engines, few)
	}
	if more := s.Matched - len(jobs); more > 0 {
		fmt.Fprintf(a.out, "and %s more\n", words.Count(more))
	}
	return nil
}
