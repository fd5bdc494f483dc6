package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// Engine is one of the roster.
type Engine struct {
	store.EngineInfo
	TimeToLive retry.Duration `json:"time_to_live" doc:"After how long without a heartbeat it counts as dead"`
	MaxOutage  retry.Duration `json:"max_outage,omitempty" doc:"How long the database may be away from it before it gives up what it runs"`

	State view.Condition `json:"state" enum:"working,draining,gone,stuck,silent,left,buried" doc:"gone: its process is not there any more; stuck: that lives and does not beat; silent: it does not beat; left, buried: it is not in the roster any more"`

	Holding int `json:"holding,omitempty" doc:"In the list: how many jobs it has claimed that have not ended, those that run and those that wait for a slot of it"`

	Ended *store.EngineEnd `json:"ended,omitempty" doc:"Of one that is gone: when, why, which engine buried it, and how many of its entries were taken over"`
}

func engineOf(e store.EngineInfo, now time.Time) Engine {
	return Engine{EngineInfo: e, TimeToLive: retry.Duration(e.TimeToLive), MaxOutage: retry.Duration(e.MaxOutage), State: view.ConditionOf(e, now)}
}

// formerOf is an engine that is gone.
func formerOf(e store.FormerEngine) Engine {
	e.Running = []store.Position{}
	return Engine{EngineInfo: e.EngineInfo, TimeToLive: retry.Duration(e.TimeToLive), State: view.ConditionOfFormer(e.EngineEnd), Ended: &e.EngineEnd}
}

// Former is the engine as the history has it.
func (e Engine) Former() store.FormerEngine {
	f := store.FormerEngine{EngineInfo: e.Info()}
	if e.Ended != nil {
		f.EngineEnd = *e.Ended
	}
	return f
}

// Info is the engine as it stands in the roster.
func (e Engine) Info() store.EngineInfo {
	e.EngineInfo.TimeToLive, e.EngineInfo.MaxOutage = time.Duration(e.TimeToLive), time.Duration(e.MaxOutage)
	return e.EngineInfo
}

// ShownEngine is an engine with what it holds, or what was lost with it.
type ShownEngine struct {
	Engine
	Holds []view.HeldJob      `json:"holds"`
	Lost  []store.LostAttempt `json:"lost_attempts,omitempty" doc:"Of one that is gone: the first 200 attempts that were lost with it, with the state of their jobs now"`
}

// EngineToken is where an engine's token stands.
type EngineToken struct {
	Token int64 `path:"engine" minimum:"1"`
}

// EngineWhy is an engine, and why something is done to it.
type EngineWhy struct {
	EngineToken
	Body Why
}

// ListEngines lists the roster.
var ListEngines = declare(&Op[None, List[Engine]]{
	Decl: Decl{
		Name: "engines list", Method: http.MethodGet, Path: "/engines", Summary: "List the engines of the roster, the oldest first",
		Doc: "Those that have joined and not left, dead ones too until they are buried.",
	},
	do: func(ctx context.Context, l *Local, _ *None) (List[Engine], error) {
		all, err := l.roster(ctx)
		for i := 0; i < len(all) && err == nil; i++ {
			all[i].Holding, err = view.CountHeld(ctx, l.Store, all[i].EngineInfo)
		}
		return listed(all, err)
	},
})

// ListFormerEngines lists those that are gone.
var ListFormerEngines = declare(&Op[FormerQuery, List[Engine]]{
	Decl: Decl{
		Name: "engines gone", Method: http.MethodGet, Path: "/engines/gone", Summary: "List the engines that are gone, the last first",
		Doc: "Those that stopped and those that were buried, with why, by which engine, and how much of what they held was taken over. An engine is forgotten when the jobs that it ran are.",
	},
	do: func(ctx context.Context, l *Local, in *FormerQuery) (List[Engine], error) {
		f := store.FormerFilter{Instance: in.Instance, Limit: cmp.Or(in.Limit, 100)}
		for _, token := range in.Engines {
			f.Engines = append(f.Engines, store.EngineID(token))
		}
		if err := l.read(ctx, "query", moment{"since", in.Since, &f.Since}); err != nil {
			return List[Engine]{}, err
		}
		all, err := l.Store.FormerEngines(ctx, f)
		engines := make([]Engine, len(all))
		for i, e := range all {
			engines[i] = formerOf(e)
		}
		return listed(engines, err)
	},
})

// FormerQuery chooses engines that are gone.
type FormerQuery struct {
	Engines  []int64 `query:"engine" maxItems:"1000" doc:"Any of these"`
	Instance string  `query:"instance" maxLength:"255" doc:"Of this name"`
	Since    When    `query:"since" doc:"Whose end was at this instant or later"`
	Limit    int     `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"How many at most"`
}

