package main

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/bench/load"
	"github.com/stint-go/stint/postgres"
)

// limitedWork is jobs that wait for a limit, worked off by two processes; of stint by two engines in one.
type limitedWork struct {
	DB        string `json:"db"`
	Redis     string `json:"redis"` // the socket of a Redis server
	Jobs      int    `json:"jobs"`
	AtOnce    int    `json:"atOnce"`    // 0: it is a rate
	Keys      int    `json:"keys"`      // each of which has the limit for itself; 0: one for all
	PerSecond int    `json:"perSecond"` // how many may begin, of a rate
	Ms        int    `json:"ms"`        // that a job takes
	Workers   int    `json:"workers"`   // of each process
}

// execution is one run of a job's handler, by a clock that all workers share.
type execution struct{ n, start, end int64 }

const workProcesses = 2

// limits are the bouts of jobs under limits: so many at once of all, one at a time of each key, so many in a second.
func limits(s *server, o options) []contest.Bout {
	const used, most, rate = "% used", "most at once", "jobs/s"
	n := max(1000, o.jobs/10)
	atOnce := limitedWork{Jobs: max(1000, n/5), AtOnce: 10, Ms: 5, Workers: 10}
	keys := limitedWork{Jobs: n, AtOnce: 1, Keys: n / 20, Workers: 20}
	perSecond := limitedWork{Jobs: max(1000, n/10), PerSecond: 200, Workers: 50}
	return []contest.Bout{
		{
			Name: "limit",
			About: fmt.Sprintf("%s jobs of %d ms, of which %d may run at once over %d processes with %d workers each; used is how much of the time the %d had a job",
				contest.Number(float64(atOnce.Jobs)), atOnce.Ms, atOnce.AtOnce, workProcesses, atOnce.Workers, atOnce.AtOnce),
			Figures: []contest.Figure{{Name: used}, {Name: most, LessIsMore: true}},
			Entrants: limited(s, atOnce, []string{"pg-boss", "DBOS", "BullMQ"}, func(all []execution) contest.Figures {
				return contest.Figures{used: 100 * busy(all) / float64(atOnce.AtOnce), most: float64(together(all, func(execution) int64 { return 0 }))}
			}),
		},
		{
			Name: "keys",
			About: fmt.Sprintf("%s no-op jobs of %s keys, of which one at a time of each may run, over %d processes with %d workers each",
				contest.Number(float64(keys.Jobs)), contest.Number(float64(keys.Keys)), workProcesses, keys.Workers),
			Figures: []contest.Figure{{Name: rate}, {Name: most + " of a key", LessIsMore: true}},
			Entrants: limited(s, keys, []string{"pg-boss", "Graphile Worker", "DBOS"}, func(all []execution) contest.Figures {
				return contest.Figures{rate: float64(len(all)) / seconds(all), most + " of a key": float64(together(all, func(e execution) int64 { return e.n % int64(keys.Keys) }))}
			}),
		},
		{
			Name: "rate",
			About: fmt.Sprintf("%s no-op jobs, of which %d may begin in a second, over %d processes",
				contest.Number(float64(perSecond.Jobs)), perSecond.PerSecond, workProcesses),
			Figures: []contest.Figure{{Name: used}, {Name: "most in a second", LessIsMore: true}},
			Entrants: limited(s, perSecond, []string{"DBOS", "BullMQ"}, func(all []execution) contest.Figures {
				return contest.Figures{used: 100 * perWholeSecond(all) / float64(perSecond.PerSecond), "most in a second": float64(within(all, time.Second))}
			}),
		},
	}
}

