//go:build unix

package chaos

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/observe"
	"github.com/stint-go/stint/store"
)

// Event is a line of a worker's log: what its engine did or met. Started and
// ended attempts are in the history and not here.
type Event struct {
	At     time.Time       `json:"at"`
	Type   event.EventType `json:"type"`
	Engine store.EngineID  `json:"engine,omitempty"`
	Other  store.EngineID  `json:"other,omitempty"` // whom it buried
	Count  int             `json:"count,omitempty"`
	Begun  int             `json:"begun,omitempty"`
	Doing  string          `json:"doing,omitempty"`
	Err    string          `json:"err,omitempty"`
	Gone   check.Instant   `json:"gone,omitempty"` // of exits
	Use    *Use            `json:"use,omitempty"`  // of vitals
}

// logLines writes events as lines, each with one write.
func logLines(w io.Writer) func(Event) {
	return func(e Event) {
		line, err := json.Marshal(e)
		if err != nil {
			line = []byte(err.Error())
		}
		_, _ = w.Write(append(line, '\n'))
	}
}

// logEvents makes lines of what an engine tells.
func logEvents(log func(Event)) func(event.Event) {
	return func(ev event.Event) {
		if ev.Type == event.EventStarted || ev.Type == event.EventEnded {
			return
		}
		e := Event{At: ev.Time, Type: ev.Type, Engine: ev.Engine, Count: ev.Count, Begun: ev.Begun, Doing: ev.Doing}
		if ev.Other != nil {
			e.Other = ev.Other.Token
		}
		if ev.Err != nil {
			e.Err = ev.Err.Error()
		}
		log(e)
	}
}

func (f *Fleet) logOf(process string) string {
	return filepath.Join(filepath.Dir(f.Dir), process+".log")
}

// Events are what the engine of a process told so far.
func (f *Fleet) Events(process string) []Event {
	var all []Event
	for lines := bufio.NewScanner(strings.NewReader(f.Said(process))); lines.Scan(); {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil {
			all = append(all, e)
		}
	}
	return all
}

// Said is all that a process wrote so far.
func (f *Fleet) Said(process string) string { return string(f.file(process + ".log")) }

// file reads one of the workers' files.
func (f *Fleet) file(name string) []byte {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(f.Dir), name))
	if err != nil {
		f.t.Fatal(err)
	}
	return text
}

// Count is how many events of a type there are.
func Count(events []Event, t event.EventType) int {
	return len(eventsOf(events, t))
}

func eventsOf(events []Event, t event.EventType) []Event {
	return slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return e.Type != t })
}

// Await waits for the n-th event of a type of a process, the first being 1.
func (f *Fleet) Await(process string, t event.EventType, n int, within time.Duration) Event {
	f.t.Helper()
	for until := time.Now().Add(pace.Of(within)); ; time.Sleep(10 * time.Millisecond) {
		if all := eventsOf(f.Events(process), t); len(all) >= n {
			return all[n-1]
		}
		if time.Now().After(until) {
			f.t.Fatal(fmt.Errorf("%s did not say %q for the %d. time within %v", process, t, n, within))
		}
	}
}

// diary is the file to which a worker with Diary logs as a program would, by default
// settings.
const diary = ".diary"

func (w *Worker) keepDiary() (func(event.Event), io.Closer, error) {
	f, err := os.Create(w.path(w.Name + diary))
	if err != nil {
		return nil, nil, err
	}
	return observe.Log(slog.New(slog.NewTextHandler(f, nil)), observe.LogConfig{Successes: slog.LevelDebug}), f, nil
}

// Diary is what a worker with Diary logged so far.
func (f *Fleet) Diary(process string) []byte {
	f.t.Helper()
	return f.file(process + diary)
}

// Complaints is the most lines about trouble that a worker with Diary logged within
// a minute of the clock.
func (f *Fleet) Complaints(process string) (most int) {
	f.t.Helper()
	minutes := map[string]int{}
	for line := range bytes.Lines(f.Diary(process)) {
		if bytes.Contains(line, []byte(`msg="cannot `)) {
			minute := string(line[:min(len(line), len("time=2006-01-02T15:04"))])
			minutes[minute]++
			most = max(most, minutes[minute])
		}
	}
	return most
}

// vitals is the event of a worker that says what it uses.
const vitals event.EventType = "vitals"

// Use is what a process uses at a moment.
type Use struct {
	At         time.Time `json:"-"`
	Goroutines int       `json:"goroutines"`
	Heap       uint64    `json:"heap"`     // bytes that a collection of garbage left
	Resident   uint64    `json:"resident"` // bytes of memory, with what SQLite has beside the heap; 0 where the system does not tell
	Files      int       `json:"files"`    // open ones, connections included; 0 where the system does not tell
}

// sayUse tells each second what this process uses.
func sayUse(ctx context.Context, log func(Event)) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		files, _ := os.ReadDir("/proc/self/fd")
		log(Event{At: time.Now(), Type: vitals, Use: &Use{
			Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc, Resident: resident(), Files: len(files),
		}})
	}
}

// String is the use in words.
func (u Use) String() string {
	return fmt.Sprintf("%d goroutines, a heap of %d KiB, %d KiB of memory, %d files", u.Goroutines, u.Heap>>10, u.Resident>>10, u.Files)
}

// resident is the memory of this process, in bytes; 0 where there is no /proc.
func resident() uint64 {
	text, _ := os.ReadFile("/proc/self/statm")
	var all, here uint64
	fmt.Sscan(string(text), &all, &here)
	return here * uint64(os.Getpagesize())
}

// Uses are what a worker with Vitals said that it used, each second.
func (f *Fleet) Uses(process string) (all []Use) {
	f.t.Helper()
	for _, e := range eventsOf(f.Events(process), vitals) {
		e.Use.At = e.At
		all = append(all, *e.Use)
	}
	return all
}

// typical is the median of each that was used in a time. What leaks raises it, and
// what is needed or missing for a moment does not.
func typical(all []Use) Use {
	return Use{
		Goroutines: median(all, func(u Use) int { return u.Goroutines }),
		Heap:       median(all, func(u Use) uint64 { return u.Heap }),
		Resident:   median(all, func(u Use) uint64 { return u.Resident }),
		Files:      median(all, func(u Use) int { return u.Files }),
	}
}

func median[N cmp.Ordered](all []Use, of func(Use) N) N {
	list := make([]N, len(all))
	for i, u := range all {
		list[i] = of(u)
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// Flat fails the test where a worker with Vitals used more and more: the last third
// of its life is compared with the third before. The first is for what it needs
// once. What is allowed is what its work may need more of at one time; over a long
// time, in which each third has all kinds of moments, that is little.
func (f *Fleet) Flat(process string) string {
	f.t.Helper()
	all := f.Uses(process)
	third := len(all) / 3
	if third == 0 {
		f.t.Errorf("%s said %d times what it used", process, len(all))
		return ""
	}
	before, behind := typical(all[third:2*third]), typical(all[2*third:])
	what := fmt.Sprintf("%s told for %d seconds what it used: as a rule %v, at last %v", process, len(all), before, behind)
	goroutines, files := 50, 20
	if len(all) >= 600 {
		goroutines, files = 10, 5
	}
	if behind.Goroutines > before.Goroutines+goroutines || behind.Files > before.Files+files ||
		behind.Heap > before.Heap*3/2+8<<20 || behind.Resident > before.Resident*5/4+32<<20 {
		f.t.Error("it grew: " + what)
	}
	return what
}
