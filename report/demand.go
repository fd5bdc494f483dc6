package report

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// DemandStore tells what waits for engines, for [Scale].
type DemandStore interface {
	// Demand tells what is ready, what becomes due within a time, what arrived in the last minute, and
	// what is claimed and has not ended; of these queues, or of all if there are none. It costs
	// some rows of each lane (see [SampleOf]), what is claimed, and what is due by then. Of a lane the first
	// jobs are read; the others are taken to be of the same kinds, and counted in an index up to [DemandLimit], or
	// else estimated (see [LaneCount]). What arrived is read from the end of a lane, as many rows at most.
	Demand(ctx context.Context, queues []string, within time.Duration) (Demand, error)
}

// DemandLimit is how many jobs of a lane a [DemandStore] counts, and how many of those that are due by then.
const DemandLimit = 100_000

// LaneCount is what was counted of a lane: jobs from the first position to the last one that was counted, and
// where the lane ends.
type LaneCount struct {
	Jobs             int64
	First, Last, End int64
}

// Estimate is how many jobs the lane has: those that were counted or, if there are more, as many in proportion to the
// positions as there were among these.
func (c LaneCount) Estimate() int64 {
	if c.Jobs < DemandLimit || c.End <= c.Last {
		return c.Jobs
	}
	return int64(float64(c.Jobs) * float64(c.End-c.First+1) / float64(c.Last-c.First+1))
}

// SampleOf is how many jobs a [DemandStore] reads of each of so many lanes: 5,000, and of all together
// no more than 100,000, or 50 of each.
func SampleOf(lanes int) int { return max(50, min(5_000, 100_000/max(1, lanes))) }

// Demand is what waits for engines at a moment.
type Demand struct {
	At     time.Time // by the store's clock
	Groups []DemandGroup
	Gates  []store.GateState // of the limits of the groups, and of their queues
	Looks  bool              // something waits that any engine looks at: a note that a signal was sent or a job ended, or a failure to decide about
}

// DemandGroup is what waits of one queue, kind and set of limits. The same may come several times.
type DemandGroup struct {
	Queue   string
	Kind    string
	Limits  string    // as lanes keep them: see [store.GatesIn]
	Ready   int64     // jobs that no engine has claimed
	Due     int64     // jobs that are not ready yet, and are due by then
	Retries int64     // of the ready ones, those that come again
	Later   int64     // of those that are due by then, those that come again
	Arrived int64     // jobs that became ready for their first attempt in the last minute
	Running int64     // claimed and not ended; their limits are left out
	Oldest  time.Time // when the first of the ready ones became due
}

// Only leaves the groups of these queues, or all if there are none.
func (d *Demand) Only(queues []string) {
	d.Groups = slices.DeleteFunc(d.Groups, func(g DemandGroup) bool { return len(queues) > 0 && !slices.Contains(queues, g.Queue) })
}

// GatesOf returns the gates of the groups, as far as a store reads them: those of the first
// [store.MostUnder] with the most jobs.
func (d *Demand) GatesOf() []string {
	var all []store.JobsUnder
	for _, g := range d.Groups {
		if jobs := g.Ready + g.Due + g.Arrived; jobs > 0 {
			all = append(all, store.JobsUnder{Queue: g.Queue, Limits: g.Limits, Jobs: jobs})
		}
	}
	slices.SortStableFunc(all, func(a, b store.JobsUnder) int { return cmp.Compare(b.Jobs, a.Jobs) })
	return store.GatesUnder(all[:min(len(all), store.MostUnder)])
}

// GrowDemand has groups of one lane, which were read of its first jobs, stand for all of its jobs.
func GrowDemand(groups []DemandGroup, c LaneCount) {
	jobs, read := c.Estimate(), int64(0)
	for _, g := range groups {
		read += g.Ready
	}
	if read == 0 || jobs <= read {
		return
	}
	for i := range groups {
		g := &groups[i]
		g.Ready, g.Retries = g.Ready*jobs/read, g.Retries*jobs/read
	}
}

