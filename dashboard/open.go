package dashboard

import (
	"net/http"
	"slices"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/seal"
)

// openedPage shows in clear what is sealed of a job. It has no address, and nothing keeps it.
var openedPage = page{name: "opened", title: "In clear"}

// isSealed reports whether something of a job is sealed.
func isSealed(j view.Job) bool {
	return seal.Is(j.Args) ||
		slices.ContainsFunc(j.Attempts, func(x stint.Attempt) bool { return seal.Is(x.Result) }) ||
		slices.ContainsFunc(j.Steps, func(s view.Step) bool { return seal.Is(s.Result) })
}

// openJob opens a job for who sent the form, which is written down.
func (b *Dashboard) openJob(r *http.Request) (*page, any, error) {
	var in ops.JobName
	if err := ops.Fill(&in, r.PathValue("name"), nil); err != nil {
		return nil, nil, err
	}
	job, err := ops.OpenJob.Call(r.Context(), b.api, in)
	return &openedPage, job, err
}
