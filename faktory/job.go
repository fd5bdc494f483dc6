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
	maxReserve = 86_400     // seconds

	defaultRetries = 25
	defaultReserve = 1800 // seconds
	middlePriority = 5    // of a job without one; they are 1 to 9, and 9 goes first
)

// pushed is what a PUSH says of a job, as far as it means something to stint.
type pushed struct {
	JID        string                     `json:"jid"`
	Jobtype    string                     `json:"jobtype"`
	Queue      string                     `json:"queue"`
	Args       json.RawMessage            `json:"args"`
	At         time.Time                  `json:"at"`
	Retry      int                        `json:"retry"`
	ReserveFor int                        `json:"reserve_for"`
	Priority   int                        `json:"priority"`
	Custom     map[string]json.RawMessage `json:"custom"`
}

// parseJob reads a job of a PUSH. The jid is also returned with an error, if it could be read.
func parseJob(text []byte) (jid string, job stint.NewJob, err error) {
	p := pushed{Retry: defaultRetries, Priority: middlePriority}
	if err := json.Unmarshal(text, &p); err != nil {
		return p.JID, job, fmt.Errorf("the job is not as it should be: %w", err)
	}
	if p.Args = bytes.TrimSpace(p.Args); len(p.Args) == 0 || string(p.Args) == "null" {
		p.Args = json.RawMessage("[]")
	}
	if err := p.check(); err != nil {
		return p.JID, job, err
	}
	job = stint.NewJob{
		Kind: p.Jobtype, Queue: p.Queue, Args: p.Args, RunAt: p.At, Retry: retry.None(), IdempotencyKey: keyPrefix + p.JID,
		Priority: middlePriority - p.Priority, Timeout: time.Duration(cmp.Or(p.ReserveFor, defaultReserve)) * time.Second,
	}
	if p.Retry > 0 { // 25 of them take about three weeks; with 0, too, a failed job is kept
		job.Retry = retry.Exponential(p.Retry, 15*time.Second).MaxDelay(48 * time.Hour).Jitter(0.1)
	}
	if by := p.Custom["expires_at"]; by != nil {
		if err := json.Unmarshal(by, &job.StartBy); err != nil {
			return p.JID, job, valid.Invalid("custom.expires_at", "%v", err)
		}
	}
	if job.Metadata, err = p.metadata(text); err == nil {
		err = job.Check(stint.Limits{})
	}
	return p.JID, job, err
}

func (p *pushed) check() error {
	_, kept := p.Custom[metadataOf]
	unique := string(p.Custom["unique_for"])
	switch {
	case p.JID == "" || len(p.JID) > maxJID:
		return valid.Invalid("jid", "it has %d bytes, and needs 1 to %d", len(p.JID), maxJID)
	case strings.HasPrefix(p.JID, ownPrefix):
		return valid.Invalid("jid", "it begins with %s, as those do that stint makes", ownPrefix)
	case p.Args[0] != '[':
		return valid.Invalid("args", "they are no array")
	case p.ReserveFor < 0 || p.ReserveFor > maxReserve:
		return valid.Invalid("reserve_for", "%d is not between 1 and %d seconds", p.ReserveFor, maxReserve)
	case p.Priority < 1 || p.Priority > 9:
		return valid.Invalid("priority", "%d is not between 1 and 9", p.Priority)
	case unique != "" && unique != "null" && unique != "0":
		// Theirs ends with the job or with a time, whichever comes first; stint has each, but not both.
		return valid.Invalid("custom.unique_for", "it is not supported: declare the kind as unique in a program of stint, or leave it out; a jid is unique in any case")
	case kept:
		return valid.Invalid("custom."+metadataOf, "the name is taken")
	}
	return nil
}

// metadata is custom as it is, and beside it what has no place in a job of stint.
func (p *pushed) metadata(text []byte) (json.RawMessage, error) {
	var rest map[string]json.RawMessage
	if err := json.Unmarshal(text, &rest); err != nil {
		return nil, err
	}
	for _, name := range []string{"jobtype", "queue", "args", "custom"} {
		delete(rest, name)
	}
	rest["jid"], _ = json.Marshal(p.JID)
	all := map[string]any{metadataOf: rest}
	for name, value := range p.Custom {
		all[name] = value
	}
	return json.Marshal(all)
}

// answerOf is a job as a FETCH answers it, with the jid under which it was pushed, or one of its own. Arguments that are
// no array come as the only element of one.
func answerOf(j *gateway.ClaimedJob) (jid string, job map[string]any) {
	job = map[string]any{}
	var custom, kept map[string]json.RawMessage
	_ = json.Unmarshal(j.Metadata, &custom)
	_ = json.Unmarshal(custom[metadataOf], &kept) // of a job that somebody else made it may be anything
	delete(custom, metadataOf)
	for name, value := range kept {
		job[name] = value
	}
	if json.Unmarshal(kept["jid"], &jid) != nil || jid == "" {
		jid = ownPrefix + j.ID.String()
	}
	args := bytes.TrimSpace(j.Args)
	if len(args) == 0 || args[0] != '[' {
		args = fmt.Appendf(nil, "[%s]", args)
	}
	created := j.Created.UTC().Format(time.RFC3339Nano)
	maps.Copy(job, map[string]any{
		"jid": jid, "jobtype": j.Kind, "queue": j.Queue, "args": json.RawMessage(args), "created_at": created, "enqueued_at": created,
		"reserve_for": cmp.Or(int(j.Timeout.AsDuration().Seconds()), defaultReserve),
	})
	if len(custom) > 0 {
		job["custom"] = custom
	}
	if j.Attempt > 1 {
		job["failure"] = map[string]any{"retry_count": j.Attempt - 1}
	}
	return jid, job
}
