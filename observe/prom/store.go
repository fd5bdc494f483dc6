package prom

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// Store returns a collector of the backlog of a store and of what engines hold. The values are the
// same in every program, so export them in one program of those that share the store. A store may
// have further roles: a [store.Inspector] tells how many jobs are in each state, a [report.Checker]
// the age of the oldest due job, a [store.Pauser] which queues are paused, a [store.ScheduleKeeper]
// how its schedules fire, a [store.Limiter] what limits allow and engines hold of them, and a
// [report.ScaleStore] how many engines would keep up with the work.
//
// The store is read in the background, with at most half a hundredth of the time for each value.
// With a million jobs the values may be minutes old; a metric has the time of the reading. How many
// engines are wanted is bounded in what it costs, and some seconds old at most.
func Store(store report.LiveStats, config ...Config) prometheus.Collector {
	b := &backlog{
		queues:    bounded{max: cmp.Or(configOf(config).MaxQueues, defaultMax)},
		schedules: newSchedules(store, configOf(config)),
		names:     bounded{max: cmp.Or(configOf(config).MaxLimits, defaultMax)},
		figures: sample.New(func(ctx context.Context) (report.Analytics, error) {
			return store.Analyze(ctx, report.AnalyticsFilter{})
		}),
		groups: sample.New(func(ctx context.Context) ([]report.DueGroup, error) {
			return store.DueBy(ctx, report.FieldQueue, report.AnalyticsFilter{}, maxGroups)
		}),
		up:      gauge("store_up", "Whether the store answered when it was last looked at."),
		sampled: gauge("jobs_sampled_timestamp_seconds", "When the jobs of the store were last counted, by the older of their counts."),
		queued:  gauge("jobs_queued", "Jobs that are due and that no engine has taken.", "queue"),
		limited: gauge("jobs_limited", "Jobs that are queued and that a limit lets not start."),
		jobs:    gauge("jobs", "Jobs that are stored, by state.", "state"),
		paused:  gauge("queue_paused", "Whether a queue is paused, and of all others how many are.", "queue"),
		zombies: gauge("jobs_zombies", "Orphaned jobs: held by engines that died, and not yet taken over."),
		permits: gauge("limit_permits", "How many jobs may run at once under a limit that bounds that, of all of its keys in use.", "limit"),
		held:    gauge("limit_permits_held", "Permits to run jobs under a limit that engines hold.", "limit"),
		asked:   gauge("limit_permits_asked", "Permits to run jobs under a limit that engines wait for.", "limit"),
		flows:   gauge("flows_open", "Flows that have not ended, among the first 100,000 jobs that wait for others."),
		noted:   gauge("oldest_note_age_seconds", "For how long the oldest change that jobs may wait for, of another job or a signal, has not been looked at: 0 in health."),
		engines: gauge("wanted_engines", "Engines that would keep up with the work of all queues, if each had as many slots as those that run: 0 if there is none."),
		slots:   gauge("wanted_slots", "Slots that would keep up with the work of a queue, without what more slots could not run.", "queue"),
		heldUp:  gauge("jobs_held_up", "Jobs that more engines could not run within the target: of paused queues, full limits, unknown kinds, or retries of a kind that fails.", "queue"),
		age:     gauge("oldest_job_age_seconds", "For how long the oldest job that is due and not taken has been due.", "queue"),
	}
	if x, ok := store.(report.Checker); ok {
		b.ages = sample.New(func(ctx context.Context) (facts, error) { return factsOf(ctx, x) })
	}
	if x, ok := store.(inspector); ok {
		b.counts = sample.New(x.Counts)
	}
	if x, ok := store.(pauser); ok {
		b.pauses = sample.New(x.Paused)
	}
	b.limits = limitsOf(store)
	if x, ok := store.(report.ScaleStore); ok {
		target := configOf(config).Target
		b.scale = sample.NewFresh(func(ctx context.Context) (report.Scaling, error) {
			return report.Scale(ctx, x, report.ScaleFilter{Target: target})
		})
	}
	return b
}

// inspector and pauser are what is needed of such roles.
type (
	inspector interface {
		Counts(ctx context.Context) (map[stint.State]int64, error)
	}
	pauser interface {
		Paused(ctx context.Context) ([]string, error)
	}
)

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("stint_"+name, help, labels, nil)
}

