package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

func (a *app) jobsCommand() *cobra.Command {
	return a.noun(page("jobs|job: List, show and watch jobs, cancel, retry and delete them"),
		a.listCommand(page(jobsListHelp), false), a.jobsShowCommand(), a.jobsStepsCommand(), a.jobsOpenCommand(), a.jobsSignalsCommand(), a.jobsSignalCommand(), a.jobsAnswerCommand(), a.jobsLogCommand(), a.jobsWatchCommand(), a.cancelCommand(page(jobsCancelHelp), false),
		a.retryCommand(page(jobsRetryHelp), false), a.jobsDeleteCommand())
}

func jobID(text string) (stint.ID, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, withHint(usagef("%q is not the id of a job", text), "ids are the numbers that stint enqueue prints and stint jobs list shows")
	}
	return stint.ID(n), nil
}

func jobIDs(texts []string) ([]stint.ID, error) {
	ids := make([]stint.ID, len(texts))
	for i, text := range texts {
		id, err := jobID(text)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}

const jobsListHelp = `list|ls: List jobs, the newest first

List shows jobs, the newest first, that fit all of the filters. For the next page give
the last id to --before.

The column attempt is the number of the attempt that runs or comes next, and of a job that
has ended that of the last: a job at attempt 3 has failed, or lost its engine, twice.

` + timesHelp + `

Filters by tag, urn, correlation, schedule, outcome, error, faulty, attempts, longer
(than 5s at least), and the states scheduled, retrying, failed and cancelled look only
at jobs that may fit; with other filters alone, the search reads all jobs until it has
found enough. An attempt whose engine died has the outcome lost if it was known to have
begun, and returned if not.

The states:

` + statesHelp + `

Examples:
  stint jobs list --state failed,retrying --kind sh
  stint jobs list --faulty
  stint jobs list --tag customer:42 --json
  stint jobs list --urn 'order:47*'
  stint jobs list --correlation 12
  stint jobs list --outcome lost --finished-after 12h
  stint jobs watch $(stint jobs list --tag batch --ids)`

// statesHelp explains the states of jobs, where they are listed.
const statesHelp = `  scheduled   not due yet: it was enqueued with a delay or a time
  retrying    failed, and waits for its next attempt
  blocked     needs other jobs to end first, or awaits a signal or an answer
  available   due, and waits for an engine
  running     claimed by an engine
  completed, failed, cancelled   ended`

// listCommand lists jobs, or flows.
func (a *app) listCommand(help *cobra.Command, flows bool) *cobra.Command {
	var (
		filters filterFlags
		limit   int
		before  stint.ID
		ids     bool
	)
	cmd := a.asks(help, func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		filter, err := filters.chosen(ctx, db)
		if err != nil {
			return nil, nil, err
		}
		filter.Before, filter.Limit = before, limit
		if ids {
			found, err := db.Find(ctx, filter)
			return found, func(time.Time) {
				for _, id := range found {
					fmt.Fprintln(a.out, id)
				}
			}, err
		}
		return a.findJobs(ctx, db, filter)
	}, func(cmd *cobra.Command, _ []string) error { return filters.check(cmd) })
	flags := cmd.Flags()
	filters.add(flags, flows)
	countFlag(flags, &limit, "limit", 50, "how many at most", "")
	idFlag(flags, &before, "before", "only jobs with a lower id: for the next page")
	flags.BoolVar(&ids, "ids", false, "print their ids only, one on each line")
	cmd.MarkFlagsMutuallyExclusive("ids", "json")
	return cmd
}

// findJobs answers with the jobs that fit a filter.
func (a *app) findJobs(ctx context.Context, db *database, filter store.Filter) (any, shower, error) {
	jobs, err := db.Jobs(ctx, filter)
	if err != nil || a.json {
		return jobs, nil, err
	}
	engines, err := view.CrewFor(ctx, db, jobs...)
	return jobs, func(now time.Time) { a.listJobs(jobs, engines, filter, now) }, err
}

func (a *app) listJobs(jobs []stint.JobInfo, engines view.Crew, filter store.Filter, now time.Time) {
	columns := row{"id", "state", "kind", "queue", "attempt", "created", "detail", "tags"}
	described := slices.ContainsFunc(jobs, func(j stint.JobInfo) bool { return j.Description() != "" })
	if described {
		columns = append(columns, "description")
	}
	printTable(a, jobs, "no jobs", columns, func(j stint.JobInfo) row {
		cells := row{j.ID, j.State, j.Kind, j.Queue, j.Attempt, words.Ago(j.Created, now), engines.Situation(j, now), strings.Join(j.Tags, " ")}
		if described {
			cells = append(cells, cut(j.Description(), 60))
		}
		return cells
	})
	if len(jobs) == 0 {
		return
	}
	if last := jobs[len(jobs)-1]; len(jobs) == filter.Limit && last.ID > 1 {
		a.note("there may be more: --before %d", last.ID)
	}
}

func (a *app) jobsShowCommand() *cobra.Command {
	var id stint.ID
	return a.asks(page(`show ID: Show a job with all of its attempts

Show prints everything about a job: what was enqueued, the engine that runs it now or
the limits, signals or jobs that it waits for, how far its run said it is and what it
logged last, what its steps came to, the signals that it got, and for each attempt when
and where it ran, how it ended, its result and its error.
--json prints one object with a list of executions.

Examples:
  stint jobs show 12
  stint jobs show 12 --json | jq '.executions[-1].result'`), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		shown, err := ops.ShowJob.Call(ctx, db, ops.ShowInput{ID: int64(id)})
		if err != nil || a.json {
			return shown, nil, err
		}
		engines, err := view.CrewFor(ctx, db, *shown.JobInfo)
		engines.Gates = shown.Gates
		return shown, func(now time.Time) { a.showJob(shown, engines, now) }, err
	}, func(_ *cobra.Command, args []string) (err error) {
		id, err = jobID(args[0])
		return err
	})
}

