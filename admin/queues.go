package admin

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/sample"
)

// queuesPage lists the queues.
type queuesPage struct {
	Rows    []queueRow
	Backlog sample.Seen[[]stint.DueGroup]
	Oldest  sample.Seen[stint.Signs] `json:"-"` // which takes a moment
}

// queueRow is a queue.
type queueRow struct {
	Name    string
	Queued  int64
	Oldest  time.Time // when the first of those became ready; zero when nothing waits
	Ended   int64     // attempts that ended in the last five minutes
	Failed  int64     // of these
	Took    time.Duration
	Engines int // that work on it
	Slots   int // that those have for it, and for others
	Paused  bool
}

// rateSpan is the time behind now that rates are about.
const rateSpan = 5 * time.Minute

// queues puts together what is known of each queue: the names come of what waits,
// of what ended lately, of kinds and of pauses.
func (b *Board) queues(r *http.Request) (any, error) {
	ctx := r.Context()
	var (
		p     queuesPage
		rates []stint.Stats
	)
	together(
		func() { p.Backlog = b.figures.queued.Get(ctx) },
		func() { p.Oldest = b.figures.signs.Get(ctx) },
		func() { rates = b.figures.rates.Get(ctx).Value },
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
			of(*g.Value).Queued = g.Jobs
		}
	}
	for _, l := range p.Oldest.Value.Backlogs {
		if q := of(l.Queue); q.Oldest.IsZero() || l.Oldest.Before(q.Oldest) {
			q.Oldest = l.Oldest
		}
	}
	for _, s := range rates {
		q := of(s.Queue)
		q.Ended += s.Attempts
		q.Took += s.Took.Total
		if s.Outcome == stint.OutcomeFailed || s.Outcome == stint.OutcomeLost {
			q.Failed += s.Attempts
		}
	}
	paused, err := b.store.Paused(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range paused {
		of(name).Paused = true
	}
	kinds, err := b.store.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		of(cmp.Or(k.Queue, stint.DefaultQueue))
	}
	engines, err := b.store.Engines(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range engines {
		for name, q := range rows {
			if e.WorksOn(name) {
				q.Engines++
				q.Slots += e.Slots
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		p.Rows = append(p.Rows, *rows[name])
	}
	return p, nil
}

// pauseQueue and resumeQueue do that to the queue that the address names.
func (b *Board) pauseQueue(r *http.Request) (flash, error) {
	name := r.PathValue("queue")
	return b.change(r, http.MethodPost, place("queues", name, "pause"), map[string]string{"why": r.PostForm.Get("why")}, "The queue "+name+" is paused.", "It was paused before.")
}

func (b *Board) resumeQueue(r *http.Request) (flash, error) {
	name := r.PathValue("queue")
	return b.change(r, http.MethodPost, place("queues", name, "resume"), nil, "The queue "+name+" goes on.", "It was not paused.")
}
