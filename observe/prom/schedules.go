package prom

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/store"
)

// scheduler is what is needed of a [store.ScheduleKeeper].
type scheduler interface {
	Schedules(ctx context.Context) ([]store.ScheduleInfo, error)
}

// schedules exports how schedules fire. Nil exports nothing.
type schedules struct {
	names bounded
	all   *sample.Sample[[]scheduleFigures]

	lag, fired, missed *prometheus.Desc
}

// scheduleFigures are those of one schedule.
type scheduleFigures struct {
	name          string
	lag           time.Duration
	fired, missed int64
}

// newSchedules samples the schedules of a store that has some.
func newSchedules(st any, c Config) *schedules {
	keeper, ok := st.(scheduler)
	if !ok {
		return nil
	}
	of := []string{"schedule"}
	return &schedules{
		names: bounded{max: cmp.Or(c.MaxSchedules, defaultMax)},
		all:   sample.New(func(ctx context.Context) ([]scheduleFigures, error) { return figuresOf(ctx, st, keeper) }),
		lag: prometheus.NewDesc("stint_schedule_lag_seconds",
			"For how long an occurrence of the schedule is due and has not been fired; of all others the longest.", of, nil),
		fired: prometheus.NewDesc("stint_schedule_fired_total", "Jobs that the schedule made.", of, nil),
		missed: prometheus.NewDesc("stint_schedule_missed_total",
			"Occurrences that were missed and not made up for.", of, nil),
	}
}

// figuresOf asks a store for those of all schedules, by its clock.
func figuresOf(ctx context.Context, st any, keeper scheduler) (all []scheduleFigures, err error) {
	list, err := keeper.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	now, err := nowOf(ctx, st)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		f := scheduleFigures{name: s.Name, fired: s.Fired, missed: s.Passed}
		if s.State() == "active" && !s.Next.IsZero() {
			f.lag = max(0, now.Sub(s.Next))
		}
		all = append(all, f)
	}
	return all, nil
}

func (s *schedules) describe(out chan<- *prometheus.Desc) {
	if s == nil {
		return
	}
	out <- s.lag
	out <- s.fired
	out <- s.missed
}

// collect tells of each schedule that has a series. Of one that is removed the lag stays, at 0. The
// counters of all others are not added up: the sum would fall with each that is removed, which looks
// like a counter that begins again.
func (s *schedules) collect(ctx context.Context, out chan<- prometheus.Metric) {
	if s == nil {
		return
	}
	seen := s.all.Get(ctx)
	if !seen.Known() {
		return
	}
	lags := map[string]time.Duration{}
	for _, f := range seen.Value {
		label := s.names.of(f.name)
		lags[label] = max(lags[label], f.lag)
		if label != Other {
			out <- prometheus.MustNewConstMetric(s.fired, prometheus.CounterValue, float64(f.fired), label)
			out <- prometheus.MustNewConstMetric(s.missed, prometheus.CounterValue, float64(f.missed), label)
		}
	}
	for _, name := range s.names.all() {
		lags[name] += 0
	}
	for name, lag := range lags {
		out <- prometheus.MustNewConstMetric(s.lag, prometheus.GaugeValue, lag.Seconds(), name)
	}
}

// nowOf is the time by the clock of a store, or this program's.
func nowOf(ctx context.Context, st any) (time.Time, error) {
	if c, ok := st.(store.Clock); ok {
		return c.Now(ctx)
	}
	return time.Now(), nil
}
