package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

// What is wrong with limits.
var (
	limitWithoutRule = note("limit_without_rule",
		"jobs name them, and what they allow was neither declared nor set: they bound nothing",
		"declare a rule (Mux.Limit), or: stint limits set {first} 10")
	limitStopped = note("limit_stopped", "its rule is 0{origin}: no job of it starts, and engines wait for it",
		"when its jobs may run: stint limits set {name} 10{reset}")
	limitPaused = note("limit_paused", "no job of it starts until {until} UTC{origin}",
		"if its jobs may start: stint limits resume {name}")
	limitFull = note("limit_full", "{full} are in use by {holders}, and the first of the jobs that wait has done so for {oldest_seconds}",
		"that is what a limit is for; if more may run at once: stint limits set {name} {double}")
	limitHeldByDead = warning("limit_held_by_dead", "{full} are in use: engine {instance} holds {held} of them, and sends no heartbeat; others wait for it",
		"it is buried after its time to live; at once: stint engines bury {token}")
)

// What stands still until a person decides.
var limitHalted = warning("limit_halted", "a job failed, and those after it stand still: {gates}",
	"have the failed job done first: stint jobs retry {job}; or go on without it: stint limits unblock {gate}")

const (
	fullForLong = 10 * time.Minute // that a job waits under a limit that is full
	fullShown   = 20               // limits whose gates are looked at, and gates of each
)

// limits looks for those that bound nothing, and those that keep jobs from beginning.
func (d *diagnosis) limits(ctx context.Context, running crew, backlogs []Backlog) error {
	limiter, ok := d.store.(store.Limiter)
	if !ok {
		return nil
	}
	all, err := limiter.Limits(ctx)
	if err != nil {
		return err
	}
	kinds, err := d.store.Kinds(ctx)
	if err != nil {
		return err
	}
	d.boundless(all, kinds)
	looked := 0
	for _, l := range all {
		if err := d.halted(ctx, limiter, l); err != nil {
			return err
		}
		most, bounded := store.AtOnce(l.Rule)
		switch {
		case l.Paused != nil:
			d.find(pausedLimit(l))
		case l.Asked == 0 || !bounded:
		case most == 0:
			d.find(stopped(l))
		case looked < fullShown:
			looked++
			gates, err := limiter.Gates(ctx, l.Name, fullShown)
			if err != nil {
				return err
			}
			d.full(l, gates, running, d.longest(l.Name, kinds, backlogs))
		}
	}
	return nil
}

// halted looks for gates that stand still since a job of their order failed.
func (d *diagnosis) halted(ctx context.Context, limiter store.Limiter, l store.LimitInfo) error {
	if r, err := stint.ParseLimitRule(l.Rule); err != nil || !r.Halt {
		return nil
	}
	gates, err := limiter.Gates(ctx, l.Name, fullShown)
	if err != nil {
		return err
	}
	var names []string
	gates = slices.DeleteFunc(gates, func(g store.GateInfo) bool { return !g.Halted() })
	for _, g := range gates {
		names = append(names, g.Gate)
	}
	if len(gates) > 0 {
		d.find(limitHalted.With("gates", words.Several(names), "job", fmt.Sprint(gates[0].Failed), "gate", gates[0].Gate).
			Find("limit "+l.Name, map[string]any{"gates": names, "job": gates[0].Failed}))
	}
	return nil
}

