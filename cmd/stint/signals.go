package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stint-go/stint/retry"
)

// impatience is how long after the first signal another one means that somebody
// does not want to wait. Those that come together are one: GNU timeout sends its
// signal to the process and again to its group.
const impatience = time.Second

// untilSignal returns a context that ends at the first TERM, INT or HUP. Another
// TERM or INT exits at once, unless it came together with the first. A HUP never
// counts as impatience: terminals that go away send several, and supervisors one
// together with a TERM, in whichever order they arrive.
func (a *app) untilSignal(ctx context.Context, log *slog.Logger, grace time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 4)
	notify(signals)
	var over atomic.Bool
	go func() {
		var asked time.Time // when by a TERM or INT for the first time
		for s := range signals {
			again := s != syscall.SIGHUP && !asked.IsZero() && time.Since(asked) >= impatience
			if s != syscall.SIGHUP && asked.IsZero() {
				asked = time.Now()
			}
			switch {
			case over.Load():
			case ctx.Err() == nil:
				log.Info("stopping: no new jobs; those that run may finish", "signal", s.String(), "grace", retry.FormatDuration(grace))
				cancel()
			case again:
				log.Warn("exiting at once, without waiting for what runs", "signal", s.String())
				a.exit(exitStillRunning)
			}
		}
	}()
	return ctx, func() {
		over.Store(true)
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// interrupted returns a context that ends at TERM or INT, for commands that
// have something to tidy up or to say.
func interrupted(ctx context.Context) (context.Context, func()) {
	return signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
}

// notify leaves a HUP alone that the parent chose to ignore, as nohup does.
func notify(signals chan<- os.Signal) {
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
}