func (a *app) showJob(shown view.Job, engines view.Crew, now time.Time) {
	j := shown.JobInfo
	fmt.Fprintf(a.out, "job %d %s\n\n", j.ID, shown.StateInWords(engines, now))
	d := a.newDetails(now)
	kind := j.Kind
	if j.IsFlow {
		kind += " (a flow)"
	}
	d.add("kind", kind)
	d.add("belongs to", view.MemberInWords(*j))
	d.add("description", j.Description())
	d.add("args", j.Args)
	if p := shown.LastProgress(); p != nil {
		d.add("progress", view.ProgressInWords(*p)+", "+words.Ago(p.At, now))
	}
	if r := shown.RunsOn; r != nil {
		runs := fmt.Sprintf("%s (%s, pid %d), last heartbeat %s", r.Instance, r.Host, r.PID, words.Ago(r.Beat, now))
		if trouble := r.TroubleInWords(); trouble != "" {
			runs += ": " + trouble
		}
		d.add("runs on", runs)
		d.add("runs since", r.Started)
	}
	queue := j.Queue
	if slices.Contains(engines.Paused, queue) {
		queue += " (paused)"
	}
	d.add("queue", queue)
	d.add("priority", j.Priority)
	d.add("tags", j.Tags)
	d.add("urn", j.URN)
	d.add("source", j.Source)
	if j.Correlation != j.ID.String() {
		d.add("correlation", j.Correlation)
	}
	if j.Origin.Recovered != 0 {
		d.add("provenance", fmt.Sprintf("recovered from job %d", j.Origin.Recovered))
	}
	if j.RetriedAs != 0 {
		d.add("retried as", fmt.Sprintf("job %d", j.RetriedAs))
	}
	if p := j.Origin; p.Schedule != "" {
		of := "run out of turn"
		if !p.Occurrence.IsZero() {
			of = "of " + moment(p.Occurrence)
		}
		d.add("provenance", fmt.Sprintf("number %d of the schedule %s, %s", p.Nth, p.Schedule, of))
	}
	d.add("metadata", j.Metadata)
	if j.Unique != "" {
		unique := j.Unique
		if key := string(j.UniqueKey()); key != "{}" { // by the kind alone
			unique += " of " + key
		}
		d.add("unique", unique)
	}
	d.add("limits", j.Limits)
	d.add("retry", strings.Join(view.RetryInWords(j.Retry), "\n"))
	d.add("timeout", j.Timeout.AsDuration())
	d.add("losses", j.Losses)
	d.add("created", j.Created)
	if j.PendingRetry == "" && !j.Due.Equal(j.Created) {
		d.add("due", j.Due)
	}
	d.add("awaits", j.Awaits)
	d.add("asks", j.Asks)
	d.add("start by", j.StartBy)
	d.Render()
	a.showQuestions(shown)
	a.showSteps(shown)
	a.showSignals(shown)
	a.showLog(shown)
	for _, x := range j.Attempts {
		a.showExecution(j.Kind, x)
	}
}

func (a *app) showExecution(kind string, x stint.Attempt) {
	fmt.Fprintf(a.out, "\nattempt %d %s\n\n", x.Attempt, view.Outcome(x))
	d := a.newDetails(time.Time{})
	switch {
	case x.Outcome == stint.OutcomeLost: // when it began is not known any more
		d.add("lost with", view.RanOn(x))
		d.add("found", moment(x.Finished))
	case x.Slot > 0:
		d.add("started", moment(x.Started))
		d.add("took", words.Took(max(0, x.Finished.Sub(x.Started))))
		d.add("on", view.RanOn(x))
	case view.Unbegun(x):
		d.add("ended", moment(x.Finished)+", without having begun")
		d.add("on", view.RanOn(x))
	default:
		d.add("ended", moment(x.Finished))
		if !view.NeverTaken(x) {
			d.add("on", view.RanOn(x))
		}
	}
	result := view.ResultOf(kind, x.Result)
	for _, line := range result.Facts {
		d.add(line[0], line[1])
	}
	if x.Recoverable != nil && !*x.Recoverable && x.Outcome == stint.OutcomeFailed {
		d.add("recoverable", "no")
	}
	if x.Error != nil {
		d.add("error", strings.TrimRight(x.Error.Message, "\n"))
		classes := x.Error.Classes
		if len(classes) < 2 {
			classes = []string{x.Error.Class}
		}
		d.add("class", classes)
		d.add("note", x.Error.Note)
	}
	d.Render()
	if body := cmp.Or(result.Output, indented(result.JSON)); body != "" {
		fmt.Fprintf(a.out, "\n%s\n", indent(body, "  | "))
	}
	if x.Error != nil && x.Error.Stack != "" {
		fmt.Fprintf(a.out, "\n%s\n", indent(x.Error.Stack, "  "))
	}
}

// indented formats JSON with a line for each field.
func indented(raw json.RawMessage) string {
	var pretty bytes.Buffer
	if len(raw) == 0 || json.Indent(&pretty, raw, "", "  ") != nil {
		return string(raw)
	}
	return string(plainJSON(pretty.Bytes()))
}
