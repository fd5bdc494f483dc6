package dashboard

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// enginesPage is the roster.
type enginesPage struct {
	Engines []engineRow
	Metrics []report.Metrics // the newest first
}

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
	all, err := b.store.EngineMetrics(r.Context())
	return enginesPage{rows, all}, err
}

// enginePage is one engine with what it holds.
type enginePage struct {
	engineRow
	Holds   []view.HeldJob
	More    int // that it holds beside those
	Metrics *report.Metrics
	CanBury bool
}

// Holding is how many jobs it holds.
func (p enginePage) Holding() int { return len(p.Holds) + p.More }

func (p enginePage) title() string { return "Engine " + p.Instance }

// shownHeld is how many jobs of an engine its page shows.
const shownHeld = 200

func (b *Dashboard) engine(r *http.Request) (any, error) {
	token, err := strconv.ParseInt(r.PathValue("token"), 10, 64)
	if err != nil {
		return nil, errNowhere
	}
	e, err := view.EngineOf(r.Context(), b.store, store.EngineID(token))
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
