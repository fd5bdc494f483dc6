package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/failure"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// Store is what a gateway needs of one: what an engine does, and the kinds that are declared.
type Store interface {
	store.Store
	store.Canceller
	store.Inspector
}

// Config says how a gateway works.
type Config struct {
	// Host is the running engine of the same store that engines of workers are beside. Required.
	Host *engine.Engine

	// Client is the client of the engines: its keys open sealed arguments for the workers. Nil is a plain
	// client of the store.
	Client *stint.Client

	// OnEvent receives the events of the workers' engines: see [engine.Config].
	OnEvent func(event.Event)
}

// Errors that a worker is to tell apart from others.
var (
	// ErrElsewhere says that this gateway does not have the worker: it was started again, or another one has it.
	// The worker may join again here, and go on with what it runs.
	ErrElsewhere = errors.New("gateway: this gateway does not have the worker: join again")

	// ErrLost says that the worker is not in the roster any more: nothing that it runs will count.
	ErrLost = errors.New("gateway: the worker is not in the roster any more: join again, and end what runs")

	// ErrClosed says that the gateway takes no workers since it is being stopped.
	ErrClosed = errors.New("gateway: it is being stopped")

	// ErrFull says that this gateway has [MaxWorkers].
	ErrFull = errors.New("gateway: it has as many workers as it takes: join at another one, or again later")

	// ErrUnanswered says that the database did not take a heartbeat.
	ErrUnanswered = errors.New("gateway: the database did not answer: ask again")

	// ErrSuspended says that the run of a step has ended by a sleep.
	ErrSuspended = errors.New("gateway: a sleep has ended the run")
)

// DeniedError says that a worker asks for what its token is not for.
type DeniedError struct{ What, Name string }

func (e *DeniedError) Error() string {
	if e.Name == "" {
		return "gateway: the token is not for all " + e.What + "s: name some"
	}
	return fmt.Sprintf("gateway: the token is not for the %s %s", e.What, e.Name)
}

// Gateway has workers take part in a store. Its methods may be called concurrently; the context of each says
// whose request it is ([guard.Of]).
type Gateway struct {
	store  Store
	config Config

	missedFor time.Duration // see worker
	most      int           // workers

	mu        sync.Mutex
	workers   map[store.EngineID]*worker
	left      map[store.EngineID]time.Time // workers that this gateway had, and when they ended
	engines   int                          // that run
	closed    bool
	running   sync.WaitGroup // engines
	finishing sync.WaitGroup // calls of Finish

	caring [64]sync.Mutex // each for some of the workers of other gateways
}

// New returns a gateway to a store. Close ends it.
func New(st Store, c Config) *Gateway {
	return &Gateway{store: st, config: c, missedFor: MaxWait, most: MaxWorkers, workers: map[store.EngineID]*worker{}, left: map[store.EngineID]time.Time{}}
}

// Close lets go of all workers at once. They stay in the roster for their time to live, and may go on with what
// they run at another gateway.
func (g *Gateway) Close() {
	g.mu.Lock()
	already := g.closed
	g.closed = true
	for _, w := range g.workers {
		w.endClaims()
	}
	g.mu.Unlock()
	if !already {
		g.awaitFinishes()
	}
	g.mu.Lock()
	for _, w := range g.workers {
		w.abandon()
	}
	g.mu.Unlock()
	g.running.Wait()
}

func (g *Gateway) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// lastFinishes is for how long a gateway that is being stopped goes on to record what workers say.
const lastFinishes = 5 * time.Second

func (g *Gateway) awaitFinishes() {
	ended := make(chan struct{})
	go func() {
		g.finishing.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(lastFinishes):
	}
}

// pollEvery is how often an engine of a worker looks for jobs of which it heard nothing: notifications, and the looks
// of others, find nearly all.
const pollEvery = 5 * time.Second

// Workers is how many the gateway has.
func (g *Gateway) Workers() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.workers)
}

// Running is how many jobs workers have been given whose end is not recorded, of those that have any.
func (g *Gateway) Running() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[string]int{}
	for id, w := range g.workers {
		if n := w.running(); n > 0 {
			all[strconv.FormatInt(int64(id), 10)] = n
		}
	}
	return all
}

