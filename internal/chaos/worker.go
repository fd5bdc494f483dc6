//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/check"
)

// workerEnv carries a worker's settings to its process.
const workerEnv = "STINT_CHAOS_WORKER"

// Worker are the settings of one worker process.
type Worker struct {
	Name       string // in the history and the roster; new for each life
	DB         string // the database's URL, or the path of a file
	History    string // the directory of the history
	Slots      int
	TimeToLive time.Duration
	Grace      time.Duration
	Poll       time.Duration
	Drag       time.Duration // what each job takes here beside its work
	Ticks      *Ticks        // it fires these, and does nothing else

	end *end
}

// Main turns this process into a worker when it was started as one, and
// otherwise returns. Test binaries call it first. Signals and exit codes are
// those of the command.
func Main() {
	text := os.Getenv(workerEnv)
	if text == "" {
		return
	}
	var w Worker
	err := json.Unmarshal([]byte(text), &w)
	if err == nil {
		err = w.run(untilSignal())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, w.Name+":", err)
	}
	switch {
	case err == nil:
		os.Exit(0)
	case errors.Is(err, engine.ErrStillRunning):
		os.Exit(exitStillRunning)
	}
	os.Exit(1)
}

// exitStillRunning is the exit code of a stop that left handlers behind.
const exitStillRunning = 3

// untilSignal returns a context that ends at the first signal. The second one
// waits for nothing.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitStillRunning)
	}()
	return ctx
}

func (w *Worker) run(ctx context.Context) error {
	if w.Ticks != nil {
		return w.runTicks(ctx)
	}
	history, err := check.Create(w.History, w.Name)
	if err != nil {
		return err
	}
	defer history.Close()
	ground, err := Open(ctx, w.DB)
	if err != nil {
		return err
	}
	defer ground.Close()
	lines := logLines(os.Stderr)
	log := logEvents(lines)
	w.end = &end{log: lines}
	var engines sync.Map // the token under which each job was started last: sessions come and go
	mux := stint.NewMux()
	mux.Add(Kind.Declaration(), w.handler(history, ground, &engines))
	e, err := engine.New(ground.Store, mux, engine.Config{
		Instance: w.Name, Slots: w.Slots, TimeToLive: w.TimeToLive, Grace: w.Grace, Poll: w.Poll,
		OnEvent: func(ev stint.Event) {
			if ev.Type == stint.EventStarted {
				engines.Store(ev.Job.ID, ev.Engine)
			}
			log(ev)
		},
	})
	if err != nil {
		return err
	}
	return e.Run(ctx)
}
