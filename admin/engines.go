package admin

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/api"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/internal/words"
)

// enginesPage is the roster.
type enginesPage struct {
	Engines []engineRow
	Metrics []stint.Metrics // the newest first
}

// Load is what an engine counted last; nil when it wrote nothing yet.
func (p enginesPage) Load(e engineRow) *stint.Metrics {
	i := slices.IndexFunc(p.Metrics, func(m stint.Metrics) bool { return m.Engine == e.Token })
	if i < 0 {
		return nil
	}
	return &p.Metrics[i]
}

func (b *Board) engines(r *http.Request) (any, error) {
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
	Metrics *stint.Metrics
	CanBury bool
}

func (p enginePage) title() string { return "Engine " + p.Instance }

// shownHeld is how many jobs of an engine its page shows.
const shownHeld = 200

func (b *Board) engine(r *http.Request) (any, error) {
	token, err := strconv.ParseInt(r.PathValue("token"), 10, 64)
	if err != nil {
		return nil, errNowhere
	}
	rows, err := b.roster(r)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(rows, func(e engineRow) bool { return e.Token == stint.Token(token) })
	if i < 0 {
		return nil, stint.ErrBuried
	}
	held, err := view.HeldBy(r.Context(), b.store, rows[i].EngineInfo)
	if err != nil {
		return nil, err
	}
	p := enginePage{engineRow: rows[i], Holds: held.Holds, CanBury: b.config.API.Bury != nil}
	if n := len(p.Holds) - shownHeld; n > 0 {
		p.Holds, p.More = p.Holds[:shownHeld], n
	}
	all, err := b.store.EngineMetrics(r.Context())
	p.Metrics = enginesPage{Metrics: all}.Load(p.engineRow)
	return p, err
}

// engineVerb drains or buries the engine that the address names.
func (b *Board) engineVerb(r *http.Request) (flash, error) {
	token := r.PathValue("token")
	switch verb := r.PathValue("verb"); verb {
	case "drain":
		if err := b.call(r.Context(), http.MethodPost, place("engines", token, verb), nil, nil); err != nil {
			return flash{}, err
		}
		return flash{OK: true, Text: "It takes no more jobs, and leaves when those that run have ended."}, nil
	case "bury":
		if r.PostForm.Get("confirm") != "bury" {
			return flash{Text: "Nothing was done: type the word bury to confirm."}, nil
		}
		var said api.Buried
		if err := b.call(r.Context(), http.MethodPost, place("engines", token, verb), map[string]string{"why": r.PostForm.Get("why")}, &said); err != nil {
			return flash{}, err
		}
		return flash{OK: true, Text: "It is buried; what went back to the front of its queue: " + words.Counted(said.Freed, "job") + "."}, nil
	}
	return flash{}, errNowhere
}
