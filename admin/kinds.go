package admin

import (
	"net/http"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/internal/sample"
)

// kindsPage lists the kinds.
type kindsPage struct {
	Rows  []kindRow
	Since time.Time // what the figures are about
	Known sample.Seen[[]stint.Stats]
	Slow  []stint.JobInfo // the newest with a long attempt
	Crew  view.Crew       // who may perform those that have not ended
}

func (kindsPage) frozen() {}

// kindRow is a kind: what was declared of it, and how its attempts of the last day
// went.
type kindRow struct {
	stint.KindStats
	Declared *stint.Declaration // nil for one that nobody declared
}

// FailureRate is how many of a hundred attempts failed or were lost.
func (k kindRow) FailureRate() float64 {
	if k.Attempts == 0 {
		return 0
	}
	return 100 * float64(k.Failed()+k.Outcomes[stint.OutcomeLost]) / float64(k.Attempts)
}

// Bad reports whether so many fail that somebody should look.
func (k kindRow) Bad() bool { return k.FailureRate() >= 5 }

// kinds shows how each kind did in the last day.
func (b *Board) kinds(r *http.Request) (any, error) {
	ctx := r.Context()
	known := b.figures.kinds.Get(ctx)
	p := kindsPage{Known: known, Since: time.Now().Add(-day).Truncate(time.Hour)}
	declared, err := b.store.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range stint.StatsByKind(known.Value) {
		p.Rows = append(p.Rows, kindRow{KindStats: k})
	}
	for i := range declared {
		j := slices.IndexFunc(p.Rows, func(row kindRow) bool { return row.Kind == declared[i].Name })
		if j < 0 {
			j = len(p.Rows)
			p.Rows = append(p.Rows, kindRow{KindStats: stint.KindStats{Kind: declared[i].Name}})
		}
		p.Rows[j].Declared = &declared[i]
	}
	if p.Slow, err = b.store.Jobs(ctx, stint.Filter{Longer: stint.LongAttempt, Limit: 10}); err != nil {
		return nil, err
	}
	p.Crew, err = view.CrewFor(ctx, b.store, p.Slow...)
	return p, err
}
