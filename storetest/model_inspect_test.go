package storetest_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// show makes what people see of a job from its visible rows.
func (d *database) show(job *row, rows []*row) stint.JobInfo {
	j := job.job
	i := stint.JobInfo{
		ID: job.id, Kind: j.Kind, Queue: j.Queue, Priority: j.Priority, Args: j.Args, Attempt: 1, Tags: j.Tags, URN: j.URN,
		Source: j.Source, Metadata: j.Metadata, Retry: j.Retry.String(), Timeout: retry.Duration(j.Timeout), StartBy: j.StartBy, Unique: j.Unique, MaxLosses: d.maxLosses(j), Created: job.made, Due: job.due,
		Origin: d.provenance(job), Correlation: d.correlation(job),
	}
	if keys := d.limitKeys(j); keys != "" && !d.is("shows no limits") {
		i.Limits = strings.Split(keys, "\n")
	}
	d.showPlace(job, false, &i)
	for _, r := range d.rows {
		if r.job != nil && r.from == job.id && (i.RetriedAs == 0 || !d.is("tells the first job of several retries")) {
			i.RetriedAs = r.id
		}
	}
	var last store.Position
	for _, r := range rows {
		if r.wait != nil {
			i.State, i.Attempt, i.Losses, i.Queue, i.Priority = r.wait.Why, r.wait.Attempt, r.next.Losses, r.next.Queue, r.next.Priority
			i.Faulty, i.PendingRetry = r.next.Faulty, r.next.Func
			i.State, i.Awaits, i.Asks = d.blocked(r)
			d.showPlace(job, r.forJobs, &i)
			d.showCalls(&i)
			if r.next.Func == "" {
				i.Due = r.due
			}
			continue
		}
		if x := d.done[r.entry.Pos]; x != nil {
			e := d.history[x.engine]
			i.Attempts = append(i.Attempts, stint.Attempt{
				Attempt: x.Attempt, Outcome: x.Outcome, Final: x.Final, Reason: x.Reason, Started: x.started, Finished: x.finished,
				Engine: int64(x.engine), Instance: e.Instance, Host: e.Host, PID: e.PID, Slot: x.Slot, Result: x.Result, Error: x.Error,
			})
			if !d.is("says nothing of a success") {
				i.Attempts[len(i.Attempts)-1].Derive()
			}
			if r.entry.Pos > last {
				last, i.Started, i.Finished = r.entry.Pos, x.started, x.finished
			}
			if x.Final {
				i.State, i.Reason, i.Attempt = x.Outcome.State(), i.Attempts[len(i.Attempts)-1].Reason, x.Attempt
				i.Faulty = r.faulty && d.is("shows the ended as faulty")
				i.Losses = r.entry.Losses
				if x.Outcome == stint.OutcomeLost && !d.is("leaves out the last loss") {
					i.Losses++
				}
			}
			continue
		}
		if d.is("shows what was awaited") && len(i.Attempts) > 0 {
			i.Awaits = []string{"a"}
		}
		i.State, i.Attempt, i.Losses, i.Faulty = stint.Available, r.entry.Attempt, r.entry.Losses, r.faulty
		if r.num != int64(job.id) {
			i.Due = r.entry.Ready
		}
		if r.taken {
			i.State = stint.Running
			for _, e := range d.engines {
				i.Begun = i.Begun || slices.Contains(e.Running, r.entry.Pos)
			}
		}
	}
	if mark, cancelled := d.cancelled[job.id]; cancelled && !i.State.Final() {
		i.Reason = mark.why
	}
	return i
}

func (m *model) Job(_ context.Context, id stint.ID) (*stint.JobInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	job := m.jobRow(id)
	if job == nil {
		return nil, stint.ErrNotFound
	}
	i := m.show(job, m.visible(func(r *row) bool { return r.id == id && r.job == nil }))
	store.ShowCancelled(&i)
	return &i, nil
}

func (d *database) all() []stint.JobInfo {
	rows := map[stint.ID][]*row{}
	for _, r := range d.visible(func(r *row) bool { return r.job == nil }) {
		rows[r.id] = append(rows[r.id], r)
	}
	var all []stint.JobInfo
	for _, r := range d.visible(func(r *row) bool { return r.job != nil }) {
		all = append(all, d.show(r, rows[r.id]))
	}
	slices.SortFunc(all, func(a, b stint.JobInfo) int { return cmp.Compare(b.ID, a.ID) })
	return all
}