// limited are stint and others that do a work.
func limited(s *server, w limitedWork, others []string, judge func([]execution) contest.Figures) []contest.Entrant {
	entrant := func(name, settings string, work func(ctx context.Context, w limitedWork, r *runs) error) contest.Entrant {
		return contest.Entrant{Name: name, Settings: settings, Turn: func(ctx context.Context) (f contest.Figures, err error) {
			err = s.database(ctx, func(url string) error {
				w.DB = url
				r := newRuns(w.Jobs)
				if err := work(ctx, w, r); err != nil {
					return err
				}
				all, err := r.once()
				if err != nil {
					return err
				}
				f = judge(all)
				return nil
			})
			return f, err
		}}
	}
	all := []contest.Entrant{entrant("stint", fmt.Sprintf("%d engines with %d slots each", workProcesses, w.Workers), workStint)}
	for _, name := range others {
		all = append(all, entrant(name, nodeSettings[name], func(ctx context.Context, w limitedWork, r *runs) error { return workNode(ctx, name, w, r) }))
	}
	return all
}

func workStint(ctx context.Context, w limitedWork, r *runs) error {
	store, err := postgres.Open(ctx, w.DB)
	if err != nil {
		return err
	}
	rule := stint.LimitRule{AtOnce: w.AtOnce}
	if w.PerSecond > 0 {
		rule = stint.LimitRule{Starts: w.PerSecond, Per: time.Second}
	}
	q := load.New(store, load.Options{Engines: workProcesses, Slots: w.Workers, Limit: rule, Keys: w.Keys}, closing(store))
	defer q.Close()
	for first := 0; first < w.Jobs; first += 1000 {
		if err := q.Enqueue(ctx, first, min(1000, w.Jobs-first)); err != nil {
			return err
		}
	}
	base := time.Now()
	stop, err := q.Work(ctx, func(n int) {
		start := time.Since(base)
		time.Sleep(time.Duration(w.Ms) * time.Millisecond)
		r.add(execution{int64(n), int64(start), int64(time.Since(base))})
	})
	if err != nil {
		return err
	}
	err = r.wait(ctx)
	return errors.Join(err, stop())
}

// nodeSettings are what a reader must know of those that are written in JavaScript, which peer.js runs.
var nodeSettings = map[string]string{
	"pg-boss":         "groupConcurrency, by loops of fetch and complete (one job each, 100 with keys), which look again after 5 ms when they got nothing: its own workers look twice a second",
	"Graphile Worker": "a named queue for each key; a poll of 5 ms",
	"DBOS":            "a queue's globalConcurrency, partitionConcurrency or rateLimit; a poll of 5 ms",
	"BullMQ":          "the queue's global concurrency or global rate limit; Redis with an append-only file that is flushed at each write",
}

//go:embed node/package.json
var nodePackage []byte

// nodeVersions are those of the packages that peer.js is run with, and of Node.js where it is there.
func nodeVersions() (map[string]string, error) {
	var p struct{ Dependencies map[string]string }
	if err := json.Unmarshal(nodePackage, &p); err != nil {
		return nil, fmt.Errorf("node/package.json: %w", err)
	}
	if version, err := exec.Command("node", "--version").Output(); err == nil {
		p.Dependencies["node"] = strings.TrimSpace(string(version))
	}
	return p.Dependencies, nil
}

// workNode works by processes of peer.js.
func workNode(ctx context.Context, name string, w limitedWork, r *runs) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if name == "BullMQ" {
		dir, err := os.MkdirTemp("", "stint-peers-redis-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		w.Redis = filepath.Join(dir, "socket")
		redis := exec.CommandContext(ctx, "redis-server", "--port", "0", "--unixsocket", w.Redis, "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
		if err := redis.Start(); err != nil {
			return fmt.Errorf("start Redis: %w; leave BullMQ out with --against 'pg-boss|Graphile|DBOS'", err)
		}
		defer func() { cancel(); redis.Wait() }()
		for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(w.Redis); err == nil {
				break
			} else if time.Now().After(until) {
				return fmt.Errorf("Redis does not listen: %w", err)
			}
		}
	}
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	command := func(verb string) *exec.Cmd {
		c := exec.CommandContext(ctx, "node", "node/peer.js", name, verb, string(text))
		c.Env, c.Stderr = append(os.Environ(), "NODE_NO_WARNINGS=1"), os.Stderr
		return c
	}
	if err := command("enqueue").Run(); err != nil {
		return fmt.Errorf("enqueue: %w; is Node.js 22.12 or newer there, and was `npm install --no-package-lock --prefix node` run?", err)
	}
	var ended sync.WaitGroup
	defer ended.Wait()
	defer cancel() // of those that were started before one that was not
	var inputs []io.Closer
	errs := make([]error, workProcesses)
	for i := range workProcesses {
		p := command("work")
		in, err := p.StdinPipe()
		if err != nil {
			return err
		}
		inputs = append(inputs, in)
		out, err := p.StdoutPipe()
		if err != nil {
			return err
		}
		if err := p.Start(); err != nil {
			return err
		}
		ended.Go(func() {
			err := r.read(out)
			if err != nil {
				cancel()
			}
			if errs[i] = errors.Join(err, p.Wait()); errs[i] != nil {
				cancel()
			}
		})
	}
	if err = r.wait(ctx); err != nil {
		cancel()
	}
	for _, in := range inputs {
		in.Close()
	}
	ended.Wait()
	return errors.Join(append(errs, err)...)
}