// ShowEngine shows one, of the roster or gone; or it is [store.ErrBuried].
var ShowEngine = declare(&Op[EngineToken, ShownEngine]{
	Decl: Decl{
		Name: "engines show", Method: http.MethodGet, Path: "/engines/{engine}", Summary: "Show an engine with the jobs that it holds",
		Doc: "Of one that is gone: how it ended, and the attempts that were lost with it.",
	},
	do: func(ctx context.Context, l *Local, in *EngineToken) (ShownEngine, error) {
		e, err := l.engine(ctx, *in)
		if errors.Is(err, store.ErrBuried) {
			return l.former(ctx, *in)
		}
		if err != nil {
			return ShownEngine{}, err
		}
		held, err := view.HeldBy(ctx, l.Store, e.EngineInfo)
		return ShownEngine{Engine: e, Holds: held.Holds}, err
	},
})

// DrainEngine has an engine end its jobs and leave.
var DrainEngine = declare(&Op[EngineWhy, Engine]{
	Decl: Decl{
		Name: "engines drain", Method: http.MethodPost, Path: "/engines/{engine}/drain", Needs: guard.Operator, Summary: "Have an engine end its jobs and leave", Confirm: true,
		Doc: "It takes no more jobs, and leaves when those that run have ended. It learns of it with its next beat.", Status: http.StatusAccepted,
	},
	do: func(ctx context.Context, l *Local, in *EngineWhy) (Engine, error) {
		e, err := l.engine(ctx, in.EngineToken)
		if err != nil {
			return e, err
		}
		if err := l.Store.Drain(ctx, e.Token); err != nil {
			return e, err
		}
		now, err := view.Now(ctx, l.Store)
		e.Draining = true
		e.State = view.ConditionOf(e.EngineInfo, now)
		return e, err
	},
	said: func(_ *EngineWhy, e Engine) string {
		return fmt.Sprintf("engine %s (%d) was asked to leave", words.Visible(e.Instance), e.Token)
	},
})

// Buried says what came of a burial.
type Buried struct {
	Engine string `json:"engine,omitempty" doc:"The name of the instance"`
	Freed  int    `json:"freed" doc:"How many entries that it held run again elsewhere"`
}

// BuryEngine frees what an engine holds. With [store.ErrBurialBlocked] a later call may do it.
var BuryEngine = declare(&Op[EngineWhy, Buried]{
	Decl: Decl{
		Name: "engines bury", Method: http.MethodPost, Path: "/engines/{engine}/bury", Needs: guard.Admin, Summary: "Free what an engine holds, whether it lives or not",
		Doc: "What it holds goes back to the front of its queues. An engine that lives notices, cancels its handlers and joins again.", Confirm: true,
	},
	do: func(ctx context.Context, l *Local, in *EngineWhy) (Buried, error) {
		e, err := l.engine(ctx, in.EngineToken)
		if err != nil {
			return Buried{}, err
		}
		why := "buried by hand"
		if by := l.who(ctx).Name; by != "" {
			why += " by " + by
		}
		if in.Body.Why != "" {
			why += ": " + in.Body.Why
		}
		n, err := l.Bury(ctx, e.Token, why)
		return Buried{e.Instance, n}, err
	},
	said: func(in *EngineWhy, b Buried) string {
		return fmt.Sprintf("engine %s (%d) is buried; %s that it held went back to the front of the queue", words.Visible(b.Engine), in.Token, words.Counted(b.Freed, "job"))
	},
})

// ListEngineMetrics lists what engines counted.
var ListEngineMetrics = lists(Decl{Name: "engines metrics", Path: "/engines/metrics", Summary: "List what engines counted, the newest first"}, Store.EngineMetrics)

// roster lists the engines with how they are.
func (l *Local) roster(ctx context.Context) ([]Engine, error) {
	all, err := l.Store.Engines(ctx)
	if err != nil {
		return nil, err
	}
	now, err := view.Now(ctx, l.Store)
	if err != nil {
		return nil, err
	}
	engines := make([]Engine, len(all))
	for i, e := range all {
		engines[i] = engineOf(e, now)
	}
	return engines, nil
}

// former shows one that is gone, or is [store.ErrBuried].
func (l *Local) former(ctx context.Context, in EngineToken) (ShownEngine, error) {
	e, err := view.FormerOf(ctx, l.Store, store.EngineID(in.Token))
	if err != nil {
		return ShownEngine{}, err
	}
	lost, err := l.Store.LostAttempts(ctx, e.Token)
	return ShownEngine{Engine: formerOf(e), Holds: []view.HeldJob{}, Lost: lost}, err
}

// engine finds one of the roster, or [store.ErrBuried].
func (l *Local) engine(ctx context.Context, in EngineToken) (Engine, error) {
	all, err := l.roster(ctx)
	if err != nil {
		return Engine{}, err
	}
	for _, e := range all {
		if int64(e.Token) == in.Token {
			return e, nil
		}
	}
	return Engine{}, store.ErrBuried
}
