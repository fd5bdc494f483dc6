package storetest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

func (m *model) WriteMetrics(_ context.Context, x report.Metrics) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	x.Kinds = maps.Clone(x.Kinds)
	if !m.is("takes an engine's clock for its own") {
		x.At = time.Now()
	}
	i := slices.IndexFunc(m.metrics, func(y report.Metrics) bool {
		return y.Instance == x.Instance && (y.Since.Equal(x.Since) || m.is("knows engines by their names"))
	})
	switch {
	case i >= 0 && m.is("keeps the first figures"):
		return nil
	case i >= 0:
		m.metrics = slices.Delete(m.metrics, i, i+1)
	}
	m.metrics = append(m.metrics, x)
	return nil
}

func (m *model) EngineMetrics(context.Context) ([]report.Metrics, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Clone(m.metrics)
	if !m.is("lists the oldest figures first") {
		slices.Reverse(list)
	}
	return list, nil
}

// modelAttempt is an attempt that began.
type modelAttempt struct {
	report.Stats
	id           stint.ID
	pos          store.Position
	ended        time.Time
	took, waited time.Duration
	ran          bool
}

// attempts lists those of some rows.
func (d *database) attempts(is func(*row) bool) []modelAttempt {
	var all []modelAttempt
	for _, r := range d.visible(func(r *row) bool { return r.entry != nil && is(r) }) {
		x := d.done[r.entry.Pos]
		if x == nil || x.Slot == 0 && x.Outcome != stint.OutcomeLost && !d.is("counts what did not begin") {
			continue
		}
		a := modelAttempt{id: r.id, pos: r.entry.Pos, ended: x.finished, took: x.finished.Sub(x.started), ran: x.Slot > 0}
		a.Kind, a.Queue, a.Outcome = r.entry.Kind, r.entry.Queue, x.Outcome
		ready := r.entry.Ready
		if d.is("measures from the enqueue") {
			ready = r.entry.Created
		}
		if a.waited = max(0, x.started.Sub(ready)); d.is("counts what did not begin") {
			a.ran = true
		}
		all = append(all, a)
	}
	return all
}

func (m *model) SumUp(context.Context) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.is("sums up twice") {
		m.gone = append(m.gone, m.attempts(func(*row) bool { return true })...)
	}
	for _, a := range m.attempts(func(*row) bool { return true }) {
		m.summed[a.pos] = true
	}
	return false, nil
}

func (m *model) Unsummed(_ context.Context, most int) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.attempts(func(*row) bool { return true }) {
		if !m.summed[a.pos] && (n < most || m.is("counts on")) {
			n++
		}
	}
	return n, nil
}

func (m *model) Stats(_ context.Context, f report.StatsFilter) ([]report.Stats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := f.Check(); err != nil && !m.is("takes any span for its statistics") {
		return nil, err
	}
	from, to := f.Bounds()
	if m.is("bounds statistics by the instant") {
		from, to = f.From, f.To
	}
	if first := report.FirstMinute(time.Now()); f.Every == time.Minute && from.Before(first) && !m.is("tells minutes for ever") {
		from = first
	}
	every := f.Every
	if m.is("tells hours for minutes") {
		every = every.Truncate(time.Hour)
	}
	var list []report.Stats
	for _, a := range append(m.attempts(func(*row) bool { return true }), m.gone...) {
		if f.Kind != "" && a.Kind != f.Kind || f.Queue != "" && a.Queue != f.Queue || a.ended.Before(from) || !to.IsZero() && !a.ended.Before(to) {
			continue
		}
		if f.Settled && !m.summed[a.pos] && !slices.ContainsFunc(m.gone, func(g modelAttempt) bool { return g.pos == a.pos }) && !m.is("takes everything for settled") {
			continue
		}
		row := a.Stats
		row.Start = a.ended.UTC()
		if a.ran || m.is("takes the lost for short") {
			row.Ran(a.took, a.waited, a.ended)
		} else {
			row.Lost()
		}
		list = append(list, row)
	}
	f.Every = every
	if m.is("tells distributions to all") {
		f.Distributed = true
	}
	for i := range list {
		if m.is("takes what waited for what it took") {
			list[i].TookBy = list[i].WaitedBy
		}
	}
	return report.MergeStats(list, f), nil
}

