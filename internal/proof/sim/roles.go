package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/store"
)

// anyStore is what a simulation needs of a store.
type anyStore interface {
	store.Store
	store.Listener
	store.Canceller
	store.TxFinisher
	store.OrphanRecoverer
	store.Operator
	store.Pauser
	store.ClaimedEnqueuer
	store.Scheduler
	store.ScheduleKeeper
	store.Leaser
	store.Retainer
	store.Limiter
	store.FlowReader
	store.StepKeeper
	store.Signaler
	store.Questioner
}

// A process is the store that its engine sees, with nearly every optional role.
// That SQLite lacks some of them does not matter: they are simulated.
var (
	_ anyStore                = (*process)(nil)
	_ store.Clock             = (*process)(nil)
	_ store.SessionTerminator = (*process)(nil)
)

func (p *process) Enqueue(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	store := func(ctx context.Context) ([]stint.Receipt, error) {
		receipts, err := p.store.Enqueue(ctx, tx, jobs)
		p.w.note(p.name, numbers(ids(receipts)), "enqueue: %v", err)
		return receipts, err
	}
	send := func() ([]stint.Receipt, error) {
		receipts, _, err := call(ctx, p, opEnqueue, store)
		if p.w.bug == bugEnqueue && errors.Is(err, errLost) {
			return store(ctx)
		}
		return receipts, err
	}
	if m := jobs[0].Member; m != nil && m.Into != 0 {
		return p.into(jobs, send)
	}
	return send()
}

func ids(receipts []stint.Receipt) []stint.ID {
	all := make([]stint.ID, len(receipts))
	for i, r := range receipts {
		all[i] = r.ID
	}
	return all
}

func (p *process) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	return ask(ctx, p, opLook, func(ctx context.Context) ([]store.LaneHead, error) { return p.store.Look(ctx, known) })
}

func (p *process) LookSince(ctx context.Context, since store.Mark) (store.Appended, error) {
	return ask(ctx, p, opLook, func(ctx context.Context) (store.Appended, error) { return p.store.LookSince(ctx, since) })
}

func (p *process) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	r, f, err := call(ctx, p, opClaim, func(ctx context.Context) (reading[store.Claim], error) {
		after := p.w.tick()
		c, err := p.store.Claim(ctx, req)
		if len(c.Positions) > 0 || err != nil {
			p.w.note(p.name, jobsOf(c.Entries), "claim %d of %x, engine %x: entries %v, %v", req.Serial, req.Lane, req.Engine, c.Positions, err)
		}
		return reading[store.Claim]{c, after}, err
	})
	if f.fault == half && err == nil && len(r.what.Positions) > 0 {
		r.what.Entries, err = nil, errLost
	}
	p.claimed(req.Engine, r)
	return r.what, err
}

func (p *process) ClaimLanes(ctx context.Context, req store.ClaimRequest, lanes []store.LaneHead) ([]store.Claim, error) {
	r, f, err := call(ctx, p, opClaim, func(ctx context.Context) (reading[[]store.Claim], error) {
		after := p.w.tick()
		all, err := p.store.ClaimLanes(ctx, req, lanes)
		for _, c := range all {
			if len(c.Positions) > 0 {
				p.w.note(p.name, jobsOf(c.Entries), "claim %d of %x, one of several, engine %x: entries %v, %v", c.Serial, c.Lane, req.Engine, c.Positions, err)
			}
		}
		if err != nil {
			p.w.note(p.name, nil, "claims %d of %d lanes, engine %x: %v", req.Serial, len(lanes), req.Engine, err)
		}
		return reading[[]store.Claim]{all, after}, err
	})
	if f.fault == half && err == nil && slices.ContainsFunc(r.what, func(c store.Claim) bool { return len(c.Positions) > 0 }) {
		for i := range r.what {
			r.what[i].Entries = nil
		}
		err = errLost
	}
	for _, c := range r.what {
		p.claimed(req.Engine, reading[store.Claim]{c, r.after})
	}
	return r.what, err
}

func (p *process) Fetch(ctx context.Context, at []store.Position) ([]store.Entry, error) {
	r, _, err := call(ctx, p, opFetch, func(ctx context.Context) (reading[[]store.Entry], error) {
		after := p.w.tick()
		entries, err := p.store.Fetch(ctx, at)
		return reading[[]store.Entry]{entries, after}, err
	})
	p.fetched(r)
	return r.what, err
}

