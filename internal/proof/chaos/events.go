//go:build unix

package chaos

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/check"
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
	f.t.Helper()
	text, err := os.ReadFile(f.logOf(process))
	if err != nil {
		f.t.Fatal(err)
	}
	var all []Event
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil {
			all = append(all, e)
		}
	}
	return all
}

// Said is all that a process wrote so far.
func (f *Fleet) Said(process string) string {
	f.t.Helper()
	text, err := os.ReadFile(f.logOf(process))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

// Count is how many events of a type there are.
func Count(events []Event, t event.EventType) int {
	n := 0
	for _, e := range events {
		if e.Type == t {
			n++
		}
	}
	return n
}

// Await waits for the n-th event of a type of a process, the first being 1.
func (f *Fleet) Await(process string, t event.EventType, n int, within time.Duration) Event {
	f.t.Helper()
	for until := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		seen := 0
		for _, e := range f.Events(process) {
			if e.Type != t {
				continue
			}
			if seen++; seen == n {
				return e
			}
		}
		if time.Now().After(until) {
			f.t.Fatal(fmt.Errorf("%s did not say %q for the %d. time within %v", process, t, n, within))
		}
	}
}
