package admin

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
)

// jobPage is a job with all that is known of it.
type jobPage struct {
	view.Job
	Crew     view.Crew       `json:"-"` // whose beats are no news
	Attempts []attempt       // the last one first
	Related  []stint.JobInfo // that come from each other, without this one
}

func (p jobPage) title() string { return "Job " + p.ID.String() }

// attempt is one as the page shows it.
type attempt struct {
	stint.ExecutionInfo
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
func (p jobPage) Words(now time.Time) string { return p.Crew.StateInWords(*p.JobInfo, now) }

// job shows a job.
func (b *Board) job(r *http.Request) (any, error) {
	j, err := b.jobOf(r)
	if err != nil {
		return nil, err
	}
	p := jobPage{Job: j}
	if p.Crew, err = view.CrewFor(r.Context(), b.store, *j.JobInfo); err != nil {
		return nil, err
	}
	for i := len(j.Executions) - 1; i >= 0; i-- {
		x := j.Executions[i]
		p.Attempts = append(p.Attempts, attempt{x, view.ResultOf(j.Kind, x.Result)})
	}
	related, err := b.store.Jobs(r.Context(), stint.Filter{Correlation: j.Correlation, Limit: relatedJobs + 1})
	if err != nil {
		return nil, err
	}
	for _, other := range related {
		if other.ID != j.ID {
			p.Related = append(p.Related, other)
		}
	}
	return p, nil
}

// jobOf asks the API for the job that the address names: it hides what is not for
// everybody.
func (b *Board) jobOf(r *http.Request) (view.Job, error) {
	var j view.Job
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id < 1 {
		return j, errNowhere
	}
	return j, b.call(r.Context(), http.MethodGet, "/jobs/"+strconv.FormatInt(id, 10), nil, &j)
}

// editPage is a job that is to be enqueued: like one that there is, or a new one.
type editPage struct {
	Like     *stint.JobInfo // nil for a new one
	Kind     string
	Args     string
	Queue    string
	Priority int
	Tags     []string
	Kinds    []string
}

func (editPage) frozen() {}

func (p editPage) title() string {
	if p.Like == nil {
		return "New job"
	}
	return "Edit and retry job " + p.Like.ID.String()
}

// edit shows what is to be enqueued, filled in from a job that there is.
func (b *Board) edit(r *http.Request) (any, error) {
	p := editPage{Args: "{}", Kind: r.URL.Query().Get("kind")}
	if r.PathValue("id") != "" {
		j, err := b.jobOf(r)
		if err != nil {
			return nil, err
		}
		args, err := json.MarshalIndent(j.Args, "", "  ")
		if err != nil {
			return nil, err
		}
		p = editPage{Like: j.JobInfo, Kind: j.Kind, Args: string(args), Queue: j.Queue, Priority: j.Priority, Tags: j.Tags}
	}
	kinds, err := b.store.Kinds(r.Context())
	for _, k := range kinds {
		p.Kinds = append(p.Kinds, k.Name)
	}
	return p, err
}
