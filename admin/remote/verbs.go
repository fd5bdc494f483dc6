package remote

import (
	"context"
	"iter"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/api"
)

// Cancel cancels jobs as [stint.Canceller] does; up to 500 in a call.
func (s *Store) Cancel(ctx context.Context, ids []stint.ID, why string) (map[stint.ID]stint.Cancellation, error) {
	return toNamed[stint.Cancellation](ctx, s, "cancel", ids, api.Cancelling{Selection: api.Selection{IDs: ids}, Why: api.Why{Why: why}})
}

// Retry implements [stint.Operator]; up to 500 jobs in a call.
func (s *Store) Retry(ctx context.Context, ids []stint.ID, again stint.Again) (map[stint.ID]stint.Retried, error) {
	return toNamed[stint.Retried](ctx, s, "retry", ids, retrying(api.Selection{IDs: ids}, again))
}

// Delete implements [stint.Operator]; up to 500 jobs in a call.
func (s *Store) Delete(ctx context.Context, ids []stint.ID) (map[stint.ID]stint.Deletion, error) {
	return toNamed[stint.Deletion](ctx, s, "delete", ids, api.Selection{IDs: ids})
}

func retrying(s api.Selection, again stint.Again) api.Retrying {
	return api.Retrying{Selection: s, At: again.At, In: text(again.In), Once: again.Once}
}

// toNamed does something to jobs in one transaction.
func toNamed[A any](ctx context.Context, s *Store, verb string, ids []stint.ID, body any) (map[stint.ID]A, error) {
	if len(ids) == 0 {
		return map[stint.ID]A{}, nil
	}
	done, err := ask[api.Done[A]](ctx, s, request{method: "POST", path: path("jobs", verb), body: body})
	return done.Answers, err
}

// CancelChosen cancels the jobs that a filter chooses, the newest first, and yields
// what came of some of them at a time. Its Limit bounds all of them together; 0 is no
// bound. A filter without states chooses among the jobs that have not ended. After an
// error, what was yielded was done, and little more.
func (s *Store) CancelChosen(ctx context.Context, f stint.Filter, why string) iter.Seq2[map[stint.ID]stint.Cancellation, error] {
	return toChosen[stint.Cancellation](ctx, s, "cancel", f, func(chosen api.Selection) any {
		return api.Cancelling{Selection: chosen, Why: api.Why{Why: why}}
	})
}

// RetryChosen has jobs run again, as [Store.CancelChosen] cancels them; what was
// recovered before is left alone. A filter without states chooses the jobs that are
// failed or retrying.
func (s *Store) RetryChosen(ctx context.Context, f stint.Filter, again stint.Again) iter.Seq2[map[stint.ID]stint.Retried, error] {
	return toChosen[stint.Retried](ctx, s, "retry", f, func(chosen api.Selection) any { return retrying(chosen, again) })
}

// DeleteChosen deletes jobs, as [Store.CancelChosen] cancels them. A filter without
// states chooses among the jobs that have ended.
func (s *Store) DeleteChosen(ctx context.Context, f stint.Filter) iter.Seq2[map[stint.ID]stint.Deletion, error] {
	return toChosen[stint.Deletion](ctx, s, "delete", f, func(chosen api.Selection) any { return chosen })
}

// toChosen does something to the jobs that a filter chooses, in as many requests as
// the server needs.
func toChosen[A any](ctx context.Context, s *Store, verb string, f stint.Filter, body func(api.Selection) any) iter.Seq2[map[stint.ID]A, error] {
	return func(yield func(map[stint.ID]A, error) bool) {
		filter := filterOf(f)
		chosen := api.Selection{Filter: &filter, Before: f.Before, Limit: atOnce, Each: true}
		for left := f.Limit; ; {
			if left > 0 {
				chosen.Limit = min(left, atOnce)
			}
			done, err := ask[api.Done[A]](ctx, s, request{method: "POST", path: path("jobs", verb), body: body(chosen)})
			if err != nil {
				yield(nil, err)
				return
			}
			if len(done.Answers) > 0 && !yield(done.Answers, nil) || done.Next == 0 {
				return
			}
			if left > 0 {
				if left -= len(done.Answers); left <= 0 {
					return
				}
			}
			chosen.Before = done.Next
		}
	}
}