// Join enters a worker into the roster.
func (g *Gateway) Join(ctx context.Context, in Joining) (Joined, error) {
	if err := in.check(guard.Of(ctx)); err != nil {
		return Joined{}, err
	}
	mux, w, err := g.newWorker(ctx, in)
	if err != nil {
		return Joined{}, err
	}
	joined, runCtx := make(chan error, 1), context.Context(nil)
	runCtx, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	config := engine.Config{
		Beside: g.config.Host, Present: w.present, Client: g.config.Client, Queues: in.Queues, Slots: in.Slots, Instance: in.Instance, Version: in.Version, Host: in.Host, PID: in.PID,
		TimeToLive: in.TimeToLive, Grace: 1, MetricsEvery: -1, Poll: pollEvery,
		OnEvent: func(ev event.Event) {
			if ev.Type == event.EventJoined {
				w.id, in.Instance = ev.Engine, ev.Instance
				joined <- nil
			}
			if ev.Type == event.EventBuried && w.isAbandoned() {
				ev.Err = ErrClosed // it was not buried: the gateway let go of it
			}
			w.on(ev)
			if g.config.OnEvent != nil {
				g.config.OnEvent(ev)
			}
		},
	}
	if in.OnDemand {
		config.AtOnce, config.QueueOrder = w.atOnce, w.queueOrder
	}
	e, err := engine.New(g.store, mux, config)
	if err != nil {
		return Joined{}, err
	}
	w.engine = e
	if err := g.start(runCtx, w, joined); err != nil {
		return Joined{}, err
	}
	select {
	case err := <-joined:
		if err != nil {
			return Joined{}, err
		}
	case <-ctx.Done():
		w.stop()
		return Joined{}, context.Cause(ctx)
	}
	g.mu.Lock()
	closed := g.closed
	select {
	case <-w.over: // it was buried meanwhile
		closed = true
	default:
		g.workers[w.id] = w
	}
	g.mu.Unlock()
	if closed {
		w.abandon()
		return Joined{}, ErrClosed
	}
	return Joined{strconv.FormatInt(int64(w.id), 10), in.Instance, retry.Duration(in.TimeToLive), retry.Duration(in.TimeToLive / 4)}, nil
}

// check sets defaults, and refuses what cannot be and what the token is not for.
func (in *Joining) check(who guard.Identity) error {
	in.TimeToLive = cmp.Or(in.TimeToLive, DefaultTimeToLive)
	if len(in.Queues) == 0 {
		in.Queues = who.Queues
	}
	switch {
	case len(in.Kinds) == 0:
		return valid.Invalid("kinds", "there are none")
	case in.Slots < 1 || in.Slots > MaxSlots:
		return valid.Invalid("slots", "%d is not between 1 and %d", in.Slots, MaxSlots)
	case in.TimeToLive < MinTimeToLive || in.TimeToLive > MaxTimeToLive:
		return valid.Invalid("time_to_live", "%s is not between %s and %s", retry.FormatDuration(in.TimeToLive), retry.FormatDuration(MinTimeToLive), retry.FormatDuration(MaxTimeToLive))
	case in.PID < 0:
		return valid.Invalid("pid", "%d is none", in.PID)
	}
	for i, k := range in.Kinds {
		if err := k.Check(); err != nil {
			return err
		}
		if slices.ContainsFunc(in.Kinds[:i], func(other stint.KindInfo) bool { return other.Name == k.Name }) {
			return valid.Invalid("kinds", "%s is there twice", k.Name)
		}
	}
	return mayWorkOn(who, in.Queues, in.kinds())
}

func (in *Joining) kinds() (names []string) {
	for _, k := range in.Kinds {
		names = append(names, k.Name)
	}
	return names
}

// mayWorkOn reports whether the token of who asks is for queues and kinds.
func mayWorkOn(who guard.Identity, queues, kinds []string) error {
	within := func(what string, bound, names []string) error {
		if len(bound) == 0 {
			return nil
		}
		if len(names) == 0 {
			return &DeniedError{What: what}
		}
		for _, name := range names {
			if !slices.Contains(bound, name) {
				return &DeniedError{what, name}
			}
		}
		return nil
	}
	return cmp.Or(within("queue", who.Queues, queues), within("kind", who.Kinds, kinds))
}

// newWorker makes a worker, and the mux of its engine. What is declared of a kind already stays as it is.
func (g *Gateway) newWorker(ctx context.Context, in Joining) (*stint.Mux, *worker, error) {
	declared, err := g.store.Kinds(ctx)
	if err != nil {
		return nil, nil, err
	}
	w := &worker{
		joining: in, missedFor: g.missedFor, beaten: time.Now(), left: make(chan struct{}), over: make(chan struct{}), runs: map[engine.Hold]*run{}, byJob: map[stint.ID]*run{}, recorded: map[engine.Hold]time.Time{}, suspended: map[engine.Hold]bool{}, spoke: time.Now(),
	}
	mux := stint.NewMux()
	for _, k := range in.Kinds {
		if i := slices.IndexFunc(declared, func(d stint.KindInfo) bool { return d.Name == k.Name }); i >= 0 {
			k = declared[i]
		}
		mux.Add(k, w.perform)
	}
	return mux, w, nil
}

