package dashboard

import (
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// enginesPage is the roster, with the engines that went lately and what all of them counted.
type enginesPage struct {
	Engines []engineRow
	Former  []formerRow      // the last first
	Metrics []report.Metrics // the newest first
	Served  bool             // whether there is /metrics
}

// formerRow is an engine that is gone.
type formerRow struct{ store.FormerEngine }

// Condition is whether it left or was buried, and Reason says why it is gone.
func (r formerRow) Condition() view.Condition { return view.ConditionOfFormer(r.EngineEnd) }
func (r formerRow) Reason() string            { return view.EndInWords(r.EngineEnd) }

// Engines are listed that went lately, and not too many of them: a rollout of a fleet has hundreds go.
const (
	shownFormer = 50
	formerSpan  = day
)

// Load is what an engine counted last; nil when it wrote nothing yet.
func (p enginesPage) Load(e engineRow) *report.Metrics {
	i := slices.IndexFunc(p.Metrics, func(m report.Metrics) bool { return m.Engine == e.Token })
	if i < 0 {
		return nil
	}
	return &p.Metrics[i]
}

func (b *Dashboard) engines(r *http.Request) (any, error) {
	rows, err := b.roster(r)
	if err != nil {
		return nil, err
	}
	p := enginesPage{Engines: rows, Served: b.config.Metrics != nil}
	now, err := view.Now(r.Context(), b.store)
	if err != nil {
		return nil, err
	}
	former, err := b.store.FormerEngines(r.Context(), store.FormerFilter{Since: now.Add(-formerSpan), Limit: shownFormer})
	if err != nil {
		return nil, err
	}
	for _, e := range former {
		p.Former = append(p.Former, formerRow{e})
	}
	p.Metrics, err = b.store.EngineMetrics(r.Context())
	return p, err
}

// enginePage is one engine with what it holds, or, when it is gone, with how that came.
type enginePage struct {
	engineRow
	Ended   *formerRow // nil while it stands in the roster
	Lost    []store.LostAttempt
	Holds   []view.HeldJob
	More    int // that it holds beside those
	Metrics *report.Metrics
	CanBury bool
}

// Holding is how many jobs it holds.
func (p enginePage) Holding() int { return len(p.Holds) + p.More }

// MoreLost is how many attempts were lost with it beside those that are shown.
func (p enginePage) MoreLost() int { return max(0, p.Ended.Lost-len(p.Lost)) }

func (p enginePage) title() string { return "Engine " + p.Instance }

// shownHeld is how many jobs of an engine its page shows.
const shownHeld = 200

func (b *Dashboard) engine(r *http.Request) (any, error) {
	token, err := strconv.ParseInt(r.PathValue("token"), 10, 64)
	if err != nil {
		return nil, errNowhere
	}
	e, err := view.EngineOf(r.Context(), b.store, store.EngineID(token))
	if errors.Is(err, store.ErrBuried) {
		return b.formerEngine(r, store.EngineID(token))
	}
	if err != nil {
		return nil, err
	}
	now, err := view.Now(r.Context(), b.store)
	if err != nil {
		return nil, err
	}
	p := enginePage{engineRow: engineRow{e.EngineInfo, view.ConditionOf(e.EngineInfo, now)}, Holds: e.Holds, CanBury: b.config.API.Bury != nil}
	if n := len(p.Holds) - shownHeld; n > 0 {
		p.Holds, p.More = p.Holds[:shownHeld], n
	}
	all, err := b.store.EngineMetrics(r.Context())
	p.Metrics = enginesPage{Metrics: all}.Load(p.engineRow)
	return p, err
}

// formerEngine is the page of an engine that is gone.
func (b *Dashboard) formerEngine(r *http.Request, token store.EngineID) (any, error) {
	e, err := view.FormerOf(r.Context(), b.store, token)
	if err != nil {
		return nil, err
	}
	row := formerRow{e}
	p := enginePage{engineRow: engineRow{e.EngineInfo, row.Condition()}, Ended: &row}
	if p.Lost, err = b.store.LostAttempts(r.Context(), token); err != nil {
		return nil, err
	}
	all, err := b.store.EngineMetrics(r.Context())
	p.Metrics = enginesPage{Metrics: all}.Load(p.engineRow)
	return p, err
}
