package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/seal"
)

const jobsOpenHelp = `open ID: Show in clear what is sealed of a job, and write down who looks

Open prints the arguments, the result and what the steps of a job recorded, opened with
the keys of a file, or with those of the server that --server names. Who looks is written
down before anything is shown: stint changes --operation "jobs open" lists it. What the
kind redacts stays redacted.

The file has a key on each line, the newest first: its id, a space, and 32 bytes in
Base64, as openssl rand -base64 32 makes them.

Examples:
  stint jobs open 12 --keys-file keys.txt
  stint jobs open 12 --server https://jobs.example.com --json | jq .args`

func (a *app) jobsOpenCommand() *cobra.Command {
	var (
		id   stint.ID
		file string
		keys seal.Keys
	)
	cmd := a.withJSON(a.does(page(jobsOpenHelp), func(ctx context.Context, cmd *cobra.Command, args []string) (err error) {
		if id, err = jobID(args[0]); err != nil {
			return err
		}
		if keys, err = readKeys("keys-file", file); err != nil {
			return err
		}
		return a.on(changing, func(ctx context.Context, db *database, _ []string) error {
			here, ok := db.Caller.(*ops.Local)
			switch {
			case ok && keys == nil:
				return withHint(usagef("no keys are given to open it with"), "name their file: --keys-file")
			case !ok && keys != nil:
				return withHint(usagef("--keys-file is for a database that is opened here"), "the server has keys of its own: stint dashboard --help")
			case ok:
				here.Keys = keys
			}
			job, err := ops.OpenJob.Call(ctx, db, ops.JobName{ID: int64(id)})
			switch {
			case errors.Is(err, stint.ErrNoKey):
				return withHint(err, "it is sealed with another key: stint jobs show %d names it, as k", id)
			case err != nil:
				return err
			case a.json:
				return a.printJSON(job)
			}
			a.showOpened(job)
			return nil
		})(ctx, cmd, args)
	}))
	cmd.Flags().StringVar(&file, "keys-file", "", "the file with the keys")
	return cmd
}

// readKeys reads the file that a flag names; nil for none.
func readKeys(flag, file string) (seal.Keys, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, settingf(flag, "%w", err)
	}
	ring, err := seal.ReadRing(string(text))
	if err != nil {
		return nil, settingf(flag, "%s: %w", file, err)
	}
	return ring, nil
}

func (a *app) showOpened(job ops.OpenedJob) {
	fmt.Fprintf(a.out, "job %d of the kind %s\n", job.ID, words.Visible(job.Kind))
	a.showPart("arguments", job.Args)
	a.showPart("result", job.Result)
	for _, s := range job.Steps {
		a.showPart("step "+words.Visible(s.Name), s.Result)
	}
}

func (a *app) showPart(name string, value json.RawMessage) {
	if len(value) > 0 {
		fmt.Fprintf(a.out, "\n%s\n\n%s\n", name, indent(indented(value), "  | "))
	}
}
