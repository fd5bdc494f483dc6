package check

import (
	"cmp"
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
const suffix = ".log"

// record is one line of a log: a kind, numbers and quoted texts, with tabs between.
//
//	process     0     pid, wall, name             the first record of a file
//	intend      n     keys                        n is the number of the first key
//	committed   n     ids
//	rolledback  n     how many keys from n on
//	unknown     n     how many keys from n on
//	start       n     job, pos, engine, attempt, slot
//	told        n     step, value
//	end         n     how, cause
//	close       0                                 the last record, if the process ended by itself
//
// Keys and runs are numbered from 0 in each file, so a record missing in the
// middle shows.
type record struct {
	kind    string
	at      Instant
	n       int
	numbers []int64
	texts   []string
}

// append appends the line.
func (rec *record) append(line []byte) []byte {
	line = append(line, rec.kind...)
	line = strconv.AppendInt(append(line, '\t'), int64(rec.at), 10)
	line = strconv.AppendInt(append(line, '\t'), int64(rec.n), 10)
	for _, n := range rec.numbers {
		line = strconv.AppendInt(append(line, '\t'), n, 10)
	}
	for _, text := range rec.texts {
		line = strconv.AppendQuote(append(line, '\t'), text)
	}
	return append(line, '\n')
}

// parse reads a line.
func (rec *record) parse(line string) error {
	fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
	numbers, texts := rec.numbers[:0], rec.texts[:0]
	if len(fields) < 3 {
		return fmt.Errorf("%q is no record", line)
	}
	at, bad1 := strconv.ParseInt(fields[1], 10, 64)
	n, bad2 := strconv.Atoi(fields[2])
	errs := errors.Join(bad1, bad2)
	for _, field := range fields[3:] {
		if strings.HasPrefix(field, `"`) {
			text, err := strconv.Unquote(field)
			texts, errs = append(texts, text), cmp.Or(errs, err)
			continue
		}
		number, err := strconv.ParseInt(field, 10, 64)
		numbers, errs = append(numbers, number), cmp.Or(errs, err)
	}
	want, known := shapes[fields[0]]
	if !known || want.numbers >= 0 && len(numbers) != want.numbers || want.texts >= 0 && len(texts) != want.texts {
		errs = errors.New("no such record")
	}
	if errs != nil {
		return fmt.Errorf("%q: %w", line, errs)
	}
	*rec = record{fields[0], Instant(at), n, numbers, texts}
	return nil
}

// shapes are how many numbers and texts the kinds have, beside the instant and
// n; -1 for any number.
var shapes = map[string]struct{ numbers, texts int }{
	"process": {2, 1}, "intend": {0, -1}, "committed": {-1, 0}, "rolledback": {1, 0}, "unknown": {1, 0},
	"start": {5, 0}, "told": {0, 2}, "end": {0, 2}, "close": {0, 0},
}

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
	line []byte // is written into
	keys int    // the number of the next key
	runs int    // the number of the next run
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
	w.write(record{"process", Now(), 0, []int64{int64(os.Getpid()), time.Now().UnixNano()}, []string{process}})
	if w.err != nil {
		return nil, errors.Join(w.err, f.Close())
	}
	return w, nil
}

// Intent is one transaction that is about to enqueue jobs. Exactly one of its
// methods is called when the answer to the commit is there; none means
// unknown.
type Intent struct {
	w        *Writer
	first, n int
}

// Intend says that jobs are about to be enqueued together, named by keys that
// the workload uses only once. Call it before the commit is sent.
func (w *Writer) Intend(keys ...string) Intent {
	at := Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write(record{kind: "intend", at: at, n: w.keys, texts: keys})
	w.keys += len(keys)
	return Intent{w, w.keys - len(keys), len(keys)}
}

// Committed says that the commit succeeded; jobs are the ids in the order of
// the keys.
func (i Intent) Committed(jobs ...int64) {
	if len(jobs) == i.n {
		i.w.record("committed", i.first, jobs)
		return
	}
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.w.fail(fmt.Errorf("check: %d jobs for %d keys", len(jobs), i.n))
}

// RolledBack says that it certainly did not and never will.
func (i Intent) RolledBack() { i.w.record("rolledback", i.first, []int64{int64(i.n)}) }

// Unknown says that the answer to the commit was lost.
func (i Intent) Unknown() { i.w.record("unknown", i.first, []int64{int64(i.n)}) }

// Running is a handler that started.
type Running struct {
	w *Writer
	n int
}

// Start says that a handler is about to work. Of the run, only Job, Pos,
// Engine, Attempt and Slot are read.
func (w *Writer) Start(r Run) Running {
	at := Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write(record{kind: "start", at: at, n: w.runs, numbers: []int64{r.Job, r.Pos, r.Engine, int64(r.Attempt), int64(r.Slot)}})
	w.runs++
	return Running{w, w.runs - 1}
}

// Told says what the handler was told that a step of its job came to, whichever run did the step.
func (r Running) Told(step, value string) { r.w.record("told", r.n, nil, step, value) }

// End says that the handler's work is over. Call it as the last thing before
// the handler returns, so that nothing is recorded of it before.
func (r Running) End(how How, cause string) { r.w.record("end", r.n, nil, string(how), cause) }

// Err is the first error that the log met.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close says that the process ends in good order; every handler has ended or
// ends with it. It returns the first error that the log met.
func (w *Writer) Close() error {
	w.record("close", 0, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	err := errors.Join(w.err, w.f.Close())
	w.fail(os.ErrClosed)
	return err
}

// record writes a record of this moment.
func (w *Writer) record(kind string, n int, numbers []int64, texts ...string) {
	at := Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write(record{kind, at, n, numbers, texts})
}

func (w *Writer) write(rec record) {
	if w.err != nil {
		return
	}
	w.line = rec.append(w.line[:0])
	if _, err := w.f.Write(w.line); err != nil {
		w.fail(fmt.Errorf("check: write the log: %w", err))
	}
}

func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
