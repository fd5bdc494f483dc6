package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/observe"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// migrated is a database with the schema.
var migrated = pgtest.NewTemplate(func(ctx context.Context, url string) error {
	s, err := postgres.Open(ctx, url)
	if err != nil {
		return err
	}
	s.Close()
	return nil
})

// full is what the tests do with a store.
type full interface {
	gateway.Store
	store.Auditor
	store.Signaler
	store.Limiter
	store.StepReader
	store.LogReader
}

// onEach runs a test on both stores, and checks the invariants after it.
func onEach(t *testing.T, f func(t *testing.T, s full)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		t.Cleanup(func() { storetest.Verify(t, s) })
		f(t, s)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s, err := postgres.Open(t.Context(), migrated.New(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		t.Cleanup(func() { storetest.Verify(t, s) })
		f(t, s)
	})
}

// as has a request sent by somebody.
func as(ctx context.Context, who guard.Identity) context.Context { return guard.With(ctx, who) }

// open starts a gateway with its host, which performs no kinds.
func open(t *testing.T, s full, on ...func(event.Event)) *gateway.Gateway {
	t.Helper()
	host, err := engine.New(s, stint.NewMux(), engine.Config{ClaimsNothing: true, TimeToLive: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- host.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the host: %v", err)
		}
	})
	g := gateway.New(s, gateway.Config{Host: host, OnEvent: observe.Fan(on...)})
	t.Cleanup(g.Close)
	return g
}

// client is a worker as a test drives it, through gateways.
type client struct {
	t  *testing.T
	g  *gateway.Gateway
	id string
}

func join(t *testing.T, g *gateway.Gateway, in gateway.Joining) *client {
	t.Helper()
	if in.Slots == 0 {
		in.Slots = 10
	}
	joined, err := g.Join(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t, g, joined.Worker}
}

func kinds(names ...string) (list []stint.KindInfo) {
	for _, name := range names {
		list = append(list, stint.KindInfo{Name: name})
	}
	return list
}

// claim waits for a job.
func (c *client) claim() gateway.ClaimedJob {
	c.t.Helper()
	for range 3 {
		news, err := c.g.Claim(c.t.Context(), c.id, gateway.Claim{Max: 1, Wait: 10 * time.Second})
		if err != nil {
			c.t.Fatal(err)
		}
		if len(news.Jobs) > 0 {
			return news.Jobs[0]
		}
	}
	c.t.Fatal("no job came")
	panic("")
}

// finish ends a run and returns what became of that.
func (c *client) finish(x gateway.Ending) gateway.Recorded {
	c.t.Helper()
	answers, _, err := c.g.Finish(c.t.Context(), c.id, []gateway.Ending{x}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return answers[0]
}

func (c *client) mustFinish(x gateway.Ending) {
	c.t.Helper()
	if got := c.finish(x); got.Status != gateway.OK {
		c.t.Fatalf("the end of a run was %s (%s), want ok", got.Status, got.Problem)
	}
}

func (c *client) beat(running ...gateway.ClaimedJob) gateway.News {
	c.t.Helper()
	news, err := c.g.Beat(c.t.Context(), c.id, listed(running), 0)
	if err != nil {
		c.t.Fatal(err)
	}
	return news
}

func listed(running []gateway.ClaimedJob) (list []gateway.Running) {
	for _, j := range running {
		list = append(list, gateway.Running{Receipt: j.Receipt})
	}
	return list
}

func enqueue(t *testing.T, s full, jobs ...stint.NewJob) (ids []stint.ID) {
	t.Helper()
	ids, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func show(t *testing.T, s full, id stint.ID) *stint.JobInfo {
	t.Helper()
	j, err := s.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func eventually(t *testing.T, what string, within time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v it is not so that %s", within, what)
		}
	}
}

func no() *bool { return new(bool) }

func TestAWorkerThatComesBackHasItsJobAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		w := join(t, open(t, s), gateway.Joining{Kinds: kinds("work")})
		for i := range 5 {
			w.beat()
			time.Sleep(4*time.Second + time.Duration(i)*170*time.Millisecond)
			enqueue(t, s, stint.NewJob{Kind: "work"})
			back := time.Now()
			job := w.claim()
			if took := time.Since(back); took > 50*time.Millisecond {
				t.Errorf("it waited for %v", took)
			}
			w.mustFinish(gateway.Ending{Receipt: job.Receipt})
		}
	})
}

