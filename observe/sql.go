package observe

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/stint-go/stint"
)

// SQL returns a function for the hook OnQuery of a store's configuration that
// writes a line for each statement which took as long as slowerThan, or failed:
// its text, how long it took, and how many rows it returned or changed. Zero
// writes all. Lines are of the level info, those about failures warn. Arguments
// are never written. A nil logger is [slog.Default] at the time of each
// statement.
func SQL(logger *slog.Logger, slowerThan time.Duration) func(stint.Query) {
	return func(q stint.Query) {
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
		attrs := []slog.Attr{slog.Duration(KeyTook, q.Took.Round(time.Microsecond)), slog.Int64(KeyRows, q.Rows)}
		if q.Err != nil {
			attrs = append(attrs, slog.String(KeyError, oneLine(q.Err.Error())))
		}
		to.LogAttrs(context.Background(), level, "statement", append(attrs, slog.String(KeySQL, squeeze(q.Text)))...)
	}
}

// squeeze writes a statement in one line.
func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }
