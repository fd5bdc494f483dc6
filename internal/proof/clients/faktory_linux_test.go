package clients_test

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/storetest"
)

// faktoryClient is a copy of faktory-worker, a client of Faktory for Node, fetched once.
var faktoryClient = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "stint-faktory")
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "node_modules", "faktory-worker"), npm(dir, "install", "--no-audit", "--no-fund", "--no-save", "faktory-worker@4.7.1")
})

// A client for Node that knows nothing of stint pushes jobs and works on them. One of its processes is killed while it
// works: nothing is lost, and what failed is tried again.
func TestAClientOfFaktoryWorksWithoutChange(t *testing.T) {
	t.Parallel()
	needNode(t)
	client, err := faktoryClient()
	if err != nil {
		t.Skipf("not run: the client cannot be fetched here: %v", err)
	}
	stintCommand, err := program()
	if err != nil {
		t.Fatal(err)
	}
	db := migrated.New(t)
	s, err := postgres.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	t.Cleanup(func() { storetest.Verify(t, s) })

	at := freeAddress(t)
	var said bytes.Buffer
	server := &process{command: func() *exec.Cmd {
		c := exec.Command(stintCommand, "work", "--db", db, "--faktory", at, "--log-level", "warn")
		c.Env = append(os.Environ(), "STINT_FAKTORY_PASSWORD=pass:word 1, of the tests", "STINT_CONFIG=")
		c.Stdout, c.Stderr = &synced{w: &said}, &synced{w: &said}
		return c
	}}
	server.start(t)
	t.Cleanup(func() { server.kill() })
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if c, err := net.Dial("tcp", at); err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the server is not there: %s", said.String())
		}
	}
	run := func(args ...string) *exec.Cmd {
		c := exec.Command("node", append([]string{mustAbs(t, "testdata/faktory.cjs")}, args...)...)
		c.Env = append(os.Environ(), "FAKTORY_CLIENT="+client, "FAKTORY_URL=tcp://:pass%3Aword%201%2C%20of%20the%20tests@"+at)
		c.Stderr = &synced{w: &said}
		return c
	}
	const jobs = 200
	out, err := run("push", "-", "200").Output()
	if err != nil {
		t.Fatalf("push: %v\n%s", err, said.String())
	}
	var info struct{ Queues, Enqueued int }
	if err := json.Unmarshal(out, &info); err != nil || info.Queues != 2 || info.Enqueued != jobs {
		t.Errorf("the client reads of the server %s (%v)", out, err)
	}
	logs := t.TempDir()
	victim := &process{command: func() *exec.Cmd { return run("work", filepath.Join(logs, "victim")) }}
	victim.start(t)
	for end := time.Now().Add(time.Minute); strings.Count(readAll(t, filepath.Join(logs, "victim")), "end ") < 20; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the worker does not work: %s", said.String())
		}
	}
	victim.kill()
	other := &process{command: func() *exec.Cmd { return run("work", filepath.Join(logs, "other")) }}
	other.start(t)
	t.Cleanup(func() { other.kill() })
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		counts, err := s.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if counts[stint.Completed] == jobs {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("they do not end: %v\n%s", counts, said.String())
		}
	}
	text := readAll(t, filepath.Join(logs, "victim")) + readAll(t, filepath.Join(logs, "other"))
	if strings.Contains(text, "wrong ") || strings.Count(text, "fail ") < jobs/10-maxLost { // of what was lost the next attempt is not the first
		t.Errorf("of the jobs came back:\n%s", text)
	}
	ends := map[string]int{}
	for line := range strings.Lines(text) {
		if jid, ok := strings.CutPrefix(line, "end "); ok {
			ends[strings.Fields(jid)[0]]++
		}
	}
	twice := 0
	for _, n := range ends {
		twice += n - 1
	}
	if len(ends) != jobs || twice > 5 { // what ended just before the worker died may not have been acknowledged
		t.Errorf("%d of %d jobs ended, and %d of them twice", len(ends), jobs, twice)
	}
	checkAttempts(t, s, jobs)
}

// maxLost is how many jobs the worker runs at once.
const maxLost = 5

// checkAttempts checks that what was lost is what the worker that died can have held.
func checkAttempts(t *testing.T, s *postgres.Store, jobs int) {
	t.Helper()
	lost, failed := 0, 0
	for id := stint.ID(1); id <= stint.ID(4*jobs); id++ {
		j, err := s.Job(t.Context(), id)
		if err != nil {
			continue
		}
		for _, a := range j.Attempts {
			switch a.Outcome {
			case stint.OutcomeLost:
				lost++
			case stint.OutcomeFailed:
				failed++
				if a.Error.Message != "the first time it fails" {
					t.Errorf("job %d failed by %+v", id, a.Error)
				}
			}
		}
	}
	if lost > maxLost || failed < jobs/10-lost {
		t.Errorf("%d attempts were lost and %d failed", lost, failed)
	}
	t.Logf("%d attempts were lost with the worker that was killed, %d failed", lost, failed)
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}
