package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// ErrStillRunning says that handlers ignored the end of their context and still run. The engine did
// not leave the roster: after its burial their jobs are charged and run again elsewhere. The
// process should exit.
var ErrStillRunning = errors.New("engine: handlers are still running")

// Engine works on a store's jobs. Make one with [New]; it may run again after [Engine.Run]
// returned.
type Engine struct {
	store          store.Store
	reader         store.Reader  // the store, if it is one
	keepsLogs      bool          // the store keeps what handlers say
	client         *stint.Client // for handlers
	mux            *stint.Mux
	config         Config
	singletonTasks []singletonTask
	meters         *meters
	running        atomic.Bool
	current        atomic.Pointer[session] // while Run works: takes inline runs
	liveness       liveness
	last           store.EngineID // that the engine was in the roster; of Run
	former         []*session     // fenced, and perhaps in the roster; of Run, and of the session that it runs
	guests         guests         // engines beside this one
	tuner          *tuner         // of the session that runs; nil if the number of slots is fixed
}

// New makes an engine for the kinds of the mux. It does not touch the store. The error says which
// setting is invalid.
func New(jobs store.Store, mux *stint.Mux, config Config) (*Engine, error) {
	c, err := config.fill()
	if err == nil && mux == nil {
		err = valid.Invalid("mux", "it is nil: stint.NewMux makes one")
	}
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	e := &Engine{store: jobs, mux: mux, config: c, client: c.Client, singletonTasks: singletonTasks, meters: newMeters(c.Instance, c.Slots)}
	if e.client == nil {
		e.client = stint.NewClient(jobs)
	}
	if err := e.checkKeys(); err != nil {
		return nil, err
	}
	if c.MaxSlots > c.Slots {
		e.tuner = newTuner(c.Slots, c.MaxSlots)
	}
	e.reader, _ = jobs.(store.Reader)
	_, e.keepsLogs = jobs.(store.LogReader)
	return e, nil
}

// Run works until ctx ends, then stops gracefully: it takes no more jobs, gives running jobs
// Config.Grace to finish, cancels them with [stint.ErrStopping], returns the jobs that have not
// started, and leaves the roster. It returns nil after a clean stop, and [ErrStillRunning] when
// handlers ignored their cancellation.
//
// An engine that loses its place in the roster cancels its handlers with [stint.ErrFenced] and
// joins again. If the first attempt to join fails, Run returns the error. Later attempts are
// repeated until ctx ends, unless the schema was upgraded to a version that this program does not
// support ([store.ErrSchema]). An engine that was asked to drain does not join again to work, whether
// it learned of that before it lost its place or not. [Engine.Drain] and Config.MemoryLimit stop the engine in the same
// way, but without the grace: running jobs may take as long as they need.
func (e *Engine) Run(ctx context.Context) error {
	if !e.running.CompareAndSwap(false, true) {
		return errors.New("engine: it is running already")
	}
	defer e.running.Store(false)
	if e.store == nil { // New takes one to check settings
		return fmt.Errorf("engine: %w", valid.Invalid("store", "it is nil"))
	}
	asked, over := e.liveness.begin(ctx)
	defer over()
	if err := e.checkKeys(); err != nil {
		return err
	}
	for _, d := range e.mux.Declarations() {
		e.mux.Handler(d.Name) // middleware that panics when it is put together does so here
	}
	if e.config.StrictInstance {
		if err := e.checkName(asked); err != nil {
			return err
		}
	}
	if e.config.MemoryLimit > 0 {
		go e.watchMemory(asked)
	}
	wait := new(backoff)
	e.last = 0 // it was not asked of this run
	for joined := false; ; {
		s, err := e.join(asked)
		switch {
		case err != nil && asked.Err() != nil:
			return drainReason(asked)
		case err != nil && (!joined || errors.Is(err, store.ErrSchema)):
			return fmt.Errorf("engine: %w", err)
		case err != nil:
			e.emit(event.Event{Type: event.EventTrouble, Doing: "join the roster", Err: err})
			if !wait.sleep(asked) {
				return drainReason(asked)
			}
			continue
		}
		if !joined {
			defer e.startMetrics(ctx)()
		}
		joined = true
		e.last = s.token
		forget := context.AfterFunc(asked, s.drain)
		err = s.run(ctx)
		forget()
		switch {
		case err == nil:
			return drainReason(asked)
		case !errors.Is(err, store.ErrBuried):
			return err
		}
		if asked.Err() != nil {
			return drainReason(asked)
		}
		if e.config.Beside != nil {
			return fmt.Errorf("engine: %w", err)
		}
		e.former = append(e.former, s)
	}
}

// checkKeys refuses sealed kinds without keys.
func (e *Engine) checkKeys() error {
	for _, d := range e.mux.Declarations() {
		if err := e.client.CheckKeys(d); err != nil {
			return fmt.Errorf("engine: %w", err)
		}
	}
	return nil
}

func (e *Engine) emit(ev event.Event) {
	if e.config.OnEvent == nil {
		return
	}
	ev.Time, ev.Instance = time.Now(), e.config.Instance
	if err := e.callListener(ev); err != nil {
		_ = e.callListener(event.Event{
			Type: event.EventTrouble, Time: ev.Time, Engine: ev.Engine, Instance: ev.Instance,
			Doing: "report an event of the type " + string(ev.Type), About: string(ev.Type), Err: err,
		})
	}
}

// callListener calls Config.OnEvent and returns its panic as an error.
func (e *Engine) callListener(ev event.Event) (err error) {
	defer recovered(&err)
	e.config.OnEvent(ev)
	return nil
}
