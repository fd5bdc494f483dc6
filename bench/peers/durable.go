package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint/bench/contest"
)

// durable are the bouts of durable workflows: their steps, their children, and how soon a single one goes on.
func durable(s *server, o options) []contest.Bout {
	steps := contest.Bout{
		Name: "steps",
		About: fmt.Sprintf("%s workflows of %d steps that do nothing, %d workflows at once in one process; from the first enqueue to the last outcome",
			contest.Number(float64(o.workflows)), stepsEach, atOnce),
		Figures: workFigures("step"),
	}
	children := contest.Bout{
		Name:    "children",
		About:   fmt.Sprintf("a workflow starts %s children that do nothing, and gets the result of each", contest.Number(float64(o.children))),
		Figures: workFigures("child"),
	}
	hop := contest.Bout{
		Name: "hop",
		About: fmt.Sprintf("single workflows, %v per second for %v: from the enqueue to the first step, and from a signal to what awaits it",
			o.rate, o.span),
		Figures: []contest.Figure{
			{Name: "start p50 ms", LessIsMore: true}, {Name: "start p99 ms", LessIsMore: true},
			{Name: "signal p50 ms", LessIsMore: true}, {Name: "signal p99 ms", LessIsMore: true},
		},
	}
	for _, c := range []workflowContestant{stintFlows, dbosTuned(200 * time.Millisecond), dbosDefaults, dbosDirect} {
		steps.Entrants = append(steps.Entrants, c.entrant(func(ctx context.Context) (contest.Figures, error) { return workTurn(ctx, s, c, o.workflows, 0) }))
	}
	for _, c := range []workflowContestant{stintFlows, stintCalls, dbosTuned(50 * time.Millisecond), dbosDefaults, dbosDirect} {
		n := o.children
		if c.few > 0 && c.few < n {
			n = c.few
			c.settings += "; " + contest.Number(float64(n)) + " children"
		}
		children.Entrants = append(children.Entrants, c.entrant(func(ctx context.Context) (contest.Figures, error) { return workTurn(ctx, s, c, 1, n) }))
	}
	for _, c := range []workflowContestant{stintFlows, dbosTuned(10 * time.Millisecond), dbosDefaults, dbosDirect} {
		hop.Entrants = append(hop.Entrants, c.entrant(func(ctx context.Context) (contest.Figures, error) { return hopTurn(ctx, s, c, o, 0) }))
	}
	if o.suspended > 0 {
		c := stintFlows
		c.name = fmt.Sprintf("stint, %s wait", contest.Number(float64(o.suspended)))
		hop.Entrants = append(hop.Entrants, c.entrant(func(ctx context.Context) (contest.Figures, error) { return hopTurn(ctx, s, c, o, o.suspended) }))
	}
	return []contest.Bout{steps, children, hop}
}

func (c workflowContestant) entrant(turn func(context.Context) (contest.Figures, error)) contest.Entrant {
	return contest.Entrant{Name: c.name, Settings: c.settings, Turn: turn}
}

// plural are the units of what is counted.
var plural = map[string]string{"step": "steps", "child": "children"}

func workFigures(unit string) []contest.Figure {
	per := func(what, description string) contest.Figure {
		return contest.Figure{Name: what + "/" + unit, LessIsMore: true, Description: description}
	}
	return []contest.Figure{
		{Name: plural[unit] + "/s"},
		per("CPU µs", "of the process that works"),
		per("server CPU µs", "of the server's processes"),
		per("WAL bytes", ""),
		per("rows", "more than before, in all tables"),
		per("bytes", "that tables and indexes have grown by, before any vacuum"),
	}
}

// warmWorkflows go ahead unmeasured: they find connections open and statements prepared, and then statistics are
// gathered, as in a database that is older than a minute.
const warmWorkflows = 20

// workTurn performs workflows, of steps if they have no children, and measures that. It fails unless each part was done
// once and the history has all of it.
func workTurn(ctx context.Context, s *server, c workflowContestant, n, children int) (f contest.Figures, err error) {
	warm, shape, parts, unit, units := warmWorkflows, shapeSteps, stepsEach, "step", n*stepsEach
	if children > 0 {
		warm, shape, parts, unit, units = 1, shapeChildren, children+1, "child", n*children
	}
	err = c.on(ctx, s, children, func(w workflows, url string) (err error) {
		m, err := newMeter(ctx, url, c.history)
		if err != nil {
			return err
		}
		defer m.close()
		first, rest := newParts(warm, parts), newParts(n, parts)
		stop, err := w.Work(ctx, func(workflow, part int) {
			if workflow < warm {
				first.did(workflow, part)
			} else {
				rest.did(workflow-warm, part)
			}
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
		if err := w.Start(ctx, shape, 0, warm); err != nil {
			return err
		}
		if err := m.until(ctx, first.done, warm*(1+children)); err != nil {
			return err
		}
		if err := m.start(ctx); err != nil {
			return err
		}
		if err := w.Start(ctx, shape, warm, n); err != nil {
			return err
		}
		if err := m.until(ctx, rest.done, (warm+n)*(1+children)); err != nil {
			return err
		}
		if f, err = m.figures(ctx, unit, units); err != nil {
			return err
		}
		if want := (warm + n) * stepsEach; children == 0 && m.steps != want {
			return fmt.Errorf("of %d steps the history has %d", want, m.steps)
		}
		return errors.Join(first.once(), rest.once())
	})
	return f, err
}
