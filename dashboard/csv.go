package dashboard

import (
	"encoding/csv"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/ops"
)

const (
	csvRows = 10_000 // jobs in one file, the newest
	csvStep = 500    // of these at a time
)

var csvHead = []string{"id", "state", "kind", "queue", "priority", "attempt", "tags", "urn", "source", "correlation", "description", "enqueued", "due", "started", "finished", "reason"}

// csv is the list of jobs of a filter for a spreadsheet, without their arguments.
func (b *Dashboard) csv(w http.ResponseWriter, r *http.Request) {
	all := r.URL.Query()
	ask := ops.JobsQuery{Text: all.Get("text")}
	err := ops.Fill(&ask.Filter, "", choice(all).query)
	var page ops.JobPage
	if ask.Limit = csvStep; err == nil {
		page, err = ops.ListJobs.Call(r.Context(), b.api, ask)
	}
	if err != nil {
		b.failed(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="jobs.csv"`)
	out := csv.NewWriter(w)
	err = out.Write(csvHead)
	for n := 0; err == nil; {
		for i := range page.Jobs {
			err = errors.Join(err, out.Write(csvRow(&page.Jobs[i])))
		}
		if n += len(page.Jobs); err != nil || page.Next == 0 || n >= csvRows {
			break
		}
		ask.Before = int64(page.Next)
		page, err = ops.ListJobs.Call(r.Context(), b.api, ask)
	}
	out.Flush()
	if err = errors.Join(err, out.Error()); err != nil {
		b.config.Log.ErrorContext(r.Context(), "a list of jobs was cut off", "error", err)
		panic(http.ErrAbortHandler) // so that the client knows that it is not whole
	}
}

func csvRow(j *stint.JobInfo) []string {
	row := []string{
		j.ID.String(), string(j.State), asText(j.Kind), asText(j.Queue), strconv.Itoa(j.Priority), strconv.Itoa(j.Attempt),
		asText(strings.Join(j.Tags, " ")), asText(j.URN), asText(j.Source), asText(j.Correlation), asText(j.Description()),
	}
	for _, t := range []time.Time{j.Created, j.Due, j.Started, j.Finished} {
		text := ""
		if !t.IsZero() {
			text = t.UTC().Format(time.RFC3339Nano)
		}
		row = append(row, text)
	}
	return append(row, asText(j.Reason))
}

// asText is a cell that spreadsheets do not take for a formula.
func asText(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

// CSV is the address of the file with the jobs of the filter.
func (p jobsPage) CSV() string {
	q := url.Values{}
	maps.Copy(q, p.Filter.query)
	if p.Text != "" {
		q.Set("text", p.Text)
	}
	return address("/jobs.csv", q)
}
