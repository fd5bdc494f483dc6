package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// holdersShown is how many of the engines that hold a gate a sentence names.
const holdersShown = 3

// GatesOf finds the gates that a job waits for while it is available, as far as they are
// in use.
func GatesOf(ctx context.Context, st Store, j *stint.JobInfo) (gates []store.GateInfo, err error) {
	if j.State != stint.Available {
		return nil, nil
	}
	for _, limit := range append(slices.Clip(j.Limits), store.QueueGate(j.Queue)) {
		_, gate := stint.LimitCost(limit)
		found, err := st.Gates(ctx, gate, 100) // with those of keys that begin so
		if err != nil {
			return nil, err
		}
		for _, g := range found {
			if g.Gate == gate {
				if g.Again == j.ID {
					g.Again = 0 // it does not wait for itself
				}
				if err := again(ctx, st, &g); err != nil {
					return nil, err
				}
				gates = append(gates, g)
			}
		}
	}
	return gates, nil
}

// GateInWords says what keeps jobs from starting under a gate: that it is full, and who
// holds it, or that engines wait for the next start under its rate. It is empty for a gate
// that lets jobs start.
func GateInWords(g store.GateInfo, now time.Time) string {
	r, err := stint.ParseLimitRule(g.Rule)
	name := "the limit " + words.Visible(g.Gate)
	switch {
	case err != nil:
		return ""
	case g.Halted() || g.Again != 0:
		return OrderInWords(g, now)
	case g.Paused != nil && (!g.Paused.Trial || now.Before(g.Paused.Until)):
		return name + ", which is " + PauseInWords(*g.Paused, now)
	case g.Paused != nil && g.Held > 0:
		return name + ", of which one job is tried alone, by " + HoldersInWords(g)
	case r.AtOnce < 0:
		return name + ", which lets no job start"
	case g.Full():
		return fmt.Sprintf("%s: %s of %d in use, by %s", name, words.Count(g.Held), r.AtOnce, HoldersInWords(g))
	case r.Starts > 0:
		said := fmt.Sprintf("%s, which allows %s in %s", name, words.Counted(r.Starts, "start"), retry.FormatDuration(r.Per))
		if g.Next.Sub(now) > time.Second {
			said += ": the next one is due " + words.Ago(g.Next, now)
		}
		return said
	}
	return ""
}

// PauseInWords says how long a pause lasts, who asked for it and why.
func PauseInWords(p store.Paused, now time.Time) string {
	said := "paused for " + words.Rough(p.Until.Sub(now))
	if !p.Until.After(now) {
		said = "to try one job alone, after a pause"
	}
	if p.By != "" {
		said += " by " + words.Visible(p.By)
	}
	if p.Why != "" {
		said += ": " + words.Visible(p.Why)
	}
	return said
}

// again finds out when the job is due that a gate waits for.
func again(ctx context.Context, st Store, g *store.GateInfo) error {
	if g.Again == 0 {
		return nil
	}
	j, err := st.Job(ctx, g.Again)
	switch {
	case errors.Is(err, stint.ErrNotFound):
		return nil
	case err == nil && (j.State == stint.Retrying || j.State == stint.Scheduled || j.State == stint.Blocked):
		g.AgainDue = j.Due
	}
	return err
}

// OrderInWords says what holds up the jobs of a gate that keeps an order. It is empty if nothing
// does.
func OrderInWords(g store.GateInfo, now time.Time) string {
	name := words.Visible(g.Gate)
	switch {
	case g.Halted():
		return fmt.Sprintf("%s, which is halted since job %d failed: retry that job, or unblock the limit", name, g.Failed)
	case g.Again == 0:
		return ""
	case g.AgainDue.IsZero():
		return fmt.Sprintf("job %d of %s, which goes first", g.Again, name)
	}
	return fmt.Sprintf("job %d of %s, which is tried again %s", g.Again, name, words.Ago(g.AgainDue, now))
}

// HoldersInWords names the engines that hold permits of a gate.
func HoldersInWords(g store.GateInfo) string {
	var names []string
	for _, h := range g.Holds {
		if h.Held > 0 {
			names = append(names, fmt.Sprintf("%s (%s)", words.Visible(h.Instance), words.Count(h.Held)))
		}
	}
	if more := len(names) - holdersShown; more > 1 {
		names = append(names[:holdersShown], words.Counted(more, "other engine"))
	}
	return words.Listed(names)
}

// WaitsForGates says for which of its gates a job waits. It is empty if all of them let it
// start.
func WaitsForGates(gates []store.GateInfo, now time.Time) string {
	var all []string
	for _, g := range gates {
		if said := GateInWords(g, now); said != "" {
			all = append(all, said)
		}
	}
	if all == nil {
		return ""
	}
	return "waits for " + strings.Join(all, "; and for ")
}
