package faktory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/internal/valid"
)

const (
	fetchTime = 2 * time.Second // for which a FETCH waits
	slots     = 200             // of a worker: how many jobs its connections may hold
	maxQueues = 100             // in a FETCH
	remember  = 30 * time.Second
	forever   = 1 << 62
)

// session is a worker of the protocol: all connections with its wid.
type session struct {
	hello
	server  *Server
	conns   int         // guarded by Server.mu
	drained atomic.Bool // it is to stop

	joining sync.Mutex // held while it joins the roster
	queues  []string   // guarded by joining

	mu     sync.Mutex
	worker string           // of the gateway; empty before the first FETCH
	jobs   map[string]*held // by jid, also for a while after their end
}

// held is a job that the worker was given.
type held struct {
	id        stint.ID
	receipt   string
	forgotten *time.Timer // a while after its end or its reservation
}

// errNotHeld answers an ACK or FAIL of another worker's job. Clients report the error and go on with the next job:
// that is true, while +OK would say that the job is done, which runs again.
var errNotHeld = errors.New("this worker does not hold the job: it was lost, or has ended before")

// fetch waits for a job of some queues; nil if none came in time. Who does not pass it on gives it back.
func (s *session) fetch(ctx context.Context, queues []string) (*held, []byte, error) {
	if s.server.stopping.Load() || s.drained.Load() {
		sleep(ctx, fetchTime) // clients ask again at once
		return nil, nil, nil
	}
	worker, err := s.join(ctx, queues)
	if err != nil {
		return nil, nil, err
	}
	news, err := s.server.gateway.Claim(ctx, worker, gateway.Claim{Max: 1, Wait: fetchTime, Queues: queues})
	if err = s.heed(worker, news, err); err != nil || len(news.Jobs) == 0 {
		return nil, nil, err
	}
	h, job := s.take(&news.Jobs[0])
	return h, job, nil
}

// join returns the worker of the gateway. It joins the roster with the first FETCH, for the queues of that.
func (s *session) join(ctx context.Context, queues []string) (string, error) {
	s.joining.Lock()
	defer s.joining.Unlock()
	set := slices.Compact(slices.Sorted(slices.Values(queues)))
	worker := s.ofGateway()
	switch {
	case len(queues) > maxQueues:
		return "", fmt.Errorf("%d queues are more than %d", len(queues), maxQueues)
	case worker == "":
	case !slices.Equal(s.queues, set):
		return "", errors.New("the worker fetched from other queues before: each set of queues needs a wid of its own")
	default:
		return worker, nil
	}
	joined, err := s.server.gateway.Join(ctx, gateway.Joining{
		Instance: "faktory-" + s.WID, Kinds: []stint.KindInfo{{Name: stint.AnyKind}}, Queues: set, Slots: slots, OnDemand: true,
		TimeToLive: s.server.config.TimeToLive, Host: s.Hostname, PID: s.PID,
	})
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worker, s.queues = joined.Worker, set
	return joined.Worker, nil
}

// heed does what the gateway says of a worker. One that was silent for too long loses its place, with what it held: it
// joins again with the next FETCH. The protocol has no way to tell a worker that a job was cancelled: it runs on, and is
// recorded as it ends.
func (s *session) heed(worker string, news gateway.News, err error) error {
	if news.Drain {
		s.drained.Store(true)
	}
	if !errors.Is(err, gateway.ErrLost) && !errors.Is(err, gateway.ErrElsewhere) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.worker == worker {
		s.worker = ""
		clear(s.jobs)
	}
	return nil
}

// take notes a job that the gateway has handed out. Two jobs that the worker holds never have the same jid: jobs that
// were copied do, so the second one gets one of its own.
func (s *session) take(j *gateway.ClaimedJob) (*held, []byte) {
	h := &held{id: j.ID, receipt: j.Receipt}
	jid, job := answerOf(j)
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.jobs[jid]; other != nil && other.id != j.ID {
		jid = ownPrefix + j.ID.String()
	}
	s.jobs[jid] = h
	h.forgotten = time.AfterFunc(cmp.Or(j.Timeout.AsDuration(), forever)+remember, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.jobs[jid] == h {
			delete(s.jobs, jid)
		}
	})
	job["jid"] = jid
	text, _ := json.Marshal(job) // it was JSON before
	return h, text
}

// giveBack returns a job that did not get to the worker, uncharged.
func (s *session) giveBack(h *held) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	h.forgotten.Reset(0)
	_, _, _ = s.server.gateway.Finish(ctx, s.ofGateway(), []gateway.Ending{{Receipt: h.receipt, Return: true}}, nil)
}

// ending is the argument of ACK and FAIL.
type ending struct {
	JID       string   `json:"jid"`
	ErrType   string   `json:"errtype"`
	Message   string   `json:"message"`
	Backtrace []string `json:"backtrace"`
}

// parseEnding reads the argument of ACK and FAIL.
func parseEnding(verb string, arg []byte) (jid string, x gateway.Ending, err error) {
	in, err := argument[ending](arg)
	if err == nil && in.JID == "" {
		err = valid.Invalid("jid", "it is missing")
	}
	if verb == "FAIL" {
		x.Error = &gateway.RunError{Class: in.ErrType, Message: in.Message, Stack: strings.Join(in.Backtrace, "\n")}
	}
	return in.JID, x, err
}

// end records how a job ended. To end it again within a while is the same, as the gateway has it: the first answer may
// have been lost.
func (s *session) end(ctx context.Context, verb string, arg []byte) error {
	jid, x, err := parseEnding(verb, arg)
	if err != nil {
		return err
	}
	s.mu.Lock()
	h, worker := s.jobs[jid], s.worker
	s.mu.Unlock()
	if h == nil {
		return errNotHeld
	}
	x.Receipt = h.receipt
	answers, news, err := s.server.gateway.Finish(ctx, worker, []gateway.Ending{x}, nil)
	switch {
	case err != nil:
		return cmp.Or(s.heed(worker, news, err), errNotHeld)
	case answers[0].Status == gateway.Fenced:
		return errNotHeld
	case answers[0].Status == gateway.Invalid:
		return errors.New(answers[0].Problem)
	}
	h.forgotten.Reset(remember)
	return nil
}

// beat passes on that the worker lives. It answers what the worker is to do: nothing, to be quiet, or to terminate when
// nothing runs any more.
func (s *session) beat(ctx context.Context, arg []byte) ([]byte, error) {
	in, err := argument[hello](arg)
	if err == nil && in.WID != s.WID {
		err = errors.New("the wid is not that of the connection's HELLO")
	}
	if err != nil {
		return nil, err
	}
	if s.drained.Load() && s.holdsNothing() { // it leaves the roster by itself
		return []byte(`{"state":"terminate"}`), nil
	}
	if worker := s.ofGateway(); worker != "" {
		news, err := s.server.gateway.Beat(ctx, worker, nil, 0)
		if err = s.heed(worker, news, err); err != nil {
			return nil, err
		}
	}
	if s.drained.Load() {
		return []byte(`{"state":"quiet"}`), nil
	}
	return nil, nil
}

func (s *session) ofGateway() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worker
}

func (s *session) holdsNothing() bool { return s.server.gateway.Running()[s.ofGateway()] == 0 }