func TestEachEndingOfARunIsRecordedAsAHandlersWouldBe(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		w := join(t, open(t, s), gateway.Joining{Kinds: kinds("k")})
		for _, c := range []struct {
			name    string
			ending  gateway.Ending
			state   stint.State
			outcome stint.Outcome
			check   func(*stint.JobInfo) bool
		}{
			{"result", gateway.Ending{Result: json.RawMessage(`{"n": 1}`)}, stint.Completed, stint.OutcomeCompleted, func(j *stint.JobInfo) bool {
				return strings.ReplaceAll(string(j.Attempts[0].Result), " ", "") == `{"n":1}`
			}},
			{"none", gateway.Ending{}, stint.Completed, stint.OutcomeCompleted, func(j *stint.JobInfo) bool { return j.Attempts[0].Result == nil }},
			{"null", gateway.Ending{Result: json.RawMessage("null")}, stint.Completed, stint.OutcomeCompleted, func(j *stint.JobInfo) bool { return j.Attempts[0].Result == nil }},
			{"error", gateway.Ending{Error: &gateway.RunError{Message: "boom", Class: "ValueError", Stack: "at line 1"}}, stint.Retrying, stint.OutcomeFailed, func(j *stint.JobInfo) bool {
				f := j.Attempts[0].Error
				return f.Message == "boom" && f.Class == "ValueError" && f.Stack == "at line 1" && f.Recoverable
			}},
			{"final", gateway.Ending{Error: &gateway.RunError{Message: "never", Retry: no()}}, stint.Failed, stint.OutcomeFailed, func(j *stint.JobInfo) bool {
				return j.Attempts[0].Error.Class == "error" && j.Reason == retry.ReasonNotRetriable
			}},
			{"snooze", gateway.Ending{Snooze: "5m"}, stint.Scheduled, stint.OutcomeSnoozed, func(j *stint.JobInfo) bool { return j.Attempt == 1 }},
			{"cancel", gateway.Ending{Cancel: "not needed"}, stint.Cancelled, stint.OutcomeCancelled, func(j *stint.JobInfo) bool { return j.Reason == "not needed" }},
		} {
			id := enqueue(t, s, stint.NewJob{Kind: "k", Args: json.RawMessage(`{"a":[1,2]}`), Tags: []string{"t"}})[0]
			j := w.claim()
			if j.ID != id || j.Kind != "k" || j.Queue != stint.DefaultQueue || j.Attempt != 1 || strings.ReplaceAll(string(j.Args), " ", "") != `{"a":[1,2]}` || j.Tags[0] != "t" {
				t.Fatalf("%s: claimed %+v", c.name, j)
			}
			c.ending.Receipt = j.Receipt
			w.mustFinish(c.ending)
			got := show(t, s, id)
			if got.State != c.state || got.Attempts[0].Outcome != c.outcome || !c.check(got) {
				t.Errorf("%s: the job is %s, its attempt %+v", c.name, got.State, got.Attempts[0])
			}
			w.mustFinish(c.ending) // whose answer was lost
		}
	})
}

func TestAJobThatIsHandedBackComesAgainUncharged(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		w := join(t, open(t, s), gateway.Joining{Kinds: kinds("k"), Slots: 1})
		id := enqueue(t, s, stint.NewJob{Kind: "k"})[0]
		j := w.claim()
		w.mustFinish(gateway.Ending{Receipt: j.Receipt, Return: true})
		again := w.claim()
		if again.ID != id || again.Attempt != 1 || again.Receipt == j.Receipt {
			t.Errorf("after %+v came %+v", j, again)
		}
		if got := w.finish(gateway.Ending{Receipt: j.Receipt}); got.Status != gateway.OK {
			t.Errorf("the first receipt, which was recorded, is %s", got.Status)
		}
		w.mustFinish(gateway.Ending{Receipt: again.Receipt})
	})
}

func TestWrongItemsOfAFinishFailAlone(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		w := join(t, open(t, s), gateway.Joining{Kinds: kinds("k")})
		enqueue(t, s, stint.NewJob{Kind: "k"}, stint.NewJob{Kind: "k"})
		a, b := w.claim(), w.claim()
		made, err := gateway.ParseReceipt(a.Receipt)
		if err != nil {
			t.Fatal(err)
		}
		made.Nonce++ // nobody can make up the number
		answers, _, err := w.g.Finish(t.Context(), w.id, []gateway.Ending{
			{Receipt: "?"}, {Receipt: gateway.ReceiptOf(made)}, {Receipt: a.Receipt}, {Receipt: b.Receipt, Snooze: "soon"},
			{Receipt: b.Receipt, Return: true, Cancel: "why"}, {Receipt: b.Receipt, Result: json.RawMessage(`"` + strings.Repeat("x", gateway.MaxResult) + `"`)},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{gateway.Invalid, gateway.Fenced, gateway.OK, gateway.Invalid, gateway.Invalid, gateway.Invalid} {
			if answers[i].Status != want || (want != gateway.OK) != (answers[i].Problem != "") {
				t.Errorf("item %d: %+v, want %s", i, answers[i], want)
			}
		}
		w.mustFinish(gateway.Ending{Receipt: b.Receipt}) // it still runs
	})
}

func TestAFinishBringsTheNextJobs(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		w := join(t, open(t, s), gateway.Joining{Kinds: kinds("k"), Slots: 1})
		ids := enqueue(t, s, stint.NewJob{Kind: "k"}, stint.NewJob{Kind: "k"})
		answers, news, err := w.g.Finish(t.Context(), w.id, []gateway.Ending{{Receipt: w.claim().Receipt}}, &gateway.Claim{Max: 1, Wait: 10 * time.Second})
		if err != nil || answers[0].Status != gateway.OK || len(news.Jobs) != 1 || news.Jobs[0].ID != ids[1] {
			t.Fatalf("got %+v %+v %v", answers, news, err)
		}
		w.mustFinish(gateway.Ending{Receipt: news.Jobs[0].Receipt})
	})
}

