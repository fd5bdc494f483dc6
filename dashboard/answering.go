package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/link"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/remote"
	"github.com/stint-go/stint/store"
)

// answering is what the page of a signed link shows. It has nothing but the question: who opens it is known by
// the link alone.
type answering struct {
	Link     link.Link
	Question *stint.Question // nil if there is none to be shown
	Choices  []string        // the buttons; none if it takes no answer
	Answer   *stint.Answer   // nil while there is none
	What     string          // why it takes no answer; empty if it does, or has one
	Now      time.Time
}

// maxAnswering bounds the form of that page: a comment, as it is escaped.
const maxAnswering = 64 << 10

// answeringPage shows the question of a link, and takes its answer.
func (b *Dashboard) answeringPage() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		now, err := time.Now(), error(nil)
		l, refused := b.link.Open(r.PathValue("token"), now)
		switch {
		case b.config.LinkKey == "":
			b.answer(w, r, http.StatusNotFound, answering{What: "This server takes no answers by links.", Now: now})
			return
		case errors.Is(refused, link.ErrExpired):
			b.answer(w, r, http.StatusGone, answering{What: "This link has expired. Ask for a new one.", Now: now})
			return
		case refused != nil:
			b.answer(w, r, http.StatusForbidden, answering{What: "This link is not valid. It may be incomplete: open it as it was sent.", Now: now})
			return
		}
		r = r.WithContext(guard.With(ctx, guard.Identity{Name: l.By, Role: guard.Operator}))
		if r.Method == http.MethodPost {
			if err = b.takeAnswer(w, r, l); err == nil {
				w.Header().Set("Location", b.config.Path+link.Path+r.PathValue("token"))
				w.WriteHeader(http.StatusSeeOther)
				return
			}
		}
		p, status, wrong := b.asked(r.Context(), l, now)
		if wrong != nil {
			b.config.Log.ErrorContext(r.Context(), "the page of a link failed", "job", l.Job, "question", l.Question, "error", wrong)
			status, p = http.StatusServiceUnavailable, answering{What: "The database does not answer. Try again in a moment.", Now: now}
		} else if err != nil {
			if status, p.What = refusal(err); status == http.StatusConflict && p.Answer != nil {
				p.What = ""
			}
		}
		b.answer(w, r, status, p)
	})
}

// takeAnswer gives the answer of a form.
func (b *Dashboard) takeAnswer(w http.ResponseWriter, r *http.Request, l link.Link) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxAnswering)
	if err := r.ParseForm(); err != nil {
		return &stint.InvalidError{Field: "form", Problem: "it cannot be read"}
	}
	choice := r.PostForm.Get("choice")
	if l.Choice != "" {
		choice = l.Choice
	}
	_, err := ops.AnswerQuestion.Call(r.Context(), b.api, ops.AnswerInput{
		JobName: ops.JobName{ID: int64(l.Job)}, Body: ops.NewAnswer{Question: l.Question, Choice: choice, Comment: r.PostForm.Get("comment")},
	})
	return err
}

// refusal is what is said of an answer that was refused.
func refusal(err error) (status int, what string) {
	if e, ok := errors.AsType[*remote.Error](err); ok && e.Status < http.StatusInternalServerError {
		return e.Status, sentence(e.Error())
	}
	if e, ok := errors.AsType[*stint.InvalidError](err); ok {
		return http.StatusUnprocessableEntity, sentence(e.Error())
	}
	return http.StatusServiceUnavailable, "Your answer could not be kept. Try again in a moment."
}

// asked looks at the question of a link. An open one is found by an index; of others the steps of the job tell.
func (b *Dashboard) asked(ctx context.Context, l link.Link, now time.Time) (p answering, status int, err error) {
	p = answering{Link: l, Now: now}
	if p.Now, err = view.Now(ctx, b.store); err != nil {
		return p, 0, err
	}
	open, err := b.store.Questions(ctx, store.QuestionFilter{Before: l.Job + 1, Limit: 1})
	if err != nil {
		return p, 0, err
	}
	for _, q := range open {
		if q.Job != l.Job || q.Name != l.Question {
			continue
		}
		p.Question, p.Choices = &q.Question, q.Choices
		if l.Choice != "" {
			p.Choices = []string{l.Choice}
		}
		if !slices.Contains(q.Choices, p.Choices[0]) {
			p.Choices, p.What = nil, "The answer of this link, "+words.Visible(l.Choice)+", is none that the question takes."
			return p, http.StatusUnprocessableEntity, nil
		}
		return p, http.StatusOK, nil
	}
	job, err := b.store.Job(ctx, l.Job)
	if errors.Is(err, stint.ErrNotFound) {
		p.What = "The job that asked is gone: it was deleted, or retention has removed it."
		return p, http.StatusNotFound, nil
	} else if err != nil {
		return p, 0, err
	}
	steps, err := b.store.Steps(ctx, l.Job)
	if err != nil {
		return p, 0, err
	}
	at := slices.IndexFunc(steps, func(s stint.RecordedStep) bool { return s.Name == l.Question && s.Question != nil })
	if at >= 0 {
		p.Question = steps[at].Question
	}
	var a stint.Answer
	switch {
	case at >= 0 && steps[at].Result != nil && json.Unmarshal(steps[at].Result, &a) == nil && a.Choice != "":
		p.Answer = &a
		return p, http.StatusOK, nil
	case at >= 0 && !p.Question.Until.After(p.Now):
		p.What = "The time to answer is over."
	case job.State.Final():
		p.What = "The job that asked has ended, so there is nothing to answer any more."
	default:
		p.What = "This has not been asked yet. Try again in a moment."
		return p, http.StatusNotFound, nil
	}
	return p, http.StatusGone, nil
}

// answer writes the page of a link.
func (b *Dashboard) answer(w http.ResponseWriter, r *http.Request, status int, p answering) {
	var text bytes.Buffer
	if err := b.answering.ExecuteTemplate(&text, "answering.html", p); err != nil {
		b.config.Log.ErrorContext(r.Context(), "a page could not be made", "page", "answering", "error", err)
		http.Error(w, "This page could not be made; the server's log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes())
}

func answeringTemplate(path string) (*template.Template, error) {
	return template.New("").Funcs(functions(path)).ParseFS(files, "templates/answering.html", "templates/parts.html")
}

// answeringAsset serves what such a page looks like: of the assets of all pages, which others get only once they
// are known.
func answeringAsset(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=3600")
		http.ServeFileFS(w, r, files, "assets/"+name)
	})
}
