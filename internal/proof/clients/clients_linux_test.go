package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
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

const (
	root  = "../../.."
	token = "secret-of-the-gateways-0123456789"
)

// program is the command, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "stint")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "stint")
	out, err := exec.Command("go", "build", "-o", path, root+"/cmd/stint").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the command: %w: %s", err, out)
	}
	return path, nil
})

// process is one that may be killed and started again.
type process struct {
	command func() *exec.Cmd

	mu      sync.Mutex
	running *exec.Cmd
}

func (p *process) start(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = p.command()
	p.running.SysProcAttr = dieWithParent
	if err := p.running.Start(); err != nil {
		t.Error(err)
	}
}

// kill ends it without a warning, and returns its process id, and when it certainly had ended.
func (p *process) kill() (pid int, at int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.running.Process.Kill()
	_ = p.running.Wait()
	return p.running.Process.Pid, monotonic()
}

// monotonic is the clock that all processes of the machine share.
func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}

// freeAddress is one of this machine at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return l.Addr().String()
}

// newGateway is the command as a gateway on a database, at a free port.
func newGateway(t *testing.T, db string, log io.Writer) (p *process, url string) {
	t.Helper()
	stint, err := program()
	if err != nil {
		t.Fatal(err)
	}
	at := freeAddress(t)
	p = &process{command: func() *exec.Cmd {
		c := exec.Command(stint, "work", "--db", db, "--kinds", "sh", "--queues", "none", "--dashboard", at, "--log-level", "warn")
		c.Env = append(os.Environ(), "STINT_DASHBOARD_SECRET="+token, "STINT_CONFIG=")
		c.Stdout, c.Stderr = log, log
		return c
	}}
	p.start(t)
	url = "http://" + at
	t.Cleanup(func() { p.kill() })
	awaitReady(t, url)
	return p, url
}

func awaitReady(t *testing.T, url string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get(url + "/readyz")
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("the gateway is not ready: %v", err)
		}
	}
}

// python finds an interpreter, if possible one that has the drivers of PostgreSQL.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import psycopg, psycopg2, asyncpg").Run() == nil {
			return name
		}
	}
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("not run: there is no python3")
	}
	return path
}

// builtNode is a copy of the TypeScript client, built once.
var builtNode = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "stint-client")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, os.DirFS(root+"/clients/typescript")); err != nil {
		return "", err
	}
	_ = os.RemoveAll(filepath.Join(dir, "node_modules"))
	for _, args := range [][]string{{"ci", "--no-audit", "--no-fund"}, {"run", "build"}} {
		if err := npm(dir, args...); err != nil {
			return "", err
		}
	}
	return dir, nil
})

func npm(dir string, args ...string) error {
	c := exec.Command("npm", args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("npm %s: %w: %s", args[0], err, out)
	}
	return nil
}

// needNode skips a test where Node or npm is not installed.
func needNode(t *testing.T) {
	t.Helper()
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("not run: there is no " + name)
		}
	}
}

func node(t *testing.T) string {
	t.Helper()
	needNode(t)
	dir, err := builtNode()
	if err != nil {
		t.Skipf("not run: the TypeScript client cannot be built here: %v", err)
	}
	return dir
}

// runTests runs the tests of a client against a gateway, and fails with what they print.
func runTests(t *testing.T, dir, db string, command ...string) {
	t.Helper()
	_, url := newGateway(t, db, io.Discard)
	scenarios, err := filepath.Abs(root + "/clients/scenarios")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(command[0], command[1:]...)
	c.Dir = dir
	c.Env = append(os.Environ(), "STINT_TEST_GATEWAY="+url, "STINT_TEST_TOKEN="+token, "STINT_TEST_POSTGRES="+db, "STINT_TEST_SCENARIOS="+scenarios)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out[max(0, len(out)-8000):]) // what failed is told at the end
	}
	t.Logf("%s", out[max(0, len(out)-2000):])
}

func TestThePythonClient(t *testing.T) {
	t.Parallel()
	runTests(t, root+"/clients/python", migrated.New(t), python(t), "-m", "unittest", "discover", "-t", ".", "-s", "tests")
}

func TestTheTypeScriptClient(t *testing.T) {
	t.Parallel()
	dir := node(t)
	runTests(t, dir, migrated.New(t), "npm", "test")
}

