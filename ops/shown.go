package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/redact"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// Shown is a store as people may see it, whatever their role: without the parts of arguments that the kind of a job
// redacts ([stint.Redact]). Pages, the API and the command read jobs, schedules and entries through it only, and so
// does a [Local]. What it is asked to store it stores as it is.
//
// The pointers of a kind are those of its last declaration, which is read with each answer that has arguments: a kind
// that no engine has declared redacts nothing.
type Shown struct{ Store }

// Show returns what people may see of a store.
func Show(st Store) Shown {
	if shown, ok := st.(Shown); ok {
		return shown
	}
	return Shown{st}
}

// inClear is the store itself, to write to, and for the optional roles that it has.
func inClear(st Store) Store {
	if shown, ok := st.(Shown); ok {
		return shown.Store
	}
	return st
}

// redactions are the pointers of the kinds that redact something.
func (s Shown) redactions(ctx context.Context) (map[string][]string, error) {
	kinds, err := s.Store.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string][]string{}
	for _, k := range kinds {
		if k.Redacted != nil {
			all[k.Name] = k.Redacted
		}
	}
	return all, nil
}

// jobs redacts jobs, which belong to nobody else.
func (s Shown) jobs(ctx context.Context, jobs []stint.JobInfo, err error) ([]stint.JobInfo, error) {
	if err != nil || !slices.ContainsFunc(jobs, func(j stint.JobInfo) bool { return len(j.Args) > len("{}") }) {
		return jobs, err
	}
	all, err := s.redactions(ctx)
	if err != nil {
		return nil, err
	}
	for i := range jobs {
		jobs[i].Args = redact.Value(jobs[i].Args, all[jobs[i].Kind])
	}
	return jobs, nil
}

// job redacts a copy of a job: those who await one share it.
func (s Shown) job(ctx context.Context, job *stint.JobInfo, err error) (*stint.JobInfo, error) {
	if err != nil || job == nil {
		return job, err
	}
	jobs, err := s.jobs(ctx, []stint.JobInfo{*job}, nil)
	if err != nil {
		return nil, err
	}
	return &jobs[0], nil
}

// Job implements [store.Reader].
func (s Shown) Job(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	job, err := s.Store.Job(ctx, id)
	return s.job(ctx, job, err)
}

// Jobs implements [store.Inspector].
func (s Shown) Jobs(ctx context.Context, f store.Filter) ([]stint.JobInfo, error) {
	jobs, err := s.Store.Jobs(ctx, f)
	return s.jobs(ctx, jobs, err)
}

// Await implements [store.Awaiter].
func (s Shown) Await(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	job, err := s.Store.Await(ctx, id)
	return s.job(ctx, job, err)
}

// History is the history of the store, for a store that has one: its jobs are shown like all others.
func (s Shown) History() (store.History, bool) {
	h, ok := s.Store.(store.History)
	return shownHistory{h, s}, ok
}

type shownHistory struct {
	store.History
	shown Shown
}

// Ended implements [store.History].
func (h shownHistory) Ended(ctx context.Context, ids []stint.ID) (map[stint.ID]*stint.JobInfo, error) {
	ended, err := h.History.Ended(ctx, ids)
	if err != nil {
		return nil, err
	}
	var jobs []stint.JobInfo
	for _, job := range ended {
		if job != nil {
			jobs = append(jobs, *job)
		}
	}
	jobs, err = h.shown.jobs(ctx, jobs, nil)
	for i := range jobs {
		ended[jobs[i].ID] = &jobs[i]
	}
	return ended, err
}

// Fetch implements [view.Store], without arguments: nobody is shown those of an entry.
func (s Shown) Fetch(ctx context.Context, at []store.Position) ([]store.Entry, error) {
	entries, err := s.Store.Fetch(ctx, at)
	for i := range entries {
		entries[i].Args = nil
	}
	return entries, err
}

