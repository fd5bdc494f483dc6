package ops

import (
	"cmp"
	"context"
	"net/http"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/store"
)

// MostLines is how many lines of a job one request reads, at most.
const MostLines = 5000

// LogInput says which lines of a job to read.
type LogInput struct {
	JobName
	Run   int64 `query:"run" minimum:"0" doc:"Only lines that follow line n of this run: with those of the last line that you have, you get what was said since"`
	N     int   `query:"n" minimum:"0" doc:"See run"`
	Limit int   `query:"limit" minimum:"1" maximum:"5000" default:"1000" doc:"How many at most"`
	Last  bool  `query:"last" doc:"Of more lines than that the last ones, not the first"`
}

// ReadLog reads lines that the runs of a job logged, or is [stint.ErrNotFound].
var ReadLog = declare(&Op[LogInput, List[stint.LogLine]]{
	Decl: Decl{
		Name: "jobs log", Method: http.MethodGet, Path: "/jobs/{id}/log", Summary: "Read what the runs of a job logged, also while one goes on",
		Doc: "In the order of runs and of the lines of each. Of each run the first 16 KiB and the last 48 KiB are kept: the numbers of lines that were left out are missing. " +
			"What a run logs is there about a second later. A server that hides arguments from viewers answers 403 to them.",
	},
	do: func(ctx context.Context, l *Local, in *LogInput) (lines List[stint.LogLine], err error) {
		if l.blind(ctx) {
			return lines, &ForbiddenError{Needs: guard.Operator}
		}
		id := stint.ID(in.ID)
		lines, err = listed(l.Store.Log(ctx, id, store.LogFilter{Run: in.Run, N: in.N, Limit: cmp.Or(in.Limit, 1000), Last: in.Last}))
		if err == nil && len(lines.Items) == 0 {
			_, err = l.Store.Job(ctx, id)
		}
		return lines, err
	},
})

// ReadProgress reads how far the runs of a job said they were, or is [stint.ErrNotFound].
var ReadProgress = declare(&Op[JobName, List[stint.Progress]]{
	Decl: Decl{
		Name: "jobs progress", Method: http.MethodGet, Path: "/jobs/{id}/progress", Summary: "Read how far the runs of a job said they were",
		Doc: "Of those that said so, up to the last 20, what each said last.",
	},
	do: func(ctx context.Context, l *Local, in *JobName) (List[stint.Progress], error) {
		id := stint.ID(in.ID)
		all, err := listed(l.Store.Progress(ctx, id))
		if err == nil && len(all.Items) == 0 {
			_, err = l.Store.Job(ctx, id)
		}
		l.seenProgress(ctx, all.Items)
		return all, err
	},
})
