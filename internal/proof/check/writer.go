package check

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// suffix ends the names of a log's files.
const suffix = ".jsonl"

// Writer writes what one process does. It is safe for concurrent use. A
// record is in the hands of the operating system when the method returns, so
// it survives the death of the process by any means, though not that of the
// machine.
//
// The methods report no errors, since a workload has no use for them one by
// one: after the first nothing is written any more, and [Writer.Err] and
// [Writer.Close] return it. A history after that is worthless.
type Writer struct {
	mu   sync.Mutex // guards what follows; held during the write, which keeps the order of numbers
	f    *os.File
	buf  []byte
	keys int64 // the number of the next key
	runs int64 // the number of the next run
	err  error
}

// Create begins the log of a process in a directory that it may share with
// others. The name must be new there: it stands for one life of a process.
func Create(dir, process string) (*Writer, error) {
	if process == "" || strings.ContainsAny(process, `/\:`) {
		return nil, fmt.Errorf("check: a process cannot be named %q", process)
	}
	path := filepath.Join(dir, process+suffix)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("check: begin a log: %w", err)
	}
	w := &Writer{f: f}
	now := Now()
	w.begin("process", now)
	w.text("name", process)
	w.number("pid", int64(os.Getpid()))
	w.number("wall", time.Now().UnixNano())
	w.write()
	if w.err != nil {
		return nil, errors.Join(w.err, f.Close())
	}
	return w, nil
}

// Intent is one transaction that is about to enqueue jobs. Exactly one of its
// methods is called when the answer to the commit is there; none means
// unknown.
type Intent struct {
	w     *Writer
	first int64
	n     int
}

// Intend says that jobs are about to be enqueued together, named by keys that
// the workload uses only once. Call it before the commit is sent.
func (w *Writer) Intend(keys ...string) Intent {
	at := Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin("intend", at)
	w.number("n", w.keys)
	w.list("keys", len(keys), func(i int) { w.quote(keys[i]) })
	w.write()
	i := Intent{w, w.keys, len(keys)}
	w.keys += int64(len(keys))
	return i
}

// Committed says that the commit succeeded; jobs are the ids in the order of
// the keys.
func (i Intent) Committed(jobs ...int64) {
	at := Now()
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	if len(jobs) != i.n {
		i.w.fail(fmt.Errorf("check: %d jobs for %d keys", len(jobs), i.n))
		return
	}
	i.w.begin("committed", at)
	i.w.number("n", i.first)
	i.w.list("jobs", i.n, func(k int) { i.w.buf = strconv.AppendInt(i.w.buf, jobs[k], 10) })
	i.w.write()
}

// RolledBack says that it certainly did not and never will.
func (i Intent) RolledBack() { i.fate("rolledback") }

// Unknown says that the answer to the commit was lost.
func (i Intent) Unknown() { i.fate("unknown") }

func (i Intent) fate(kind string) {
	at := Now()
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.w.begin(kind, at)
	i.w.number("n", i.first)
	i.w.number("of", int64(i.n))
	i.w.write()
}

// Running is a handler that started.
type Running struct {
	w *Writer
	n int64
}

// Start says that a handler is about to work. Of the run, only Job, Pos,
// Engine, Attempt and Slot are read.
func (w *Writer) Start(r Run) Running {
	at := Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin("start", at)
	w.number("n", w.runs)
	w.number("job", r.Job)
	w.number("pos", r.Pos)
	w.number("engine", r.Engine)
	w.number("attempt", int64(r.Attempt))
	w.number("slot", int64(r.Slot))
	w.write()
	w.runs++
	return Running{w, w.runs - 1}
}

// End says that the handler's work is over. Call it as the last thing before
// the handler returns, so that nothing is recorded of it before.
func (r Running) End(how How, cause string) {
	at := Now()
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.w.begin("end", at)
	r.w.number("n", r.n)
	r.w.text("how", string(how))
	if cause != "" {
		r.w.text("cause", cause)
	}
	r.w.write()
}

// Err is the first error that the log met.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close says that the process ends in good order; every handler has ended or
// ends with it. It returns the first error that the log met.
func (w *Writer) Close() error {
	at := Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin("close", at)
	w.write()
	err := errors.Join(w.err, w.f.Close())
	w.fail(os.ErrClosed)
	return err
}

func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
