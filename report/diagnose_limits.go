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
	limitIdle = warning("limit_idle", "jobs wait for it, the first for {oldest_seconds}, and none of it runs{next}",
		"see which engines ask for it and what its rule allows: stint limits show {name}; if more may start: stint limits set {name} 10")
	limitHeldByDead = warning("limit_held_by_dead", "{full} are in use: engine {instance} holds {held} of them, and sends no heartbeat; others wait for it",
		"it is buried after its time to live; at once: stint engines bury {token}")
)

// What stands still until a person decides.
var limitHalted = warning("limit_halted", "a job failed, and those after it stand still: {gates}",
	"have the failed job done first: stint jobs retry {job}; or go on without it: stint limits unblock {gate}")

const (
	fullShown = 20 // limits whose gates are looked at, and gates of each
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
		since := d.longest(l.Name, kinds, backlogs)
		switch {
		case l.Paused != nil:
			d.find(pausedLimit(d.urgent(limitPaused, since), l))
		case l.Asked == 0 || !bounded && l.Held > 0:
		case bounded && most == 0:
			d.find(stopped(d.urgent(limitStopped, since), l))
		case looked < fullShown:
			looked++
			gates, err := limiter.Gates(ctx, l.Name, fullShown)
			if err != nil {
				return err
			}
			if l.Held == 0 {
				d.idle(l, gates, since)
			} else {
				d.full(l, gates, running, since)
			}
		}
	}
	return nil
}

// urgent is a rule about what keeps jobs from beginning since somebody wants that: a warning once the first of them
// has waited for long, for it may be forgotten.
func (d *diagnosis) urgent(r Rule, since time.Time) Rule {
	if r.Severity == SeverityNote && !since.IsZero() && d.now.Sub(since) >= lateAfter {
		r.Severity = SeverityWarning
	}
	return r
}

// idle judges a limit that engines ask for, and of which nothing runs. Under a rate that is so between two starts, if
// the next one is near; and jobs that come again keep others waiting until they are due.
func (d *diagnosis) idle(l store.LimitInfo, gates []store.GateInfo, since time.Time) {
	age, next := d.now.Sub(since), time.Time{}
	asked := false
	for _, g := range gates {
		if g.Asked == 0 || g.GateOrder != (store.GateOrder{}) || g.Paused != nil {
			continue
		}
		if !asked || g.Next.Before(next) {
			next = g.Next
		}
		asked = true
	}
	if !asked || since.IsZero() || age < lateAfter || next.After(d.now) && next.Sub(d.now) < lateAfter {
		return
	}
	figures, text := map[string]any{"asked": l.Asked, "oldest": since.UTC(), "oldest_seconds": age.Seconds()}, ""
	if next.After(d.now) {
		figures["next"] = next.UTC()
		text = "; under its rate the next may start at " + next.UTC().Format(time.DateTime) + " UTC"
	}
	d.find(limitIdle.With("next", text, "name", l.Name).Find("limit "+l.Name, figures).At("limits", l.Name))
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
			Find("limit "+l.Name, map[string]any{"gates": names, "job": gates[0].Failed}).At("limits", l.Name))
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
		d.find(limitWithoutRule.With("first", names[0]).Find("limits "+words.Several(names), map[string]any{"limits": names}).At("limits"))
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

func stopped(rule Rule, l store.LimitInfo) Finding {
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
	return rule.With("origin", origin, "reset", reset, "name", l.Name).Find("limit "+l.Name, map[string]any{"asked": l.Asked}).At("limits", l.Name)
}

func pausedLimit(rule Rule, l store.LimitInfo) Finding {
	origin := ""
	if l.Paused.By != "" {
		origin = ", paused by " + l.Paused.By
	}
	if l.Paused.Why != "" {
		origin += " (" + l.Paused.Why + ")"
	}
	return rule.With("until", l.Paused.Until.UTC().Format(time.DateTime), "origin", origin, "name", l.Name).
		Find("limit "+l.Name, map[string]any{"asked": l.Asked, "until": l.Paused.Until.UTC()}).At("limits", l.Name)
}

// longest is since when a job waits whose kind names a limit. If there is none it is since when one waits that was
// given limits of its own when it was enqueued, which may be others; zero if there is none of these either.
func (d *diagnosis) longest(limit string, kinds []stint.KindInfo, backlogs []Backlog) time.Time {
	var named, own time.Time
	for _, b := range backlogs {
		i := slices.IndexFunc(kinds, func(k stint.KindInfo) bool { return k.Name == b.Kind })
		first := &own
		switch {
		case !b.Paused.IsZero():
			continue
		case i >= 0 && slices.Contains(limitsOf(kinds[i]), limit):
			first = &named
		case !b.Limited || i >= 0 && len(kinds[i].Limits) > 0:
			continue
		}
		if first.IsZero() || b.Oldest.Before(*first) {
			*first = b.Oldest
		}
	}
	if named.IsZero() {
		return own
	}
	return named
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
					Find("limit "+l.Name, map[string]any{"gate": g.Gate, "held": h.Held, "token": fmt.Sprint(int64(h.Engine))}).At("limits", l.Name))
			}
		}
		rule, _ := stint.ParseLimitRule(g.Rule)
		if age := d.now.Sub(since); !said && !rule.InOrder && !since.IsZero() && age >= lateAfter {
			said = true // once for a limit, of the key that most is asked for
			d.find(limitFull.With("full", full, "holders", words.Several(holders), "name", l.Name, "double", doubled(l.Rule)).
				Find("limit "+l.Name, map[string]any{"gate": g.Gate, "held": g.Held, "asked": g.Asked, "oldest": since.UTC(), "oldest_seconds": age.Seconds()}).At("limits", l.Name))
		}
	}
}

// doubled is a rule under which twice as many run at once.
func doubled(rule string) string {
	r, _ := stint.ParseLimitRule(rule)
	r.AtOnce *= 2
	return r.String()
}