// maxGroups is how many queues are asked for. Jobs of further ones are counted as other.
const maxGroups = 1000

// backlog exports samples of a store.
type backlog struct {
	queues  bounded
	names   bounded // of limits
	figures *sample.Sample[report.Analytics]
	groups  *sample.Sample[[]report.DueGroup]
	ages    *sample.Sample[facts]             // nil for a store that does not tell
	limits  *sample.Sample[[]store.LimitInfo] // nil for a store that has none

	counts *sample.Sample[map[stint.State]int64] // nil for a store that does not tell
	pauses *sample.Sample[[]string]              // nil for a store that does not tell
	scale  *sample.Sample[report.Scaling]        // nil for a store that does not tell

	schedules *schedules // nil for a store that has none

	up, sampled, queued, limited, jobs, paused, zombies, age, permits, held, asked, flows, noted, engines, slots, heldUp *prometheus.Desc
}

// Describe implements [prometheus.Collector].
func (b *backlog) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{b.up, b.sampled, b.queued, b.limited, b.jobs, b.paused, b.zombies, b.age, b.permits, b.held, b.asked, b.flows, b.noted, b.engines, b.slots, b.heldUp} {
		out <- desc
	}
	b.schedules.describe(out)
}

// Collect implements [prometheus.Collector]. What is not known is left out.
func (b *backlog) Collect(out chan<- prometheus.Metric) {
	ctx := context.Background()
	tell := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	figures, groups := b.figures.Get(ctx), b.groups.Get(ctx)
	if figures.At.IsZero() && figures.Err == nil {
		return // the first look is under way
	}
	if !figures.Known() {
		tell(b.up, 0)
		return
	}
	tell(b.up, 1)
	tell(b.sampled, float64(b.tellCounts(ctx, figures.At, tell).UnixMilli())/1000)
	tell(b.limited, float64(figures.Value.Limited))
	tell(b.zombies, float64(figures.Value.Zombies))
	if groups.Known() {
		for queue, n := range b.byQueue(groups.Value, figures.Value.Queued) {
			tell(b.queued, float64(n), queue)
		}
	}
	if b.pauses != nil {
		b.tellPauses(b.pauses.Get(ctx), tell)
	}
	b.schedules.collect(ctx, out)
	if b.limits != nil {
		b.tellLimits(b.limits.Get(ctx), tell)
	}
	if b.scale != nil {
		b.tellScale(b.scale.Get(ctx), tell)
	}
	if b.ages == nil {
		return
	}
	if ages := b.ages.Get(ctx); ages.Known() {
		tell(b.flows, float64(ages.Value.flows.Open))
		tell(b.noted, ages.Value.noted.Seconds())
		oldest := map[string]time.Duration{}
		for _, queue := range slices.Sorted(maps.Keys(ages.Value.ages)) {
			label := b.queues.of(queue)
			oldest[label] = max(oldest[label], ages.Value.ages[queue])
		}
		for _, queue := range b.queues.all() {
			oldest[queue] += 0
		}
		for queue, age := range oldest {
			tell(b.age, age.Seconds(), queue)
		}
	}
}

// tellCounts tells how many jobs are in each state, and returns when they were counted, or the
// other time if that is earlier.
func (b *backlog) tellCounts(ctx context.Context, other time.Time, tell func(desc *prometheus.Desc, value float64, labels ...string)) time.Time {
	if b.counts == nil {
		return other
	}
	counts := b.counts.Get(ctx)
	if !counts.Known() {
		return other
	}
	for _, state := range store.States {
		tell(b.jobs, float64(counts.Value[state]), string(state))
	}
	if counts.At.Before(other) {
		return counts.At
	}
	return other
}

// tellPauses tells of each queue that has a series whether it is paused.
func (b *backlog) tellPauses(pauses sample.Seen[[]string], tell func(desc *prometheus.Desc, value float64, labels ...string)) {
	if !pauses.Known() {
		return
	}
	paused := map[string]int{}
	for _, queue := range pauses.Value {
		paused[b.queues.of(queue)]++
	}
	for _, queue := range b.queues.all() {
		paused[queue] += 0
	}
	for queue, n := range paused {
		tell(b.paused, float64(n), queue)
	}
}

