package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// LimitName is where a limit's name stands.
type LimitName struct {
	Limit string `path:"limit" maxLength:"400"`
}

func (l LimitName) check() error { return inError("path", stint.CheckGate(l.Limit)) }

// ListLimits lists the limits.
var ListLimits = lists(Decl{
	Name: "limits list", Method: http.MethodGet, Path: "/limits", Summary: "List the limits with what they allow and what engines hold",
	Doc: "Those that have a rule, and those that jobs use without one. Held are the permits that engines have, of all keys together, and asked those that they wait for.",
}, Store.Limits)

// LimitMost says of which limit how many keys to list.
type LimitMost struct {
	LimitName
	Most int `query:"most" minimum:"1" maximum:"10000" default:"20" doc:"How many keys at most"`
}

// ShownLimit is a limit with those of its gates that engines want most.
type ShownLimit struct {
	store.LimitInfo
	InUse []store.GateInfo `json:"in_use" doc:"The gates of which engines hold or ask for permits, or whose next start under a rate has to wait: the limit itself, or its keys, those that most is asked for first"`
}

// ErrNoLimit says that nothing is known of a limit.
var ErrNoLimit = errors.New("no program declares the limit, nobody set it, and no job runs under it")

// ShowLimit shows one, or is [ErrNoLimit].
var ShowLimit = declare(&Op[LimitMost, ShownLimit]{
	Decl: Decl{Name: "limits show", Method: http.MethodGet, Path: "/limits/{limit}", Summary: "Show a limit with the engines that hold it, and of a limit with keys those that most is asked for"},
	do: func(ctx context.Context, l *Local, in *LimitMost) (shown ShownLimit, err error) {
		info, found, err := l.limit(ctx, in.Limit)
		if err == nil && !found {
			err = fmt.Errorf("limit %q: %w", in.Limit, ErrNoLimit)
		}
		if err == nil {
			shown.LimitInfo = info
			shown.InUse, err = l.gates(ctx, *in)
		}
		if len(shown.InUse) == 1 && shown.InUse[0].Gate == shown.Name {
			g := shown.InUse[0]
			shown.Gates, shown.Held, shown.Asked, shown.Engines = 1, g.Held, g.Asked, len(g.Holds)
		}
		return shown, err
	},
})

// ListKeys lists the keys of a limit.
var ListKeys = declare(&Op[LimitMost, List[store.GateInfo]]{
	Decl: Decl{
		Name: "limits keys", Method: http.MethodGet, Path: "/limits/{limit}/keys", Summary: "List the keys of a limit that are in use",
		Doc: "Those of which engines hold or ask for permits, those that most is asked for first. A limit without keys is one gate without a key.",
	},
	do: func(ctx context.Context, l *Local, in *LimitMost) (List[store.GateInfo], error) {
		gates, err := listed(l.gates(ctx, *in))
		if err == nil && len(gates.Items) == 0 {
			_, found, err := l.limit(ctx, in.Limit)
			if err != nil || !found {
				return gates, cmp.Or(err, fmt.Errorf("limit %q: %w", in.Limit, ErrNoLimit))
			}
		}
		return gates, err
	},
})

// limit finds what is known of one.
func (l *Local) limit(ctx context.Context, name string) (info store.LimitInfo, found bool, err error) {
	all, err := l.Store.Limits(ctx)
	info, found = FindLimit(all, name)
	return info, found, err
}

// FindLimit finds a limit, or a key of one, among all, and reports whether it is there. A key that has
// neither a rule nor a pause of its own has the rule of its limit.
func FindLimit(all []store.LimitInfo, name string) (info store.LimitInfo, found bool) {
	info = store.LimitInfo{Name: name, Rule: stint.LimitRule{}.String()}
	for _, one := range all {
		switch one.Name {
		case name:
			return one, true
		case store.LimitOf(name):
			info.Rule, found = one.Rule, true
		}
	}
	return info, found
}

func (l *Local) gates(ctx context.Context, in LimitMost) ([]store.GateInfo, error) {
	return list(l.Store.Gates(ctx, in.Limit, cmp.Or(in.Most, 20)))
}

// LimitRule is a rule, and why it is set.
type LimitRule struct {
	Rule string `json:"rule" minLength:"1" maxLength:"100" doc:"How many jobs run at once, how many start in a time, or both: 10, 100/1m, 10,100/1m,burst=5; 1,in-order to keep an order; 0 for none, any for any number; with trip=5/30s it pauses after failures, and keys with weight=3 have a larger share"`
	Why
}

