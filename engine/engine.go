package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
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
	duties    []duty
	meters    *meters
	running   atomic.Bool
	current   atomic.Pointer[session] // while it runs: who takes in guests
	vitals    vitals
}

// New makes an engine for the kinds of the mux. It does not touch the store.
func New(store stint.Store, mux *stint.Mux, config Config) (*Engine, error) {
	c, err := config.fill()
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	e := &Engine{store: store, mux: mux, config: c, client: c.Client, duties: duties, meters: newMeters(c.Slots)}
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
// upgraded to one that is not for this program ([stint.ErrSchema]). An engine
// that was told to leave by [Engine.Drain], or that has reached
// Config.MemoryLimit, stops in the same way but for the grace: what runs may
// take its time.
func (e *Engine) Run(ctx context.Context) error {
	if !e.running.CompareAndSwap(false, true) {
		return errors.New("engine: it is running already")
	}
	defer e.running.Store(false)
	asked, over := e.vitals.begin(ctx)
	defer over()
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
	wait := newBackoff()
	for joined := false; ; {
		s, err := e.join(asked)
		switch {
		case err != nil && asked.Err() != nil:
			return drainedBy(asked)
		case err != nil && (!joined || errors.Is(err, stint.ErrSchema)):
			return fmt.Errorf("engine: %w", err)
		case err != nil:
			e.emit(stint.Event{Type: stint.EventTrouble, Doing: "join the roster", Err: err})
			if !wait.sleep(asked) {
				return drainedBy(asked)
			}
			continue
		}
		if !joined {
			defer e.report(ctx)()
		}
		joined = true
		forget := context.AfterFunc(asked, s.drain)
		err = s.run(ctx)
		forget()
		switch {
		case err == nil:
			return drainedBy(asked)
		case !errors.Is(err, stint.ErrBuried):
			return err
		}
		if asked.Err() != nil {
			return drainedBy(asked)
		}
	}
}

func (e *Engine) emit(ev stint.Event) {
	if e.config.OnEvent == nil {
		return
	}
	ev.Time, ev.Instance = time.Now(), e.config.Instance
	if err := e.tell(ev); err != nil {
		_ = e.tell(stint.Event{
			Type: stint.EventTrouble, Time: ev.Time, Engine: ev.Engine, Instance: ev.Instance,
			Doing: "tell of an event of the type " + string(ev.Type), About: string(ev.Type), Err: err,
		})
	}
}

// tell calls the listener. One that panics has failed at listening and at
// nothing else: what it was told of goes on.
func (e *Engine) tell(ev stint.Event) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &stint.PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	e.config.OnEvent(ev)
	return nil
}