// runs gathers what ran.
type runs struct {
	mu   sync.Mutex
	all  []execution
	left map[int64]bool // the jobs that have not run
	done chan struct{}
}

func newRuns(n int) *runs {
	r := &runs{left: map[int64]bool{}, done: make(chan struct{})}
	for i := range n {
		r.left[int64(i)] = true
	}
	return r
}

func (r *runs) add(one execution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
	if r.left[one.n] && len(r.left) == 1 {
		close(r.done)
	}
	delete(r.left, one.n)
}

// read takes what a process writes.
func (r *runs) read(from io.Reader) error {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var one execution
		if _, err := fmt.Sscan(lines.Text(), &one.n, &one.start, &one.end); err != nil {
			return fmt.Errorf("a worker said %q: %w", lines.Text(), err)
		}
		r.add(one)
	}
	return lines.Err()
}

// wait is until each job has run.
func (r *runs) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-time.After(time.Hour):
		return errors.New("after an hour not each job has run")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// once are the runs in the order in which they began. It is an error when a job ran twice. All workers have stopped.
func (r *runs) once() ([]execution, error) {
	ran := map[int64]bool{}
	for _, one := range r.all {
		if ran[one.n] {
			return nil, fmt.Errorf("job %d ran twice", one.n)
		}
		ran[one.n] = true
	}
	slices.SortFunc(r.all, func(a, b execution) int { return cmp.Compare(a.start, b.start) })
	return r.all, nil
}

// seconds are from the beginning of the first run to that of the last.
func seconds(all []execution) float64 {
	return time.Duration(all[len(all)-1].start - all[0].start).Seconds()
}

// perWholeSecond is how many began in a second, of the whole seconds since the first one: who counts by windows
// has used one more of these than seconds have passed between the first start and the last.
func perWholeSecond(all []execution) float64 {
	whole := time.Duration(all[len(all)-1].start - all[0].start).Truncate(time.Second)
	n := 0
	for _, r := range all {
		if r.start < all[0].start+int64(whole) {
			n++
		}
	}
	return float64(n) / whole.Seconds()
}

// busy is how many ran at once, on the average.
func busy(all []execution) float64 {
	sum, last := int64(0), all[0].end
	for _, r := range all {
		sum, last = sum+r.end-r.start, max(last, r.end)
	}
	return float64(sum) / float64(last-all[0].start)
}

// together is how many of one key ran at once, at most.
func together(all []execution, key func(execution) int64) (most int) {
	ends := map[int64][]int64{}
	for _, r := range all {
		k := key(r)
		ends[k] = append(slices.DeleteFunc(ends[k], func(end int64) bool { return end <= r.start }), r.end)
		most = max(most, len(ends[k]))
	}
	return most
}

// within is how many began in a span of time, at most.
func within(all []execution, span time.Duration) (most int) {
	from := 0
	for i, r := range all {
		for all[from].start <= r.start-int64(span) {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}