func TestALaterClaimEndsTheOneThatWaits(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		w := join(t, open(t, s), gateway.Joining{Kinds: kinds("k")})
		first := make(chan error)
		go func() {
			news, err := w.g.Claim(t.Context(), w.id, gateway.Claim{Max: 1, Wait: gateway.MaxWait})
			if len(news.Jobs) > 0 {
				err = errors.New("it got a job")
			}
			first <- err
		}()
		time.Sleep(300 * time.Millisecond)
		if _, err := w.g.Claim(t.Context(), w.id, gateway.Claim{Max: 1, Wait: 0}); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-first:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("the earlier claim waits on")
		}
		enqueue(t, s, stint.NewJob{Kind: "k"})
		w.mustFinish(gateway.Ending{Receipt: w.claim().Receipt})
	})
}

func TestAJobThatWasLostOnTheWayToAWorkerComesAgain(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		g := open(t, s)
		g.SetMissedFor(300 * time.Millisecond)
		w := join(t, g, gateway.Joining{Kinds: kinds("k"), Slots: 2})
		ids := enqueue(t, s, stint.NewJob{Kind: "k"}, stint.NewJob{Kind: "k"})
		a, b := w.claim(), w.claim()
		for range 10 { // it says that one of them runs
			time.Sleep(100 * time.Millisecond)
			w.beat(b)
		}
		again := w.claim()
		if again.ID != a.ID || again.Attempt != 1 || again.Receipt == a.Receipt {
			t.Errorf("%+v was lost, and %+v came", a, again)
		}
		w.mustFinish(gateway.Ending{Receipt: b.Receipt})
		// Now nothing runs, as it says with its claims.
		for range 10 {
			time.Sleep(100 * time.Millisecond)
			news, err := g.Claim(t.Context(), w.id, gateway.Claim{Max: 1, Idle: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(news.Jobs) > 0 {
				w.mustFinish(gateway.Ending{Receipt: news.Jobs[0].Receipt})
				break
			}
		}
		for _, id := range ids {
			if got := show(t, s, id); got.State != stint.Completed || got.Attempt != 1 {
				t.Errorf("job %d is %s, attempt %d", id, got.State, got.Attempt)
			}
		}
	})
}

func TestStepsOfAWorkerAreDoneOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		w := join(t, open(t, s), gateway.Joining{Kinds: kinds("k")})
		id := enqueue(t, s, stint.NewJob{Kind: "k", Retry: retry.Fixed(3, time.Millisecond)})[0]
		j := w.claim()
		if j.Steps != nil {
			t.Errorf("a job that never ran has the steps %v", j.Steps)
		}
		for range 2 { // whose answer was lost
			value, err := w.g.Step(t.Context(), w.id, j.Receipt, "charge", json.RawMessage(`"ref 1"`))
			if err != nil || string(value) != `"ref 1"` {
				t.Fatalf("the step came to %s, %v", value, err)
			}
		}
		w.mustFinish(gateway.Ending{Receipt: j.Receipt, Error: &gateway.RunError{Message: "later"}})
		j = w.claim()
		if string(j.Steps["charge"]) != `"ref 1"` || j.Attempt != 2 {
			t.Fatalf("the second attempt is %+v", j)
		}
		if value, err := w.g.Step(t.Context(), w.id, j.Receipt, "charge", json.RawMessage(`"ref 2"`)); err != nil || string(value) != `"ref 1"` {
			t.Errorf("done again it came to %s, %v", value, err)
		}
		suspended, err := w.g.Sleep(t.Context(), w.id, j.Receipt, "night", time.Hour)
		if err != nil || !suspended {
			t.Fatalf("a sleep of an hour: %t, %v", suspended, err)
		}
		if got := show(t, s, id); got.State != stint.Scheduled || got.Attempt != 2 {
			t.Errorf("a job that sleeps is %s, attempt %d", got.State, got.Attempt)
		}
		if got := w.finish(gateway.Ending{Receipt: j.Receipt}); got.Status != gateway.OK {
			t.Errorf("the end of a run that is over is %+v", got)
		}
		if got := show(t, s, id); got.State != stint.Scheduled {
			t.Errorf("and has made the job %s", got.State)
		}
	})
}

func TestASleepThatIsAskedForAgainHasEndedTheRun(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		w := join(t, open(t, s), gateway.Joining{Kinds: kinds("k")})
		id := enqueue(t, s, stint.NewJob{Kind: "k"})[0]
		j := w.claim()
		for range 2 { // whose answer was lost
			if suspended, err := w.g.Sleep(t.Context(), w.id, j.Receipt, "night", time.Hour); err != nil || !suspended {
				t.Fatalf("a sleep of an hour: %t, %v", suspended, err)
			}
		}
		made, err := gateway.ParseReceipt(j.Receipt)
		if err != nil {
			t.Fatal(err)
		}
		made.Nonce++
		if _, err := w.g.Sleep(t.Context(), w.id, gateway.ReceiptOf(made), "night", time.Hour); !errors.Is(err, gateway.ErrLost) {
			t.Errorf("a sleep of a run that never was: %v", err)
		}
		if got := show(t, s, id); got.State != stint.Scheduled || len(got.Attempts) != 1 {
			t.Errorf("the job is %s, %+v", got.State, got.Attempts)
		}
	})
}

