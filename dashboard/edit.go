package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/ops"
)

// editedFrom is the key of a job's metadata that names the job from which it was edited.
// Such a job does not count as a retry of the other one, because it may do something else.
const editedFrom = "edited_from"

// editPage is a job that is to be enqueued: like one that there is, or a new one.
type editPage struct {
	Like    *stint.JobInfo // nil for a new one
	Form    url.Values     // what the fields hold
	Expired bool           // its start-by time has passed
	Kinds   []string
}

func (editPage) frozen() {}

func (p editPage) title() string {
	if p.Like == nil {
		return "New job"
	}
	return "Edit and retry job " + p.Like.ID.String()
}

// Get is what a field holds.
func (p editPage) Get(name string) string { return p.Form.Get(name) }

// edit shows what is to be enqueued, filled in from a job that there is.
func (b *Dashboard) edit(r *http.Request) (any, error) {
	p := editPage{Form: url.Values{"args": {"{}"}, "kind": {r.URL.Query().Get("kind")}}}
	if r.PathValue("id") != "" {
		j, err := b.jobOf(r)
		if err != nil {
			return nil, err
		}
		now, err := view.Now(r.Context(), b.store)
		if err != nil {
			return nil, err
		}
		p = editOf(j.JobInfo, now)
	}
	var err error
	p.Kinds, _, err = b.offered(r)
	return p, err
}

// editOf is the form filled in with all that a job was enqueued with.
func editOf(j *stint.JobInfo, now time.Time) editPage {
	p := editPage{Like: j, Form: url.Values{
		"kind": {j.Kind}, "args": {indented(j.Args)}, "queue": {j.Queue}, "priority": {strconv.Itoa(j.Priority)}, "tags": {strings.Join(j.Tags, "\n")}, "limits": {strings.Join(j.Limits, "\n")},
		"urn": {j.URN}, "source": {j.Source}, "description": {j.Description()}, "metadata": {indented(undescribed(j))}, "retry": {j.Retry}, "max_losses": {strconv.Itoa(j.MaxLosses)},
	}}
	if j.State.Final() { // beside itself it would be a duplicate
		p.Form.Set("unique", j.Unique)
	}
	if j.Timeout > 0 {
		p.Form.Set("timeout", j.Timeout.String())
	}
	if p.Expired = !j.StartBy.IsZero() && !j.StartBy.After(now); !p.Expired && !j.StartBy.IsZero() {
		p.Form.Set("start_by", moment(j.StartBy))
	}
	return p
}

// undescribed is a job's metadata without the description, which has its own field.
func undescribed(j *stint.JobInfo) json.RawMessage {
	var members map[string]json.RawMessage
	if j.Description() == "" || json.Unmarshal(j.Metadata, &members) != nil {
		return j.Metadata
	}
	if delete(members, "description"); len(members) == 0 {
		return nil
	}
	rest, _ := json.Marshal(members) // it was JSON
	return rest
}

func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// editAgain is the form as it was sent, for what was refused of it.
func (b *Dashboard) editAgain(r *http.Request) (*page, any, error) {
	like, err := b.likeOf(r)
	if err != nil {
		return nil, nil, err
	}
	p := editPage{Form: r.PostForm, Like: like}
	p.Kinds, _, err = b.offered(r)
	i := slices.IndexFunc(pages, func(p page) bool { return p.name == "edit" })
	return &pages[i], p, err
}

// likeOf is the job that a form was filled in from; nil for none.
func (b *Dashboard) likeOf(r *http.Request) (*stint.JobInfo, error) {
	like := r.PostForm.Get("like")
	if like == "" {
		return nil, nil
	}
	r.SetPathValue("id", like)
	j, err := b.jobOf(r)
	return j.JobInfo, err
}

// newJob enqueues the job of a form. One that is like another gets no defaults of its
// kind that the other did not have.
func (b *Dashboard) newJob(r *http.Request) (flash, error) {
	like, err := b.likeOf(r)
	if err != nil {
		return flash{}, err
	}
	said := maps.Clone(r.PostForm)
	if like != nil {
		metadata, err := named(json.RawMessage(said.Get("metadata")), like.ID)
		if err != nil {
			return flash{}, err
		}
		said.Set("metadata", string(metadata))
		said.Set("correlation", like.Correlation)
		said.Set("tags", strings.Join(view.Retagged(strings.Split(said.Get("tags"), "\n"), like.Args, json.RawMessage(said.Get("args"))), "\n"))
	}
	job, err := ops.JobOfTexts(said.Get)
	if err != nil {
		return flash{}, err
	}
	all := ops.NewJobs{Jobs: []ops.NewJob{job}}
	if like != nil {
		all.Exact, all.Like = true, like.ID
	}
	made, err := ops.EnqueueJobs.Call(r.Context(), b.api, ops.JobsInput{Body: all})
	if err != nil {
		return flash{}, err
	}
	if len(made.Items) != 1 {
		return flash{}, fmt.Errorf("one job was enqueued, and %d receipts came", len(made.Items))
	}
	id := made.Items[0].ID.String()
	if made.Items[0].Duplicate {
		return flash{Text: "Not enqueued: its unique key is held by", Link: "/jobs/" + id, Word: "job " + id}, nil
	}
	done := flash{OK: true, Text: "Enqueued as", Link: "/jobs/" + id, Word: "job " + id}
	if like != nil && r.PostForm.Get("cancel") != "" {
		before, err := b.cancelEdited(r, like.ID, id)
		if err != nil {
			return flash{}, err
		}
		done.Text = before + " " + done.Text
	}
	return done, nil
}

// cancelEdited cancels the job that a new one replaces, and returns the result in words.
func (b *Dashboard) cancelEdited(r *http.Request, id stint.ID, anew string) (string, error) {
	answers, err := b.api.Cancel(r.Context(), []stint.ID{id}, "edited as job "+anew)
	if err != nil {
		return "", fmt.Errorf("job %s is enqueued, and job %d is not cancelled: %w", anew, id, err)
	}
	return sentence("job " + id.String() + " " + cmp.Or(map[stint.CancelStatus]string{
		stint.CancelledNow: "is cancelled", stint.CancelRequested: "is asked to stop", stint.CancelTooLate: "had already ended",
	}[answers[id]], "does not exist any more")), nil
}

// named is metadata with the job from which the new one was edited.
func named(metadata json.RawMessage, of stint.ID) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(metadata)) > 0 && json.Unmarshal(metadata, &all) != nil || all == nil {
		return nil, valid.Invalid("metadata", "they are no JSON object")
	}
	all[editedFrom] = json.RawMessage(of.String())
	return json.Marshal(all)
}