// NewLimitRule is a limit with the rule that it is to have.
type NewLimitRule struct {
	LimitName
	Body LimitRule
}

func (n NewLimitRule) check() error {
	if err := n.LimitName.check(); err != nil {
		return err
	}
	_, err := n.rule()
	return inError("body", err)
}

// rule reads the rule. Errors are about the field that has it.
func (n NewLimitRule) rule() (stint.LimitRule, error) {
	rule, err := stint.ParseLimitRule(n.Body.Rule)
	if invalid, ok := errors.AsType[*stint.InvalidError](err); ok {
		err = valid.Invalid("rule", "%s", invalid.Problem)
	}
	return rule, err
}

// LimitChanged says what came of setting a limit, or of taking that back.
type LimitChanged struct {
	Changed  bool   `json:"changed" doc:"Whether another rule counts than before"`
	Rule     string `json:"rule" doc:"The rule that counts now"`
	Was      string `json:"was" doc:"The rule that counted before"`
	Declared string `json:"declared,omitempty" doc:"The rule that programs declare; absent when none does"`
}

// SetLimit sets what a limit allows, over what programs declare.
var SetLimit = declare(&Op[NewLimitRule, LimitChanged]{
	Decl: Decl{
		Name: "limits set", Method: http.MethodPut, Path: "/limits/{limit}", Needs: guard.Operator, Summary: "Set what a limit allows, on all engines and at once",
		Doc: "It counts in place of what programs declare until it is reset. Jobs that run go on, also if they are more than the limit allows now. A limit that no program declares is set as well: `declared` is absent.",
	},
	do: func(ctx context.Context, l *Local, in *NewLimitRule) (LimitChanged, error) {
		rule, err := in.rule()
		if err != nil {
			return LimitChanged{}, err
		}
		return l.changeLimit(ctx, in.Limit, func() error {
			return l.Store.SetLimit(ctx, in.Limit, rule, l.who(ctx).Name, in.Body.Why.Why)
		})
	},
	said: func(in *NewLimitRule, c LimitChanged) string {
		said := fmt.Sprintf("limit %s is set to %s", words.Visible(in.Limit), c.Rule)
		if c.Changed {
			said += ", and was " + c.Was
		}
		switch c.Declared {
		case "":
			said += "; no program declares it"
		case c.Rule, c.Was:
		default:
			said += "; programs declare " + c.Declared
		}
		return said
	},
})

// ResetLimit takes back what people set.
var ResetLimit = declare(&Op[LimitName, LimitChanged]{
	Decl: Decl{
		Name: "limits reset", Method: http.MethodDelete, Path: "/limits/{limit}", Needs: guard.Operator, Summary: "Take back what was set, so that what programs declare counts again",
		Doc: "A limit that no program declares allows all then; for a key the rule of its limit counts. Of a limit that was not set nothing is changed.", Confirm: true,
	},
	do: func(ctx context.Context, l *Local, in *LimitName) (LimitChanged, error) {
		set := false
		c, err := l.changeLimit(ctx, in.Limit, func() (err error) {
			set, err = l.Store.ResetLimit(ctx, in.Limit)
			return err
		})
		c.Changed = set
		return c, err
	},
	said: func(in *LimitName, c LimitChanged) string {
		name := words.Visible(in.Limit)
		switch {
		case !c.Changed:
			return fmt.Sprintf("limit %s was not set; its rule is %s", name, c.Rule)
		case c.Declared == "" && store.LimitOf(in.Limit) != in.Limit:
			return fmt.Sprintf("limit %s was reset from %s; the rule of %s counts for it again", name, c.Was, words.Visible(store.LimitOf(in.Limit)))
		case c.Declared == "":
			return fmt.Sprintf("limit %s was reset from %s; it allows all now, since no program declares it", name, c.Was)
		}
		return fmt.Sprintf("limit %s was reset from %s to %s, which programs declare", name, c.Was, c.Rule)
	},
})

// LimitPause is a pause that is asked for.
type LimitPause struct {
	For string `json:"for" minLength:"1" maxLength:"100" doc:"For how long, up to a day: 30s, 1h30m"`
	Why
}

// PausedLimit is a limit, or a key of one, with the pause that it is to have.
type PausedLimit struct {
	LimitName
	Body LimitPause
}

func (p PausedLimit) check() error {
	if err := p.LimitName.check(); err != nil {
		return err
	}
	_, err := p.pause()
	return inError("body", err)
}