// The engine of a worker that does not ask for jobs takes none, so that they wait for nobody who may be dead.
func TestAWorkerThatDoesNotClaimHoldsNoJobs(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		g := open(t, s)
		w := join(t, g, gateway.Joining{Kinds: kinds("k")})
		time.Sleep(2 * time.Second)
		id := enqueue(t, s, stint.NewJob{Kind: "k"})[0]
		time.Sleep(time.Second)
		if got := show(t, s, id); got.State != stint.Available || len(got.Attempts) != 0 {
			t.Errorf("the job is %s, %+v", got.State, got.Attempts)
		}
		w.mustFinish(gateway.Ending{Receipt: w.claim().Receipt})
	})
}

// A heartbeat by way of another gateway is one of many: those of its own gateway count after it.
func TestAWorkerBeatsByOneGatewayAndTheOther(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		first, second := open(t, s), open(t, s)
		w := join(t, first, gateway.Joining{Kinds: kinds("k")})
		enqueue(t, s, stint.NewJob{Kind: "k"}, stint.NewJob{Kind: "k"})
		a := w.claim()
		if _, err := second.Beat(t.Context(), w.id, listed([]gateway.ClaimedJob{a}), 0); err != nil {
			t.Fatal(err)
		}
		b := w.claim()
		w.beat(a, b)
		roster, err := s.Engines(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range roster {
			if strconv.FormatInt(int64(e.Token), 10) == w.id && len(e.Running) != 2 {
				t.Errorf("announced are %v, want two", e.Running)
			}
		}
		w.mustFinish(gateway.Ending{Receipt: a.Receipt})
		w.mustFinish(gateway.Ending{Receipt: b.Receipt})
	})
}

// That the gateway's own engine gave up says nothing of a worker that speaks to another one.
func TestAGatewayThatWasNotSpokenToDoesNotSayThatAWorkerIsLost(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		first, second := open(t, s), open(t, s)
		w := join(t, first, gateway.Joining{Kinds: kinds("k"), TimeToLive: gateway.MinTimeToLive})
		enqueue(t, s, stint.NewJob{Kind: "k"})
		j := w.claim()
		eventually(t, "the first gateway has given up", 20*time.Second, func() bool {
			if _, err := second.Beat(t.Context(), w.id, listed([]gateway.ClaimedJob{j}), time.Second); err != nil {
				t.Fatal(err)
			}
			return first.Workers() == 0
		})
		if _, err := first.Claim(t.Context(), w.id, gateway.Claim{Max: 1}); !errors.Is(err, gateway.ErrElsewhere) {
			t.Errorf("its answer to a claim: %v", err)
		}
		w.beat(j)
		w.mustFinish(gateway.Ending{Receipt: j.Receipt})
		if err := first.Leave(t.Context(), w.id); err != nil {
			t.Fatal(err)
		}
	})
}

func TestASignalGoesToAWorkersJob(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		w := join(t, open(t, s), gateway.Joining{Kinds: kinds("k")})
		id := enqueue(t, s, stint.NewJob{Kind: "k"})[0]
		j := w.claim()
		_, suspended, err := w.g.Await(t.Context(), w.id, j.Receipt, "wait", "paid", time.Hour)
		if err != nil || !suspended {
			t.Fatalf("a wait for a signal that has not come: %t, %v", suspended, err)
		}
		if err := stint.NewClient(s).Signal(t.Context(), id, "paid", map[string]int{"cents": 5}); err != nil {
			t.Fatal(err)
		}
		j = w.claim()
		value, suspended, err := w.g.Await(t.Context(), w.id, j.Receipt, "wait", "paid", time.Hour)
		if err != nil || suspended || strings.ReplaceAll(string(value), " ", "") != `{"cents":5}` {
			t.Fatalf("the signal is %s, %t, %v", value, suspended, err)
		}
		_, suspended, err = w.g.Await(t.Context(), w.id, j.Receipt, "other", "never", time.Millisecond)
		if suspended {
			j = w.claim()
			_, _, err = w.g.Await(t.Context(), w.id, j.Receipt, "other", "never", time.Millisecond)
		}
		if !errors.Is(err, stint.ErrNoSignal) {
			t.Errorf("a wait that was over: %v", err)
		}
		w.mustFinish(gateway.Ending{Receipt: j.Receipt})
		if got := show(t, s, id); got.State != stint.Completed || got.Attempts[len(got.Attempts)-1].Reason != "done" {
			t.Errorf("the job is %s, %+v", got.State, got.Attempts)
		}
	})
}

func TestACancellationReachesTheWorker(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		w := join(t, open(t, s), gateway.Joining{Kinds: kinds("k")})
		ids := enqueue(t, s, stint.NewJob{Kind: "k"}, stint.NewJob{Kind: "k", Timeout: 300 * time.Millisecond})
		a, b := w.claim(), w.claim()
		if a.ID != ids[0] {
			a, b = b, a
		}
		if b.Timeout.AsDuration() != 300*time.Millisecond {
			t.Errorf("the timeout is %v", b.Timeout)
		}
		if _, err := s.Cancel(t.Context(), ids[:1], "not needed"); err != nil {
			t.Fatal(err)
		}
		told := map[string]string{}
		eventually(t, "claims tell of both ends", 20*time.Second, func() bool {
			news, err := w.g.Claim(t.Context(), w.id, gateway.Claim{Max: 0, Wait: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range news.Cancel {
				if told[c.Receipt] != "" {
					t.Errorf("%s is told twice", c.Receipt)
				}
				told[c.Receipt] = c.Reason
			}
			return len(told) == 2
		})
		if told[a.Receipt] != gateway.ReasonCancelled || told[b.Receipt] != gateway.ReasonTimeout {
			t.Errorf("told %v", told)
		}
		if news := w.beat(a, b); len(news.Cancel) != 2 {
			t.Errorf("a heartbeat does not tell it again: %+v", news)
		}
		w.mustFinish(gateway.Ending{Receipt: a.Receipt, Error: &gateway.RunError{Message: "interrupted"}})
		w.mustFinish(gateway.Ending{Receipt: b.Receipt, Error: &gateway.RunError{Message: "interrupted"}})
		if got := show(t, s, ids[0]); got.State != stint.Cancelled {
			t.Errorf("the cancelled job is %s", got.State)
		}
		if got := show(t, s, ids[1]); got.State != stint.Retrying || !strings.Contains(got.Attempts[0].Error.Message, "interrupted") {
			t.Errorf("the job that took too long is %s, %+v", got.State, got.Attempts[0].Error)
		}
	})
}

func TestProgressAndLogOfAWorkerAreKept(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		w := join(t, open(t, s), gateway.Joining{Kinds: kinds("k")})
		id := enqueue(t, s, stint.NewJob{Kind: "k"})[0]
		j := w.claim()
		if _, err := w.g.Beat(t.Context(), w.id, []gateway.Running{{Receipt: j.Receipt, Progress: &gateway.RunProgress{Fraction: 0.25, Text: "page 1"}, Log: []string{"one", "two"}}}, 0); err != nil {
			t.Fatal(err)
		}
		progress, err := s.Progress(t.Context(), id)
		if err != nil || len(progress) != 1 || progress[0].Fraction != 0.25 || progress[0].Text != "page 1" {
			t.Errorf("progress %+v, %v", progress, err)
		}
		w.mustFinish(gateway.Ending{Receipt: j.Receipt})
		lines, err := s.Log(t.Context(), id, store.LogFilter{Limit: 10})
		if err != nil || len(lines) != 2 {
			t.Errorf("log %+v, %v", lines, err)
		}
	})
}

func TestLimitsHoldForWorkers(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		if err := s.SetLimit(t.Context(), "one", stint.LimitRule{AtOnce: 1}, "test", ""); err != nil {
			t.Fatal(err)
		}
		g := open(t, s)
		a, b := join(t, g, gateway.Joining{Kinds: kinds("k")}), join(t, g, gateway.Joining{Kinds: kinds("k")})
		var jobs []stint.NewJob
		for range 10 {
			jobs = append(jobs, stint.NewJob{Kind: "k", Limits: []string{"one"}})
		}
		enqueue(t, s, jobs...)
		running, done := 0, 0
		for end := time.Now().Add(time.Minute); done < len(jobs) && time.Now().Before(end); {
			for _, w := range []*client{a, b} {
				news, err := w.g.Claim(t.Context(), w.id, gateway.Claim{Max: 5, Wait: 100 * time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				running += len(news.Jobs)
				if running > 1 {
					t.Fatalf("%d run at once", running)
				}
				for _, j := range news.Jobs {
					w.mustFinish(gateway.Ending{Receipt: j.Receipt})
					running--
					done++
				}
			}
		}
		if done != len(jobs) {
			t.Errorf("%d of %d were done", done, len(jobs))
		}
	})
}

func TestAWorkerThatDiesLosesItsJobsInItsTimeToLive(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		g := open(t, s)
		dies := join(t, g, gateway.Joining{Kinds: kinds("k"), TimeToLive: gateway.MinTimeToLive})
		id := enqueue(t, s, stint.NewJob{Kind: "k"})[0]
		j := dies.claim()
		died := time.Now()
		dies.beat(j)
		lives := join(t, g, gateway.Joining{Kinds: kinds("k"), TimeToLive: time.Minute})
		again := lives.claim()
		took := time.Since(died)
		if again.ID != id || again.Attempt != 2 || !again.MayHaveRun {
			t.Errorf("the job came again as %+v", again)
		}
		if took < gateway.MinTimeToLive || took > 3*gateway.MinTimeToLive { // on a busy machine
			t.Errorf("it came after %v", took)
		}
		t.Logf("it came after %v", took)
		// The one that died was only slow.
		if _, _, err := g.Finish(t.Context(), dies.id, []gateway.Ending{{Receipt: j.Receipt}}, nil); !errors.Is(err, gateway.ErrLost) {
			t.Errorf("its end of the run: %v", err)
		}
		if _, err := g.Beat(t.Context(), dies.id, nil, 0); !errors.Is(err, gateway.ErrLost) {
			t.Errorf("its heartbeat: %v", err)
		}
		lives.mustFinish(gateway.Ending{Receipt: again.Receipt})
		if got := show(t, s, id); got.State != stint.Completed || len(got.Attempts) != 2 || got.Attempts[0].Outcome != stint.OutcomeLost {
			t.Errorf("the job is %s, %+v", got.State, got.Attempts)
		}
	})
}

