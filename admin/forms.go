package admin

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/api"
	"github.com/stint-go/stint/internal/words"
)

// form is what a page sends to have something done. Whatever it does it does by
// operations of the API, which know who may.
type form struct {
	path string // pattern of its URL
	do   func(b *Board, r *http.Request) (flash, error)

	// back is where the browser goes then, unless the form says so itself or
	// the flash has a link that is the better place.
	back func(r *http.Request) string

	// again is the page of the form with what was typed, for one that takes some
	// typing and was refused; nil for others.
	again func(b *Board, r *http.Request) (*page, any, error)
}

// forms are all of them.
var forms = []form{
	{path: "/jobs/{id}/{verb}", do: (*Board).oneJob, back: func(r *http.Request) string { return "/jobs/" + r.PathValue("id") }},
	{path: "/jobs/selected", do: (*Board).selectedJobs, back: to("/jobs")},
	{path: "/jobs/bulk", do: (*Board).bulkJobs, back: func(r *http.Request) string { return address("/jobs", choice(r.PostForm).query) }},
	{path: "/jobs/new", do: (*Board).newJob, back: to("/jobs"), again: (*Board).editAgain},
	{path: "/queues/{queue}/pause", do: (*Board).pauseQueue, back: to("/queues")},
	{path: "/queues/{queue}/resume", do: (*Board).resumeQueue, back: to("/queues")},
	{path: "/schedules/{schedule}/{verb}", do: (*Board).scheduleVerb, back: to("/schedules")},
	{path: "/engines/{token}/{verb}", do: (*Board).engineVerb, back: to("/engines")},
	{path: "/leases/{lease}/release", do: (*Board).releaseLease, back: to("/database")},
}

func to(path string) func(*http.Request) string { return func(*http.Request) string { return path } }

const (
	maxForm   = 4 << 20          // bytes of a form: a job's arguments, as they are escaped in it
	bulkLimit = 20 * time.Second // of what one form does to many jobs
)

// submit answers requests of a form: it goes on to a page that says what came of
// it, so that the page can be loaded again without doing it again.
func (b *Board) submit(f *form) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			status := http.StatusBadRequest
			if _, large := errors.AsType[*http.MaxBytesError](err); large {
				status = http.StatusRequestEntityTooLarge
			}
			b.fail(w, r, status, "The form cannot be read.")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), bulkLimit+limit)
		defer cancel()
		r = r.WithContext(ctx)
		said, err := f.do(b, r)
		if f.again != nil && b.againWith(w, r, f, err) {
			return
		}
		if refused, ok := errors.AsType[*refusal](err); ok && refused.Status != http.StatusForbidden {
			said, err = flash{Text: sentence(refused.Error())}, nil
		}
		if err != nil {
			b.failed(w, r, err)
			return
		}
		b.setFlash(w, r, said)
		back := r.PostForm.Get("back")
		if !isLocal(back) {
			back = f.back(r)
		}
		w.Header().Set("Location", b.config.Path+back)
		w.WriteHeader(http.StatusSeeOther)
	}
}

// againWith shows the form again that was refused, with what is wrong, and reports
// whether it did.
func (b *Board) againWith(w http.ResponseWriter, r *http.Request, f *form, why error) bool {
	var (
		refused *refusal
		invalid *stint.InvalidError
		problem string
	)
	switch {
	case errors.As(why, &refused) && refused.Status < http.StatusInternalServerError && refused.Status != http.StatusForbidden:
		problem = sentence(refused.Error())
	case errors.As(why, &invalid):
		problem = sentence(invalid.Error())
	default:
		return false
	}
	p, data, err := f.again(b, r)
	if err != nil {
		b.failed(w, r, err)
		return true
	}
	s := shown{page: p, Title: p.title, Data: data, Now: time.Now(), Flash: &flash{Text: problem}}
	if t, ok := data.(titled); ok {
		s.Title = t.title()
	}
	b.render(w, r, http.StatusUnprocessableEntity, s)
	return true
}

// jobVerbs are what is done to jobs that are named.
var jobVerbs = []string{"cancel", "retry", "delete"}

// oneJob does something to the job that the address names.
func (b *Board) oneJob(r *http.Request) (flash, error) {
	verb := r.PathValue("verb")
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || !slices.Contains(jobVerbs, verb) {
		return flash{}, errNowhere
	}
	return b.toJobs(r, verb, []stint.ID{stint.ID(id)})
}

// selectedJobs does something to the jobs that are ticked.
func (b *Board) selectedJobs(r *http.Request) (flash, error) {
	verb := r.PostForm.Get("verb")
	if !slices.Contains(jobVerbs, verb) {
		return flash{}, errNowhere
	}
	var ids []stint.ID
	for _, text := range r.PostForm["id"] {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 1 {
			return flash{}, stint.Invalid("id", "%q is no id of a job", text)
		}
		ids = append(ids, stint.ID(id))
	}
	if len(ids) == 0 {
		return flash{Text: "No job is ticked."}, nil
	}
	return b.toJobs(r, verb, ids)
}

