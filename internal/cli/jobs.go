package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
)

func (a *app) jobsCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:     "jobs",
		Aliases: []string{"job"},
		Short:   "List, show and watch jobs, cancel, retry and delete them",
	},
		a.jobsListCommand(),
		a.jobsShowCommand(),
		a.jobsWatchCommand(),
		a.jobsCancelCommand(),
		a.jobsRetryCommand(),
		a.jobsDeleteCommand(),
	)
}

// jobID reads an id as it was printed.
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