// tellScale tells how many engines are wanted, and what slots each queue that has a series takes.
func (b *backlog) tellScale(scale sample.Seen[report.Scaling], tell func(desc *prometheus.Desc, value float64, labels ...string)) {
	if !scale.Known() {
		return
	}
	tell(b.engines, float64(scale.Value.Engines))
	slots, heldUp := map[string]float64{}, map[string]int64{}
	for _, q := range scale.Value.Queues {
		label := b.queues.of(q.Queue)
		slots[label], heldUp[label] = slots[label]+q.Slots, heldUp[label]+q.Blocked
	}
	for _, queue := range b.queues.all() {
		slots[queue] += 0
	}
	for queue, n := range slots {
		tell(b.slots, n, queue)
		tell(b.heldUp, float64(heldUp[queue]), queue)
	}
}

// limitSum is what is known of the limits that have one series.
type limitSum struct {
	permits, held, asked int64
	bounded              bool
}

// tellLimits tells of each limit that has a series. One that is forgotten keeps it.
func (b *backlog) tellLimits(limits sample.Seen[[]store.LimitInfo], tell func(desc *prometheus.Desc, value float64, labels ...string)) {
	if !limits.Known() {
		return
	}
	sums := map[string]limitSum{}
	for _, l := range limits.Value {
		if l.Name != store.LimitOf(l.Name) {
			continue // a key: it counts with its limit
		}
		label := b.names.of(l.Name)
		sum := sums[label]
		if most, bounded := l.Most(); bounded {
			sum.permits, sum.bounded = sum.permits+most, true
		}
		sum.held, sum.asked = sum.held+l.Held, sum.asked+l.Asked
		sums[label] = sum
	}
	for _, limit := range b.names.all() {
		if _, known := sums[limit]; !known {
			sums[limit] = limitSum{}
		}
	}
	for limit, sum := range sums {
		tell(b.held, float64(sum.held), limit)
		tell(b.asked, float64(sum.asked), limit)
		if sum.bounded && limit != Other {
			tell(b.permits, float64(sum.permits), limit)
		}
	}
}

// limitsOf samples the limits of a store that has some.
func limitsOf(st any) *sample.Sample[[]store.LimitInfo] {
	l, ok := st.(store.Limiter)
	if !ok {
		return nil
	}
	return sample.New(l.Limits)
}

// byQueue counts the jobs of each queue that has a series; a queue that has become
// empty has none and keeps it.
func (b *backlog) byQueue(groups []report.DueGroup, queued int64) map[string]int64 {
	counts, counted := map[string]int64{}, int64(0)
	for _, g := range groups {
		if g.Value != nil {
			counts[b.queues.of(*g.Value)] += g.Jobs
			counted += g.Jobs
		}
	}
	if len(groups) == maxGroups {
		counts[Other] += max(0, queued-counted)
	}
	for _, queue := range b.queues.all() {
		counts[queue] += 0
	}
	return counts
}

// facts are what a store tells of itself.
type facts struct {
	ages  map[string]time.Duration // of the oldest work of each queue
	flows report.FlowFacts
	noted time.Duration // how old the oldest note is
}

// factsOf asks a store about itself.
func factsOf(ctx context.Context, st report.Checker) (facts, error) {
	signs, err := st.Examine(ctx, report.Options{})
	if err != nil {
		return facts{}, err
	}
	for _, f := range signs.Findings {
		if f.Code == report.CodeNotChecked && f.Severity != report.SeverityNote {
			return facts{}, errors.New(f.Subject + ": " + f.Problem)
		}
	}
	now, err := nowOf(ctx, st)
	if err != nil {
		return facts{}, err
	}
	found := facts{ages: map[string]time.Duration{}, flows: signs.Flows}
	for _, b := range signs.Backlogs {
		found.ages[b.Queue] = max(found.ages[b.Queue], now.Sub(b.Oldest))
	}
	if !signs.Flows.Noted.IsZero() {
		found.noted = max(0, now.Sub(signs.Flows.Noted))
	}
	return found, nil
}