// boundless looks for limits without a rule that jobs use, or that kinds name.
func (d *diagnosis) boundless(all []store.LimitInfo, kinds []stint.KindInfo) {
	var names []string
	for _, l := range all {
		if l.Declared == "" && l.Set == "" && l.Rule == (stint.LimitRule{}).String() && l.Gates > 0 && l.Name == store.LimitOf(l.Name) {
			names = append(names, l.Name)
		}
	}
	for _, k := range kinds {
		for _, name := range limitsOf(k) {
			if !slices.ContainsFunc(all, func(l store.LimitInfo) bool { return l.Name == name }) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 0 {
		d.find(limitWithoutRule.With("first", names[0]).Find("limits "+words.Several(names), map[string]any{"limits": names}))
	}
}

// limitsOf are the names of the limits that a kind names, without their keys.
func limitsOf(k stint.KindInfo) (names []string) {
	for _, l := range k.Limits {
		_, l = stint.LimitCost(l)
		name, _, _ := strings.Cut(l, " by ")
		names = append(names, store.LimitOf(name))
	}
	return names
}

func stopped(l store.LimitInfo) Finding {
	origin, reset := "", ""
	if l.Set != "" {
		origin = ", set " + l.SetAt.UTC().Format(time.DateTime) + " UTC"
		if l.By != "" {
			origin += " by " + l.By
		}
		if l.Why != "" {
			origin += " (" + l.Why + ")"
		}
		if l.Declared != "" {
			reset = ", or to have " + l.Declared + " again, which programs declare: stint limits reset " + l.Name
		}
	}
	return limitStopped.With("origin", origin, "reset", reset, "name", l.Name).Find("limit "+l.Name, map[string]any{"asked": l.Asked})
}

func pausedLimit(l store.LimitInfo) Finding {
	origin := ""
	if l.Paused.By != "" {
		origin = ", paused by " + l.Paused.By
	}
	if l.Paused.Why != "" {
		origin += " (" + l.Paused.Why + ")"
	}
	return limitPaused.With("until", l.Paused.Until.UTC().Format(time.DateTime), "origin", origin, "name", l.Name).
		Find("limit "+l.Name, map[string]any{"asked": l.Asked, "until": l.Paused.Until.UTC()})
}

// longest is since when a job waits whose kind names a limit; zero if that is not known.
func (d *diagnosis) longest(limit string, kinds []stint.KindInfo, backlogs []Backlog) (since time.Time) {
	for _, k := range kinds {
		if !slices.Contains(limitsOf(k), limit) {
			continue
		}
		for _, b := range backlogs {
			if b.Kind == k.Name && b.Paused.IsZero() && (since.IsZero() || b.Oldest.Before(since)) {
				since = b.Oldest
			}
		}
	}
	return since
}

// full judges the gates of a limit that engines wait for. Since is when the first job became ready of
// those that may wait for it.
func (d *diagnosis) full(l store.LimitInfo, gates []store.GateInfo, running crew, since time.Time) {
	said := false
	for _, g := range gates {
		if g.Asked == 0 || !g.Full() {
			continue
		}
		most, _ := store.AtOnce(g.Rule)
		full := fmt.Sprintf("%d of %d", g.Held, most)
		if g.Key != "" {
			full += " for the key " + g.Key
		}
		var holders []string
		for _, h := range g.Holds {
			if h.Held == 0 {
				continue
			}
			holders = append(holders, fmt.Sprintf("%s (%d)", h.Instance, h.Held))
			if !slices.ContainsFunc(running, func(e store.EngineInfo) bool { return e.Token == h.Engine }) {
				d.find(limitHeldByDead.With("instance", h.Instance, "full", full, "token", fmt.Sprint(int64(h.Engine))).
					Find("limit "+l.Name, map[string]any{"gate": g.Gate, "held": h.Held, "token": fmt.Sprint(int64(h.Engine))}))
			}
		}
		rule, _ := stint.ParseLimitRule(g.Rule)
		if age := d.now.Sub(since); !said && !rule.InOrder && !since.IsZero() && age >= fullForLong {
			said = true // once for a limit, of the key that most is asked for
			d.find(limitFull.With("full", full, "holders", words.Several(holders), "name", l.Name, "double", doubled(l.Rule)).
				Find("limit "+l.Name, map[string]any{"gate": g.Gate, "held": g.Held, "asked": g.Asked, "oldest": since.UTC(), "oldest_seconds": age.Seconds()}))
		}
	}
}

// doubled is a rule under which twice as many run at once.
func doubled(rule string) string {
	r, _ := stint.ParseLimitRule(rule)
	r.AtOnce *= 2
	return r.String()
}