// modelDue is a job that nobody has claimed.
type modelDue struct {
	stint.JobInfo
	due time.Time // zero while a retry function is to decide
}

func (d *database) unclaimed(f report.AnalyticsFilter) []modelDue {
	var all []modelDue
	for _, r := range d.visible(func(r *row) bool { return r.wait != nil || r.entry != nil && d.done[r.entry.Pos] == nil && !r.taken }) {
		job := d.jobRow(r.id)
		j := modelDue{JobInfo: d.show(job, []*row{r}), due: r.due}
		if r.entry != nil {
			j.due = r.entry.Ready
		}
		if !d.chosen(f, j.Queue, j.Kind, j.Tags) {
			continue
		}
		all = append(all, j)
	}
	return all
}

func (d *database) chosen(f report.AnalyticsFilter, queue, kind string, tags []string) bool {
	return (f.Queue == "" || f.Queue == queue) && (f.Kind == "" || f.Kind == kind) &&
		(f.Tag == "" || slices.Contains(tags, f.Tag) || d.is("analyzes any tag"))
}

func (m *model) Analyze(_ context.Context, f report.AnalyticsFilter) (report.Analytics, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := f.Check(); err != nil && !m.is("takes any span for its statistics") {
		return report.Analytics{}, err
	}
	f.Span = cmp.Or(f.Span, report.MaxSpan)
	if m.is("takes a minute for any span") {
		f.Span = report.MaxSpan
	}
	a := report.Analytics{At: f.At}
	if a.At.IsZero() {
		a.At = time.Now()
	}
	var under []store.JobsUnder
	var states []store.GateState
	for _, j := range m.unclaimed(f) {
		if !j.due.IsZero() && !j.due.After(a.At) || m.is("takes the postponed for queued") {
			a.Queued++
			under = append(under, store.JobsUnder{Queue: j.Queue, Limits: strings.Join(j.Limits, "\n"), Jobs: 1})
		} else {
			a.Postponed++
		}
	}
	for _, c := range m.claims {
		e := m.engine(c.Engine)
		alive := e != nil && (m.held[c.Engine] || time.Since(e.Beat) <= e.TimeToLive) || m.is("sees no zombies")
		for _, pos := range m.unfinished(c) {
			i := slices.IndexFunc(m.rows, func(r *row) bool { return r.entry != nil && r.entry.Pos == pos })
			job := m.jobRow(m.rows[i].id).job
			switch {
			case !m.chosen(f, m.rows[i].entry.Queue, m.rows[i].entry.Kind, job.Tags):
			case alive:
				a.Running++
			default:
				a.Zombies++
			}
		}
	}
	for _, gate := range store.GatesUnder(under) {
		states = append(states, m.gate(gate))
	}
	if a.Limited = store.Limited(time.Now(), under, states); m.is("takes the limited for free") {
		a.Limited = 0
	}
	a.AttemptFigures = m.lately(a.At, f)
	return a, nil
}

// lately tells how the attempts went that ended in the time before an instant.
func (d *database) lately(at time.Time, f report.AnalyticsFilter) report.AttemptFigures {
	var took, waited []time.Duration
	for _, x := range d.attempts(func(*row) bool { return true }) {
		in := x.ended.After(at.Add(-f.Span)) && !x.ended.After(at) || d.is("takes all time for a minute")
		if in && x.ran && d.chosen(f, x.Queue, x.Kind, d.jobRow(x.id).job.Tags) {
			took, waited = append(took, x.took), append(waited, x.waited)
		}
	}
	return report.AttemptFigures{Ended: int64(len(took)), PerSecond: float64(len(took)) / f.Span.Seconds(), Latency: d.spread(waited), Execution: d.spread(took)}
}

// Activity is what Analyze says without what waits.
func (m *model) Activity(ctx context.Context, f report.AnalyticsFilter) (report.Activity, error) {
	a, err := m.Analyze(ctx, f)
	now := report.Activity{At: a.At, Running: a.Running, Zombies: a.Zombies, AttemptFigures: a.AttemptFigures}
	if m.is("sees nothing run in what is cheap") {
		now.Running = 0
	}
	return now, err
}

