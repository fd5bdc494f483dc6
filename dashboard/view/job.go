package view

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

// The states of the jobs that a filter without states chooses for cancelling, running
// again, and deleting.
var (
	Cancellable = []stint.State{stint.Scheduled, stint.Retrying, stint.Blocked, stint.Available, stint.Running}
	Retriable   = []stint.State{stint.Failed, stint.Retrying}
	Deletable   = []stint.State{stint.Completed, stint.Failed, stint.Cancelled}
)

// Job is a job with what its steps came to, the signals that it got, what its runs said, and who performs it now, or which limits keep it
// from that.
type Job struct {
	*stint.JobInfo
	RunsOn   *Runner          `json:"runs_on,omitempty"`
	Gates    []store.GateInfo `json:"gates,omitempty"` // while it is available: what is in use of its limits
	Steps    []Step           `json:"steps,omitempty" doc:"What the steps of its handler came to, in the order in which they ended, and the questions that they ask people. A result of more than 16 KiB is left out: the steps of the job have it"`
	Signals  []Signal         `json:"signals,omitempty" doc:"The signals that were sent to it, in the order of that. A value of more than 16 KiB is left out: the signals of the job have it"`
	Progress []stint.Progress `json:"progress,omitempty" doc:"How far its runs said they were, up to the last 20 of those that did"`
	Log      []stint.LogLine  `json:"log,omitempty" doc:"The last 50 lines that its runs logged: the log of the job has more"`
	Ahead    int              `json:"ahead,omitempty"` // and how many go before it that have its queue, priority and limits, up to MostAhead
}

// MostAhead is up to how many jobs are counted that go before one.
const MostAhead = 10_000

// StateInWords says its state with what follows from it, and how many go before it.
func (j Job) StateInWords(c Crew, now time.Time) string {
	said := c.StateInWords(*j.JobInfo, now)
	if j.Ahead > 0 {
		said += ", behind " + words.Counted(j.Ahead, "job")
	}
	if j.Ahead >= MostAhead {
		said += " or more"
	}
	return said
}

// JobOf finds a job, or [stint.ErrNotFound].
func JobOf(ctx context.Context, store Store, id stint.ID) (Job, error) {
	job, err := store.Job(ctx, id)
	if err != nil {
		return Job{}, err
	}
	return JobFrom(ctx, store, job)
}

// JobFrom adds to a job what is known beside it.
func JobFrom(ctx context.Context, store Store, job *stint.JobInfo) (j Job, err error) {
	j.JobInfo = job
	crew, err := CrewFor(ctx, store, *job)
	if err != nil {
		return Job{}, err
	}
	if j.RunsOn, err = RunnerOf(ctx, store, crew, job); err != nil {
		return Job{}, err
	}
	if j.Steps, err = shortStepsOf(ctx, store, job.ID); err != nil {
		return Job{}, err
	}
	if j.Signals, err = shortSignalsOf(ctx, store, job.ID); err != nil {
		return Job{}, err
	}
	if err := j.logOf(ctx, store); err != nil {
		return Job{}, err
	}
	j.Gates, err = GatesOf(ctx, store, job)
	if err == nil && job.State == stint.Available {
		j.Ahead, err = store.Ahead(ctx, job.ID, MostAhead)
	}
	return j, err
}

// Runner is the engine that performs a job now.
type Runner struct {
	Token    store.EngineID `json:"engine,string"`
	Instance string         `json:"instance"`
	Host     string         `json:"host"`
	PID      int            `json:"pid"`
	Beat     time.Time      `json:"last_beat"` // when it last said so
	State    Condition      `json:"state" doc:"How the engine is: of one that is gone or silent, which counts as dead, another engine takes the job over"`
	Started  time.Time      `json:"started,omitzero" doc:"Since when it runs the job; absent until the engine says so, a few seconds after the start"`
}

// TroubleInWords says what is wrong with the engine; empty for nothing.
func (r Runner) TroubleInWords() string {
	switch r.State {
	case Gone, Silent:
		return "it counts as dead, and an engine that runs takes the job over"
	case Stuck:
		return "its process lives and sends no heartbeat"
	}
	return ""
}

// RunnerOf finds the engine of a crew that performs a job: the one that announced
// it with its last beat. Nil when none did.
func RunnerOf(ctx context.Context, st Store, c Crew, j *stint.JobInfo) (*Runner, error) {
	if j.State != stint.Running {
		return nil, nil
	}
	var at []store.Position
	for _, e := range c.Engines {
		at = append(at, e.Running...)
	}
	entries, err := st.Fetch(ctx, at)
	if err != nil {
		return nil, err
	}
	now, err := Now(ctx, st)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		for _, e := range c.Engines {
			if entry.ID == j.ID && slices.Contains(e.Running, entry.Pos) {
				return &Runner{e.Token, e.Instance, e.Host, e.PID, e.Beat, ConditionOf(e, now), e.Started[entry.Pos]}, nil
			}
		}
	}
	return nil, nil
}
