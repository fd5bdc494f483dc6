package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

func (a *app) flowsCommand() *cobra.Command {
	return a.noun(page("flows|flow: List, enqueue, show, graph, cancel and retry flows, which are graphs of jobs"),
		a.listCommand(page(flowsListHelp), true), a.flowsEnqueueCommand(), a.flowsAddCommand(), a.flowsShowCommand(), a.flowsGraphCommand(),
		a.cancelCommand(page(flowsCancelHelp), true), a.retryCommand(page(flowsRetryHelp), true))
}

const flowsEnqueueHelp = `enqueue FILE: Enqueue a flow: a graph of jobs

Enqueue stores a flow with all of its jobs, or nothing, and prints its id. The file is
JSON, - is standard input:

  {"kind": "import", "tags": ["daily"],
   "jobs": [
     {"name": "fetch", "kind": "sh", "args": {"argv": ["./fetch"]}, "timeout": "1h"},
     {"name": "sum", "kind": "sh", "args": {"argv": ["./sum"]}, "needs": ["fetch"]},
     {"name": "alarm", "kind": "mail", "args": {"to": "ann"}, "needs_failure": ["sum"]},
     {"name": "tidy", "kind": "sh", "args": {"argv": ["./tidy"]}, "needs_end": ["sum"]}]}

A job begins when those that it needs have ended as it wants: completed (needs), failed,
expired or been cancelled (needs_failure), or either (needs_end). It needs them by name,
and they stand before it; a number is the id of a job of another flow. The other fields
of a job are the options of stint enqueue, with _ for -. The flow has a kind, which is
any name, and may have tags, urn, source, correlation, description, metadata,
idempotency_key and unique. A job that has jobs is a flow within the flow.

Examples:
  stint flows enqueue import.json
  jq -n -f nightly.jq | stint flows enqueue -`

func (a *app) flowsEnqueueCommand() *cobra.Command {
	var in ops.FlowInput
	cmd := a.withJSON(a.does(page(flowsEnqueueHelp), func(ctx context.Context, cmd *cobra.Command, args []string) error {
		if err := a.jsonFile(args[0], &in.Body.Flow); err != nil {
			return err
		}
		if len(in.Body.Flow.Needs[0])+len(in.Body.Flow.Needs[1])+len(in.Body.Flow.Needs[2]) > 0 || in.Body.Flow.Name != "" {
			return usagef("%s: the flow itself has no name and needs nothing", args[0])
		}
		return a.on(creating, func(ctx context.Context, db *database, _ []string) error {
			out, err := ops.EnqueueFlow.Call(ctx, db, in)
			return a.enqueuedFlow(ctx, db, out, err)
		})(ctx, cmd, args)
	}))
	cmd.Flags().BoolVar(&in.Body.Force, "force", false, "also jobs of kinds that no engine ever declared")
	return cmd
}

const flowsAddHelp = `add ID FILE: Add jobs to a flow while it is open

Add stores all of the jobs or none. The file is a JSON list of jobs as in stint flows
enqueue; - is standard input. What is in the flow already is needed by its id. A job
whose name is in the flow already is not added again, so the command can be repeated
if all of its jobs have names.

Examples:
  echo '[{"name": "page 3", "kind": "page", "args": {"n": 3}}]' | stint flows add 12 -`

func (a *app) flowsAddCommand() *cobra.Command {
	var in ops.AddInput
	cmd := a.withJSON(a.does(page(flowsAddHelp), func(ctx context.Context, cmd *cobra.Command, args []string) error {
		id, err := jobID(args[0])
		if err != nil {
			return err
		}
		in.ID = int64(id)
		if err := a.jsonFile(args[1], &in.Body.Jobs); err != nil {
			return err
		}
		if len(in.Body.Jobs) == 0 {
			return usagef("%s: there are no jobs in it", args[1])
		}
		return a.on(changing, func(ctx context.Context, db *database, _ []string) error {
			out, err := ops.AddToFlow.Call(ctx, db, in)
			return a.enqueuedFlow(ctx, db, out, err)
		})(ctx, cmd, args)
	}))
	cmd.Flags().BoolVar(&in.Body.Force, "force", false, "also jobs of kinds that no engine ever declared")
	return cmd
}

// enqueuedFlow prints the id of a flow, or what is wrong with it.
func (a *app) enqueuedFlow(ctx context.Context, db *database, out ops.EnqueuedFlow, err error) error {
	var at *ops.InError
	switch {
	case errors.As(err, &at):
		return usagef("%s: %v", strings.TrimPrefix(strings.TrimPrefix(at.Place, "body.flow"), "."), at.Err)
	case err != nil:
		return hintInput(err)
	case a.json:
		err = a.printJSON(out)
	default:
		if out.Duplicate {
			a.note("duplicate")
		}
		_, err = fmt.Fprintln(a.out, out.ID)
	}
	a.noteIfIdle(ctx, db)
	return err
}