func (m *model) Jobs(_ context.Context, f store.Filter) ([]stint.JobInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []stint.JobInfo
	for _, j := range m.all() {
		if m.fits(f, j) {
			j.Attempts = nil
			found = append(found, j)
		}
	}
	return found[:min(len(found), cmp.Or(f.Limit, 100))], nil
}

func (m *model) Find(ctx context.Context, f store.Filter) ([]stint.ID, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	jobs, err := m.Jobs(ctx, f)
	var ids []stint.ID
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	if m.is("finds in the order of ids") {
		slices.Reverse(ids)
	}
	return ids, err
}

func (d *database) fits(f store.Filter, j stint.JobInfo) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	if d.is("ends spans with their end") && !f.Created.To.IsZero() {
		f.Created.To = f.Created.To.Add(time.Hour)
	}
	if d.is("knows one state only") && len(f.States) > 0 {
		f.States = f.States[:1]
	}
	if f.Correlation == j.ID.String() && d.is("leaves out the first of a correlation") {
		return false
	}
	return f.Is(j.State) && is(f.Kind, j.Kind) && is(f.Queue, j.Queue) && isAbout(f, j.URN) && is(f.Correlation, j.Correlation) && is(f.Schedule, j.Origin.Schedule) &&
		(f.Flow == 0 || j.Flow == f.Flow || d.is("finds jobs of any flow")) && (!f.Flows || j.IsFlow || d.is("finds jobs beside flows")) &&
		(is(f.Source, j.Source) || d.is("has no source")) && (!f.Faulty || j.Faulty || d.is("filters by faulty in vain")) &&
		(!f.NotRetried || !d.retried(j.ID) || d.is("finds what was retried")) && (f.Tag == "" || slices.Contains(j.Tags, f.Tag)) && (f.Before == 0 || j.ID < f.Before) && (j.ID > f.After || d.is("shows older ones than were asked for")) &&
		f.Created.Holds(j.Created) && f.Due.Holds(j.Due) && f.Finished.Holds(j.Finished) && d.went(f, j.Attempts) &&
		(j.Attempt > f.Attempts || f.Attempts == 0 || d.is("counts what was not tried again")) && d.long(f, j.Attempts)
}

func (d *database) retried(id stint.ID) bool {
	return len(d.visible(func(r *row) bool { return r.job != nil && r.from == id })) > 0
}

// went tells whether an attempt ended as the filter says.
func (d *database) went(f store.Filter, attempts []stint.Attempt) bool {
	if f.Outcome == 0 && f.Class == "" && f.Error == "" {
		return true
	}
	if d.is("looks at the last attempt only") && len(attempts) > 0 {
		attempts = attempts[len(attempts)-1:]
	}
	return slices.ContainsFunc(attempts, func(x stint.Attempt) bool {
		var e stint.Failure
		if x.Error != nil {
			e = *x.Error
		}
		if x.Outcome == stint.OutcomeLost && d.is("excludes crashes") {
			return false
		}
		return (f.Outcome == 0 || f.Outcome == x.Outcome) && (f.Class == "" || f.Class == e.Class || slices.Contains(e.Classes, f.Class) && !d.is("knows one class only")) && strings.Contains(e.Message, f.Error)
	})
}

func (m *model) Counts(context.Context) (map[stint.State]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := map[stint.State]int64{}
	for _, j := range m.all() {
		counts[j.State]++
	}
	if m.is("miscounts") {
		counts[stint.Retrying]++
	}
	return counts, nil
}

func (m *model) Ahead(_ context.Context, id stint.ID, most int) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, r := range m.visible(func(r *row) bool { return r.entry != nil && !r.taken && m.done[r.entry.Pos] == nil }) {
		if r.id != id {
			continue
		}
		for _, other := range m.visible(func(o *row) bool { return o.entry != nil && !o.taken && o.lane == r.lane && m.done[o.entry.Pos] == nil }) {
			if other.entry.Pos < r.entry.Pos || m.is("counts those behind as ahead") {
				n++
			}
		}
	}
	return min(n, most), nil
}

func (m *model) Kinds(context.Context) ([]stint.KindInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []stint.KindInfo
	for _, name := range slices.Sorted(maps.Keys(m.kinds)) {
		all = append(all, m.kinds[name])
	}
	return all, nil
}

func (m *model) Schema(context.Context) (store.SchemaInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.schema(), nil
}