// toJobs does something to jobs and says what came of it.
func (b *Board) toJobs(r *http.Request, verb string, ids []stint.ID) (flash, error) {
	body := map[string]any{"ids": ids}
	if why := r.PostForm.Get("why"); verb == "cancel" && why != "" {
		body["why"] = why
	}
	if verb == "retry" {
		var done api.Done[stint.Retried]
		if err := b.call(r.Context(), http.MethodPost, "/jobs/retry", body, &done); err != nil {
			return flash{}, err
		}
		counts := map[string]int{}
		var recovered stint.ID
		for _, a := range done.Answers {
			counts[string(a.Answer)]++
			recovered = a.ID
		}
		said := flash{OK: true, Text: cameTo(counts)}
		if len(ids) == 1 && recovered != 0 && recovered != ids[0] {
			said.Link, said.Word = "/jobs/"+recovered.String(), "job "+recovered.String()
		}
		return said, nil
	}
	var done api.Done[string]
	if err := b.call(r.Context(), http.MethodPost, "/jobs/"+verb, body, &done); err != nil {
		return flash{}, err
	}
	counts := map[string]int{}
	for _, a := range done.Answers {
		counts[a]++
	}
	return flash{OK: true, Text: cameTo(counts)}, nil
}

// cameTo says how many jobs came to what.
func cameTo(counts map[string]int) string {
	var all []string
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, words.Counted(counts[word], "job")+" "+inWords(word))
	}
	if len(all) == 0 {
		return "There was no such job any more."
	}
	return sentence(strings.Join(all, ", "))
}

// bulkJobs does something to the jobs of a filter, as long as there is time.
func (b *Board) bulkJobs(r *http.Request) (flash, error) {
	verb, err := verbOf(r.PostForm.Get("verb"))
	if err != nil {
		return flash{}, err
	}
	if r.PostForm.Get("confirm") != verb.Name {
		return flash{Text: "Nothing was done: type the word " + verb.Name + " to confirm."}, nil
	}
	if groupOf(r.PostForm) != nil {
		return b.retryGroup(r)
	}
	filter := choice(r.PostForm)
	body := map[string]any{"filter": filter.json()}
	if why := r.PostForm.Get("why"); verb.Name == "cancel" && why != "" {
		body["why"] = why
	}
	counts := map[string]int{}
	for until := time.Now().Add(bulkLimit); ; {
		var done api.Done[json.RawMessage]
		if err := b.call(r.Context(), http.MethodPost, "/jobs/"+verb.Name, body, &done); err != nil {
			if len(counts) == 0 {
				return flash{}, err
			}
			return flash{Text: cameTo(counts) + " Then it went wrong: " + err.Error()}, nil
		}
		for word, n := range done.Counts {
			counts[word] += n
		}
		if done.Next == 0 {
			return flash{OK: true, Text: cameTo(counts)}, nil
		}
		if body["before"] = done.Next; time.Now().After(until) {
			return flash{Text: cameTo(counts) + " There are more: do it again to go on."}, nil
		}
	}
}

// groupStep is how many jobs of a group one request names, as many as the API takes.
const groupStep = 500

// retryGroup runs the jobs of a group of errors again, each once.
func (b *Board) retryGroup(r *http.Request) (flash, error) {
	if r.PostForm.Get("verb") != groupVerb {
		return flash{}, errNowhere
	}
	ids, err := b.groupJobs(r.Context(), r.PostForm)
	if err != nil {
		return flash{}, err
	}
	counts, until := map[string]int{}, time.Now().Add(bulkLimit)
	for some := range slices.Chunk(ids, groupStep) {
		var done api.Done[stint.Retried]
		if err := b.call(r.Context(), http.MethodPost, "/jobs/retry", map[string]any{"ids": some, "once": true}, &done); err != nil {
			if len(counts) == 0 {
				return flash{}, err
			}
			return flash{Text: cameTo(counts) + " Then it went wrong: " + err.Error()}, nil
		}
		for _, a := range done.Answers {
			counts[string(a.Answer)]++
		}
		if time.Now().After(until) {
			return flash{Text: cameTo(counts) + " There may be more: do it again to go on."}, nil
		}
	}
	return flash{OK: true, Text: cameTo(counts)}, nil
}

// place is where a named thing is in the address of the API.
func place(what, name, verb string) string {
	path := "/" + what + "/" + segment(name)
	if verb != "" {
		path += "/" + verb
	}
	return path
}

// segment escapes a name for a path. Dots alone would be taken for the way up.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// answersInWords are what the API says of a job that something was done to.
var answersInWords = map[string]string{
	string(stint.CancelledNow):  "cancelled",
	string(stint.CancelAsked):   "asked to stop",
	string(stint.CancelTooLate): "had ended before",

	string(stint.RetryReady):           "due now",
	string(stint.RetryScheduled):       "put off",
	string(stint.RetryRecovered):       "done again as a new job",
	string(stint.RetryRecoveredBefore): "done again before",
	string(stint.RetryAvailable):       "ready already",
	string(stint.RetryRunning):         "running",

	string(stint.DeletedNow):      "deleted",
	string(stint.DeleteTooEarly):  "not ended yet, and left",
	string(stint.DeleteOfNothing): "not there any more",
}

func inWords(word string) string {
	if said := answersInWords[word]; said != "" {
		return said
	}
	return word
}

// change has the API change something and says whether it was another before.
func (b *Board) change(r *http.Request, method, path string, body any, done, before string) (flash, error) {
	var said api.Changed
	if err := b.call(r.Context(), method, path, body, &said); err != nil {
		return flash{}, err
	}
	if !said.Changed {
		return flash{OK: true, Text: before}, nil
	}
	return flash{OK: true, Text: done}, nil
}
