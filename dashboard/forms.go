package dashboard

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/remote"
)

// form is a request of a page to do something. It calls operations, which check the role.
type form struct {
	path string // pattern of its URL
	do   func(b *Dashboard, r *http.Request) (flash, error)

	// back is where the browser goes then, unless the form says so itself.
	back func(r *http.Request) string

	// show is the page that answers in place of do, for what must be kept nowhere: it has
	// no address, and no cookie holds it. Nil for others.
	show func(b *Dashboard, r *http.Request) (*page, any, error)

	// again is the page of the form with what was typed, for a long form that was
	// refused; nil for others.
	again func(b *Dashboard, r *http.Request) (*page, any, error)
}

// forms are all of them: those of operations on one thing, and five others.
func forms() []form {
	all := []form{
		{path: "/jobs/selected", do: (*Dashboard).selectedJobs, back: func(*http.Request) string { return "/jobs" }},
		{path: "/jobs/bulk", do: (*Dashboard).bulkJobs, back: func(r *http.Request) string { return address("/jobs", choice(r.PostForm).query) }},
		{path: "/jobs/{name}/open", show: (*Dashboard).openJob, back: func(*http.Request) string { return "/jobs" }},
		{path: "/filters", do: (*Dashboard).saveFilter, back: func(*http.Request) string { return "/jobs" }},
		{path: "/jobs/new", do: (*Dashboard).newJob, back: func(*http.Request) string { return "/jobs" }, again: (*Dashboard).editAgain},
	}
	for _, noun := range []string{"jobs", "queues", "limits", "schedules", "engines", "leases", "errors", "filters"} {
		all = append(all, form{
			path: "/" + noun + "/{name}/{verb}",
			do: func(b *Dashboard, r *http.Request) (flash, error) {
				return b.operate(r, ops.Find(noun, r.PathValue("verb")), r.PathValue("name"))
			},
			back: func(*http.Request) string {
				return cmp.Or(map[string]string{"leases": "/database", "filters": "/jobs"}[noun], "/"+noun)
			},
		})
	}
	return all
}

const (
	maxForm   = 4 << 20          // bytes of a form: a job's arguments, as they are escaped in it
	bulkLimit = 20 * time.Second // of what one form does to many jobs
)

