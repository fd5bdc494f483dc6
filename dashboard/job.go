package dashboard

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// jobPage is a job with all that is known of it.
type jobPage struct {
	view.Job
	Crew    view.Crew       `json:"-"` // whose beats are no news
	Queued  int64           `json:"-"` // jobs of its queue that are due; 0 unless it is one of them
	History []attempt       // its attempts, the last one first
	Related []stint.JobInfo // that come from each other, without this one
	More    bool            // of these there are more
}

func (p jobPage) title() string { return "Job " + p.ID.String() }

// Record is an attempt, under a name that leaves .Attempt to its number.
type Record = stint.Attempt

// attempt is one as the page shows it.
type attempt struct {
	Record
	Result view.Result
}

// relatedJobs is how many jobs of a correlation the page of one of them shows.
const relatedJobs = 20

// Retriable, Cancellable and Deletable report what can be done to the job.
func (p jobPage) Retriable() bool { return p.State != stint.Running && p.State != stint.Available }

// Recovers reports whether to retry it makes a new job.
func (p jobPage) Recovers() bool { return p.State.Final() }

// Cancellable reports whether there is anything left to cancel.
func (p jobPage) Cancellable() bool { return !p.State.Final() }

// Deletable reports whether it has ended.
func (p jobPage) Deletable() bool { return p.State.Final() }

// Words say its state with what follows from it.
func (p jobPage) Words(now time.Time) told {
	said := p.Crew.StateInWords(*p.JobInfo, now)
	if p.Queued > 1 {
		said += ", as one of " + words.Count(p.Queued) + " that are due in its queue"
	}
	return tell(said, *p.JobInfo, now)
}

// job shows a job.
func (b *Dashboard) job(r *http.Request) (any, error) {
	j, err := b.jobOf(r)
	if err != nil {
		return nil, err
	}
	p := jobPage{Job: j}
	if p.Crew, err = view.CrewFor(r.Context(), b.store, *j.JobInfo); err != nil {
		return nil, err
	}
	if j.State == stint.Available {
		backlog := b.figures.queued.Get(r.Context()).Value
		if i := slices.IndexFunc(backlog, func(g report.DueGroup) bool { return g.Value != nil && *g.Value == j.Queue }); i >= 0 {
			p.Queued = backlog[i].Jobs
		}
	}
	for i := len(j.Attempts) - 1; i >= 0; i-- {
		x := j.Attempts[i]
		p.History = append(p.History, attempt{x, view.ResultOf(j.Kind, x.Result)})
	}
	related, err := b.store.Jobs(r.Context(), store.Filter{Correlation: j.Correlation, Limit: relatedJobs + 2})
	if err != nil {
		return nil, err
	}
	for _, other := range related {
		if other.ID != j.ID {
			p.Related = append(p.Related, other)
		}
	}
	if p.More = len(p.Related) > relatedJobs; p.More {
		p.Related = p.Related[:relatedJobs]
	}
	return p, nil
}

// jobOf asks the API for the job that the address names: it hides what is not for
// everybody.
func (b *Dashboard) jobOf(r *http.Request) (view.Job, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id < 1 {
		return view.Job{}, errNowhere
	}
	return ops.ShowJob.Call(r.Context(), b.api, ops.ShowInput{ID: id})
}

// EditedFrom is the job that this one was made of by editing; 0 for none.
func (p jobPage) EditedFrom() (id stint.ID) {
	var of map[string]json.RawMessage
	if json.Unmarshal(p.Metadata, &of) == nil {
		_ = json.Unmarshal(of[editedFrom], &id) // what is no id was somebody else's
	}
	return id
}
