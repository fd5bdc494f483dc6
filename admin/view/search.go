package view

import (
	"bytes"
	"context"

	"github.com/stint-go/stint"
)

// Search bounds: how many jobs a search looks at, and how many at a time.
const (
	SearchLimit = 100_000
	searchStep  = 2000
)

// Found is what a search by text came to.
type Found struct {
	Jobs   []stint.JobInfo
	Looked int  // how many jobs it looked at
	Cut    bool // whether there may be more behind those
}

// Search finds those jobs of a filter, the newest first, whose arguments hold a
// text as they are written, upper and lower case told apart. It looks at the newest
// [SearchLimit] of the filter only, since no index knows arguments; it ends when it
// has found as many as the filter's limit.
func Search(ctx context.Context, store stint.Inspector, f stint.Filter, text string) (Found, error) {
	found, want := Found{Jobs: []stint.JobInfo{}}, f.Limit
	for found.Looked < SearchLimit {
		f.Limit = min(searchStep, SearchLimit-found.Looked)
		jobs, err := store.Jobs(ctx, f)
		if err != nil {
			return found, err
		}
		for _, j := range jobs {
			found.Looked++
			if !bytes.Contains(j.Args, []byte(text)) {
				continue
			}
			if found.Jobs = append(found.Jobs, j); len(found.Jobs) == want {
				found.Cut = true
				return found, nil
			}
		}
		if len(jobs) < f.Limit {
			return found, nil
		}
		f.Before = jobs[len(jobs)-1].ID
	}
	found.Cut = true
	return found, nil
}