// submit answers requests of a form. It redirects to a page that shows the result, so that
// the page can be loaded again without doing it again.
func (b *Dashboard) submit(f *form) http.HandlerFunc {
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
		ctx, cancel := context.WithTimeout(ops.ByHand(r.Context()), bulkLimit+limit)
		defer cancel()
		r = r.WithContext(ctx)
		var said flash
		var err error
		if f.show != nil {
			if err = b.respond(w, r, http.StatusOK, f.show, nil); err == nil {
				return
			}
		} else {
			said, err = f.do(b, r)
		}
		refused, _ := errors.AsType[*remote.Error](err)
		invalid, _ := errors.AsType[*stint.InvalidError](err)
		switch {
		case f.again != nil && (invalid != nil || refused != nil && refused.Status < http.StatusInternalServerError && refused.Status != http.StatusForbidden):
			if err := b.respond(w, r, http.StatusUnprocessableEntity, f.again, &flash{Text: sentence(err.Error())}); err != nil {
				b.failed(w, r, err)
			}
			return
		case refused != nil && refused.Status != http.StatusForbidden:
			said = flash{Text: sentence(err.Error())}
		case err != nil:
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

// respond answers a form with a page.
func (b *Dashboard) respond(w http.ResponseWriter, r *http.Request, status int, with func(*Dashboard, *http.Request) (*page, any, error), said *flash) error {
	p, data, err := with(b, r)
	if err != nil {
		return err
	}
	now, err := view.Now(r.Context(), b.store)
	if err == nil {
		b.render(w, r, status, shown{page: p, Data: data, Title: p.title, Now: now, Flash: said})
	}
	return err
}

// operate calls an operation on the thing of a name, with the fields of the form. If the
// operation must be confirmed, the form has its verb.
func (b *Dashboard) operate(r *http.Request, op ops.Operation, name string) (flash, error) {
	if op == nil || !op.Describe().Changes() {
		return flash{}, errNowhere
	}
	if d := op.Describe(); d.Confirm && !confirmed(r, d.Verb()) {
		return unconfirmed(d.Verb()), nil
	}
	in, out := op.Input(), op.Output()
	if err := ops.Fill(in, name, r.PostForm); err != nil {
		return flash{}, err
	}
	if err := b.api.Call(r.Context(), op, in, out); err != nil {
		return flash{}, err
	}
	if op.Describe().Noun() == ops.ListErrors.Noun() {
		b.figures.errors.Forget()
	}
	said := flash{OK: true, Text: sentence(op.Said(in, out))}
	switch out := out.(type) {
	case *stint.Receipt:
		said.to(out.ID)
	case *ops.Done[stint.RerunResult]:
		for id, a := range out.Answers {
			if len(out.Answers) == 1 && a.Answer == stint.RerunRecoveredBefore {
				said.OK = false
			}
			if len(out.Answers) == 1 && a.ID != 0 && a.ID != id {
				said.to(a.ID)
			}
		}
	}
	return said, nil
}

// confirmed reports whether a form confirms its verb: it was typed, or a second button has it.
func confirmed(r *http.Request, verb string) bool { return r.PostForm.Get("confirm") == verb }

func unconfirmed(verb string) flash {
	return flash{Text: "Nothing was done: confirm it by the word " + verb + "."}
}

// selectedJobs does something to the jobs that are ticked. What cannot be undone was confirmed on the page of many jobs.
func (b *Dashboard) selectedJobs(r *http.Request) (flash, error) {
	op, err := verbOf(r.PostForm)
	if err != nil {
		return flash{}, err
	}
	if r.PostForm["ids"] = r.PostForm["id"]; len(r.PostForm["ids"]) == 0 {
		return flash{Text: "No job is selected."}, nil
	}
	if verb := op.Describe().Verb(); verbNamed(verb).Danger && !confirmed(r, verb) {
		return unconfirmed(verb), nil
	}
	return b.operate(r, op, "")
}

// bulkJobs does something to the jobs of a filter, or of a group of errors, as long as
// there is time.
func (b *Dashboard) bulkJobs(r *http.Request) (flash, error) {
	op, err := verbOf(r.PostForm)
	if err != nil {
		return flash{}, err
	}
	if verb := op.Describe().Verb(); !confirmed(r, verb) {
		return unconfirmed(verb), nil
	}
	in := op.Input()
	if err := ops.Fill(in, "", r.PostForm); err != nil {
		return flash{}, err
	}
	selection := ops.SelectionOf(in)
	var ids []stint.ID // of a group
	if group := groupOf(r.PostForm); group != nil {
		if ids, err = b.groupJobs(r.Context(), op, group, r.PostForm); err != nil || len(ids) == 0 {
			return flash{OK: true, Text: sentence(ops.TallyText(nil))}, err
		}
	} else if selection.Filter, err = choice(r.PostForm).filter(); err != nil {
		return flash{}, err
	}
	counts := map[string]int{}
	for until := time.Now().Add(bulkLimit); ; {
		n := min(len(ids), ops.MostNamed)
		selection.IDs, ids = ids[:n], ids[n:]
		out := op.Output()
		if err := b.api.Call(r.Context(), op, in, out); err != nil {
			if len(counts) == 0 {
				return flash{}, err
			}
			return flash{Text: sentence(ops.TallyText(counts)) + " Then it went wrong: " + err.Error() + "."}, nil
		}
		done := out.(ops.Answered)
		for word, n := range done.Tally() {
			counts[word] += n
		}
		selection.Before = done.More()
		switch said := sentence(ops.TallyText(counts)); {
		case len(ids) == 0 && selection.Before == 0:
			return flash{OK: true, Text: said}, nil
		case time.Now().After(until):
			return flash{Text: said + " There are more: do it again to go on."}, nil
		}
	}
}

// flash is the result of a form, which the next page shows once.
type flash struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
	Link string `json:"link,omitempty"` // where to look, below the dashboard's path
	Word string `json:"word,omitempty"` // of the link
}

// to links to a job.
func (f *flash) to(id stint.ID) { f.Link, f.Word = "/jobs/"+id.String(), "job "+id.String() }

const (
	flashCookie = "stint_flash"
	maxFlash    = 2000 // bytes of its text: a cookie holds 4,096
)

// setFlash keeps it for the next page.
func (b *Dashboard) setFlash(w http.ResponseWriter, r *http.Request, f flash) {
	if len(f.Text) > maxFlash {
		f.Text = f.Text[:maxFlash] + "…"
	}
	text, _ := json.Marshal(f) // strings and a bool
	b.flashCookie(w, r, base64.RawURLEncoding.EncodeToString(text), 60)
}

// takeFlash returns what was kept, and forgets it.
func (b *Dashboard) takeFlash(w http.ResponseWriter, r *http.Request) *flash {
	c, err := r.Cookie(flashCookie)
	if err != nil {
		return nil
	}
	b.flashCookie(w, r, "", -1)
	text, err := base64.RawURLEncoding.DecodeString(c.Value)
	var f flash
	if err != nil || json.Unmarshal(text, &f) != nil || len(f.Link) > 0 && !isLocal(f.Link) {
		return nil
	}
	return &f
}

func (b *Dashboard) flashCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: flashCookie, Value: value, MaxAge: age, Path: b.config.Path + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

// isLocal reports whether an address is one of this server: a path without a beginning that
// a browser takes for another host. Browsers remove tabs and ends of lines from an address
// before they read it, so an address with such characters is not local.
func isLocal(to string) bool {
	if strings.ContainsFunc(to, func(r rune) bool { return r < ' ' }) {
		return false
	}
	return len(to) > 0 && to[0] == '/' && (len(to) == 1 || to[1] != '/' && to[1] != '\\')
}