func TestAWorkerOutlivesItsGateway(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		first, second := open(t, s), open(t, s)
		w := join(t, first, gateway.Joining{Kinds: kinds("k"), TimeToLive: gateway.MinTimeToLive, Slots: 3})
		ids := enqueue(t, s, stint.NewJob{Kind: "k"}, stint.NewJob{Kind: "k"}, stint.NewJob{Kind: "k"})
		a, b := w.claim(), w.claim()
		left := ids[0] + ids[1] + ids[2] - a.ID - b.ID
		eventually(t, "the third was taken too", 10*time.Second, func() bool { return show(t, s, left).State == stint.Running })
		first.Close()
		if _, err := w.g.Claim(t.Context(), w.id, gateway.Claim{Max: 1, Wait: 0}); !errors.Is(err, gateway.ErrClosed) {
			t.Errorf("a gateway that is closed: %v", err)
		}
		w.g = second
		if _, err := w.g.Claim(t.Context(), w.id, gateway.Claim{Max: 1, Wait: 0}); !errors.Is(err, gateway.ErrElsewhere) {
			t.Errorf("a claim of a worker of another gateway: %v", err)
		}
		again := join(t, second, gateway.Joining{Kinds: kinds("k"), TimeToLive: time.Minute})
		if _, err := s.Cancel(t.Context(), []stint.ID{b.ID}, "stop"); err != nil {
			t.Fatal(err)
		}
		// It lives on for as long as it beats.
		moved := time.Now()
		for time.Since(moved) < gateway.MinTimeToLive+time.Second {
			news, err := w.g.Beat(t.Context(), w.id, listed([]gateway.ClaimedJob{a, b, {Receipt: "AAAAAAAAAAAAAAAAAAAAAA"}}), max(1, time.Since(moved)))
			if err != nil {
				t.Fatal(err)
			}
			if news.Drain || len(news.Cancel) != 2 || news.Cancel[0] != (gateway.Cancel{Receipt: b.Receipt, Reason: gateway.ReasonCancelled}) || news.Cancel[1].Reason != gateway.ReasonLost {
				t.Errorf("its heartbeat is told %+v", news)
			}
			if time.Since(moved) < gateway.MinTimeToLive && show(t, s, left).State != stint.Running {
				t.Errorf("what it was never handed is %s while its first gateway could still begin it", show(t, s, left).State)
			}
			time.Sleep(500 * time.Millisecond)
		}
		if got := show(t, s, left).Attempts; len(got) == 0 || got[0].Outcome != stint.OutcomeReturned {
			t.Errorf("what it was never handed was not returned: %+v", got)
		}
		made, err := gateway.ParseReceipt(a.Receipt)
		if err != nil {
			t.Fatal(err)
		}
		made.Nonce++
		if got := w.finish(gateway.Ending{Receipt: gateway.ReceiptOf(made)}); got.Status != gateway.Fenced {
			t.Errorf("a receipt that was made up: %+v", got)
		}
		w.mustFinish(gateway.Ending{Receipt: a.Receipt, Result: json.RawMessage("7")})
		if got := w.finish(gateway.Ending{Receipt: a.Receipt, Result: json.RawMessage("8")}); got.Status != gateway.Fenced {
			t.Errorf("recorded twice: %+v", got)
		}
		w.mustFinish(gateway.Ending{Receipt: b.Receipt, Error: &gateway.RunError{Message: "x", Class: "Stopped"}})
		// What it was never handed is taken by others when its first gateway can have no part in it any more.
		third := again.claim()
		if third.ID != left || third.Attempt != 1 {
			t.Errorf("the third job came as %+v", third)
		}
		again.mustFinish(gateway.Ending{Receipt: third.Receipt})
		if err := w.g.Leave(t.Context(), w.id); err != nil {
			t.Fatal(err)
		}
		if _, err := w.g.Beat(t.Context(), w.id, nil, time.Second); !errors.Is(err, gateway.ErrLost) {
			t.Errorf("its heartbeat after it left: %v", err)
		}
		if got := show(t, s, a.ID); got.State != stint.Completed || string(got.Attempts[0].Result) != "7" || len(got.Attempts) != 1 {
			t.Errorf("the first job is %s, %+v", got.State, got.Attempts)
		}
		if got := show(t, s, b.ID); got.State != stint.Cancelled {
			t.Errorf("the second job is %s", got.State)
		}
	})
}

