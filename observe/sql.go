package observe

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/stint-go/stint/event"
)

// SQL returns a function for the field OnQuery of a store's configuration. It logs each statement
// that took slowerThan or longer, or failed: its text, duration, error, and how many rows it
// returned or changed. Zero logs all. The level is info, and warn for failures. Arguments are never
// logged. A nil logger is [slog.Default] at the time of each statement.
func SQL(logger *slog.Logger, slowerThan time.Duration) func(event.Query) {
	return func(q event.Query) {
		if q.Took < slowerThan && q.Err == nil {
			return
		}
		level, to := slog.LevelInfo, loggerOr(logger)
		if q.Err != nil {
			level = slog.LevelWarn
		}
		if !to.Enabled(context.Background(), level) {
			return
		}
		attrs := []slog.Attr{inUnits(KeyTook, q.Took.Round(time.Microsecond)), slog.Int64(KeyRows, q.Rows)}
		if q.Err != nil {
			attrs = append(attrs, slog.String(KeyError, oneLine(q.Err.Error())))
		}
		to.LogAttrs(context.Background(), level, "statement", append(attrs, slog.String(KeySQL, squeeze(q.Text)))...)
	}
}

// squeeze writes a statement in one line.
func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }
