package storetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// book is what a test knows of entries that were claimed, so that it can work out
// for itself what a store says of their attempts.
type book struct {
	t       *T
	entries map[store.Position]store.Entry
	slots   map[store.Position]int
	gone    []written // of jobs that were deleted
}

// written is an attempt that began, as the store recorded it.
type written struct {
	store.LedgerExecution
	entry store.Entry
	ran   bool // it was not lost
}

func newBook(t *T) *book {
	return &book{t: t, entries: map[store.Position]store.Entry{}, slots: map[store.Position]int{}}
}

// note keeps what was claimed.
func (b *book) note(entries []store.Entry) []store.Entry {
	for _, e := range entries {
		b.entries[e.Pos] = e
	}
	return entries
}

// finish records executions.
func (b *book) finish(w *Worker, done ...store.Completion) {
	b.t.Helper()
	for _, x := range done {
		b.slots[x.Pos] = x.Slot
	}
	n, err := w.TryFinish(b.t.ctx, done...)
	need(b.t, err == nil && n == len(done), "%d of %d outcomes were recorded, error %v", n, len(done), err)
}

// there are the attempts of jobs that are there.
func (b *book) there() (all []written) {
	b.t.Helper()
	for _, x := range b.t.ledger().Executions {
		e, claimed := b.entries[x.Pos]
		if ran := b.slots[x.Pos] > 0; claimed && (ran || x.Outcome == stint.OutcomeLost) {
			all = append(all, written{x, e, ran})
		}
	}
	return all
}

// delete deletes jobs, and remembers their attempts.
func (b *book) delete(ids ...stint.ID) {
	b.t.Helper()
	b.losing(func() {
		b.t.must(errOf(as[store.Operator](b.t).Delete(b.t.ctx, ids)))
	})
}

// retain deletes what is old.
func (b *book) retain(keep store.Retention) {
	b.t.Helper()
	b.losing(func() { b.t.retain(keep) })
}

// losing notes the attempts of jobs that are not there any more afterwards.
func (b *book) losing(loses func()) {
	b.t.Helper()
	before := b.there()
	loses()
	for _, x := range before {
		if _, err := b.t.Store.Job(b.t.ctx, x.Job); err != nil {
			b.gone = append(b.gone, x)
		}
	}
}

// stats works out what statistics are to say.
func (b *book) stats(f report.StatsFilter) []report.Stats {
	b.t.Helper()
	all := append(b.there(), b.gone...)
	// In the order in which they ended, so that the last one is the last.
	slices.SortFunc(all, func(a, b written) int {
		return cmp.Or(a.Finished.Compare(b.Finished), cmp.Compare(a.Finished.Sub(a.Started), b.Finished.Sub(b.Started)))
	})
	span := time.Hour
	if f.Every == time.Minute {
		span = f.Every
	}
	var list []report.Stats
	for _, x := range all {
		start := x.Finished.UTC().Truncate(span)
		to := f.To.Truncate(span)
		if to != f.To {
			to = to.Add(span)
		}
		if f.Every == time.Minute && time.Since(start) > 48*time.Hour+30*time.Second {
			continue
		}
		if f.Kind != "" && x.entry.Kind != f.Kind || f.Queue != "" && x.entry.Queue != f.Queue ||
			start.Before(f.From.Truncate(span)) || !to.IsZero() && !start.Before(to) {
			continue
		}
		if f.Every == 0 {
			start = time.Time{}
		}
		i := slices.IndexFunc(list, func(s report.Stats) bool {
			return s.Start.Equal(start) && s.Kind == x.entry.Kind && s.Queue == x.entry.Queue && s.Outcome == x.Outcome
		})
		if i < 0 {
			i = len(list)
			list = append(list, report.Stats{Start: start, Kind: x.entry.Kind, Queue: x.entry.Queue, Outcome: x.Outcome})
		}
		s := &list[i]
		if s.Attempts++; x.ran {
			took := x.Finished.Sub(x.Started)
			s.Took.Add(took)
			s.LastAt = x.Finished
			s.Waited += max(0, x.Started.Sub(x.entry.Ready))
		}
	}
	slices.SortFunc(list, func(a, b report.Stats) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Outcome, b.Outcome))
	})
	return list
}

// lately works out how the attempts of the time before an instant went.
func (b *book) lately(at time.Time, span time.Duration, queue, kind, tag string) report.AttemptFigures {
	b.t.Helper()
	var waited, took []time.Duration
	for _, x := range b.there() {
		in := x.Finished.After(at.Add(-span)) && !x.Finished.After(at)
		fits := (queue == "" || x.entry.Queue == queue) && (kind == "" || x.entry.Kind == kind) && (tag == "" || slices.Contains(x.entry.Tags, tag))
		if in && fits && x.ran {
			waited = append(waited, max(0, x.Started.Sub(x.entry.Ready)))
			took = append(took, x.Finished.Sub(x.Started))
		}
	}
	return report.AttemptFigures{Ended: int64(len(took)), PerSecond: float64(len(took)) / span.Seconds(), Latency: spread(waited), Execution: spread(took)}
}

// spread finds percentiles by counting for each duration how many do not exceed
// it.
func spread(all []time.Duration) (s report.Percentiles) {
	at := func(percent int) time.Duration {
		best := time.Duration(-1)
		for _, d := range all {
			n := 0
			for _, other := range all {
				if other <= d {
					n++
				}
			}
			if n*100 >= percent*len(all) && (best < 0 || d < best) {
				best = d
			}
		}
		return max(0, best)
	}
	for _, d := range all {
		s.Mean += d
	}
	if len(all) > 0 {
		s.Mean = (s.Mean / time.Duration(len(all))).Truncate(time.Microsecond)
	}
	s.P50, s.P95, s.P99 = at(50), at(95), at(99)
	return s
}