// That the process of a gateway is gone does not prove that its workers are.
func TestAWorkerOutlivesTheProcessOfItsGateway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	var both [2]*sqlite.Store
	for i := range both {
		s, err := sqlite.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		both[i] = s
		t.Cleanup(func() { _ = s.Close() })
	}
	ctx, cancel := context.WithCancel(t.Context())
	host, err := engine.New(both[0], stint.NewMux(), engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()
	first := gateway.New(both[0], gateway.Config{Host: host})
	w := join(t, first, gateway.Joining{Kinds: kinds("k")})
	enqueue(t, both[0], stint.NewJob{Kind: "k"})
	j := w.claim()
	first.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := both[0].Close(); err != nil { // which frees all locks
		t.Fatal(err)
	}
	w.g = open(t, both[1])
	time.Sleep(3 * time.Second) // others look every second
	w.mustFinish(gateway.Ending{Receipt: j.Receipt})
	if err := w.g.Leave(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
}

func TestAWorkerThatLeavesHandsItsJobsBack(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		g := open(t, s)
		w := join(t, g, gateway.Joining{Kinds: kinds("k")})
		id := enqueue(t, s, stint.NewJob{Kind: "k"})[0]
		w.claim()
		for range 2 {
			if err := g.Leave(t.Context(), w.id); err != nil {
				t.Fatal(err)
			}
		}
		if g.Workers() != 0 {
			t.Errorf("the gateway has %d workers", g.Workers())
		}
		if got := show(t, s, id); got.State != stint.Available || got.Attempt != 1 {
			t.Errorf("the job is %s, attempt %d", got.State, got.Attempt)
		}
	})
}

// A service manager stops a gateway and its workers at the same time.
func TestAWorkerLeavesAGatewayThatIsBeingStopped(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		var mu sync.Mutex
		var buried []error
		g := open(t, s, func(ev event.Event) {
			if ev.Type == event.EventBuried {
				mu.Lock()
				defer mu.Unlock()
				buried = append(buried, ev.Err)
			}
		})
		after := join(t, g, gateway.Joining{Kinds: kinds("k"), TimeToLive: time.Minute})
		before := join(t, g, gateway.Joining{Kinds: kinds("other"), TimeToLive: time.Minute})
		id := enqueue(t, s, stint.NewJob{Kind: "k"})[0]
		after.claim()
		left := make(chan error, 1)
		go func() { left <- g.Leave(t.Context(), before.id) }()
		g.Close()
		if err := errors.Join(<-left, g.Leave(t.Context(), after.id)); err != nil {
			t.Error(err)
		}
		roster, err := s.Engines(t.Context())
		if err != nil || len(roster) != 1 {
			t.Errorf("beside its host the roster has %+v, %v", roster, err)
		}
		if got := show(t, s, id); got.State != stint.Available || got.Attempt != 1 {
			t.Errorf("the job is %s, attempt %d", got.State, got.Attempt)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(buried) == 0 || slices.ContainsFunc(buried, func(err error) bool { return !errors.Is(err, gateway.ErrClosed) }) {
			t.Errorf("the gateway let go of its workers with %v, want ErrClosed", buried)
		}
	})
}

