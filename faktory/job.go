package faktory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
)

const (
	keyPrefix  = "faktory/" // of idempotency keys
	ownPrefix  = "stint-"   // of the jids of jobs that were not pushed
	metadataOf = "faktory"  // the member of metadata that keeps what stint does not know
	maxJID     = 200        // bytes
	maxDays    = 86_400     // seconds of reserve_for

	defaultRetries = 25
	defaultReserve = 1800 // seconds
)

// The waits between retries: about three weeks for 25 of them.
const (
	firstRetry  = 15 * time.Second
	longestWait = 48 * time.Hour
	jitter      = 0.1
)

// pushed is what a PUSH says of a job, as far as it means something to stint.
type pushed struct {
	JID        string                     `json:"jid"`
	Jobtype    string                     `json:"jobtype"`
	Queue      string                     `json:"queue"`
	Args       json.RawMessage            `json:"args"`
	At         string                     `json:"at"`
	Retry      *int                       `json:"retry"`
	ReserveFor int                        `json:"reserve_for"`
	Priority   *int                       `json:"priority"`
	Custom     map[string]json.RawMessage `json:"custom"`
}

// parseJob reads a job of a PUSH. The jid is also returned with an error, if it could be read.
func parseJob(text []byte) (jid string, job stint.NewJob, err error) {
	var p pushed
	if err := json.Unmarshal(text, &p); err != nil {
		return "", job, fmt.Errorf("the job is no JSON object as it should be: %w", err)
	}
	var rest map[string]json.RawMessage
	if err := json.Unmarshal(text, &rest); err != nil || rest == nil {
		return "", job, valid.Invalid("job", "it is no JSON object")
	}
	if err := p.check(); err != nil {
		return p.JID, job, err
	}
	job = stint.NewJob{
		Kind: p.Jobtype, Queue: p.Queue, Args: p.Args, Retry: p.policy(), IdempotencyKey: keyPrefix + p.JID,
		Timeout: time.Duration(cmp.Or(p.ReserveFor, defaultReserve)) * time.Second,
	}
	if len(job.Args) == 0 || string(job.Args) == "null" {
		job.Args = json.RawMessage("[]")
	}
	if p.Priority != nil {
		job.Priority = middlePriority - *p.Priority
	}
	if job.RunAt, err = instant("at", p.At); err != nil {
		return p.JID, job, err
	}
	var by string
	if raw := p.Custom["expires_at"]; raw != nil && json.Unmarshal(raw, &by) != nil {
		return p.JID, job, valid.Invalid("custom.expires_at", "it is no text")
	}
	if job.StartBy, err = instant("custom.expires_at", by); err != nil {
		return p.JID, job, err
	}
	job.Metadata, err = p.metadata(rest)
	return p.JID, job, err
}

// middlePriority is that of a job without one. The priorities of the protocol are 1 to 9, and 9 goes first.
const middlePriority = 5

func (p *pushed) check() error {
	_, kept := p.Custom[metadataOf]
	unique := string(p.Custom["unique_for"])
	args := bytes.TrimSpace(p.Args)
	switch {
	case p.JID == "" || len(p.JID) > maxJID:
		return valid.Invalid("jid", "it has %d bytes, and needs 1 to %d", len(p.JID), maxJID)
	case strings.HasPrefix(p.JID, ownPrefix):
		return valid.Invalid("jid", "it begins with %s, as those do that stint makes", ownPrefix)
	case p.Jobtype == "":
		return valid.Invalid("jobtype", "it is missing")
	case len(args) > 0 && args[0] != '[' && string(args) != "null":
		return valid.Invalid("args", "they are no array")
	case p.ReserveFor < 0 || p.ReserveFor > maxDays:
		return valid.Invalid("reserve_for", "%d is not between 1 and %d seconds", p.ReserveFor, maxDays)
	case p.Priority != nil && (*p.Priority < 1 || *p.Priority > 9):
		return valid.Invalid("priority", "%d is not between 1 and 9", *p.Priority)
	case unique != "" && unique != "null" && unique != "0":
		// Theirs ends with the job or with a time, whichever comes first; stint has each, but not both.
		return valid.Invalid("custom.unique_for", "it is not supported: declare the kind as unique in a program of stint, or leave it out; a jid is unique in any case")
	case kept:
		return valid.Invalid("custom."+metadataOf, "the name is taken")
	}
	return nil
}

// policy is what happens after a failure. Without retries a failed job is kept as one, also where the protocol says that
// it is thrown away (0) and not that it is dead (-1).
func (p *pushed) policy() retry.Policy {
	n := defaultRetries
	if p.Retry != nil {
		n = *p.Retry
	}
	if n <= 0 {
		return retry.None()
	}
	return retry.Exponential(n, firstRetry).MaxDelay(longestWait).Jitter(jitter)
}

func instant(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, valid.Invalid(field, "%q is no time such as 2026-12-24T18:00:00Z", valid.CleanText(text, 60))
	}
	return at, nil
}

// metadata is custom as it is, and beside it what has no place in a job of stint.
func (p *pushed) metadata(rest map[string]json.RawMessage) (json.RawMessage, error) {
	for _, name := range []string{"jobtype", "queue", "args", "custom"} {
		delete(rest, name)
	}
	kept, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(p.Custom)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	all[metadataOf] = kept
	return json.Marshal(all)
}

// jidOf is the jid under which a job was pushed, or one of its own.
func jidOf(j *gateway.ClaimedJob) string {
	var m struct {
		Faktory struct {
			JID string `json:"jid"`
		} `json:"faktory"`
	}
	if len(j.Metadata) > 0 && json.Unmarshal(j.Metadata, &m) == nil && m.Faktory.JID != "" {
		return m.Faktory.JID
	}
	return ownJID(j)
}

func ownJID(j *gateway.ClaimedJob) string { return ownPrefix + j.ID.String() }

// textOf is a job as a FETCH answers it. Arguments that are no array come as the only element of one.
func textOf(j *gateway.ClaimedJob, jid string) ([]byte, error) {
	custom, job := map[string]json.RawMessage{}, map[string]any{}
	if len(j.Metadata) > 0 {
		if err := json.Unmarshal(j.Metadata, &custom); err != nil {
			return nil, err
		}
	}
	if kept := custom[metadataOf]; kept != nil {
		_ = json.Unmarshal(kept, &job) // of a job that somebody else made it may be anything
		if job == nil {
			job = map[string]any{}
		}
		delete(custom, metadataOf)
	}
	args := bytes.TrimSpace(j.Args)
	if len(args) == 0 || args[0] != '[' {
		args = fmt.Appendf(nil, "[%s]", args)
	}
	job["jid"], job["jobtype"], job["queue"], job["args"] = jid, j.Kind, j.Queue, json.RawMessage(args)
	created := j.Created.UTC().Format(time.RFC3339Nano)
	job["enqueued_at"] = created
	if job["created_at"] == nil {
		job["created_at"] = created
	}
	job["reserve_for"] = defaultReserve
	if j.Timeout > 0 {
		job["reserve_for"] = int(j.Timeout.Seconds())
	}
	if len(custom) > 0 {
		job["custom"] = custom
	}
	if j.Attempt > 1 {
		job["failure"] = map[string]any{"retry_count": j.Attempt - 1}
	}
	return json.Marshal(job)
}
