package stint

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/stint-go/stint/retry"
)

// ID identifies a job. It is drawn from the store's sequence of
// positions when the job is enqueued, is never reused, and is always positive.
type ID int64

// String is the decimal form, as the command line prints it.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// NewJob is a job to be enqueued. Kind is required; the zero value of any other
// field means its default.
//
// Most programs never build one by hand: [Kind.New] and the options of
// [Kind.Enqueue] do.
//
// The tags name the options in JSON, and describe them for the document of the API.
type NewJob struct {
	// Kind is the name of the type of job. Required.
	Kind string `json:"kind" minLength:"1" maxLength:"255"`

	// Args are the arguments, any JSON value. Nil means {}.
	Args json.RawMessage `json:"args,omitempty" doc:"Any JSON value; {} unless given"`

	// Queue is the named group of jobs that this one belongs to. Empty means
	// [DefaultQueue].
	Queue string `json:"queue,omitempty" maxLength:"255"`

	// Priority orders the jobs of a queue: lower first, -100 to 100.
	Priority int `json:"priority,omitempty" minimum:"-100" maximum:"100" doc:"Lower first"`

	// RunAt is the earliest time at which the job may start, by the store's clock.
	// The zero time and one in the past mean at once.
	RunAt time.Time `json:"run_at,omitzero" doc:"Not to be started before; the database's clock decides"`

	// Delay is the same, counted from the enqueue by the store's clock, so that the
	// producer's clock does not matter.
	// At most one of RunAt and Delay may be set.
	Delay time.Duration `json:"delay,omitempty" doc:"The same counted from now by the database's clock: 90s, 2h. Not both"`

	// Retry is the policy after a failure. It is stored with the job.
	// The zero value is [retry.Default].
	Retry retry.Policy `json:"retry,omitzero" doc:"What happens after a failure: none, fixed:2:1s, exponential:10:1m, ..."`

	// Timeout bounds each attempt, and a flow as a whole. Zero means no bound.
	Timeout time.Duration `json:"timeout,omitempty" doc:"Bounds each attempt, or a flow as a whole: 30s"`

	// StartBy is the time after which no attempt begins, retries included. A
	// job that has not begun by then, or would be tried again only after it,
	// fails with the reason [retry.ReasonExpired]. An attempt that runs by then
	// goes on. The zero time means no bound; the store's clock decides.
	StartBy time.Time `json:"start_by,omitzero" doc:"The instant after which no attempt begins"`

	// StartWithin is the same counted from when the job is due by the store's
	// clock: from the enqueue, unless RunAt or Delay say otherwise. Zero means
	// no bound. At most one of StartBy and StartWithin may be set.
	StartWithin time.Duration `json:"start_within,omitempty" doc:"The same counted from when it is due. Not both"`

	// MaxLosses is how often the job may be lost with an engine that died
	// while it ran. With the last of these losses it fails. Nil means
	// [DefaultMaxLosses]. Zero means at most once: the engine records the start
	// before it runs the job, and the job never runs again after a crash.
	MaxLosses *int `json:"max_losses,omitempty" minimum:"0" maximum:"1000" doc:"How often it may be lost with an engine that died; 0 is at most once"`

	// Tags are labels to find jobs by. None may be there twice.
	Tags []string `json:"tags,omitempty" maxItems:"50"`

	// URN names the thing that the job is about.
	URN string `json:"urn,omitempty" maxLength:"255"`

	// Source says where the job came from.
	Source string `json:"source,omitempty" maxLength:"255"`

	// Description is a line that tells people what the job is for: see the option
	// [Description].
	Description string `json:"description,omitempty" maxLength:"255" doc:"A line for people, shown in lists and on pages"`

	// Metadata is a JSON object stored beside the arguments; nil for none.
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"A JSON object stored beside the arguments"`

	// Correlation is the same for all jobs that belong together. Empty means that
	// of the job whose handler enqueues this one, or else the job's own ID. See
	// [WithCorrelation].
	Correlation string `json:"correlation,omitempty" maxLength:"255"`

	// IdempotencyKey makes repetitions of an enqueue harmless: see the option
	// [IdempotencyKey]. Empty means none.
	IdempotencyKey string `json:"idempotency_key,omitempty" maxLength:"255"`

	// Unique says which other jobs the job may not stand beside: see [UniqueUntilEnded] and
	// [ParseUniqueness]. Empty means any, and "none" the same where the kind says otherwise.
	Unique string `json:"unique,omitempty" maxLength:"1000" doc:"until-ended, until-started, within:1h or slot:24h; after commas by=/id|/tenant or by=none, across=name, and replace, replace-keep-time, debounce:1m or cancel-old; none takes back what the kind says"`

	// Limits are the limits that the job waits for: see [Limited] and [LimitedBy]. Each is the name of
	// a limit, with a key (tenant=acme) or a JSON pointer to it (tenant by /tenant) if it has keys.
	Limits []string `json:"limits,omitempty" maxItems:"8" doc:"Limits to wait for: smtp, tenant=acme, or tenant by /tenant"`

	// Sealed are JSON pointers to the parts of the arguments that are stored encrypted, "" for all: see the
	// option [Sealed]. Nil for none.
	Sealed []string `json:"-"`

	// Redacted are JSON pointers to the parts of the arguments that pages, the API and the command do not show, "" for
	// all: see the option [Redact]. Nil for none.
	Redacted []string `json:"-"`

	// Indexed are JSON pointers to the arguments that tags tell of: see the option [Indexed]. Nil for none. [Kind.New],
	// [Kind.Enqueue], [Kind.Schedule] and [KindInfo.Job] make the tags: of a job that is put together without these it says nothing.
	Indexed []string `json:"-"`

	// Member says where the job stands in a flow: see [Flow]. Nil for a job in none.
	Member *Member `json:"-"`
}

var noArgs = json.RawMessage("{}")

// Fill sets the defaults of fields that are not set.
func (j *NewJob) Fill() {
	if j.Queue == "" {
		j.Queue = DefaultQueue
	}
	if len(j.Args) == 0 || string(j.Args) == "null" {
		j.Args = noArgs
	}
	if len(j.Metadata) == 0 || string(j.Metadata) == "null" {
		j.Metadata = nil
	}
	j.Unique = tidyUnique(j.Unique)
	j.describe()
}

// description is the member of a job's metadata that describes it.
const description = "description"

// Description describes a job to people, in a line such as "invoice of May for Miller
// & Sons": at most 255 bytes, without control characters. Lists and pages show it. It is
// kept in the metadata, as the member "description", and takes that one's place.
func Description(text string) Option { return func(j *NewJob) { j.Description = text } }

// describe puts the description into the metadata, if these can take it.
func (j *NewJob) describe() {
	if j.Description == "" {
		return
	}
	members := map[string]json.RawMessage{}
	if j.Metadata != nil && (json.Unmarshal(j.Metadata, &members) != nil || members == nil) {
		return // NewJob.Check says why
	}
	members[description], _ = json.Marshal(j.Description) // any string can be encoded
	j.Metadata, _ = json.Marshal(members)
}

// Description returns the job's description; empty for none.
func (j *Job) Description() string { return describedBy(j.Metadata) }

// Description returns the job's description; empty for none.
func (j JobInfo) Description() string { return describedBy(j.Metadata) }

func describedBy(metadata json.RawMessage) (text string) {
	var members map[string]json.RawMessage
	if len(metadata) == 0 || json.Unmarshal(metadata, &members) != nil || json.Unmarshal(members[description], &text) != nil {
		return ""
	}
	return text
}

// Job is one job as its handler sees it: what was enqueued, and which attempt
// this is. A handler may change its Job, but not the bytes of Args and Metadata.
type Job struct {
	ID       ID
	Kind     string
	Args     json.RawMessage
	Queue    string
	Priority int
	Attempt  int // counts from 1; runs that were not charged do not count
	Losses   int // how often an engine died while it ran this job

	// MayHaveRun says that an engine died or lost its database with this job in hand: the handler may
	// have begun, and got to any point. It is false again after an attempt that ended in any other
	// way.
	MayHaveRun bool

	MaxLosses int // how often that may happen

	Retry    retry.Policy
	Timeout  time.Duration
	StartBy  time.Time // no attempt begins after it, by the store's clock; zero for no bound
	Tags     []string
	URN      string
	Source   string
	Metadata json.RawMessage

	// Correlation is the same for all jobs that come from each other: what
	// their producer set, or else the first job's ID. It is never empty.
	Correlation string

	Flow ID // the flow that it belongs to; 0 for none

	Origin Origin // what made it, if not a producer

	Created time.Time // when it was enqueued, by the store's clock
	Due     time.Time // when it was first due, by the store's clock
	Started time.Time // when this attempt began, by the store's clock
}

// ExpiredAt reports whether at t it is too late to begin an attempt of the job: see
// [NewJob.StartBy].
func (j *Job) ExpiredAt(t time.Time) bool { return !j.StartBy.IsZero() && t.After(j.StartBy) }

// State is the state of a job, as people see it. It is derived from the log, never
// stored.
type State string

// The states of a job. The last three are final.
const (
	Scheduled State = "scheduled" // waiting for its time
	Retrying  State = "retrying"  // failed, waiting for the next attempt
	Blocked   State = "blocked"   // waiting for something else
	Available State = "available" // ready, not yet claimed
	Running   State = "running"   // claimed by an engine
	Completed State = "completed"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Final reports whether a job stays in this state.
func (s State) Final() bool { return s == Completed || s == Failed || s == Cancelled }