// ScaleStore is what [Scale] needs. Of one that is also a [store.ScheduleKeeper] or a
// [store.EngineHistory] it learns more.
type ScaleStore interface {
	DemandStore
	StatsStore
	Engines(ctx context.Context) ([]store.EngineInfo, error)
	Paused(ctx context.Context) ([]string, error)
	Kinds(ctx context.Context) ([]stint.KindInfo, error)
}

// Scale says how many engines would keep up with the work of queues: see [Wanted]. It only reads, and what
// that costs is bounded, however much waits. Without any work all numbers are 0. [stint.ErrInvalid]
// when the filter asks for what cannot be.
func Scale(ctx context.Context, st ScaleStore, f ScaleFilter) (Scaling, error) {
	if err := f.Check(); err != nil {
		return Scaling{}, err
	}
	r, err := readScale(ctx, st, f.usual())
	if err != nil {
		return Scaling{}, err
	}
	return Wanted(f, r), nil
}

func readScale(ctx context.Context, st ScaleStore, f ScaleFilter) (r ScaleReading, err error) {
	if r.Demand, err = st.Demand(ctx, f.Queues, f.Startup); err != nil {
		return r, err
	}
	if r.Paused, err = st.Paused(ctx); err != nil {
		return r, err
	}
	if r.Engines, err = st.Engines(ctx); err != nil {
		return r, err
	}
	kinds, err := st.Kinds(ctx)
	if err != nil {
		return r, err
	}
	r.Kinds = slices.Clone(f.Kinds)
	for _, k := range kinds {
		r.Kinds = append(r.Kinds, k.Name)
	}
	if history, ok := st.(store.EngineHistory); ok && !slices.ContainsFunc(r.Engines, f.serves) {
		former, err := history.FormerEngines(ctx, store.FormerFilter{})
		if err != nil {
			return r, err
		}
		if i := slices.IndexFunc(former, func(e store.FormerEngine) bool { return f.serves(e.EngineInfo) }); i >= 0 {
			r.Last = &former[i].EngineInfo
		}
	}
	if keeper, ok := st.(store.ScheduleKeeper); ok {
		all, err := keeper.Schedules(ctx)
		if err != nil {
			return r, err
		}
		r.fire(all, f)
	}
	return r, r.attempts(ctx, st)
}

// fire adds the jobs that schedules make until a new engine works. A schedule whose next
// occurrence is not known needs an engine that computes it.
func (r *ScaleReading) fire(all []store.ScheduleInfo, f ScaleFilter) {
	for _, s := range all {
		switch {
		case s.State() != "active":
		case s.Next.IsZero():
			r.Looks = true
		case !s.Next.After(r.At.Add(f.Startup)):
			r.Groups = append(r.Groups, DemandGroup{Queue: cmp.Or(s.Job.Queue, stint.DefaultQueue), Kind: s.Job.Kind, Due: 1})
		}
	}
}

// attempts reads how attempts went lately, and in the last week if there were few of a kind. As the doctor
// does it reads no more than some that are not summed up.
func (r *ScaleReading) attempts(ctx context.Context, st StatsStore) error {
	fresh, err := st.Unsummed(ctx, FewUnsummed)
	if err != nil {
		return err
	}
	from, settled := r.At.Add(-ScaleWindow-time.Minute), fresh >= FewUnsummed
	if settled {
		from = from.Add(-SummedBy)
	}
	if r.Minutes, err = st.Stats(ctx, StatsFilter{From: from, Every: time.Minute, Settled: settled, Distributed: true}); err != nil {
		return err
	}
	ran := map[string]int64{}
	for _, s := range r.Minutes {
		ran[s.Kind] += s.Took.Count
	}
	if slices.ContainsFunc(r.Groups, func(g DemandGroup) bool { return ran[g.Kind] < manyTook }) {
		r.Usual, err = st.Stats(ctx, StatsFilter{From: r.At.Add(-usualSpan), Settled: settled})
	}
	return err
}

const usualSpan = 7 * 24 * time.Hour
