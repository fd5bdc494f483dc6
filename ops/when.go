package ops

import (
	"context"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
)

// When is a time as a request says it, as flags of the command do: an instant as RFC 3339
// has it, or a duration. 1h is an hour ago and +1h in an hour, by the database's clock.
// Empty is none.
type When string

// At is a time of a request; the zero time is none.
func At(t time.Time) When {
	if t.IsZero() {
		return ""
	}
	return When(t.Format(time.RFC3339Nano))
}

// Schema describes it for the document of the API.
func (When) Schema(huma.Registry) *huma.Schema {
	longest := 50
	return &huma.Schema{
		Type: huma.TypeString, Format: "instant-or-duration", MaxLength: &longest, Examples: []any{"2026-03-01T09:00:00Z", "1h", "+15m"},
		Description: "An instant (RFC 3339), or a duration by the database's clock: 1h is an hour ago, +1h in an hour",
	}
}

// moment is a time of a request with its place there, and where it goes.
type moment struct {
	field string
	when  When
	into  *time.Time
}

// read reads the times of one request, so that all of its durations count from one moment.
func (l *Local) read(ctx context.Context, place string, moments ...moment) error {
	var now time.Time
	for _, m := range moments {
		text := string(m.when)
		if text == "" {
			continue
		}
		later, plus := strings.CutPrefix(text, "+")
		d, err := retry.ParseDuration(later)
		if err != nil {
			if *m.into, err = time.Parse(time.RFC3339, text); err != nil {
				return inError(place, valid.Invalid(m.field, "%q is neither an instant such as 2026-03-01T09:00:00Z nor a duration such as 1h, for an hour ago", text))
			}
			continue
		}
		if now.IsZero() {
			if now, err = view.Now(ctx, l.Store); err != nil {
				return err
			}
		}
		if !plus {
			d = -d
		}
		*m.into = now.Add(d)
	}
	return nil
}
