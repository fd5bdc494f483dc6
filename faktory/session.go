package faktory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/gateway"
)

const (
	fetchTime = 2 * time.Second // for which a FETCH waits
	slots     = 200             // of a worker: how many jobs its connections may hold
	maxSets   = 8               // sets of queues that one worker fetches from
	maxQueues = 100             // in a FETCH
	remember  = 30 * time.Second
)

// session is a worker of the protocol: all connections with its wid.
type session struct {
	server *Server
	wid    string
	host   string
	pid    int
	conns  int // guarded by Server.mu

	joining sync.Mutex // held while it joins the roster

	mu      sync.Mutex
	workers map[string]string // of the gateway, by their set of queues: nearly always one
	jobs    map[string]*held  // by jid
	drained bool              // it is to stop
}

// held is a job that the worker was given.
type held struct {
	id       stint.ID
	worker   string // of the gateway
	receipt  string
	progress *gateway.RunProgress // since the last heartbeat
	ended    time.Time            // when its end was recorded; zero before
}

// errNotHeld answers an ACK or FAIL of another worker's job. Clients report the error and go on with the next job:
// that is true, while +OK would say that the job is done, which runs again.
var errNotHeld = errors.New("this worker does not hold the job: it was lost, or has ended before")

// fetch waits for a job of some queues; nil if none came in time. Who does not pass it on gives it back.
func (s *session) fetch(ctx context.Context, queues []string) (*held, []byte, error) {
	end := time.Now().Add(fetchTime)
	for again := true; ; {
		if s.isDrained() || s.server.isStopping() {
			sleep(ctx, time.Until(end))
			return nil, nil, nil
		}
		worker, err := s.worker(ctx, queues)
		var news gateway.News
		if err == nil {
			news, err = s.server.gateway.Claim(ctx, worker, gateway.Claim{Max: 1, Wait: max(0, time.Until(end)), Queues: queues})
		}
		switch {
		case isLost(err) && again:
			s.forget(worker) // it was silent for too long: it joins again
			again = false
			continue
		case err != nil:
			return nil, nil, err
		case len(news.Jobs) > 0:
			return s.take(worker, &news.Jobs[0])
		case news.Drain:
			s.drain()
		case ctx.Err() != nil || time.Now().After(end):
			return nil, nil, nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// isLost reports whether the roster does not have the worker any more, or not as one of this gateway.
func isLost(err error) bool {
	return errors.Is(err, gateway.ErrLost) || errors.Is(err, gateway.ErrElsewhere)
}

// worker returns the worker of the gateway for a set of queues. It joins the roster with the first FETCH.
func (s *session) worker(ctx context.Context, queues []string) (string, error) {
	set := slices.Compact(slices.Sorted(slices.Values(queues)))
	key := strings.Join(set, "\n") // in no name
	s.joining.Lock()
	defer s.joining.Unlock()
	s.mu.Lock()
	id, n := s.workers[key], len(s.workers)
	s.mu.Unlock()
	switch {
	case id != "":
		return id, nil
	case n >= maxSets:
		return "", fmt.Errorf("the worker fetches from more than %d sets of queues", maxSets)
	}
	joined, err := s.server.gateway.Join(ctx, gateway.Joining{
		Instance: "faktory-" + s.wid, Kinds: []stint.KindInfo{{Name: stint.AnyKind}}, Queues: set, Slots: slots, OnDemand: true,
		TimeToLive: s.server.config.TimeToLive, Host: s.host, PID: s.pid,
	})
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers[key] = joined.Worker
	return joined.Worker, nil
}

// forget removes a worker of the gateway that is lost, and what it held.
func (s *session) forget(worker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.workers, func(_, id string) bool { return id == worker })
	maps.DeleteFunc(s.jobs, func(_ string, h *held) bool { return h.worker == worker })
}

// take notes a job that the gateway has handed out. Two jobs that the worker holds never have the same jid: jobs that
// were copied do, so the second one gets one of its own.
func (s *session) take(worker string, j *gateway.ClaimedJob) (*held, []byte, error) {
	h := &held{id: j.ID, worker: worker, receipt: j.Receipt}
	jid := jidOf(j)
	s.mu.Lock()
	if other := s.jobs[jid]; other != nil && other.ended.IsZero() && other.id != j.ID {
		jid = ownJID(j)
	}
	s.jobs[jid] = h
	s.mu.Unlock()
	text, err := textOf(j, jid)
	if err != nil {
		s.giveBack(h)
		return nil, nil, err
	}
	return h, text, nil
}

// giveBack returns a job that did not get to the worker, uncharged.
func (s *session) giveBack(h *held) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	s.mu.Lock()
	maps.DeleteFunc(s.jobs, func(_ string, other *held) bool { return other == h })
	s.mu.Unlock()
	// If it cannot be recorded now, heartbeats leave out the job, and the gateway returns it.
	_, _, _ = s.server.gateway.Finish(ctx, h.worker, []gateway.Ending{{Receipt: h.receipt, Return: true}}, nil)
}

// end records how a job ended. To end it twice within a while is the same: the first answer may have been lost.
func (s *session) end(ctx context.Context, jid string, x gateway.Ending) error {
	s.mu.Lock()
	h := s.jobs[jid]
	again := h != nil && !h.ended.IsZero()
	s.mu.Unlock()
	switch {
	case h == nil:
		return errNotHeld
	case again:
		return nil
	}
	x.Receipt = h.receipt
	answers, _, err := s.server.gateway.Finish(ctx, h.worker, []gateway.Ending{x}, nil)
	if isLost(err) {
		s.forget(h.worker)
		return errNotHeld
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch answers[0].Status {
	case gateway.OK:
		h.ended = time.Now()
		return nil
	case gateway.Fenced:
		if s.jobs[jid] == h {
			delete(s.jobs, jid)
		}
		return errNotHeld
	}
	return errors.New(answers[0].Problem)
}

// track keeps how far a job is until the next heartbeat.
func (s *session) track(jid string, p gateway.RunProgress) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.jobs[jid]
	if h == nil || !h.ended.IsZero() {
		return errNotHeld
	}
	h.progress = &p
	return nil
}

// beat passes on that the worker lives, and what it runs. It reports what the worker is to do: nothing, to be quiet,
// or to terminate when nothing runs any more.
func (s *session) beat(ctx context.Context) (state string, err error) {
	s.mu.Lock()
	workers := slices.Collect(maps.Values(s.workers))
	s.mu.Unlock()
	for _, worker := range workers {
		news, e := s.server.gateway.Beat(ctx, worker, s.running(worker), 0)
		if isLost(e) {
			s.forget(worker)
			continue
		}
		err = errors.Join(err, e)
		if news.Drain {
			s.drain()
		}
		for _, c := range news.Cancel {
			s.cancel(ctx, c)
		}
	}
	switch {
	case err != nil || !s.isDrained():
		return "", err
	case s.holdsNothing():
		return "terminate", nil
	}
	return "quiet", nil
}

// running lists what a worker of the gateway runs.
func (s *session) running(worker string) (list []gateway.Running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for jid, h := range s.jobs {
		switch {
		case !h.ended.IsZero() && time.Since(h.ended) > remember:
			delete(s.jobs, jid)
		case h.ended.IsZero() && h.worker == worker:
			list = append(list, gateway.Running{Receipt: h.receipt, Progress: h.progress})
			h.progress = nil
		}
	}
	return list
}

// cancel ends the run of a job whose reservation is over: the protocol has no way to tell the worker, and its ACK will
// be refused. A job that was cancelled runs on, and is recorded as it ends.
func (s *session) cancel(ctx context.Context, c gateway.Cancel) {
	jid := ""
	s.mu.Lock()
	for name, h := range s.jobs {
		if h.receipt == c.Receipt && h.ended.IsZero() {
			jid = name
		}
	}
	s.mu.Unlock()
	switch {
	case jid == "" || c.Reason != gateway.ReasonTimeout && c.Reason != gateway.ReasonLost:
		return
	case c.Reason == gateway.ReasonTimeout:
		x := gateway.Ending{Error: &gateway.RunError{Class: "timeout", Message: "the worker did not end the job within reserve_for"}}
		if s.end(ctx, jid, x) != nil {
			return // the next heartbeat tries again
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[jid] != nil && s.jobs[jid].receipt == c.Receipt { // it may have come again
		delete(s.jobs, jid)
	}
}

func (s *session) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drained = true
}

func (s *session) isDrained() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drained
}

func (s *session) holdsNothing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.jobs {
		if h.ended.IsZero() {
			return false
		}
	}
	return true
}

// leave takes a worker without connections and jobs out of the roster.
func (s *session) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	s.mu.Lock()
	workers := slices.Collect(maps.Values(s.workers))
	clear(s.workers)
	s.mu.Unlock()
	for _, worker := range workers {
		_ = s.server.gateway.Leave(ctx, worker) // otherwise it is buried
	}
}
