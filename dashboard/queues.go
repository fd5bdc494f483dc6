package dashboard

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// queuesPage lists the queues.
type queuesPage struct {
	Rows    []queueRow
	Cut     bool // more queues have a backlog than are shown
	Backlog sample.Seen[[]report.DueGroup]
	Oldest  sample.Seen[report.Facts] `json:"-"` // which takes a moment
	Rates   sample.Seen[ended]        `json:"-"` // it is in the rows
}

// queueRow is a queue.
type queueRow struct {
	Name    string
	Queued  *int64           // nil when it is not known
	Oldest  time.Time        // when the first of those became ready; zero when nothing waits
	Ended   int64            // attempts that ended in the last five minutes
	Failed  int64            // of these
	Hour    []float64        // attempts that ended in each minute of the last hour
	Engines int              // that work on it
	Slots   int              // that those have for it, and for others
	Pause   *store.QueueInfo // since when, by whom and why it is paused; nil when it is not
}

// rateSpan is the end of that hour that the figures of a queue are about.
const rateSpan = 5 * time.Minute

// queues puts together what is known of each queue. The names are those of jobs that wait
// or ended lately, of kinds and of pauses.
func (b *Dashboard) queues(r *http.Request) (any, error) { return b.allQueues(r.Context()) }

func (b *Dashboard) allQueues(ctx context.Context) (p queuesPage, err error) {
	together(
		func() { p.Backlog = b.figures.queued.Get(ctx) },
		func() { p.Oldest, _ = b.figures.doctor(ctx) },
		func() { p.Rates = b.figures.rates.Get(ctx) },
	)
	rows := map[string]*queueRow{}
	of := func(name string) *queueRow {
		if rows[name] == nil {
			rows[name] = &queueRow{Name: name}
		}
		return rows[name]
	}
	for _, g := range p.Backlog.Value {
		if g.Value != nil {
			of(*g.Value).Queued = new(g.Jobs)
		}
	}
	for _, l := range p.Oldest.Value.Backlogs {
		if q := of(l.Queue); q.Oldest.IsZero() || l.Oldest.Before(q.Oldest) {
			q.Oldest = l.Oldest
		}
	}
	for _, s := range p.Rates.Value.Stats {
		of(s.Queue).count(s, p.Rates.Value)
	}
	pauses, err := b.store.Pauses(ctx)
	if err != nil {
		return p, err
	}
	for i := range pauses {
		of(pauses[i].Name).Pause = &pauses[i]
	}
	kinds, err := b.store.Kinds(ctx)
	if err != nil {
		return p, err
	}
	for _, k := range kinds {
		of(cmp.Or(k.Queue, stint.DefaultQueue))
	}
	engines, err := b.store.Engines(ctx)
	if err != nil {
		return p, err
	}
	for _, e := range engines {
		for name, q := range rows {
			if e.WorksOn(name) {
				q.Engines++
				q.Slots += e.Slots
			}
		}
	}
	p.Cut = len(p.Backlog.Value) == maxQueues
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		q := rows[name]
		if q.Queued == nil && !p.Backlog.At.IsZero() && !p.Cut {
			q.Queued = new(int64) // it has none, or it would be a group
		}
		p.Rows = append(p.Rows, *q)
	}
	return p, nil
}

// count adds what ended in a minute of the hour.
func (q *queueRow) count(s report.Stats, in ended) {
	q.Hour = in.addTo(q.Hour, s)
	if back, ok := in.back(s.Start); !ok || time.Duration(back)*time.Minute >= rateSpan {
		return
	}
	q.Ended += s.Attempts
	if s.Outcome == stint.OutcomeFailed || s.Outcome == stint.OutcomeLost {
		q.Failed += s.Attempts
	}
}

// queuePage shows one queue.
type queuePage struct {
	queueRow
	partFigures
	Known      bool // whether it is known how many jobs are queued, and since when
	Kinds      []queueKind
	Limit      *limitRow // of the queue as a whole
	LimitName  string
	AllEngines []engineRow // that work on it
}

// queueKind is a kind whose attempts ended in the queue in the last hour.
type queueKind struct {
	Kind  string
	Ended int64
}

func (p queuePage) title() string { return "Queue " + p.Name }

// Drained reports whether it is paused and all that had begun before has ended.
func (p queuePage) Drained() bool {
	return p.Pause != nil && !p.Active.At.IsZero() && p.Active.At.After(p.Pause.Paused) && p.Active.Value.Running == 0
}

// queue shows one; a queue of which nothing is known is an empty one.
func (b *Dashboard) queue(r *http.Request) (any, error) {
	ctx, name := r.Context(), r.PathValue("queue")
	if valid.Name("queue", name) != nil {
		return nil, errNowhere
	}
	if zoomed(r) {
		return b.zoom(r, part{queue: name}, "Queue "+name)
	}
	all, err := b.allQueues(ctx)
	if err != nil {
		return nil, err
	}
	row := queueRow{Name: name}
	if i := slices.IndexFunc(all.Rows, func(q queueRow) bool { return q.Name == name }); i >= 0 {
		row = all.Rows[i]
	}
	p := queuePage{queueRow: row, partFigures: b.lookAt(ctx, part{queue: name}), Known: !all.Oldest.At.IsZero(), LimitName: store.QueueGate(name)}
	ended := map[string]int64{}
	for _, s := range all.Rates.Value.Stats {
		if s.Queue == name {
			ended[s.Kind] += s.Attempts
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(ended)) {
		p.Kinds = append(p.Kinds, queueKind{kind, ended[kind]})
	}
	limits, err := b.store.Limits(ctx)
	if err != nil {
		return nil, err
	}
	if l, found := ops.FindLimit(limits, p.LimitName); found {
		p.Limit = &limitRow{l}
	}
	engines, err := b.roster(r)
	for _, e := range engines {
		if e.WorksOn(name) {
			p.AllEngines = append(p.AllEngines, e)
		}
	}
	return p, err
}
