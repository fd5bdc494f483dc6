package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/guard"
	"github.com/stint-go/stint/admin/view"
)

func (a *api) engines() {
	register(a, operation{
		method: http.MethodGet, path: "/engines", id: "list-engines", tag: "engines", summary: "List the engines of the roster, the oldest first",
		description: "Those that have joined and not left, dead ones too until they are buried.",
	}, a.listEngines)
	register(a, operation{
		method: http.MethodGet, path: "/engines/{token}", id: "show-engine", tag: "engines", summary: "Show an engine with the jobs that it holds",
	}, a.showEngine)
	register(a, operation{
		method: http.MethodPost, path: "/engines/{token}/drain", id: "drain-engine", needs: guard.Operator, tag: "engines", summary: "Have an engine end its jobs and leave",
		description: "It takes no more jobs, and leaves when those that run have ended. It learns of it with its next beat.", status: http.StatusAccepted,
	}, a.drainEngine)
	if a.Bury != nil {
		register(a, operation{
			method: http.MethodPost, path: "/engines/{token}/bury", id: "bury-engine", needs: guard.Admin, tag: "engines", summary: "Free what an engine holds, whether it lives or not",
			description: "What it holds goes back to the front of its queues. An engine that lives notices, cancels its handlers and joins anew.",
		}, a.buryEngine)
	}
	register(a, operation{
		method: http.MethodGet, path: "/engine-metrics", id: "list-engine-metrics", tag: "engines", summary: "List what engines counted, the newest first",
	}, a.listEngineMetrics)
}

// Engine is one of the roster.
type Engine struct {
	stint.EngineInfo
	State view.Condition `json:"state" enum:"working,draining,gone,stuck,silent" doc:"gone: its process is not there any more; stuck: that lives and does not beat; silent: it does not beat"`
}

func shownEngine(e stint.EngineInfo, now time.Time) Engine {
	return Engine{e, view.ConditionOf(e, now)}
}

func (a *api) listEngines(ctx context.Context, _ *struct{}) (*answer[[]Engine], error) {
	roster, err := a.store.Engines(ctx)
	if err != nil {
		return nil, err
	}
	now, err := view.Now(ctx, a.store)
	if err != nil {
		return nil, err
	}
	engines := make([]Engine, len(roster))
	for i, e := range roster {
		engines[i] = shownEngine(e, now)
	}
	return &answer[[]Engine]{engines}, nil
}

// EngineToken is where an engine's token stands.
type EngineToken struct {
	Token int64 `path:"token" minimum:"1"`
}

// engine finds one of the roster.
func (a *api) engine(ctx context.Context, in EngineToken) (stint.EngineInfo, error) {
	roster, err := a.store.Engines(ctx)
	if err != nil {
		return stint.EngineInfo{}, err
	}
	i := slices.IndexFunc(roster, func(e stint.EngineInfo) bool { return int64(e.Token) == in.Token })
	if i < 0 {
		return stint.EngineInfo{}, stint.ErrBuried
	}
	return roster[i], nil
}

// ShownEngine is an engine with what it holds.
type ShownEngine struct {
	Engine
	Holds []view.HeldJob `json:"holds"`
}

func (a *api) showEngine(ctx context.Context, in *EngineToken) (*answer[ShownEngine], error) {
	e, err := view.EngineOf(ctx, a.store, stint.Token(in.Token))
	if err != nil {
		return nil, err
	}
	now, err := view.Now(ctx, a.store)
	if err != nil {
		return nil, err
	}
	return &answer[ShownEngine]{ShownEngine{shownEngine(e.EngineInfo, now), e.Holds}}, nil
}

func (a *api) drainEngine(ctx context.Context, in *EngineToken) (*answer[Engine], error) {
	e, err := a.engine(ctx, *in)
	if err != nil {
		return nil, err
	}
	if err := a.store.Drain(ctx, e.Token); err != nil {
		return nil, err
	}
	e.Draining = true
	now, err := view.Now(ctx, a.store)
	if err != nil {
		return nil, err
	}
	return &answer[Engine]{shownEngine(e, now)}, nil
}

// Buried says what came of a burial.
type Buried struct {
	Freed int `json:"freed" doc:"How many entries that it held run again elsewhere"`
}

func (a *api) buryEngine(ctx context.Context, in *struct {
	EngineToken
	Body Why
}) (*answer[Buried], error) {
	e, err := a.engine(ctx, in.EngineToken)
	if err != nil {
		return nil, err
	}
	why := "buried by hand"
	if by := by(ctx); by != "" {
		why += " by " + by
	}
	if in.Body.Why != "" {
		why += ": " + in.Body.Why
	}
	n, err := a.Bury(ctx, e.Token, why)
	if err != nil {
		return nil, err
	}
	return &answer[Buried]{Buried{n}}, nil
}

func (a *api) listEngineMetrics(ctx context.Context, _ *struct{}) (*answer[[]stint.Metrics], error) {
	return list(a.store.EngineMetrics(ctx))
}