func (d *database) schema() store.SchemaInfo {
	i := store.SchemaInfo{Where: "model", Installed: d.installed, Known: 1, Oldest: d.oldest}
	if d.installed == 0 {
		i.Oldest = 0
	}
	return i
}

func (m *model) Migrate(context.Context) (store.SchemaInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.installed > 1 && m.oldest > 1 && !m.is("works on any schema") {
		return m.schema(), store.ErrSchema
	}
	if m.installed == 0 {
		m.reset()
	}
	return m.schema(), nil
}

func (m *model) Uninstall(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reset()
	m.installed = 0
	return nil
}

func (m *model) PrintSchema(from int) (string, error) {
	if from > 0 {
		return "", nil
	}
	return "create everything;", nil
}

func (m *model) Audit(context.Context) (*store.Ledger, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &store.Ledger{Claims: slices.Clone(m.claims), Buried: maps.Clone(m.buried)}
	slices.SortStableFunc(l.Claims, func(a, b store.LedgerClaim) int {
		return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.N, b.N))
	})
	for _, r := range m.visible(func(r *row) bool { return r.entry != nil }) {
		behind := r.taken || m.is("loses late rows") && r.num <= m.frontier(r.lane)
		l.Entries = append(l.Entries, store.LedgerEntry{
			Pos: r.entry.Pos, Job: r.id, Lane: r.lane, Attempt: r.entry.Attempt, Losses: r.entry.Losses, Behind: behind,
		})
	}
	for pos, x := range m.done {
		l.Executions = append(l.Executions, store.LedgerExecution{
			Pos: pos, Job: x.Job, Attempt: x.Attempt, Nonce: x.Nonce, Engine: x.engine, Outcome: x.Outcome, Final: x.Final,
			Started: x.started, Finished: x.finished, Slot: x.Slot, Reason: x.Reason,
		})
	}
	for _, r := range m.visible(func(r *row) bool { return r.wait != nil }) {
		l.Waiting = append(l.Waiting, *r.wait)
	}
	for _, j := range m.all() {
		r := m.jobs[j.ID]
		_, marked := m.cancelled[j.ID]
		_, flowMarked := m.cancelled[r.flow]
		l.Jobs = append(l.Jobs, store.LedgerJob{ID: j.ID, State: j.State, Schedule: j.Origin.Schedule, Occurrence: j.Origin.Occurrence,
			Flow: r.flow, IsFlow: r.isFlow, Recovered: r.from, Unique: strings.HasPrefix(j.Unique, string(stint.UntilEnded)) && !marked && !flowMarked})
		for _, n := range r.needs {
			l.Needs = append(l.Needs, store.FlowNeed{Child: j.ID, Parent: n.job, Wants: n.wants})
		}
	}
	for _, k := range m.visible(func(r *row) bool { return strings.HasPrefix(r.key, "\x01") }) {
		if last := m.uniqueRow(k.key); last != nil && !m.is("keeps no account of unique keys") {
			l.Holders = append(l.Holders, last.holder)
		}
	}
	for key := range m.steps {
		l.Kept = append(l.Kept, key.job)
	}
	for _, s := range m.said {
		l.Kept = append(l.Kept, s.job)
	}
	for _, e := range m.engines {
		l.Engines = append(l.Engines, e.Token)
	}
	return l, nil
}

func (m *model) Listen(ctx context.Context, ring func(store.News)) error {
	m.mu.Lock()
	n := int(m.draw())
	m.bells[n] = ring
	m.mu.Unlock()
	ring(store.News{})
	<-ctx.Done()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.bells, n)
	if m.is("fails when it stops listening") {
		return ctx.Err()
	}
	return nil
}

// long tells whether an attempt took as long as the filter asks for.
func (d *database) long(f store.Filter, all []stint.Attempt) bool {
	if d.is("looks how long the last attempt took") && len(all) > 1 {
		all = all[len(all)-1:]
	}
	return f.Longer == 0 || slices.ContainsFunc(all, func(x stint.Attempt) bool { return x.Finished.Sub(x.Started) > f.Longer })
}

// isAbout tells whether a URN is the one that a filter says, or begins so.
func isAbout(f store.Filter, urn string) bool {
	from, to, begins := f.URNRange()
	if !begins {
		return f.URN == "" || f.URN == urn
	}
	return urn != "" && urn >= from && (to == "" || urn < to)
}
