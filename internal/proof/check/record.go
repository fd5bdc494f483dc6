package check

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// record is one line of a log. R says which, and so which fields count:
//
//	process     Name PID Wall    the first record of a file
//	intend      N Keys           N is the number of the first key
//	committed   N Jobs
//	rolledback  N Of             Of is how many keys from N on
//	unknown     N Of
//	start       N Job Pos Engine Attempt Slot
//	end         N How Cause
//	close                        the last record, if the process ended by itself
//
// Keys and runs are numbered from 0 in each file, so a record missing in the
// middle shows.
type record struct {
	R       string   `json:"r"`
	At      Instant  `json:"at"`
	N       int      `json:"n"`
	Name    string   `json:"name"`
	PID     int      `json:"pid"`
	Wall    int64    `json:"wall"`
	Keys    []string `json:"keys"`
	Jobs    []int64  `json:"jobs"`
	Of      int      `json:"of"`
	Job     int64    `json:"job"`
	Pos     int64    `json:"pos"`
	Engine  int64    `json:"engine"`
	Attempt int      `json:"attempt"`
	Slot    int      `json:"slot"`
	How     string   `json:"how"`
	Cause   string   `json:"cause"`
}

// begin starts a record; the functions below add to it, and write ends it.
// It is built by hand, since a start and an end for every job are most of
// what a workload costs.
func (w *Writer) begin(kind string, at Instant) {
	w.buf = append(w.buf[:0], `{"r":"`...)
	w.buf = append(w.buf, kind...)
	w.buf = append(w.buf, '"')
	w.number("at", int64(at))
}

func (w *Writer) name(s string) {
	w.buf = append(w.buf, ',', '"')
	w.buf = append(w.buf, s...)
	w.buf = append(w.buf, '"', ':')
}

func (w *Writer) number(name string, n int64) {
	w.name(name)
	w.buf = strconv.AppendInt(w.buf, n, 10)
}

func (w *Writer) text(name, s string) {
	w.name(name)
	w.quote(s)
}

func (w *Writer) list(name string, n int, item func(i int)) {
	w.name(name)
	w.buf = append(w.buf, '[')
	for i := range n {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		item(i)
	}
	w.buf = append(w.buf, ']')
}

// quote appends a JSON string.
func (w *Writer) quote(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			q, _ := json.Marshal(s) // a string always has a JSON form
			w.buf = append(w.buf, q...)
			return
		}
	}
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, s...)
	w.buf = append(w.buf, '"')
}

func (w *Writer) write() {
	if w.err != nil {
		return
	}
	w.buf = append(w.buf, '}', '\n')
	if _, err := w.f.Write(w.buf); err != nil {
		w.fail(fmt.Errorf("check: write the log: %w", err))
	}
}
