package view

import (
	"cmp"
	"context"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Bounds of a search.
const (
	SearchLimit = 100_000               // jobs that are looked at for a text
	searchStep  = 2000                  // of these at a time
	soon        = 50 * time.Millisecond // for which a search in a hurry goes on
	firstWalk   = 10_000                // ids that it goes through at first
	longestWalk = 80_000                // and at once later on
)

// Search looks for jobs.
type Search struct {
	store.Inspector

	// Text is what their arguments hold as they are written, upper and lower case
	// told apart; or what one of them is: args.customer.id = 7. It is looked for in the newest [SearchLimit] jobs of the filter
	// only, since no index knows arguments.
	Text string

	// Soon ends the search after about a twentieth of a second, if no index leads to the
	// jobs, or the arguments of all that fit must be looked at.
	Soon bool
}

// Found is the result of a search.
type Found struct {
	Jobs   []stint.JobInfo
	Next   stint.ID // the Before with which it goes on; 0 when nothing is left
	Looked int      // how many jobs were looked at for the text
	Cut    bool     // whether a bound ended it before it had found enough
}

// Find finds the newest jobs of a filter, as many as its limit, or a hundred.
func (s Search) Find(ctx context.Context, f store.Filter) (Found, error) {
	f.Limit = cmp.Or(f.Limit, 100)
	end := time.Now().Add(soon)
	if s.Text == "" {
		return s.walk(ctx, f, end)
	}
	all, want, fits := Found{Jobs: []stint.JobInfo{}}, f.Limit, holds(s.Text)
	for {
		f.Limit = min(searchStep, SearchLimit-all.Looked)
		some, err := s.walk(ctx, f, end)
		if err != nil {
			return all, err
		}
		for _, j := range some.Jobs {
			all.Looked++
			if !fits(j.Args) {
				continue
			}
			if all.Jobs = append(all.Jobs, j); len(all.Jobs) == want {
				all.Next = j.ID
				return all, nil
			}
		}
		enough := all.Looked == SearchLimit || s.Soon && !time.Now().Before(end)
		all.Next, all.Cut = some.Next, some.Cut || some.Next != 0 && enough
		if all.Cut || all.Next == 0 {
			return all, nil
		}
		f.Before = all.Next
	}
}

// walk finds jobs whatever their arguments are, until some instant if it is to be soon:
// it goes through some ids at a time, more and more of them, and skips ids without jobs.
func (s Search) walk(ctx context.Context, f store.Filter, end time.Time) (Found, error) {
	if !s.Soon || !f.Walks() {
		jobs, err := s.Jobs(ctx, f)
		return Found{Jobs: jobs, Next: next(jobs, f.Limit)}, err
	}
	found := Found{Jobs: []stint.JobInfo{}}
	last, want := f.After, f.Limit
	for ids := stint.ID(firstWalk); ; ids = min(2*ids, longestWalk) {
		newest, err := s.Jobs(ctx, store.Filter{Before: f.Before, After: last, Limit: 1})
		if err != nil || len(newest) == 0 {
			return found, err
		}
		f.Before = newest[0].ID + 1
		f.After, f.Limit = max(last, f.Before-ids), want-len(found.Jobs)
		some, err := s.Jobs(ctx, f)
		if err != nil {
			return found, err
		}
		found.Jobs = append(found.Jobs, some...)
		if found.Next = next(some, f.Limit); found.Next != 0 || f.After == last {
			return found, nil
		}
		f.Before = f.After + 1
		if !time.Now().Before(end) {
			found.Next, found.Cut = f.Before, true
			return found, nil
		}
	}
}

// next is where a search goes on after a page: nowhere unless that is full.
func next(page []stint.JobInfo, limit int) stint.ID {
	if len(page) < limit || len(page) == 0 {
		return 0
	}
	return page[len(page)-1].ID
}
