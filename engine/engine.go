package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
)

// ErrStillRunning says that handlers ignored the end of their context and
// still run. The engine did not leave the roster: their jobs are charged and
// run again elsewhere once it is buried. The process should end.
var ErrStillRunning = errors.New("engine: handlers are still running")

// Engine works on a store's jobs. Make one with [New]; it may be run again
// after [Engine.Run] returned.
type Engine struct {
	store     stint.Store
	inspector stint.Inspector // the store, where it is one
	client    *stint.Client   // for handlers
	mux       *stint.Mux
	config    Config
	meters    *meters
	running   atomic.Bool
	current   atomic.Pointer[session] // while it runs: who takes in guests
}

// New makes an engine for the kinds of the mux. It does not touch the store.
func New(store stint.Store, mux *stint.Mux, config Config) (*Engine, error) {
	c, err := config.fill()
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	e := &Engine{store: store, mux: mux, config: c, client: c.Client, meters: newMeters()}
	if e.client == nil {
		e.client = stint.NewClient(store)
	}
	e.inspector, _ = store.(stint.Inspector)
	return e, nil
}

// Run works until ctx ends, then stops gracefully: it takes no more jobs,
// gives those that run Config.Grace to finish, cancels them with
// [stint.ErrStopping], returns what had not begun, and leaves the roster. It
// returns nil when all of that went well, and [ErrStillRunning] when handlers
// ignored their cancellation.
//
// An engine that loses its place in the roster cancels its handlers with
// [stint.ErrFenced] and joins anew. When it cannot join at first, Run returns
// the error; later on it tries again until ctx ends, unless the schema was
// upgraded to one that is not for this program ([stint.ErrSchema]).
func (e *Engine) Run(ctx context.Context) error {
	if !e.running.CompareAndSwap(false, true) {
		return errors.New("engine: it is running already")
	}
	defer e.running.Store(false)
	for _, d := range e.mux.Declarations() {
		e.mux.Handler(d.Name) // middleware that panics when it is put together does so here
	}
	if e.config.StrictInstance {
		if err := e.checkName(ctx); err != nil {
			return err
		}
	}
	wait := newBackoff()
	for joined := false; ; {
		s, err := e.join(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil && (!joined || errors.Is(err, stint.ErrSchema)):
			return fmt.Errorf("engine: %w", err)
		case err != nil:
			e.emit(stint.Event{Type: stint.EventTrouble, Doing: "join the roster", Err: err})
			if !wait.sleep(ctx) {
				return nil
			}
			continue
		}
		if !joined {
			defer e.report(ctx)()
		}
		joined = true
		err = s.run(ctx)
		if !errors.Is(err, stint.ErrBuried) {
			return err
		}
		e.emit(stint.Event{Type: stint.EventBuried, Engine: s.token})
		if ctx.Err() != nil {
			return nil
		}
	}
}

func (e *Engine) emit(ev stint.Event) {
	if e.config.OnEvent == nil {
		return
	}
	ev.Time, ev.Instance = time.Now(), e.config.Instance
	e.config.OnEvent(ev)
}