func (p *process) Finish(ctx context.Context, engine store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	p.mayRecord(done)
	p.w.leaves(done)
	claims, done = slices.Clone(claims), slices.Clone(done) // the engine goes on to use its own, and this may arrive late
	n, _, err := call(ctx, p, opFinish, func(ctx context.Context) (int, error) {
		n, err := p.store.Finish(ctx, engine, claims, done)
		jobs := make([]int64, len(done))
		what := make([]stint.Outcome, len(done))
		for i := range done {
			jobs[i], what[i] = int64(done[i].Job), done[i].Outcome
		}
		p.w.note(p.name, jobs, "finish, engine %x: %v, %d new, %v", engine, what, n, err)
		return n, err
	})
	if err == nil {
		p.recorded(done)
	}
	if p.w.bug.hides(opFinish, err) {
		return n, nil
	}
	return n, err
}

// recorded notes that no completion of these is in doubt any more. A beat whose
// answer was under way meanwhile may hand them back, which changes nothing.
func (p *process) recorded(done []store.Completion) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range done {
		if at := done[i].Pos; p.commit[at] == inDoubt {
			p.commit[at] = made
		}
	}
}

// Join implements [store.Roster]. All engines live in one process, which is
// alive: asking for it again and again would only cost time.
func (p *process) Join(ctx context.Context, e store.EngineInfo, kinds []stint.KindInfo) error {
	p.joined(e.Token)
	e.BootID = ""
	p.appear(e)
	_, _, err := call(ctx, p, opJoin, func(ctx context.Context) (none, error) {
		err := p.store.Join(ctx, e, kinds)
		// All of these processes are one, which would vouch for the dead.
		p.w.real.Release(e.Token)
		p.w.note(p.name, nil, "join as engine %x: %v", e.Token, err)
		return none{}, err
	})
	p.joined(e.Token)
	if err != nil {
		p.Release(e.Token)
	}
	return err
}

// Heartbeat implements [store.Roster]. One that fails may mean that the engine is
// cut off: it cannot tell, and fences itself in time.
func (p *process) Heartbeat(ctx context.Context, engine store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	began := check.Now()
	if one := p.w.present(engine); one != nil {
		one.beaten(len(b.Running) > 0)
	}
	orders, _, err := call(ctx, p, opBeat, func(ctx context.Context) (store.HeartbeatReply, error) {
		reply, err := p.store.Heartbeat(ctx, engine, b)
		reply.Now = time.Now() // as Now answers: else one slow answer of Now would be believed for ever
		return reply, err
	})
	if err != nil && !p.dead() {
		p.w.note(p.name, nil, "beat of engine %x: %v", engine, err)
	}
	if err != nil && !errors.Is(err, store.ErrBuried) {
		p.w.disturb(check.Disturbance{Does: check.CutsOff, Process: p.name, From: began, To: check.Now()})
	}
	if p.w.bug.hides(opBeat, err) {
		return orders, nil
	}
	return orders, err
}

func (p *process) Held(ctx context.Context, engine store.EngineID, serial int64, known ...int64) ([]store.Claim, error) {
	return ask(ctx, p, opHeld, func(ctx context.Context) ([]store.Claim, error) { return p.store.Held(ctx, engine, serial, known...) })
}

func (p *process) Announced(ctx context.Context, engine store.EngineID) ([]store.Entry, error) {
	return ask(ctx, p, opHeld, func(ctx context.Context) ([]store.Entry, error) { return p.store.Announced(ctx, engine) })
}

func (p *process) Drain(ctx context.Context, engine store.EngineID) error {
	_, _, err := call(ctx, p, opBeat, func(ctx context.Context) (none, error) {
		return none{}, p.store.Drain(ctx, engine)
	})
	return err
}

func (p *process) Bury(ctx context.Context, b store.Burial, judge func(e *store.Entry, begun bool) store.Completion) (int, error) {
	cutShort := p.beforeBurial(b.Engine)
	return ask(ctx, p, opBury, func(ctx context.Context) (int, error) {
		if p.w.spares(b) {
			return 0, store.ErrAlive
		}
		if p.w.open.block(b.Engine) {
			p.w.note(p.name, nil, "bury engine %x: blocked", b.Engine)
			return 0, store.ErrBurialBlocked
		}
		cutShort(ctx)
		var jobs []int64
		n, err := p.store.Bury(ctx, b, func(e *store.Entry, begun bool) store.Completion {
			jobs = append(jobs, int64(e.ID))
			p.w.finds(b.Engine, e, begun)
			return judge(e, begun)
		})
		p.w.note(p.name, jobs, "bury engine %x (%s): %d, %v", b.Engine, b.Why, n, err)
		return n, err
	})
}