// jsonFile reads JSON from a file, or standard input for "-".
func (a *app) jsonFile(name string, into any) error {
	in := a.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return usagef("%v", err)
		}
		defer file.Close()
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxInput))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return withHint(usagef("%s: %v", name, err), "stint flows enqueue --help shows what a flow looks like")
	}
	return nil
}

const flowsListHelp = `list|ls: List flows, the newest first

List shows flows, the newest first, that fit all of the filters. A flow is blocked until
all of its jobs have ended; then it has completed, or failed if one of them did not.

` + timesHelp + `

Examples:
  stint flows list --state blocked
  stint flows list --kind import --finished-after 1d`

const flowsCancelHelp = `cancel [ID]...: Cancel flows with all of their jobs

Cancel ends the jobs of a flow: what waits does not run, and what runs is asked to stop.
The flow ends when they have.

` + selectionHelp + `
Without --state they choose among the flows that have not ended.

` + timesHelp + `

The exit code is 1 when a flow that was named was not there or had ended already.

Examples:
  stint flows cancel 42 --why "the customer left"
  stint flows cancel --kind import --dry-run`

const flowsRetryHelp = `retry [ID]...: Run flows again that have ended, as new flows of what did not complete

Retry makes a new flow of the jobs that did not complete, and prints its id. They need
each other as before, and what completed is not run again: its results are read by the
new jobs. With --whole all jobs run again, and of a flow that completed they always do.
To run a flow again from one of its jobs, retry the job: stint jobs retry ID.

` + selectionHelp + `
Without --state they choose the flows that are failed. Filters skip a flow that was
retried before, and say how many they skipped.

` + timesHelp + `

The exit code is 1 when a flow that was named is still open, or was not there.

Examples:
  stint flows retry 42
  stint flows retry --kind import --finished-after 12h --dry-run`

// checkFlows refuses jobs that are no flows.
func checkFlows(ctx context.Context, db *database, verb string, ids []stint.ID) error {
	for _, id := range ids {
		if job, err := db.Job(ctx, id); err == nil && !job.IsFlow {
			return withHint(usagef("job %d is no flow", id), "stint jobs %s %d is for any job", verb, id)
		}
	}
	return nil
}

func (a *app) flowsShowCommand() *cobra.Command {
	var (
		id    stint.ID
		limit int
	)
	cmd := a.asks(page(`show ID: Show a flow with its jobs

Show prints a flow as stint jobs show does, and after it its jobs in the order of their
ids: what each is called in the flow, its state, and what it waits for.

Examples:
  stint flows show 12
  stint flows show 12 --json | jq '.jobs[] | select(.state == "failed").id'`), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		shown, err := ops.ShowJob.Call(ctx, db, ops.ShowInput{ID: int64(id)})
		if err == nil && !shown.IsFlow {
			err = withHint(usagef("job %d is no flow", id), "stint jobs show %d shows it", id)
		}
		if err != nil {
			return nil, nil, err
		}
		jobs, err := db.Jobs(ctx, store.Filter{Flow: id, Limit: limit + 1})
		if err != nil {
			return nil, nil, err
		}
		more := len(jobs) > limit
		jobs = jobs[:min(limit, len(jobs))]
		slices.SortFunc(jobs, func(x, y stint.JobInfo) int { return cmp.Compare(x.ID, y.ID) })
		if a.json {
			return struct {
				view.Job
				Jobs []stint.JobInfo `json:"jobs"`
			}{shown, jobs}, nil, nil
		}
		engines, err := view.CrewFor(ctx, db, append(slices.Clone(jobs), *shown.JobInfo)...)
		return nil, func(now time.Time) {
			a.showJob(shown, engines, now)
			fmt.Fprintln(a.out)
			printTable(a, jobs, "no jobs", row{"id", "name", "state", "kind", "attempt", "detail"}, func(j stint.JobInfo) row {
				return row{j.ID, cmp.Or(j.Node, "-"), j.State, j.Kind, j.Attempt, engines.Situation(j, now)}
			})
			if more {
				a.note("there are older ones: --limit shows more, stint jobs list --flow %d --before %d the next", id, jobs[0].ID)
			}
		}, err
	}, func(_ *cobra.Command, args []string) (err error) {
		id, err = jobID(args[0])
		return err
	})
	countFlag(cmd.Flags(), &limit, "limit", 200, "how many of its jobs at most", "")
	return cmd
}
