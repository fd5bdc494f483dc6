package admin

import (
	"net/http"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/sample"
)

// errorsPage is what went wrong, in groups.
type errorsPage struct {
	Kind, Queue string
	Hours       string // how far back; empty for all that is there
	Report      sample.Seen[stint.ErrorReport]
	Blind       bool // messages are not for who looks
}

// frozen: a look at what went wrong is dear.
func (errorsPage) frozen() {}

// errors groups what went wrong. Without a filter pages share a look.
func (b *Board) errors(r *http.Request) (any, error) {
	q := r.URL.Query()
	p := errorsPage{Kind: q.Get("kind"), Queue: q.Get("queue"), Hours: q.Get("hours"), Blind: b.config.API.Blind(r.Context())}
	if p.Kind == "" && p.Queue == "" && p.Hours == "" {
		p.Report = b.figures.errors.Get(r.Context())
		return p, nil
	}
	f := stint.ErrorFilter{Kind: p.Kind, Queue: p.Queue}
	if p.Hours != "" {
		hours, err := time.ParseDuration(p.Hours + "h")
		if err != nil || hours <= 0 {
			return nil, stint.Invalid("hours", "%q is no number of hours", p.Hours)
		}
		f.Since = time.Now().Add(-hours)
	}
	report, err := b.store.Errors(r.Context(), f)
	p.Report = sample.Seen[stint.ErrorReport]{Value: report, At: time.Now()}
	return p, err
}