func (p *process) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	return ask(ctx, p, opEngines, p.store.Engines)
}

func (p *process) Promote(ctx context.Context, from time.Time, limit int) (store.Promotion, error) {
	return ask(ctx, p, opPromote, func(ctx context.Context) (store.Promotion, error) {
		done, err := p.store.Promote(ctx, from, limit)
		if done.Moved > 0 {
			p.w.note(p.name, nil, "promote from %v: %+v", from, done)
		}
		return done, err
	})
}

func (p *process) Now(ctx context.Context) (time.Time, error) {
	return ask(ctx, p, opNow, func(context.Context) (time.Time, error) { return time.Now(), nil })
}

func (p *process) Evict(ctx context.Context, engine store.EngineID) (int, error) {
	return ask(ctx, p, opEvict, func(context.Context) (int, error) {
		n := p.w.open.evict(engine)
		p.w.note(p.name, nil, "evict engine %x: %d", engine, n)
		return n, nil
	})
}

type none = struct{}

func numbers[T ~int64](list []T) []int64 {
	all := make([]int64, len(list))
	for i, v := range list {
		all[i] = int64(v)
	}
	return all
}

func jobsOf(entries []store.Entry) []int64 {
	all := make([]int64, len(entries))
	for i := range entries {
		all[i] = int64(entries[i].ID)
	}
	return all
}

// The roles that an engine gets to see: those that it always does, those that
// SQLite's store lacks, without which its engine polls, and those that old seeds
// knew nothing of.
type (
	common interface {
		store.Store
		store.LivenessLocker
		store.Canceller
		store.TxFinisher
		store.OrphanRecoverer
		store.FlowReader
		store.StepKeeper
		store.Signaler
		store.Questioner
	}
	voice interface {
		store.Listener
		store.Clock
		store.SessionTerminator
	}
	later interface {
		store.Pauser
		store.ClaimedEnqueuer
		store.Leaser
		store.Retainer
	}
	latest interface {
		store.Scheduler
	}
	newest interface {
		store.Limiter
	}
)

// seen is the process as its engine sees it.
func (p *process) seen(deaf bool) store.Store {
	switch old := p.w.seed.Age > Single; {
	case p.w.seed.Age < Boundless:
		return p.seenYoung(deaf)
	case old && deaf:
		return struct{ common }{p}
	case old:
		return struct {
			common
			voice
		}{p, p}
	case p.w.calendar == nil && deaf:
		return struct {
			common
			later
		}{p, p}
	case p.w.calendar == nil:
		return struct {
			common
			voice
			later
		}{p, p, p}
	case deaf:
		return struct {
			common
			later
			latest
		}{p, p, p}
	}
	return struct {
		common
		voice
		later
		latest
	}{p, p, p, p}
}

// seenYoung is seen with limits.
func (p *process) seenYoung(deaf bool) store.Store {
	switch {
	case p.w.calendar == nil && deaf:
		return struct {
			common
			later
			newest
		}{p, p, p}
	case p.w.calendar == nil:
		return struct {
			common
			voice
			later
			newest
		}{p, p, p, p}
	case deaf:
		return struct {
			common
			later
			latest
			newest
		}{p, p, p, p}
	}
	return p
}

// holding is the entry of a job that the process got last, and the engine
// that claimed it: what a handler is not told. It was read after the instant
// read, as the world counts.
type holding struct {
	pos    store.Position
	engine store.EngineID
	read   int64

	guest bool // a caller brought it along
}

// reading is what was read from the store after an instant.
type reading[T any] struct {
	what  T
	after int64
}

// gets notes what was read of the entry.
func (h *holding) gets(e *store.Entry, after int64) {
	h.pos, h.read = e.Pos, after
}

// claimed notes what the process gets to see of a claim.
func (p *process) claimed(engine store.EngineID, r reading[store.Claim]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := r.what
	h := holding{engine: engine, guest: c.Lane == store.NowLane}
	for i := range c.Entries {
		h.gets(&c.Entries[i], r.after)
		p.inHand[c.Entries[i].ID] = h
	}
	if len(c.Entries) == 0 {
		for _, pos := range c.Positions {
			p.unread[pos] = h
		}
	}
}

// fetched notes what it reads later.
func (p *process) fetched(r reading[[]store.Entry]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entries := r.what
	for i := range entries {
		pos := entries[i].Pos
		if h, ok := p.unread[pos]; ok {
			h.gets(&entries[i], r.after)
			p.inHand[entries[i].ID] = h
			delete(p.unread, pos)
		}
	}
}

func (p *process) holding(job stint.ID) holding {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inHand[job]
}
