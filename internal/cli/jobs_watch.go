package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

const jobsWatchHelp = `watch [ID]...: Follow jobs until they end

Watch follows jobs until each has ended, with a line for every change. The exit code
is 0 when all of them completed and 1 otherwise; with --json it prints each job once it
has ended. With --follow it prints what they log and how far they are as well, about a
second after they said so.

Without ids it shows how many jobs are in each state, until it is interrupted.

Examples:
  stint jobs watch 12
  stint jobs watch --follow $(stint sh -- make test)
  stint jobs watch $(stint sh -- make test)`

func (a *app) jobsWatchCommand() *cobra.Command {
	var follow bool
	cmd := a.withJSON(a.does(page(jobsWatchHelp), func(ctx context.Context, _ *cobra.Command, args []string) error {
		ids, err := jobIDs(args)
		if err != nil {
			return err
		}
		db, err := a.open(ctx, looking)
		if err != nil {
			return err
		}
		defer db.Close()
		ctx, release := interrupted(ctx)
		defer release()
		if len(ids) == 0 {
			return a.watchCounts(ctx, db)
		}
		return a.watchJobs(ctx, db, ids, follow)
	}))
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print what the jobs log and how far they are as well")
	cmd.MarkFlagsMutuallyExclusive("follow", "json")
	return cmd
}

// Each look costs a query, so the pause grows while nothing changes.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

func (a *app) watchJobs(ctx context.Context, db *database, ids []stint.ID, follow bool) error {
	shown := map[stint.ID]string{}
	said := map[stint.ID]followed{}
	failed := false
	for pause := firstPause; len(ids) > 0; pause = min(2*pause, lastPause) {
		var rest []stint.ID
		for _, id := range ids {
			job, err := db.Job(ctx, id)
			if ctx.Err() != nil {
				return errors.New("interrupted before the jobs had ended")
			} else if err != nil {
				return err
			}
			line := progress(job)
			changed := line != shown[id]
			shown[id] = line
			if job.State.Final() && follow { // all that it said is there: that comes before its end
				if _, err = a.follow(ctx, db, id, said); err != nil {
					return err
				}
			}
			if changed && !a.json {
				fmt.Fprintf(a.out, "%s  job %d %s\n", time.Now().Format(time.TimeOnly), id, line)
			}
			if !job.State.Final() && follow {
				more, err := a.follow(ctx, db, id, said)
				if err != nil {
					return err
				}
				changed = changed || more
			}
			if changed {
				pause = firstPause
			}
			if !job.State.Final() {
				rest = append(rest, id)
				continue
			}
			failed = failed || job.State != stint.Completed
			if a.json {
				if err := a.printJSON(job); err != nil {
					return err
				}
			}
		}
		if ids = rest; len(ids) > 0 && !wait(ctx, pause) {
			return errors.New("interrupted before the jobs had ended")
		}
	}
	if failed {
		return errReported
	}
	return nil
}

// progress is one line about a job. It must depend on the job alone: watch prints it when
// it changes.
func progress(j *stint.JobInfo) string {
	last := ""
	if n := len(j.Attempts); n > 0 {
		x := j.Attempts[n-1]
		last = fmt.Sprintf(": attempt %d %s", x.Attempt, x.Outcome)
		if x.Error != nil {
			last += ", " + oneLine(x.Error.Message)
		}
	}
	switch j.State {
	case stint.Running:
		return fmt.Sprintf("is running, attempt %d", j.Attempt)
	case stint.Retrying:
		if j.PendingRetry != "" {
			return fmt.Sprintf("waits for an engine with the retry function %s%s", words.Visible(j.PendingRetry), last)
		}
		return fmt.Sprintf("waits for attempt %d at %s%s", j.Attempt, j.Due.Local().Format("15:04:05.000"), last)
	case stint.Scheduled:
		return "is scheduled for " + moment(j.Due)
	case stint.Blocked:
		if needs := view.NeedsInWords(*j); needs != "" {
			return needs
		}
		return cmp.Or(view.AwaitsInWords(*j), "is blocked") + " until " + moment(j.Due)
	case stint.Completed:
		return fmt.Sprintf("completed with attempt %d", j.Attempt)
	case stint.Failed, stint.Cancelled:
		if w := view.Why(*j); w != "" {
			last = " (" + words.Visible(w) + ")" + last
		}
		return string(j.State) + last
	}
	return "is " + string(j.State)
}

// watchCounts shows the counts of states until it is interrupted. On a terminal it
// overwrites the line.
func (a *app) watchCounts(ctx context.Context, db *database) error {
	var shown map[stint.State]int64
	for {
		counts, err := db.Counts(ctx)
		if ctx.Err() != nil {
			break
		} else if err != nil {
			return err
		}
		if shown == nil || !maps.Equal(counts, shown) {
			if err := a.printCounts(counts); err != nil {
				return err
			}
			shown = counts
		}
		if !wait(ctx, time.Second) {
			break
		}
	}
	if a.outTerminal && !a.json {
		fmt.Fprintln(a.out)
	}
	return nil
}

func (a *app) printCounts(counts map[stint.State]int64) error {
	if a.json {
		return a.printJSON(counts)
	}
	var parts []string
	for _, s := range store.States {
		if s != stint.Blocked || counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", s, words.Count(counts[s])))
		}
	}
	line := time.Now().Format(time.TimeOnly) + "  " + strings.Join(parts, "  ")
	var err error
	if a.outTerminal {
		_, err = fmt.Fprintf(a.out, "\r\x1b[K%s", line)
	} else {
		_, err = fmt.Fprintln(a.out, line)
	}
	return err
}

// wait waits, and reports whether ctx did not end before.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
