package check

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// History is what the processes of a test wrote down.
type History struct {
	Processes []Process
	Enqueues  []Enqueue
	Runs      []Run
	Told      []Told

	// Torn counts the processes whose last record was cut off, as a kill in
	// the middle of a write does. What it would have said had not happened:
	// records are written before the act, or when it is over.
	Torn int
}

// Process is one process, by the name that it gave itself: a new one for
// each life, so that "worker-3" killed and started again is two.
type Process struct {
	Name    string
	PID     int
	Started Instant
	Wall    time.Time // what the wall clock said at Started
	Stopped Instant   // when it closed its log; 0 when it never did
}

// instant is the moment at which this process's wall clock would show t.
func (p *Process) instant(t time.Time) Instant { return p.Started.Add(t.Sub(p.Wall)) }

// Fate is what became of the commit of an enqueue.
type Fate int8

// The fates of an enqueue.
const (
	Unknown    Fate = iota // the answer was lost, or its process died before it wrote it down
	Committed              // the database said so
	RolledBack             // nothing was ever committed
)

// String is the fate in words.
func (f Fate) String() string { return [...]string{"unknown", "committed", "rolled back"}[f] }

// Enqueue is one job that a producer meant to enqueue.
type Enqueue struct {
	Key     string // the workload's own name of the job
	Job     int64  // its id; 0 unless committed
	At      Instant
	Process int32 // index in History.Processes
	Batch   int32 // of the process: those with the same number are one transaction
	Fate    Fate
}

// How says how a handler ended.
type How string

// The ways in which a handler ends.
const (
	Open      How = ""          // it did not, as far as the log knows
	OK        How = "ok"        // it did its work
	Error     How = "error"     // it returned an error
	Panic     How = "panic"     // it panicked
	Snooze    How = "snooze"    // it asked to be run later
	Cancelled How = "cancelled" // it gave up because its context was cancelled
	Recorded  How = "recorded"  // it recorded its success itself, and was told that this was done
)

// Run is one run of a handler.
type Run struct {
	Job     int64
	Pos     int64 // the entry; 0 when the handler cannot know, then it is found by the attempt
	Engine  int64 // the engine's token; 0 when the handler cannot know
	Attempt int
	Slot    int

	Process int32 // index in History.Processes; set by the log
	Start   Instant
	End     Instant // 0 when it did not end
	How     How
	Cause   string // of the cancellation, or whatever the handler had to say
}

// Told is what a run was told that a step of its job came to.
type Told struct {
	Job         int64
	Step, Value string
	Process     int32 // index in History.Processes
}

// part is the history of one process while it is read.
type part struct {
	process  Process
	enqueues []Enqueue
	runs     []Run
	told     []Told
	batches  int32
	torn     bool
}

// add applies the next record.
func (p *part) add(rec *record) error {
	switch {
	case rec.kind == "process" && p.process.Name == "" && rec.texts[0] != "":
		p.process = Process{Name: rec.texts[0], PID: int(rec.numbers[0]), Started: rec.at, Wall: time.Unix(0, rec.numbers[1])}
		return nil
	case rec.kind == "process" || p.process.Name == "":
		return fmt.Errorf("a log begins with its process, once; this is %q", rec.kind)
	case p.process.Stopped != 0:
		return fmt.Errorf("%q after the log was closed", rec.kind)
	}
	switch rec.kind {
	case "intend":
		return p.intend(rec)
	case "committed":
		return p.settle(rec, Committed, len(rec.numbers))
	case "rolledback":
		return p.settle(rec, RolledBack, int(rec.numbers[0]))
	case "unknown":
		return p.settle(rec, Unknown, int(rec.numbers[0]))
	case "start":
		return p.start(rec)
	case "told":
		return p.tell(rec)
	case "end":
		return p.end(rec)
	case "close":
		p.process.Stopped = rec.at
		return nil
	}
	return fmt.Errorf("unknown record %q", rec.kind)
}

func (p *part) intend(rec *record) error {
	if rec.n != len(p.enqueues) {
		return fmt.Errorf("key %d where key %d was expected", rec.n, len(p.enqueues))
	}
	for _, key := range rec.texts {
		p.enqueues = append(p.enqueues, Enqueue{Key: key, At: rec.at, Batch: p.batches})
	}
	p.batches++
	return nil
}

// settle says what became of n keys. An unknown fate may become known later,
// a known one stands.
func (p *part) settle(rec *record, fate Fate, n int) error {
	if rec.n < 0 || n < 0 || rec.n > len(p.enqueues) || n > len(p.enqueues)-rec.n {
		return fmt.Errorf("%s: keys %d and %d more, of %d", rec.kind, rec.n, n, len(p.enqueues))
	}
	for i := range p.enqueues[rec.n : rec.n+n] {
		e := &p.enqueues[rec.n+i]
		if e.Fate != Unknown {
			return fmt.Errorf("key %q is %s and now %s", e.Key, e.Fate, fate)
		}
		e.Fate = fate
		if fate == Committed {
			e.Job = rec.numbers[i]
		}
	}
	return nil
}

