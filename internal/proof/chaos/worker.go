//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/steps"
	"github.com/stint-go/stint/observe"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/store"
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
	MaxOutage  time.Duration // none when only the time to live is given
	Grace      time.Duration
	Poll       time.Duration
	Drag       time.Duration // what each job takes here beside its work
	Keep       time.Duration // how long jobs are kept after they ended; 0 for the engine's default
	Shares     bool          // its store and its handlers have one pool of connections
	Diary      bool          // it logs as a program would, see [Fleet.Diary]
	Knows      int           // so many steps of the schema that are still to come
	Upgrades   bool          // it brings the schema to what it knows, and does nothing else
	Ticks      *Ticks        // it fires these, and does nothing else
	Vitals     bool          // it says each second what it uses, see [Fleet.Uses]
	Produces   uint64        // it enqueues mixed jobs as this seed says, and does nothing else

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

// The exit codes of a program that panics, and of a stop that left handlers behind.
const (
	exitPanicked     = 2
	exitStillRunning = 3
)

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

func (w *Worker) open(ctx context.Context) (*Ground, error) {
	if w.Shares {
		return share(ctx, w.DB)
	}
	return Open(ctx, w.DB)
}

func (w *Worker) run(ctx context.Context) error {
	steps.Later = tomorrow()[:w.Knows]
	switch {
	case w.Upgrades:
		return w.upgrade(ctx)
	case w.Ticks != nil:
		return w.runTicks(ctx)
	}
	history, err := check.Create(w.History, w.Name)
	if err != nil {
		return err
	}
	defer history.Close()
	ground, err := w.open(ctx)
	if err != nil {
		return err
	}
	defer ground.Close()
	if w.Produces != 0 {
		p := &Producer{
			Name: w.Name, Ground: ground, History: history, Rand: rand.New(rand.NewPCG(w.Produces, 7)), Mixed: true,
			Pause: 20 * time.Millisecond, Ahead: 20_000,
		}
		_, err := p.Run(ctx, 1<<30)
		return err
	}
	lines := logLines(os.Stderr)
	log := logEvents(lines)
	if w.Diary {
		diary, f, err := w.keepDiary()
		if err != nil {
			return err
		}
		defer f.Close()
		log = observe.Fan(log, diary)
	}
	w.end = &end{log: lines}
	if w.Vitals {
		go sayUse(ctx, lines)
	}
	var engines sync.Map // the token under which each job was started last: sessions come and go
	mux := stint.NewMux()
	mux.Add(Kind.Declaration(), w.handler(history, ground, &engines))
	stint.Handle(mux, Bulk, nothing)
	stint.Handle(mux, MixedBulk, mixedBulk)
	for name, n := range limits {
		mux.Limit(name, stint.LimitRule{AtOnce: n})
	}
	e, err := engine.New(ground.Store, mux, engine.Config{
		Instance: w.Name, Slots: w.Slots, TimeToLive: w.TimeToLive, MaxOutage: w.maxOutage(), Grace: w.Grace, Poll: w.Poll,
		Retention: store.Retention{KeepFor: store.KeepFor{All: w.Keep}},
		OnEvent: func(ev event.Event) {
			if ev.Type == event.EventStarted {
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

// today is the version of the schema that programs know by themselves. It goes up
// with each step that is released.
const today = 1

// tomorrow are steps as later programs will have them: a column, an index of
// it, and the end of programs that know neither.
func tomorrow() []steps.Step {
	return []steps.Step{
		{Version: today + 1, Oldest: 1, Text: `alter table stint.entries add column note text;`},
		{Version: today + 2, Oldest: 1, Online: true, Text: `create index concurrently if not exists entries_note on stint.entries (note) where note is not null;`},
		{Version: today + 3, Oldest: today + 1, Text: `comment on column stint.entries.note is 'Of tomorrow.';`},
	}
}

// upgrade is what stint migrate up does.
// maxOutage is none where a test chose how soon a silent engine is given up, and nothing else.
func (w *Worker) maxOutage() time.Duration {
	if w.TimeToLive > 0 && w.MaxOutage == 0 {
		return -1
	}
	return w.MaxOutage
}

func (w *Worker) upgrade(ctx context.Context) error {
	store, err := postgres.Open(ctx, w.DB, postgres.Config{SkipCheck: true})
	if err != nil {
		return err
	}
	defer store.Close()
	_, err = store.Migrate(ctx)
	return err
}
