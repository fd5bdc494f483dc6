package remote

import (
	"cmp"
	"context"
	"strconv"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/api"
	"github.com/stint-go/stint/admin/view"
)

// ShowJob is [Store.Job] with who performs it now.
func (s *Store) ShowJob(ctx context.Context, id stint.ID) (view.Job, error) {
	return ask[view.Job](ctx, s, request{method: "GET", path: path("jobs", id.String())})
}

// Job implements [stint.Inspector].
func (s *Store) Job(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	j, err := s.ShowJob(ctx, id)
	return j.JobInfo, err
}

// How much one request asks for: jobs carry arguments.
var (
	jobsPage = 200
	idsPage  = 10_000
	atOnce   = 10_000 // jobs that it changes
)

// Jobs implements [stint.Inspector].
func (s *Store) Jobs(ctx context.Context, f stint.Filter) ([]stint.JobInfo, error) {
	return pages(f, jobsPage, func(f stint.Filter) ([]stint.JobInfo, stint.ID, error) {
		p, err := listed[api.JobPage](ctx, s, "jobs", f)
		return p.Jobs, p.Next, err
	})
}

// Find implements [stint.Operator].
func (s *Store) Find(ctx context.Context, f stint.Filter) ([]stint.ID, error) {
	return pages(f, idsPage, func(f stint.Filter) ([]stint.ID, stint.ID, error) {
		p, err := listed[api.IDPage](ctx, s, "job-ids", f)
		return p.IDs, p.Next, err
	})
}

// pages puts together what a filter chooses.
func pages[T any](f stint.Filter, size int, get func(f stint.Filter) (page []T, next stint.ID, err error)) ([]T, error) {
	var all []T
	for left := cmp.Or(f.Limit, 100); left > 0; {
		f.Limit = min(left, size)
		page, next, err := get(f)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if left -= len(page); next == 0 || len(page) == 0 {
			break
		}
		f.Before = next
	}
	return all, nil
}

// listed asks for one page.
func listed[P any](ctx context.Context, s *Store, what string, f stint.Filter) (P, error) {
	q, err := query(filterOf(f))
	if err != nil {
		var none P
		return none, err
	}
	q.Set("limit", strconv.Itoa(f.Limit))
	if f.Before != 0 {
		q.Set("before", f.Before.String())
	}
	return ask[P](ctx, s, request{method: "GET", path: path(what), query: q})
}

// Counts implements [stint.Inspector].
func (s *Store) Counts(ctx context.Context) (map[stint.State]int64, error) {
	return ask[map[stint.State]int64](ctx, s, request{method: "GET", path: path("counts")})
}

// Kinds implements [stint.Inspector].
func (s *Store) Kinds(ctx context.Context) ([]stint.Declaration, error) {
	return ask[[]stint.Declaration](ctx, s, request{method: "GET", path: path("kinds")})
}