func (p *part) start(rec *record) error {
	if rec.n != len(p.runs) {
		return fmt.Errorf("run %d where run %d was expected", rec.n, len(p.runs))
	}
	p.runs = append(p.runs, Run{
		Job: rec.numbers[0], Pos: rec.numbers[1], Engine: rec.numbers[2],
		Attempt: int(rec.numbers[3]), Slot: int(rec.numbers[4]), Start: rec.at,
	})
	return nil
}

func (p *part) tell(rec *record) error {
	if rec.n < 0 || rec.n >= len(p.runs) {
		return fmt.Errorf("run %d is told something, of %d", rec.n, len(p.runs))
	}
	p.told = append(p.told, Told{Job: p.runs[rec.n].Job, Step: strings.Clone(rec.texts[0]), Value: strings.Clone(rec.texts[1])})
	return nil
}

func (p *part) end(rec *record) error {
	if rec.n < 0 || rec.n >= len(p.runs) {
		return fmt.Errorf("run %d ends, of %d", rec.n, len(p.runs))
	}
	r := &p.runs[rec.n]
	if r.How != Open {
		return fmt.Errorf("run %d ends twice", rec.n)
	}
	// One of the constants, so that no run keeps a line of the log.
	for _, how := range [...]How{OK, Error, Panic, Snooze, Cancelled, Recorded} {
		if string(how) == rec.texts[0] {
			r.How = how
		}
	}
	if r.How == Open {
		return fmt.Errorf("run %d ends in an unknown way, %q", rec.n, rec.texts[0])
	}
	r.End, r.Cause = rec.at, rec.texts[1]
	return nil
}

// maxLine bounds a record, for the sake of those who read a file that is no
// log. An intent of a million keys fits.
const maxLine = 256 << 20

// Read merges the logs at the paths: files, or directories of them. A last
// record that was cut off is counted in Torn; anything else that is not as a
// [Writer] writes it is an error, because a history with holes proves nothing.
func Read(paths ...string) (*History, error) {
	files, err := logFiles(paths)
	if err != nil {
		return nil, fmt.Errorf("check: find the logs: %w", err)
	}
	parts := make([]*part, len(files))
	errs := make([]error, len(files))
	turn := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, name := range files {
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			parts[i], errs[i] = readFile(name)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("check: read the log %s: %w", filepath.Base(files[i]), err)
		}
	}
	return merge(parts)
}

func logFiles(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		inside, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, e := range inside {
			if strings.HasSuffix(e.Name(), suffix) {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
	}
	return files, nil
}

func readFile(name string) (*part, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readPart(f)
}

// readPart reads what one process wrote.
func readPart(r io.Reader) (*part, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	lines.Split(withNewline)
	p := new(part)
	var rec record
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if line[len(line)-1] != '\n' {
			p.torn = true
			break
		}
		err := rec.parse(string(line))
		if err == nil {
			err = p.add(&rec)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return p, lines.Err()
}

// withNewline splits lines and leaves their newline on, which tells a whole
// record from one that was cut off.
func withNewline(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// merge puts the parts together. A process that was killed before its first
// record was whole did nothing, and leaves nothing but its torn line.
func merge(parts []*part) (*History, error) {
	enqueues, runs := 0, 0
	for _, p := range parts {
		enqueues += len(p.enqueues)
		runs += len(p.runs)
	}
	h := &History{Enqueues: make([]Enqueue, 0, enqueues), Runs: make([]Run, 0, runs)}
	names := map[string]bool{}
	for _, p := range parts {
		if p.torn {
			h.Torn++
		}
		if p.process.Name == "" {
			continue
		}
		if names[p.process.Name] {
			return nil, fmt.Errorf("check: two processes are named %q", p.process.Name)
		}
		names[p.process.Name] = true
		me := int32(len(h.Processes))
		h.Processes = append(h.Processes, p.process)
		for i := range p.enqueues {
			p.enqueues[i].Process = me
		}
		for i := range p.runs {
			p.runs[i].Process = me
		}
		for i := range p.told {
			p.told[i].Process = me
		}
		h.Enqueues = append(h.Enqueues, p.enqueues...)
		h.Runs = append(h.Runs, p.runs...)
		h.Told = append(h.Told, p.told...)
		p.enqueues, p.runs, p.told = nil, nil, nil
	}
	return h, nil
}
