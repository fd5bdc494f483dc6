package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/gateway"
)

const (
	gatewayRate = "jobs/s"
	gatewayCPU  = "% of a core"
)

// takenAtOnce is how many jobs a worker takes and finishes in one call.
const takenAtOnce = 50

// workersOverHTTP measures a gateway: no-op jobs that workers take in batches, how soon one of them has a job that is
// enqueued, and what idle ones cost the process of the gateway; those are in a process of their own.
func workersOverHTTP(ctx context.Context, b *bench) error {
	bout := contest.Bout{
		Name: "gateway", About: fmt.Sprintf("%d no-op jobs by %d workers in batches of %d; then %v jobs a second for %v; then %d idle workers for %v", b.jobs, b.workers, takenAtOnce, b.rate, b.duration, b.idleWorkers, b.duration),
		Figures: append([]contest.Figure{{Name: gatewayRate}, {Name: gatewayCPU, LessIsMore: true}}, timesFigures...),
	}
	bout.Entrants = b.jointly([]string{"work", "enqueue to answer", "idle"}, func(ctx context.Context, s *site) ([]contest.Figures, error) {
		g, err := s.serveWorkers(ctx)
		if err != nil {
			return nil, err
		}
		all, err := s.measureWorkers(ctx, g)
		return all, errors.Join(err, g.close())
	})
	return b.hold(ctx, bout)
}

// served is a gateway that is served to this process.
type served struct {
	url   string
	close func() error
}

func (s *site) serveWorkers(ctx context.Context) (*served, error) {
	host, err := engine.New(s.store, stint.NewMux(), engine.Config{ClaimsNothing: true})
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- host.Run(running) }()
	workers := gateway.New(s.store, gateway.Config{Host: host})
	config := dashboard.Config{WorkersOnly: true, Guard: guard.Config{Stranger: guard.Admin}}
	config.API.Workers = workers
	handler, err := dashboard.New(s.store, config)
	if err != nil {
		stop()
		return nil, errors.Join(err, <-ended)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		stop()
		return nil, errors.Join(err, <-ended)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }() // until it is closed
	return &served{"http://" + l.Addr().String() + "/api/v1/workers", func() error {
		workers.Close()
		_ = server.Close()
		stop()
		return <-ended
	}}, nil
}

// call sends a request of a worker.
func (g *served) call(ctx context.Context, client *http.Client, path string, in, out any) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s: %s: %s", path, answer.Status, text)
	}
	return json.Unmarshal(text, out)
}

type claims struct {
	Max  int    `json:"max"`
	Wait string `json:"wait"`
	Idle bool   `json:"idle"`
}

type finishes struct {
	Results []gateway.Ending `json:"results"`
	Claim   claims           `json:"claim"`
}

// overHTTP is a worker.
type overHTTP struct {
	*served
	client *http.Client
	id     string
}

func (g *served) join(ctx context.Context, client *http.Client, slots int) (*overHTTP, error) {
	var joined gateway.Joined
	err := g.call(ctx, client, "", map[string]any{"kinds": []string{"load_http"}, "slots": slots}, &joined)
	return &overHTTP{g, client, joined.Worker}, err
}

// work takes and finishes jobs until ctx ends. Its claims are its heartbeats.
func (w *overHTTP) work(ctx context.Context, most int, began func([]gateway.ClaimedJob)) error {
	next := finishes{Results: []gateway.Ending{}, Claim: claims{most, "25s", true}}
	for {
		var news gateway.News
		if err := w.call(ctx, w.client, "/"+w.id+"/finish", next, &news); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		began(news.Jobs)
		next.Results = next.Results[:0]
		for _, j := range news.Jobs {
			next.Results = append(next.Results, gateway.Ending{Receipt: j.Receipt})
		}
	}
}

func (s *site) measureWorkers(ctx context.Context, g *served) (all []contest.Figures, err error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4 * (s.workers + s.idleWorkers)}}
	defer client.CloseIdleConnections()
	producer := stint.NewClient(s.store)
	working, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	var side sync.WaitGroup
	defer side.Wait()
	defer stop()
	var failed error
	done, all1 := 0, make(chan struct{})
	sent := map[stint.ID]time.Time{}
	var times []time.Duration
	came := func(jobs []gateway.ClaimedJob) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		for _, j := range jobs {
			if at, measured := sent[j.ID]; measured {
				times = append(times, now.Sub(at))
			}
		}
		if before := done; before < s.jobs {
			if done += len(jobs); done >= s.jobs {
				close(all1)
			}
		}
	}
	jobs := make([]stint.NewJob, s.batch)
	for i := range jobs {
		jobs[i] = stint.NewJob{Kind: "load_http"}
	}
	for left := s.jobs; left > 0; left -= s.batch {
		if _, err := producer.EnqueueMany(ctx, jobs[:min(left, s.batch)]); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	for range s.workers {
		w, err := g.join(ctx, client, cmp.Or(s.slots, 2*takenAtOnce))
		if err != nil {
			return nil, err
		}
		side.Go(func() {
			if err := w.work(working, takenAtOnce, came); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = err
				stop()
			}
		})
	}
	select {
	case <-all1:
	case <-working.Done():
		return nil, cmp.Or(failed, ctx.Err())
	}
	work := contest.Figures{gatewayRate: float64(s.jobs) / time.Since(began).Seconds()}

	for end, tick := time.Now().Add(s.duration), time.NewTicker(time.Duration(float64(time.Second)/s.rate)); time.Now().Before(end); <-tick.C {
		called := time.Now()
		id, err := producer.EnqueueMany(ctx, jobs[:1])
		if err != nil {
			return nil, err
		}
		mu.Lock()
		sent[id[0]] = called
		mu.Unlock()
	}
	time.Sleep(time.Second)
	stop()
	side.Wait()
	idle, err := s.idleWorkersCost(ctx, g)
	mu.Lock()
	defer mu.Unlock()
	return []contest.Figures{work, contest.Quantiles(times), idle}, err
}

// idleEnv tells another process of this program to be workers that wait: the URL of the gateway, and how many.
const idleEnv = "STINT_BENCH_IDLE_WORKERS"

// beIdle is workers that wait, until nobody reads what they say any more, or ctx ends.
func beIdle(ctx context.Context, url string, n int) error {
	ctx, stop := context.WithCancel(ctx)
	g := &served{url: url}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	var side sync.WaitGroup
	defer side.Wait()
	defer stop()
	for range n {
		w, err := g.join(ctx, client, 10)
		if err != nil {
			return err
		}
		side.Go(func() { _ = w.work(ctx, 10, func([]gateway.ClaimedJob) {}) })
	}
	fmt.Println("all have joined")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// idleWorkersCost is what workers cost that wait for work.
func (s *site) idleWorkersCost(ctx context.Context, g *served) (_ contest.Figures, err error) {
	itself, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, itself)
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", idleEnv, g.url, s.idleWorkers))
	c.Stderr = os.Stderr
	says, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	end, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = end.Close()
		err = cmp.Or(err, c.Wait())
	}()
	if _, err := bufio.NewReader(says).ReadString('\n'); err != nil {
		return nil, err
	}
	time.Sleep(5 * time.Second)
	before, known := contest.ProcessTime()
	began := time.Now()
	time.Sleep(s.duration)
	after, _ := contest.ProcessTime()
	if !known {
		return contest.Figures{}, nil
	}
	return contest.Figures{gatewayCPU: 100 * (after - before).Seconds() / time.Since(began).Seconds()}, nil
}