// schedules redacts schedules.
func (s Shown) schedules(ctx context.Context, schedules []store.ScheduleInfo, err error) ([]store.ScheduleInfo, error) {
	if err != nil || len(schedules) == 0 {
		return schedules, err
	}
	all, err := s.redactions(ctx)
	if err != nil {
		return nil, err
	}
	for i := range schedules {
		// What this program cannot read has the kind in the text only.
		x, stored := &schedules[i], struct{ Kind string }{}
		_ = json.Unmarshal(x.Stored.Job, &stored)
		for _, pointer := range all[stored.Kind] {
			x.Stored.Job = redact.Value(x.Stored.Job, []string{"/args" + pointer})
		}
		x.Job.Args = redact.Value(x.Job.Args, all[x.Job.Kind])
	}
	return schedules, nil
}

// Schedules implements [store.ScheduleKeeper].
func (s Shown) Schedules(ctx context.Context) ([]store.ScheduleInfo, error) {
	all, err := s.Store.Schedules(ctx)
	return s.schedules(ctx, all, err)
}

// Schedule implements [store.ScheduleKeeper].
func (s Shown) Schedule(ctx context.Context, name string) (*store.ScheduleInfo, error) {
	info, err := s.Store.Schedule(ctx, name)
	if err != nil || info == nil {
		return info, err
	}
	all, err := s.schedules(ctx, []store.ScheduleInfo{*info}, nil)
	if err != nil {
		return nil, err
	}
	return &all[0], nil
}

// DueBy implements [report.LiveStats]. It refuses to group by what a kind redacts, unless the filter has another kind.
func (s Shown) DueBy(ctx context.Context, field report.Field, f report.AnalyticsFilter, limit int) ([]report.DueGroup, error) {
	in, path := field.Path()
	if in != "args" {
		return s.Store.DueBy(ctx, field, f, limit)
	}
	all, err := s.redactions(ctx)
	if err != nil {
		return nil, err
	}
	for kind, pointers := range all {
		for _, pointer := range pointers {
			if (f.Kind == "" || f.Kind == kind) && redact.Overlap(pointer, pointerOf(path)) {
				return nil, &InError{"query", valid.Invalid("by", "the kind %s does not show what its arguments have there: ask for another kind alone", kind)}
			}
		}
	}
	return s.Store.DueBy(ctx, field, f, limit)
}

// pointerOf is a path as a JSON pointer.
func pointerOf(path []string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return b.String()
}

// Now implements [store.Clock]: see [view.Now].
func (s Shown) Now(ctx context.Context) (time.Time, error) { return view.Now(ctx, s.Store) }

// Pauses implements [store.PauseTeller], of a store that does not with the names only.
func (s Shown) Pauses(ctx context.Context) ([]store.QueueInfo, error) {
	if teller, ok := s.Store.(store.PauseTeller); ok {
		return teller.Pauses(ctx)
	}
	names, err := s.Store.Paused(ctx)
	var list []store.QueueInfo
	for _, name := range names {
		list = append(list, store.QueueInfo{Name: name})
	}
	return list, err
}

// like is a job whose redacted parts another one takes over.
type like struct {
	*stint.JobInfo          // in clear
	parts          []string // that its kind redacts
}

// like reads a job that new ones are like; nil for none.
func (l *Local) like(ctx context.Context, id stint.ID) (*like, error) {
	if id == 0 {
		return nil, nil
	}
	all, err := Show(l.Store).redactions(ctx)
	if err != nil {
		return nil, err
	}
	job, err := inClear(l.Store).Job(ctx, id)
	if err != nil {
		return nil, &InError{"body.like", fmt.Errorf("job %d: %w", id, err)}
	}
	return &like{job, all[job.Kind]}, nil
}

// fill puts what was redacted into a job that was made of what was shown. A job of another kind gets nothing: that might show it.
func (k *like) fill(j *stint.NewJob) error {
	if k == nil {
		return nil
	}
	if j.Kind == k.Kind {
		j.Args = redact.Fill(j.Args, k.JobInfo.Args, k.parts)
		return nil
	}
	if pointer, ok := redact.Marked(j.Args, k.parts); ok {
		return valid.Invalid("args", "what they have at %q is redacted of the kind %s only: give the value itself", pointer, k.Kind)
	}
	return nil
}