func TestAWorkerIsDrainedLikeAnEngine(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		g := open(t, s)
		w := join(t, g, gateway.Joining{Kinds: kinds("k"), Instance: "thumbs", Host: "web7", PID: 4711})
		roster, err := s.Engines(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, e := range roster {
			if strconv.FormatInt(int64(e.Token), 10) == w.id {
				found = e.Instance == "thumbs" && e.Host == "web7" && e.PID == 4711 && e.Slots == 10 && fmt.Sprint(e.Kinds) == "[k]" && !e.Held && e.ByBeats()
				if err := s.Drain(t.Context(), e.Token); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !found {
			t.Errorf("the roster is %+v", roster)
		}
		enqueue(t, s, stint.NewJob{Kind: "k"})
		j := w.claim()
		w.beat(j)
		eventually(t, "it is told", 10*time.Second, func() bool {
			news, err := w.g.Claim(t.Context(), w.id, gateway.Claim{Max: 0, Wait: time.Second})
			return err == nil && news.Drain
		})
		w.mustFinish(gateway.Ending{Receipt: j.Receipt})
		eventually(t, "it has left", 10*time.Second, func() bool {
			_, err := w.g.Claim(t.Context(), w.id, gateway.Claim{Max: 1, Wait: 0})
			return errors.Is(err, gateway.ErrLost)
		})
	})
}

func TestATokenBoundsAWorker(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		g := open(t, s)
		ctx := as(t.Context(), guard.Identity{Name: "thumbs", Role: guard.Worker, Queues: []string{"images", "video"}, Kinds: []string{"k"}})
		other := as(t.Context(), guard.Identity{Name: "mail", Role: guard.Worker, Queues: []string{"mail"}})
		denied := func(err error) bool { _, ok := errors.AsType[*gateway.DeniedError](err); return ok }
		for _, in := range []gateway.Joining{
			{Kinds: kinds("k", "other"), Slots: 1}, {Kinds: kinds("k"), Queues: []string{"mail"}, Slots: 1}, {Kinds: kinds("k"), Queues: []string{"*"}, Slots: 1},
		} {
			if _, err := g.Join(ctx, in); !denied(err) {
				t.Errorf("%+v: %v", in, err)
			}
		}
		joined, err := g.Join(ctx, gateway.Joining{Kinds: kinds("k"), Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		enqueue(t, s, stint.NewJob{Kind: "k"}, stint.NewJob{Kind: "k", Queue: "video"})
		news, err := g.Claim(ctx, joined.Worker, gateway.Claim{Max: 1, Wait: 10 * time.Second})
		if err != nil || len(news.Jobs) != 1 || news.Jobs[0].Queue != "video" {
			t.Fatalf("it got %+v, %v", news, err)
		}
		endings := []gateway.Ending{{Receipt: news.Jobs[0].Receipt}}
		if _, _, err := g.Finish(other, joined.Worker, endings, nil); !denied(err) {
			t.Errorf("another worker's token ends its run: %v", err)
		}
		if _, _, err := open(t, s).Finish(other, joined.Worker, endings, nil); !denied(err) {
			t.Errorf("and at another gateway: %v", err)
		}
		if answers, _, err := g.Finish(ctx, joined.Worker, endings, nil); err != nil || answers[0].Status != gateway.OK {
			t.Errorf("its own: %+v, %v", answers, err)
		}
	})
}

func TestWhatAProgramDeclaredOfAKindStays(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		mux := stint.NewMux()
		stint.Handle(mux, stint.NewKind[struct{}]("k", stint.Queue("own"), stint.Timeout(time.Minute)), func(context.Context, *stint.Job, struct{}) error { return nil })
		if err := s.Join(t.Context(), store.EngineInfo{Token: 1, Instance: "program", TimeToLive: time.Minute, Slots: 1}, mux.Declarations()); err != nil {
			t.Fatal(err)
		}
		join(t, open(t, s), gateway.Joining{Kinds: []stint.KindInfo{{Name: "k", Queue: "worker"}, {Name: "new", Timeout: time.Second, Retry: retry.Fixed(2, time.Second)}}})
		declared, err := s.Kinds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range declared {
			if k.Name == "k" && (k.Queue != "own" || k.Timeout != time.Minute) || k.Name == "new" && k.Timeout != time.Second {
				t.Errorf("declared: %+v", k)
			}
		}
		if err := engineBury(t, s, 1); err != nil {
			t.Fatal(err)
		}
	})
}

func engineBury(t *testing.T, s full, id store.EngineID) error {
	_, err := engine.Bury(t.Context(), s, id, "test")
	return err
}

func TestAGatewayTakesOnlySoManyWorkers(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		g := open(t, s)
		g.SetMost(2)
		first := join(t, g, gateway.Joining{Kinds: kinds("k")})
		join(t, g, gateway.Joining{Kinds: kinds("k")})
		third := gateway.Joining{Kinds: kinds("k"), Slots: 1}
		if _, err := g.Join(t.Context(), third); !errors.Is(err, gateway.ErrFull) {
			t.Errorf("the third joins: %v", err)
		}
		if err := g.Leave(t.Context(), first.id); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Join(t.Context(), third); err != nil {
			t.Errorf("when the first has left: %v", err)
		}
	})
}

func TestWhatAWorkerMayNotBe(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		g := open(t, s)
		for field, in := range map[string]gateway.Joining{
			"kinds":        {Slots: 1},
			"slots":        {Kinds: kinds("k")},
			"time_to_live": {Kinds: kinds("k"), Slots: 1, TimeToLive: time.Second},
			"kind":         {Kinds: kinds("a b\n"), Slots: 1},
			"queues":       {Kinds: kinds("k"), Slots: 1, Queues: []string{"\n"}},
			"instance":     {Kinds: kinds("k"), Slots: 1, Instance: "\n"},
			"pid":          {Kinds: kinds("k"), Slots: 1, PID: -1},
		} {
			_, err := g.Join(t.Context(), in)
			if invalid, ok := errors.AsType[*stint.InvalidError](err); !ok || !strings.Contains(invalid.Field, field) {
				t.Errorf("%s: %v", field, err)
			}
		}
		if _, err := g.Join(t.Context(), gateway.Joining{Kinds: kinds("k", "k"), Slots: 1}); err == nil {
			t.Error("a kind that is there twice")
		}
		w := join(t, g, gateway.Joining{Kinds: kinds("k")})
		for _, c := range []struct {
			most int
			wait time.Duration
		}{{-1, 0}, {1001, 0}, {1, -1}, {1, time.Minute}} {
			if _, err := g.Claim(t.Context(), w.id, gateway.Claim{Max: c.most, Wait: c.wait}); !errors.Is(err, stint.ErrInvalid) {
				t.Errorf("%+v: %v", c, err)
			}
		}
		for _, id := range []string{"", "x", "-1", "0", "99999999999999999999"} {
			if _, err := g.Claim(t.Context(), id, gateway.Claim{Max: 1, Wait: 0}); !errors.Is(err, stint.ErrInvalid) {
				t.Errorf("the worker %q: %v", id, err)
			}
		}
	})
}
