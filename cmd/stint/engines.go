package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/internal/words"
)

func (a *app) enginesCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:     "engines",
		Aliases: []string{"engine"},
		Short:   "List and show engines, drain and bury them",
	},
		a.enginesListCommand(),
		a.enginesShowCommand(),
		a.enginesMetricsCommand(),
		a.enginesDrainCommand(),
		a.enginesBuryCommand(),
	)
}

func (a *app) enginesListCommand() *cobra.Command {
	var now time.Time
	find := func(db *database, ctx context.Context) ([]stint.EngineInfo, error) {
		engines, err := db.Engines(ctx)
		if err == nil {
			now, err = db.now(ctx)
		}
		return engines, err
	}
	return lists(a, &cobra.Command{
		Short: "List the engines of the roster, the oldest first",
		Long: `List shows the engines that have joined and not left, dead ones too until they are
buried. What one holds is shown by stint engines show.`,
	}, find, func(engines []stint.EngineInfo) { a.listEngines(engines, now) })
}

func (a *app) listEngines(engines []stint.EngineInfo, now time.Time) {
	if len(engines) == 0 {
		a.note("no engines")
		return
	}
	t := newTable(a.out, "token", "instance", "host", "pid", "slots", "running", "queues", "joined", "last beat", "")
	for _, e := range engines {
		queues := strings.Join(e.Queues, ",")
		if queues == "" {
			queues = "*"
		}
		t.AppendRow([]any{e.Token, words.Visible(e.Instance), words.Visible(e.Host), e.PID, e.Slots, len(e.Running), words.Visible(queues),
			words.Ago(e.Joined, now), words.Ago(e.Beat, now), special(e, now)})
	}
	t.Render()
}

// special says what is special about an engine; nothing is when it works.
func special(e stint.EngineInfo, now time.Time) string {
	switch c := view.ConditionOf(e, now); c {
	case view.Working:
		return ""
	case view.Gone:
		return "dead: its process is gone"
	case view.Stuck:
		return "stuck: its process lives and does not beat"
	case view.Silent:
		return "dead: it does not beat"
	default:
		return string(c)
	}
}

const enginesDrainLong = `Drain asks engines to take no more jobs and to leave when those that run have
ended, however long that takes. They learn of it with their next beat.`

func (a *app) enginesDrainCommand() *cobra.Command {
	return a.does(&cobra.Command{
		Use:   "drain TOKEN|INSTANCE...",
		Short: "Have engines end their jobs and leave",
		Long:  enginesDrainLong,
		Args:  arguments(1, "TOKEN|INSTANCE..."),
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		return a.eachEngine(ctx, changing, args, func(db *database, e stint.EngineInfo) error {
			if err := db.Drain(ctx, e.Token); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "engine %s (%d) was asked to leave\n", words.Visible(e.Instance), e.Token)
			return nil
		})
	})
}

const enginesBuryLong = `Bury takes engines out of the roster now, and has what they held run again
elsewhere. Engines that stop beating are buried without it, after their time to
live. One that lives after all cancels its handlers, records nothing more, and
joins anew. What of it shall not run again is cancelled first: stint engines show
lists the jobs, and stint jobs cancel ends them.`

func (a *app) enginesBuryCommand() *cobra.Command {
	return a.does(&cobra.Command{
		Use:   "bury TOKEN|INSTANCE...",
		Short: "Free what engines hold, whether they live or not",
		Long:  enginesBuryLong,
		Args:  arguments(1, "TOKEN|INSTANCE..."),
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		return a.eachEngine(ctx, changing, args, func(db *database, e stint.EngineInfo) error {
			n, err := db.Bury(ctx, e.Token, "")
			if errors.Is(err, stint.ErrBurialBlocked) {
				return withHint(err, "a write of the engine is under way; try again")
			} else if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "engine %s (%d) is buried; %s that it held went back to the front of the queue\n", words.Visible(e.Instance), e.Token, words.Counted(n, "job"))
			return nil
		})
	})
}

// eachEngine does something to each engine that is named by token or by
// instance, once it is known that all of them are there.
func (a *app) eachEngine(ctx context.Context, how access, names []string, do func(db *database, e stint.EngineInfo) error) error {
	db, err := a.open(ctx, how)
	if err != nil {
		return err
	}
	defer db.Close()
	roster, err := db.Engines(ctx)
	if err != nil {
		return err
	}
	var chosen []stint.EngineInfo
	for _, name := range names {
		found := false
		for _, e := range roster {
			if e.Instance == name || strconv.FormatInt(int64(e.Token), 10) == name {
				chosen, found = append(chosen, e), true
			}
		}
		if !found {
			return withHint(fmt.Errorf("there is no engine %q in the roster", name), "stint engines list shows who is there")
		}
	}
	for _, e := range chosen {
		if err := do(db, e); err != nil {
			return err
		}
	}
	return nil
}