// Workers in both languages and their gateways are killed while they work; nothing is lost, and nothing runs twice at once.
// STINT_CHAOS_JOBS says how many jobs.
func TestClientsAndGatewaysAreKilled(t *testing.T) {
	t.Parallel()
	jobs, _ := strconv.Atoi(os.Getenv("STINT_CHAOS_JOBS"))
	if jobs == 0 {
		jobs = 3000
	}
	if testing.Short() {
		jobs = 1000
	}
	db := migrated.New(t)
	s, err := postgres.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	t.Cleanup(func() { storetest.Verify(t, s) })

	logs := t.TempDir()
	var said bytes.Buffer
	var gateways []*process
	var urls []string
	for range 2 {
		g, url := newGateway(t, db, &synced{w: &said})
		gateways, urls = append(gateways, g), append(urls, url)
	}
	client := node(t)
	interpreter := python(t)
	var started int
	var mu sync.Mutex
	worker := func(name string, args ...string) *process {
		return &process{command: func() *exec.Cmd {
			mu.Lock()
			started++
			log := filepath.Join(logs, strconv.Itoa(started))
			mu.Unlock()
			c := exec.Command(name, append(args, log)...)
			c.Env = append(os.Environ(), "STINT_GATEWAY_URL="+strings.Join(urls, ","), "STINT_TOKEN="+token,
				"PYTHONPATH="+filepath.Join(mustAbs(t, root), "clients/python"), "STINT_CLIENT="+filepath.Join(client, "dist/index.js"))
			c.Stderr = &synced{w: &said}
			return c
		}}
	}
	var workers []*process
	for range 5 {
		workers = append(workers, worker(interpreter, mustAbs(t, "testdata/worker.py")), worker("node", mustAbs(t, "testdata/worker.mjs")))
	}
	deaths := map[string]int64{} // of processes, by the name of their log
	for _, w := range workers {
		w.start(t)
		t.Cleanup(func() { w.kill() })
	}
	batch := make([]stint.NewJob, 1000)
	for i := range batch {
		batch[i] = stint.NewJob{Kind: "chaos", Retry: retry.Fixed(20, 10*time.Millisecond), MaxLosses: new(100)}
	}
	enqueuer := stint.NewClient(s)
	for left := jobs; left > 0; left -= len(batch) {
		if _, err := enqueuer.EnqueueMany(t.Context(), batch[:min(left, len(batch))]); err != nil {
			t.Fatal(err)
		}
	}
	every := 1500 * time.Millisecond
	if jobs > 100_000 { // or starting processes is most of the work
		every = 3 * time.Second
	}
	began, kills := time.Now(), 0
	for last := time.Now(); ; {
		counts, err := s.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if counts[stint.Completed]+counts[stint.Failed] == int64(jobs) {
			break
		}
		if time.Since(began) > time.Duration(jobs)*20*time.Millisecond+2*time.Minute {
			t.Fatalf("they do not end: %v\n%s", counts, said.String())
		}
		time.Sleep(200 * time.Millisecond)
		if time.Since(last) < every {
			continue
		}
		last = time.Now()
		kills++
		if kills%4 == 0 {
			g := gateways[rand.N(len(gateways))]
			g.kill()
			g.start(t)
			continue
		}
		w := workers[rand.N(len(workers))]
		log := filepath.Base(w.running.Args[len(w.running.Args)-1])
		_, at := w.kill()
		deaths[log] = at
		w.start(t)
	}
	t.Logf("%d jobs in %v with %d kills", jobs, time.Since(began).Round(time.Second), kills)
	runs := readRuns(t, logs, deaths)
	for id, all := range runs {
		slices.SortFunc(all, func(a, b run) int { return int(a.begin - b.begin) })
		for i := 1; i < len(all); i++ {
			if all[i].begin < all[i-1].end {
				t.Errorf("two runs of job %d overlap by %v", id, time.Duration(all[i-1].end-all[i].begin))
			}
		}
	}
	if len(runs) != jobs {
		t.Errorf("%d of %d jobs ran", len(runs), jobs)
	}
}

type run struct{ begin, end int64 }

// readRuns reads what handlers wrote down. A run without an end lasted until its process died.
func readRuns(t *testing.T, dir string, deaths map[string]int64) map[int64][]run {
	t.Helper()
	runs := map[int64][]run{}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		file, err := os.Open(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		open := map[int64]int64{}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var what string
			var id, at int64
			if _, err := fmt.Sscan(lines.Text(), &what, &id, &at); err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
			if what == "begin" {
				open[id] = at
			} else {
				runs[id] = append(runs[id], run{open[id], at})
				delete(open, id)
			}
		}
		for id, begin := range open {
			died := deaths[f.Name()]
			if died == 0 {
				died = begin
			}
			runs[id] = append(runs[id], run{begin, died})
		}
		_ = file.Close()
	}
	return runs
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// synced is a writer for many.
type synced struct {
	w *bytes.Buffer
}

var saying sync.Mutex

func (s *synced) Write(p []byte) (int, error) {
	saying.Lock()
	defer saying.Unlock()
	return s.w.Write(p)
}

// dieWithParent has a process end with the test.
var dieWithParent = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
