package stint

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"time"
)

// Bounds of what a run logs, in bytes.
const (
	MaxLine    = 4 << 10  // of one line
	MaxLogHead = 16 << 10 // of the first lines of a run that are kept
	MaxLogTail = 48 << 10 // of its last ones
	LineCost   = 32       // that a line counts beside its text
)

// LogLine is a line that a run logged.
type LogLine struct {
	Run     int64      `json:"run" doc:"Which run of the job: a later one has a higher number"`
	Attempt int        `json:"attempt"`
	N       int        `json:"n" doc:"Which line of its run, from 1. Lines whose numbers are missing were left out"`
	At      time.Time  `json:"at"`
	Level   slog.Level `json:"level"`
	Text    string     `json:"text,omitempty"`
}

// Logger returns a logger whose lines people see with the job while it runs, and afterwards:
//
//	stint.Logger(ctx).Info("a page is loaded", "page", 40)
//
// Lines go to the database as [SetProgress] says, which costs no transaction. Of each run the first
// 16 KiB and the last 48 KiB are kept, with the number of lines that were left out between. They are
// deleted with the job.
//
// Lines have level [slog.LevelInfo] at least. A line has at most 4 KiB, and of a text with several lines
// each is one. What is logged after the handler has returned is discarded.
//
// ctx is that of a running handler; for any other it is [slog.Default]. To have lines in the program's own
// log as well, and with [slog.InfoContext], see [LogHandler].
func Logger(ctx context.Context) *slog.Logger {
	if a := runFrom(ctx); a != nil {
		return slog.New(&lineHandler{run: a})
	}
	return slog.Default()
}

// LogHandler returns a handler that passes records on to next, and those that are logged with the context
// of a running handler to its job too, as [Logger] does. So what the functions of slog that take a context
// log is seen with the job:
//
//	slog.SetDefault(slog.New(stint.LogHandler(slog.NewTextHandler(os.Stderr, nil))))
//	…
//	slog.InfoContext(ctx, "a page is loaded", "page", 40) // in a handler, or in what it calls
func LogHandler(next slog.Handler) slog.Handler { return &lineHandler{next: next} }

// lineHandler makes records lines of a run.
type lineHandler struct {
	run  *Run         // nil for that of the record's context
	next slog.Handler // nil for none
	with []func(slog.Handler) slog.Handler
}

func (h *lineHandler) of(ctx context.Context) *Run {
	if h.run != nil {
		return h.run
	}
	return runFrom(ctx)
}

// Enabled implements [slog.Handler].
func (h *lineHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && h.of(ctx) != nil || h.next != nil && h.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h *lineHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo {
		if l := h.of(ctx).openLog(); l != nil {
			at := r.Time
			if at.IsZero() {
				at = time.Now()
			}
			l.add(at, r.Level, r.Message+h.attributes(ctx, r))
		}
	}
	if h.next == nil || !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

// The text of a record without a time, message and attributes.
const bareRecord = `level=INFO msg=""`

// attributes are those of a record, as slog writes them, with a space before each.
func (h *lineHandler) attributes(ctx context.Context, r slog.Record) string {
	if r.NumAttrs() == 0 && len(h.with) == 0 {
		return ""
	}
	var text bytes.Buffer
	var writer slog.Handler = slog.NewTextHandler(&text, nil)
	for _, with := range h.with {
		writer = with(writer)
	}
	bare := slog.NewRecord(time.Time{}, slog.LevelInfo, "", 0)
	r.Attrs(func(a slog.Attr) bool { bare.AddAttrs(a); return true })
	_ = writer.Handle(ctx, bare)
	return strings.TrimSuffix(strings.TrimPrefix(text.String(), bareRecord), "\n")
}

// WithAttrs implements [slog.Handler].
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.and(func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) })
}

// WithGroup implements [slog.Handler].
func (h *lineHandler) WithGroup(name string) slog.Handler {
	return h.and(func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
}

func (h *lineHandler) and(with func(slog.Handler) slog.Handler) slog.Handler {
	but := *h
	but.with = append(h.with[:len(h.with):len(h.with)], with)
	if h.next != nil {
		but.next = with(h.next)
	}
	return &but
}