func (p PausedLimit) pause() (store.Pause, error) {
	d, err := retry.ParseDuration(p.Body.For)
	if err != nil {
		return store.Pause{}, valid.Invalid("for", "%v", err)
	}
	pause := store.Pause{For: d, Why: p.Body.Why.Why}
	return pause, store.CheckPause(p.Limit, pause)
}

// LimitIsPaused says what came of pausing a limit.
type LimitIsPaused struct {
	Changed bool         `json:"changed" doc:"False if a pause that lasts longer was there"`
	Paused  store.Paused `json:"paused" doc:"The pause that counts now"`
}

// PauseLimit lets no job of a limit start for a time.
var PauseLimit = declare(&Op[PausedLimit, LimitIsPaused]{
	Decl: Decl{
		Name: "limits pause", Method: http.MethodPost, Path: "/limits/{limit}/pause", Needs: guard.Operator, Summary: "Let no job of a limit, or of one of its keys, start for a time",
		Doc: "Jobs that run go on. A pause of a limit is one of all its keys. A pause that lasts longer already stays: `changed` is false.",
	},
	do: func(ctx context.Context, l *Local, in *PausedLimit) (p LimitIsPaused, err error) {
		pause, err := in.pause()
		if err != nil {
			return p, err
		}
		before, _, err := l.limit(ctx, in.Limit)
		if err != nil {
			return p, err
		}
		pause.By = l.who(ctx).Name
		if err = l.Store.PauseLimit(ctx, in.Limit, pause); err != nil {
			return p, err
		}
		after, _, err := l.limit(ctx, in.Limit)
		if after.Paused != nil {
			p.Paused = *after.Paused
			p.Changed = before.Paused == nil || !before.Paused.Until.Equal(p.Paused.Until)
		}
		return p, err
	},
	said: func(in *PausedLimit, p LimitIsPaused) string {
		name := "limit " + words.Visible(in.Limit)
		if !p.Changed {
			return name + " was paused for longer already"
		}
		return name + " is paused for " + in.Body.For
	},
})

// ResumeLimit ends a pause.
var ResumeLimit = declare(&Op[LimitName, Changed]{
	Decl: Decl{
		Name: "limits resume", Method: http.MethodPost, Path: "/limits/{limit}/resume", Needs: guard.Operator, Summary: "Let the jobs of a paused limit start again",
		Doc: "Also if one job was to be tried first. Of a limit that is not paused nothing is changed.",
	},
	do: func(ctx context.Context, l *Local, in *LimitName) (c Changed, err error) {
		c.Changed, err = l.Store.ResumeLimit(ctx, in.Limit)
		return c, err
	},
	said: func(in *LimitName, c Changed) string {
		return "limit " + words.Visible(in.Limit) + " " + c.either("is resumed", "was not paused")
	},
})

// Unblocked says what came of unblocking a gate.
type Unblocked struct {
	Skipped []stint.ID `json:"skipped" doc:"The failed jobs that the others waited for; empty when nothing halted them"`
}

// UnblockLimit lets the jobs of a gate go on that stand still since one failed.
var UnblockLimit = declare(&Op[LimitName, Unblocked]{
	Decl: Decl{
		Name: "limits unblock", Method: http.MethodPost, Path: "/limits/{limit}/unblock", Needs: guard.Operator, Summary: "Let jobs go on that stand still since one of their order failed",
		Doc: "The failed job is skipped. To have it done first, retry it instead.",
	},
	do: func(ctx context.Context, l *Local, in *LimitName) (Unblocked, error) {
		skipped, err := list(l.Store.Unblock(ctx, in.Limit))
		return Unblocked{skipped}, err
	},
	said: func(in *LimitName, u Unblocked) string {
		name := words.Visible(in.Limit)
		if len(u.Skipped) == 0 {
			return fmt.Sprintf("%s was not halted", name)
		}
		return fmt.Sprintf("%s goes on without %s", name, jobsInWords(u.Skipped))
	},
})

func jobsInWords(ids []stint.ID) string {
	var all []string
	for _, id := range ids {
		all = append(all, fmt.Sprintf("job %d", id))
	}
	return words.Listed(all)
}

// changeLimit has change do something to a limit, and says which rule counted before, and
// which one does now.
func (l *Local) changeLimit(ctx context.Context, name string, change func() error) (LimitChanged, error) {
	before, _, err := l.limit(ctx, name)
	if err != nil {
		return LimitChanged{}, err
	}
	if err := change(); err != nil {
		return LimitChanged{}, err
	}
	after, _, err := l.limit(ctx, name)
	return LimitChanged{after.Rule != before.Rule, after.Rule, before.Rule, after.Declared}, err
}
