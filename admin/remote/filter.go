package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/api"
	"github.com/stint-go/stint/retry"
)

// filterOf is a filter as the API has it, but for its page.
func filterOf(f stint.Filter) api.Filter {
	g := api.Filter{
		Kind: f.Kind, Queue: f.Queue, Tag: f.Tag, URN: f.URN, Source: f.Source, Correlation: f.Correlation, Schedule: f.Schedule,
		Faulty: f.Faulty, Class: f.Class, Error: f.Error, Attempts: f.Attempts, After: f.After,
		CreatedFrom: f.Created.From, CreatedTo: f.Created.To, DueFrom: f.Due.From, DueTo: f.Due.To,
		EndedFrom: f.Finished.From, EndedTo: f.Finished.To,
	}
	for _, s := range f.States {
		g.States = append(g.States, string(s))
	}
	if f.Outcome != 0 {
		g.Outcome = f.Outcome.String()
	}
	g.Longer = text(f.Longer)
	return g
}

// query writes a filter as a query, whose names are those of its JSON.
func query(f api.Filter) (url.Values, error) {
	raw, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	var members map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // which is written as it was
	if err := d.Decode(&members); err != nil {
		return nil, err
	}
	q := url.Values{}
	for name, value := range members {
		if list, ok := value.([]any); ok {
			var items []string
			for _, item := range list {
				items = append(items, fmt.Sprint(item))
			}
			value = strings.Join(items, ",")
		}
		q.Set(name, fmt.Sprint(value))
	}
	return q, nil
}

// text is a duration as the API reads it; empty for none.
func text(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return retry.FormatDuration(d)
}

// set puts what is said into a query.
func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

// setTime does so for an instant.
func setTime(q url.Values, name string, t time.Time) {
	if !t.IsZero() {
		q.Set(name, t.Format(time.RFC3339Nano))
	}
}
