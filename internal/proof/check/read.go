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
		if err := rec.parse(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if err := p.add(&rec); err != nil {
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
		h.Enqueues = append(h.Enqueues, p.enqueues...)
		h.Runs = append(h.Runs, p.runs...)
		p.enqueues, p.runs = nil, nil
	}
	return h, nil
}

// started turns a process record into what it says.
func started(rec *record) Process {
	return Process{Name: rec.Name, PID: rec.PID, Started: rec.At, Wall: time.Unix(0, rec.Wall)}
}
