package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

// limitsPage lists the limits.
type limitsPage struct {
	Rows []limitRow
}

// limitRow is a limit.
type limitRow struct{ store.LimitInfo }

// Most is how many jobs may run at once under the limit, of all keys that are in use; 0 for
// any number, and for none.
func (l limitRow) Most() int64 {
	most, _ := l.LimitInfo.Most()
	return most
}

// Condition says in a word where the rule comes from, or what is special about it.
func (l limitRow) Condition() string {
	most, bounded := store.AtOnce(l.Rule)
	switch {
	case l.Paused != nil:
		return "paused"
	case bounded && most == 0:
		return "stopped"
	case l.Set != "":
		return "set"
	case l.Declared != "":
		return "declared"
	}
	return "no rule"
}

func (b *Dashboard) limits(r *http.Request) (any, error) {
	all, err := b.store.Limits(r.Context())
	var p limitsPage
	for _, l := range all {
		p.Rows = append(p.Rows, limitRow{l})
	}
	return p, err
}

// limitPage is one limit with who holds it.
type limitPage struct {
	limitRow
	Holders *gateRow  // of a limit without keys, or of one key; nil while it is not in use
	Keys    []gateRow // that most is asked for
	More    int       // keys beside those
}

// gateRow is a gate, and how many permits it has; 0 for any number, and for none.
type gateRow struct {
	store.GateInfo
	Most int64
}

func (p limitPage) title() string { return "Limit " + p.Name }

// shownKeys is how many keys of a limit its page shows.
const shownKeys = 100

func (b *Dashboard) limitPage(r *http.Request) (any, error) {
	name := r.PathValue("limit")
	if stint.CheckGate(name) != nil {
		return nil, errNowhere
	}
	all, err := b.store.Limits(r.Context())
	if err != nil {
		return nil, err
	}
	p := limitPage{}
	p.LimitInfo, _ = ops.FindLimit(all, name)
	gates, err := b.store.Gates(r.Context(), name, shownKeys)
	for _, g := range gatesOf(gates) {
		if g.Gate == name {
			p.Holders = &g
		} else {
			p.Keys = append(p.Keys, g)
		}
	}
	p.More = p.LimitInfo.More(gates)
	return p, err
}

// gatesOf are gates as pages show them, with the engines by name. Engines that wait say so each
// second, which is no news.
func gatesOf(gates []store.GateInfo) (rows []gateRow) {
	for _, g := range gates {
		g.Holds = slices.Clone(g.Holds)
		slices.SortFunc(g.Holds, func(a, b store.GateHolding) int {
			return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Engine, b.Engine))
		})
		for i := range g.Holds {
			g.Holds[i].Since = time.Time{}
		}
		most, _ := store.AtOnce(g.Rule)
		rows = append(rows, gateRow{g, most})
	}
	return rows
}