// start runs the engine of a worker. If it cannot join, that is sent.
func (g *Gateway) start(ctx context.Context, w *worker, joined chan<- error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	if g.engines >= g.most {
		return ErrFull
	}
	g.engines++
	g.running.Go(func() {
		defer close(w.left)
		err := w.engine.Run(ctx)
		select {
		case joined <- cmp.Or(err, ErrClosed):
		default:
		}
		w.abandon()
		w.stop()
		if errors.Is(err, store.ErrBuried) && w.id != 0 {
			g.running.Go(func() { g.buryDead(w) })
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.engines--
		delete(g.workers, w.id)
		if err == nil { // otherwise the roster says whether it lives, at another gateway
			g.left[w.id] = time.Now()
		}
		for id, at := range g.left {
			if time.Since(at) > forget {
				delete(g.left, id)
			}
		}
	})
	return nil
}

// buryDead has the jobs of a worker that was silent run elsewhere as soon as may be, unless it speaks to another
// gateway. Other engines would come to it, too, but a little later.
func (g *Gateway) buryDead(w *worker) {
	ttl := w.joining.TimeToLive
	ctx, cancel := context.WithTimeout(context.Background(), ttl)
	defer cancel()
	for !g.isClosed() && ctx.Err() == nil {
		silent := time.Since(w.lastBeat())
		if silent < ttl {
			select {
			case <-time.After(min(ttl-silent, 100*time.Millisecond)):
			case <-ctx.Done():
			}
			continue
		}
		if _, err := engine.BuryDead(ctx, g.store, w.id, ttl); !errors.Is(err, store.ErrAlive) || silent > ttl+ttl/8 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// forget is for how long a worker that has ended is told so.
const forget = 10 * time.Minute

// find returns a worker that this gateway has, or nil with its number if another one may have it.
func (g *Gateway) find(ctx context.Context, id string) (*worker, store.EngineID, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 1 {
		return nil, 0, valid.Invalid("worker", "%q is none", valid.CleanText(id, 40))
	}
	token := store.EngineID(n)
	g.mu.Lock()
	w, left, closed := g.workers[token], g.left[token], g.closed
	g.mu.Unlock()
	switch {
	case closed:
		return nil, token, ErrClosed
	case w != nil:
		return w, token, mayWorkOn(guard.Of(ctx), w.joining.Queues, w.joining.kinds())
	case !left.IsZero():
		return nil, token, ErrLost
	}
	return nil, token, nil
}

// here is find for what only the gateway that has the worker can do.
func (g *Gateway) here(ctx context.Context, id string) (*worker, error) {
	w, token, err := g.find(ctx, id)
	if err != nil || w != nil {
		return w, err
	}
	err = g.care(ctx, token, func(engine.Caretaker, store.EngineInfo) error { return ErrElsewhere })
	return nil, err // that it is lost, if the roster does not have it any more
}

// Claim answers with up to so many jobs. It waits up to a time until there is one, or anything else to tell; a
// later claim of the worker ends that, unless it is one on demand, and so does half of its time to live. With 0 jobs
// it waits for the rest only. It counts as a heartbeat. When ctx has ended it takes no job.
func (g *Gateway) Claim(ctx context.Context, id string, c Claim) (News, error) {
	w, err := g.here(ctx, id)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return News{}, err
	}
	return w.claimAlive(ctx, c)
}

func (c *Claim) check() error {
	switch {
	case c.Max < 0 || c.Max > MaxSlots:
		return valid.Invalid("max", "%d is not between 0 and %d", c.Max, MaxSlots)
	case c.Wait < 0 || c.Wait > MaxWait:
		return valid.Invalid("wait", "it is not between 0s and %s", retry.FormatDuration(MaxWait))
	}
	return nil
}

// Claim asks for jobs.
type Claim struct {
	Max  int           // how many at most; 0 to wait for the rest of the news only
	Wait time.Duration // for how long to wait until there is news
	Idle bool          // the worker says that nothing runs: so it needs to send no heartbeats

	// Queues, of a worker on demand, are the order in which it takes jobs from its queues from now on. None leaves
	// the order as it is: at first by the priorities of jobs alone.
	Queues []string
}

// Finish ends runs, and answers what became of each when all are recorded: each stands alone. With next it
// claims, unless another gateway has the worker.
func (g *Gateway) Finish(ctx context.Context, id string, endings []Ending, next *Claim) ([]Recorded, News, error) {
	w, token, err := g.find(ctx, id)
	if err == nil && next != nil {
		err = next.check()
	}
	switch {
	case err != nil:
		return nil, News{}, err
	case w == nil:
		answers, err := g.finishElsewhere(ctx, token, endings)
		return answers, newNews(false), err
	}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil, News{}, ErrClosed
	}
	g.finishing.Add(1)
	g.mu.Unlock()
	answers, fenced, err := w.finish(ctx, endings)
	g.finishing.Done()
	if fenced && g.isClosed() {
		return nil, News{}, ErrClosed // what is not recorded can be, elsewhere
	}
	if err != nil || next == nil {
		return answers, newNews(w.drains()), err
	}
	news, err := w.claimAlive(ctx, *next)
	if err != nil {
		news, err = newNews(w.drains()), nil // what was recorded is told in any case
	}
	return answers, news, err
}

// Beat says that a worker lives and what it runs. It returns when the database knows. If the worker has joined
// again, moved is how long ago it last took jobs by this name.
func (g *Gateway) Beat(ctx context.Context, id string, running []Running, moved time.Duration) (News, error) {
	w, token, err := g.find(ctx, id)
	switch {
	case err != nil:
		return News{}, err
	case w == nil:
		return g.beatElsewhere(ctx, token, running, moved)
	}
	if moved > 0 {
		w.engine.Drain(nil)
		w.returnWaiting()
	}
	return w.beat(ctx, running)
}

// Leave takes a worker out of the roster. What still runs is handed back, uncharged.
func (g *Gateway) Leave(ctx context.Context, id string) error {
	w, token, err := g.find(ctx, id)
	switch {
	case errors.Is(err, ErrLost):
		return nil
	case w == nil && (err == nil || errors.Is(err, ErrClosed)): // it has let go of its workers
		return g.leaveElsewhere(ctx, token)
	case err != nil:
		return err
	}
	w.stop()
	select {
	case <-w.left:
		if g.isClosed() { // its engine may have been let go before it could leave
			return g.leaveElsewhere(ctx, token)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Step records a step of a running job and returns what is recorded then: of an earlier run, if that had recorded
// it. To record it again in the same run answers the same.
func (g *Gateway) Step(ctx context.Context, id, receipt, name string, value json.RawMessage) (json.RawMessage, error) {
	if len(value) == 0 {
		value = json.RawMessage("null")
	}
	recorded, err := g.inRun(ctx, id, receipt, name, func(ctx context.Context) (json.RawMessage, error) {
		return stint.Step(ctx, name, func(context.Context) (json.RawMessage, error) { return value, nil })
	})
	if err == nil && recorded == nil {
		err = ErrSuspended
	}
	return recorded, err
}

// Sleep has a running job wait for a time. It reports true if the run has ended with that: the job runs again when
// the time has come.
func (g *Gateway) Sleep(ctx context.Context, id, receipt, name string, d time.Duration) (suspended bool, err error) {
	done, err := g.inRun(ctx, id, receipt, name, func(ctx context.Context) (json.RawMessage, error) {
		return json.RawMessage("true"), stint.Sleep(ctx, name, d)
	})
	return done == nil, err
}

// Await has a running job wait for a signal. It reports true if the run has ended with that: the job runs again when
// the signal or the end of the time has come. The error matches [stint.ErrNoSignal] after that.
func (g *Gateway) Await(ctx context.Context, id, receipt, name, signal string, d time.Duration) (value json.RawMessage, suspended bool, err error) {
	value, err = g.inRun(ctx, id, receipt, name, func(ctx context.Context) (json.RawMessage, error) {
		return stint.AwaitAs[json.RawMessage](ctx, name, signal, d)
	})
	return value, value == nil && err == nil, err
}

// inRun does a step in the handler of a run, once for each name. It answers nothing if that has ended the run.
func (g *Gateway) inRun(ctx context.Context, id, receipt, name string, do func(context.Context) (json.RawMessage, error)) (value json.RawMessage, err error) {
	w, err := g.here(ctx, id)
	if err != nil {
		return nil, err
	}
	w.hear()
	r, err := w.run(receipt)
	if err != nil || r == nil {
		return nil, err
	}
	ended := false
	called := w.do(ctx, r, func(ctx context.Context) (bool, json.RawMessage, error) {
		if value = r.answered[name]; value != nil {
			return false, nil, nil
		}
		if value, err = do(ctx); err == nil {
			r.answered[name] = value
			return false, nil, nil
		}
		value = nil
		if _, ended = failure.As[*failure.Snooze](err); ended {
			r.own, r.sleeps = true, true
			return true, nil, err
		}
		return false, nil, nil
	})
	switch {
	case !called && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !called:
		return nil, ErrLost
	case !ended:
		return value, err
	}
	select {
	case <-r.done:
		return nil, nil
	case <-w.over:
		return nil, ErrLost
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
