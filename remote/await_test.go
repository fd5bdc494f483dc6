package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/remote"
	"github.com/stint-go/stint/retry"
)

var double = stint.NewResultKind[int, int]("double", stint.Retry(retry.None()))

// doubles runs an engine that doubles what is positive, once open is closed, and fails at the rest.
func doubles(t *testing.T, st anyStore, open <-chan struct{}) {
	t.Helper()
	mux := stint.NewMux()
	stint.HandleResult(mux, double, func(ctx context.Context, _ *stint.Job, n int) (int, error) {
		select {
		case <-open:
		case <-ctx.Done():
		}
		if n < 0 {
			return 0, errors.New("it is negative")
		}
		return 2 * n, nil
	})
	e, err := engine.New(st, mux, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAwaitAnswersOverAServerAsAStoreDoes(t *testing.T) {
	onBoth(t, func(t *testing.T, st anyStore, server *remote.Store) {
		open := make(chan struct{})
		doubles(t, st, open)
		client := stint.NewClient(server)
		id, err := double.Enqueue(t.Context(), client, 21)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { close(open) }) // after more than one request
		if n, err := double.Await(t.Context(), client, id); n != 42 || err != nil {
			t.Errorf("it came to %d, %v", n, err)
		}
		if id, err = double.Enqueue(t.Context(), client, -1); err != nil {
			t.Fatal(err)
		}
		_, err = double.Await(t.Context(), client, id)
		if failed, ok := errors.AsType[*stint.JobError](err); !ok || failed.State != stint.Failed || failed.Failure.Message != "it is negative" {
			t.Errorf("of one that failed the error is %v", err)
		}
		if _, err := server.Await(t.Context(), 99); !errors.Is(err, stint.ErrNotFound) {
			t.Errorf("of none the error is %v", err)
		}
		if id, err = double.Enqueue(t.Context(), client, 1, stint.Delay(time.Hour)); err != nil {
			t.Fatal(err)
		}
		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		if _, err := server.Await(ctx, id); !errors.Is(err, cause) {
			t.Errorf("the error is %v, want the context's cause", err)
		}
	})
}

// looks counts how often a store is asked for a job.
type looks struct {
	anyStore
	awaits, jobs atomic.Int32
}

func (l *looks) Await(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	l.awaits.Add(1)
	return l.anyStore.Await(ctx, id)
}

func (l *looks) Job(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	l.jobs.Add(1)
	return l.anyStore.Job(ctx, id)
}

func TestManyWhoWaitOverAServerShareItsLooks(t *testing.T) {
	defer remote.WaitOnce(time.Minute)() // or requests are over and asked again, on a slow machine
	st, _ := open(t)
	counted := &looks{anyStore: st}
	server := over(t, counted, viewerToken)
	ends := make(chan struct{})
	doubles(t, st, ends)
	id, err := double.Enqueue(t.Context(), stint.NewClient(st), 4)
	if err != nil {
		t.Fatal(err)
	}
	const waiters = 100
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			if n, err := double.Await(t.Context(), stint.NewClient(server), id); n != 8 || err != nil {
				t.Errorf("it came to %d, %v", n, err)
			}
		})
	}
	for counted.awaits.Load() < waiters {
		time.Sleep(time.Millisecond)
	}
	again := counted.jobs.Load()
	close(ends)
	all.Wait()
	if n := counted.jobs.Load() - again; n > waiters/10 {
		t.Errorf("%d who waited looked %d times themselves", waiters, n)
	}
}

// restarted is a server that can be stopped, and started again at its address.
type restarted struct {
	*testing.T
	handler http.Handler
	address string
	server  *httptest.Server
}

func (r *restarted) start() {
	r.Helper()
	l, err := net.Listen("tcp", r.address)
	if err != nil {
		r.Fatal(err)
	}
	r.address = l.Addr().String()
	r.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: r.handler}}
	r.server.Start()
}

func (r *restarted) stop() { r.server.CloseClientConnections(); r.server.Close() }

func TestAwaitSurvivesTheRestartOfAServer(t *testing.T) {
	st, _ := open(t)
	g, err := guard.New(guard.Config{Tokens: []guard.Token{guard.NewToken("ann", guard.Admin, adminToken)}})
	if err != nil {
		t.Fatal(err)
	}
	r := &restarted{T: t, handler: g.Wrap(api.New(st, api.Config{})), address: "127.0.0.1:0"}
	r.start()
	server, err := remote.Open("http://"+r.address, remote.Config{Token: adminToken})
	if err != nil {
		t.Fatal(err)
	}
	client := stint.NewClient(server)
	id, err := double.Enqueue(t.Context(), client, 21)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		n, err := double.Await(t.Context(), client, id)
		if err == nil && n != 42 {
			err = fmt.Errorf("it came to %d", n)
		}
		ended <- err
	}()
	time.Sleep(500 * time.Millisecond) // within a request that waits
	r.stop()
	time.Sleep(1500 * time.Millisecond) // longer than requests that only read are repeated
	open := make(chan struct{})
	close(open)
	doubles(t, st, open)
	select {
	case err := <-ended:
		t.Fatalf("without a server the wait ended with %v", err)
	default:
	}
	r.start()
	defer r.stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAwaitEndsAtOnceWhereItCannotBegin(t *testing.T) {
	s, server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	if _, err := s.Await(t.Context(), 1); err == nil {
		t.Error("a server that fails ended no wait")
	}
	server.Close()
	if _, err := s.Await(t.Context(), 1); err == nil {
		t.Error("without a server the wait went on")
	}
}

func TestAwaitGoesOnAfterErrorsOfAServerAndAsksItSeldom(t *testing.T) {
	var asked atomic.Int32
	s, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch n := asked.Add(1); {
		case n <= 2: // it does not wait
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"id":1,"state":"available"}`)
		case n == 3:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"id":1,"state":"completed"}`)
		}
	})
	began := time.Now()
	if job, err := s.Await(t.Context(), 1); err != nil || job.State != stint.Completed || asked.Load() != 4 {
		t.Errorf("it is %+v, %v after %d requests", job, err, asked.Load())
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("it was asked again within %v", took)
	}
	s, _ = serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) })
	if _, err := s.Await(t.Context(), 1); err == nil {
		t.Error("a refusal ended no wait")
	}
}
