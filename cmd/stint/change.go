package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
)

// endChangeTime bounds how long a command waits until what came of it is written
// down.
const endChangeTime = 5 * time.Second

// writeDown writes down that a command is about to change something, and returns
// what writes down what came of it.
func (a *app) writeDown(ctx context.Context, db *database) (end func(error), err error) {
	if db.roles == nil {
		return func(error) {}, nil // the server does it
	}
	n, err := db.roles.BeginChange(ctx, changeOf(a.cmd, a.args))
	if err != nil {
		return nil, fmt.Errorf("nothing was changed: %w", err)
	}
	return func(came error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endChangeTime)
		defer cancel()
		problem := ""
		if came != nil {
			problem = came.Error()
		}
		if err := db.roles.EndChange(ctx, n, problem); err != nil {
			a.note("stint: %v", err)
		}
	}, nil
}

// unsaid are flags that are said elsewhere, or that belong to the job.
var unsaid = []string{"by", "json", "metadata"}

// changeOf is what a command line says of the change that it makes.
func changeOf(cmd *cobra.Command, args []string) stint.NewChange {
	_, name, _ := strings.Cut(cmd.CommandPath(), " ")
	c := stint.NewChange{By: whoami(), Way: stint.WayCommand, Operation: name}
	if by := cmd.Flags().Lookup("by"); by != nil {
		c.By = by.Value.String()
	}
	said := map[string]any{}
	switch {
	case len(args) == 1:
		c.Subject = args[0]
	case len(args) > 1:
		said["names"] = args
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if cmd.LocalFlags().Lookup(f.Name) != nil && !slices.Contains(unsaid, f.Name) {
			said[f.Name] = f.Value.String()
		}
	})
	if len(said) == 0 {
		return c
	}
	details, err := json.Marshal(said)
	if err != nil || stint.CheckJSON("details", details, stint.MaxDetails) != nil {
		details = json.RawMessage(fmt.Sprintf(`{"bytes_left_out":%d}`, len(details)))
	}
	c.Details = details
	return c
}

// hold keeps a database open for what comes of the change that a command makes.
func (a *app) hold(ctx context.Context, db *database) error {
	end, err := a.writeDown(ctx, db)
	if err != nil {
		db.Close()
		return err
	}
	release := db.Close
	db.Close = func() {}
	a.ended = func(came error) {
		end(came)
		release()
	}
	return nil
}