func (m *model) AnalyzeKinds(_ context.Context, f report.AnalyticsFilter) ([]report.KindAnalytics, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := f.Check(); err != nil && !m.is("takes any span for kinds") {
		return nil, err
	}
	at := f.At
	if at.IsZero() {
		at = time.Now()
	}
	f.Span = cmp.Or(f.Span, report.MaxSpan)
	var all []report.KindAnalytics
	for _, kind := range m.kindsOf(f) {
		if f.Kind = kind; m.is("tells of kinds as of all") {
			f.Kind = ""
		}
		if figures := m.lately(at, f); figures.Ended > 0 || m.is("tells of kinds that did nothing") {
			all = append(all, report.KindAnalytics{Kind: kind, AttemptFigures: figures})
		}
	}
	return all, nil
}

// kindsOf are the kinds that attempts ever were of, and a filter may mean.
func (d *database) kindsOf(f report.AnalyticsFilter) []string {
	kinds := map[string]bool{}
	for _, x := range d.attempts(func(*row) bool { return true }) {
		if f.Kind == "" || f.Kind == x.Kind || d.is("analyzes kinds beside the one") {
			kinds[x.Kind] = true
		}
	}
	list := slices.Sorted(maps.Keys(kinds))
	if d.is("tells of kinds in any order") {
		slices.Reverse(list)
	}
	return list
}

func (d *database) spread(all []time.Duration) (s report.Percentiles) {
	if len(all) == 0 {
		return s
	}
	slices.Sort(all)
	rank := func(percent int) time.Duration {
		n := 0
		for n*100 < len(all)*percent {
			n++
		}
		if d.is("takes the rank below") && n > 1 {
			n--
		}
		return all[n-1]
	}
	for _, d := range all {
		s.Mean += d
	}
	s.Mean = (s.Mean / time.Duration(len(all))).Truncate(time.Microsecond)
	if s.P50, s.P95, s.P99 = rank(50), rank(95), rank(99); d.is("takes the mean for the median") {
		s.P50 = s.Mean
	}
	return s
}

func (m *model) DueBy(_ context.Context, field report.Field, f report.AnalyticsFilter, limit int) ([]report.DueGroup, error) {
	if err := field.Check(); err != nil && !m.is("groups by anything") {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.At.IsZero() {
		f.At = time.Now()
	}
	groups, none := map[string]int64{}, int64(0)
	for _, j := range m.unclaimed(f) {
		if j.due.IsZero() || j.due.After(f.At) {
			continue
		}
		values := m.says(field, j)
		if len(values) == 0 || m.is("groups the first tag") {
			values = append(values, "")[:1]
		}
		for _, v := range values {
			if v == "" {
				none++
			} else {
				groups[v]++
			}
		}
	}
	var list []report.DueGroup
	if none > 0 && !m.is("leaves out who says nothing") {
		list = append(list, report.DueGroup{Jobs: none})
	}
	for _, v := range slices.Sorted(maps.Keys(groups)) {
		list = append(list, report.DueGroup{Value: &v, Jobs: groups[v]})
	}
	slices.SortStableFunc(list, func(a, b report.DueGroup) int { return cmp.Compare(b.Jobs, a.Jobs) })
	return list[:min(len(list), cmp.Or(limit, 100))], nil
}

// says is what a field says of a job; nothing is none or empty.
func (d *database) says(field report.Field, j modelDue) []string {
	switch field {
	case report.FieldQueue:
		return []string{j.Queue}
	case report.FieldKind:
		return []string{j.Kind}
	case report.FieldPriority:
		return []string{strconv.Itoa(j.Priority)}
	case report.FieldURN:
		return []string{j.URN}
	case report.FieldSource:
		return []string{j.Source}
	case report.FieldTag:
		return j.Tags
	case report.FieldCorrelation:
		return []string{j.Correlation}
	}
	in, keys := field.Path()
	raw := j.Args
	if in == "metadata" {
		raw = j.Metadata
	}
	if d.is("looks at the first key only") {
		keys = keys[:1]
	}
	for _, key := range keys {
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil {
			return nil
		}
		raw = object[key]
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []string{text}
	}
	return []string{strings.TrimSpace(string(raw))}
}
