// Package rows describes, once for all stores, the columns of what people read and the fields
// that these are read into. A null leaves its field as it is.
package rows

import (
	"reflect"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Scan reads the columns of a row.
type Scan = func(into ...any) error

// Fields are pointers to the exported fields of a struct, in their order. A struct within it,
// unless it is an instant, stands for its own fields.
func Fields[V any](v *V) []any { return fields(reflect.ValueOf(v).Elem(), nil) }

func fields(v reflect.Value, all []any) []any {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case !v.Type().Field(i).IsExported():
		case f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[time.Time]():
			all = fields(f, all)
		default:
			all = append(all, f.Addr().Interface())
		}
	}
	return all
}

// JobColumns are those of jobs, and Job where they are read into. Each store has
// its own for the retry policy.
const JobColumns = `j.id, j.kind, j.state, j.begun, j.queue, j.priority, j.args, j.attempt, j.losses, j.reason, j.tags,
  j.urn, j.source, j.metadata, j.timeout, j.start_by, j.uniqueness, j.limits, j.max_losses, j.created, j.due, j.started, j.finished,
  j.faulty, j.undecided, j.awaits, j.asks, j.flow, j.node, j.is_flow, j.watch, j.recovered, j.schedule, j.nth, j.occurrence, j.correlation`

func Job(j *stint.JobInfo) []any {
	j.MaxLosses = stint.DefaultMaxLosses
	return append([]any{
		&j.ID, &j.Kind, &j.State, &j.Begun, &j.Queue, &j.Priority, &j.Args, &j.Attempt, &j.Losses, &j.Reason, &j.Tags,
		&j.URN, &j.Source, &j.Metadata, (*time.Duration)(&j.Timeout), &j.StartBy, &j.Unique, &j.Limits, &j.MaxLosses, &j.Created, &j.Due, &j.Started, &j.Finished,
		&j.Faulty, &j.PendingRetry, &j.Awaits, &j.Asks, &j.Flow, &j.Node, &j.IsFlow, &j.NeedsFirst,
	}, append(Fields(&j.Origin), &j.Correlation)...)
}

// KindColumns are those of declared kinds, and Kind where they are read into.
const KindColumns = `queue, priority, timeout, tags, retry, max_losses, start_within, uniqueness, limits, sealed, redacted, declared`

func Kind(d *stint.KindInfo) []any {
	return []any{&d.Name, &d.Queue, &d.Priority, &d.Timeout, &d.Tags, &d.Retry, &d.MaxLosses, &d.StartWithin, &d.Unique, &d.Limits, &d.Sealed, &d.Redacted, &d.Declared}
}

// ScheduleColumns are those of schedules. ReadSchedule has scan read them, and what
// is selected after them, into s.
const ScheduleColumns = `name, recurrence, zone, job, not overlap, missed, not_before, not_after, after, next, ended,
  paused, paused_by, paused_why, fired, skipped, passed, passed_at, last_occurrence, last_job, created, declared, declared_by, revision`

func ReadSchedule(s *store.ScheduleInfo, scan Scan, more ...any) error {
	var text store.ScheduleTexts
	times := []*time.Time{&s.NotBefore, &s.NotAfter, &s.After, &s.Next, &s.Ended, &s.Paused, &s.PassedAt, &s.LastOccurrence, &s.Created, &s.Declared}
	err := scan(append([]any{
		&s.Name, &text.Recurrence, &s.Zone, &text.Job, &s.Unique, &text.Missed, &s.NotBefore, &s.NotAfter, &s.After, &s.Next, &s.Ended,
		&s.Paused, &s.PausedBy, &s.PausedWhy, &s.Fired, &s.Skipped, &s.Passed, &s.PassedAt, &s.LastOccurrence, &s.LastJob, &s.Created, &s.Declared, &s.By, &s.Revision,
	}, more...)...)
	for _, t := range times {
		*t = t.UTC()
	}
	s.Read(text)
	return err
}

// ChangeColumns are those of changes. ReadChange has scan read them into c.
const ChangeColumns = `n, at, by, role, way, operation, subject, details, ended, problem`

func ReadChange(c *store.Change, scan Scan) error {
	err := scan(append(append([]any{&c.ID, &c.At}, Fields(&c.NewChange)...), &c.Ended, &c.Problem)...)
	c.Result = store.ChangeResultOf(c.Ended, c.Problem)
	return err
}

// LedgerSQL are the queries that a ledger is read by.
type LedgerSQL struct{ Entries, Claims, Executions, Waiting, Jobs, Needs, Kept, Holders, Engines, Buried string }

// Read reads a ledger. Query runs a query, and has each of its rows read.
func (l LedgerSQL) Read(query func(text string, each func(Scan) error) error) (*store.Ledger, error) {
	all := &store.Ledger{Buried: map[store.EngineID]time.Time{}}
	for _, part := range []struct {
		text string
		each func(Scan) error
	}{
		{l.Entries, appendTo(&all.Entries, Fields)},
		{l.Claims, appendTo(&all.Claims, Fields)},
		{l.Executions, appendTo(&all.Executions, Fields)},
		{l.Waiting, appendTo(&all.Waiting, Fields)},
		{l.Jobs, appendTo(&all.Jobs, Fields)},
		{l.Needs, appendTo(&all.Needs, Fields)},
		{l.Kept, appendTo(&all.Kept, func(job *stint.ID) []any { return []any{job} })},
		{l.Holders, appendTo(&all.Holders, func(job *stint.ID) []any { return []any{job} })},
		{l.Engines, appendTo(&all.Engines, func(token *store.EngineID) []any { return []any{token} })},
		{l.Buried, func(scan Scan) error {
			var token store.EngineID
			var ended time.Time
			err := scan(&token, &ended)
			all.Buried[token] = ended
			return err
		}},
	} {
		if err := query(part.text, part.each); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func appendTo[V any](list *[]V, fields func(*V) []any) func(Scan) error {
	return func(scan Scan) error {
		var v V
		err := scan(fields(&v)...)
		*list = append(*list, v)
		return err
	}
}
