package postgres

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// line is a record of an attempt that logged one.
func line(w *storetest.Worker, e store.Entry, n int) store.LogRecord {
	r := store.LogRecord{Claim: w.ClaimOf(e.Pos), Pos: e.Pos, Job: e.ID}
	r.Lines = []stint.LogLine{{N: n, At: time.Now(), Text: "a page is loaded: page=40 rows=1200"}}
	return r
}

// What a job costs that says nothing is what it cost before there was anything to say: the same statements. What
// another one says goes with these.
func TestWhatJobsSayCostsOnlyThoseThatSaySomething(t *testing.T) {
	var mu sync.Mutex
	var texts []string
	s := openStore(t, installed.New(t), Config{OnQuery: func(q event.Query) {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasPrefix(q.Text, "begin") && !strings.HasPrefix(q.Text, "commit") {
			texts = append(texts, q.Text)
		}
	}})
	if _, err := stint.NewClient(s).EnqueueMany(t.Context(), []stint.NewJob{{Kind: "k"}, {Kind: "k"}}); err != nil {
		t.Fatal(err)
	}
	w := storetest.Join(t, s, "k")
	entries := w.ClaimAll()
	if len(entries) != 2 {
		t.Fatalf("%d of 2 jobs are claimed", len(entries))
	}
	ran := func(f func() error) string {
		t.Helper()
		mu.Lock()
		texts = nil
		mu.Unlock()
		must(t, f())
		mu.Lock()
		defer mu.Unlock()
		var names []string
		for _, text := range texts {
			switch text {
			case s.sql.in(beatSQL):
				names = append(names, "beat")
			case s.sql.in(keepLogsSQL):
				names = append(names, "logs")
			case s.sql.finish:
				names = append(names, "finish")
			case s.sql.finishLogs:
				names = append(names, "finish with logs")
			default:
				names = append(names, text)
			}
		}
		return strings.Join(names, ", ")
	}
	beat := func(logs ...store.LogRecord) func() error {
		return func() error {
			_, err := s.Heartbeat(t.Context(), w.Info.Token, store.Heartbeat{Logs: logs})
			return err
		}
	}
	end := func(e store.Entry, log *store.LogRecord) func() error {
		return func() error {
			x := w.Conclude(e, completed)
			x.Log = log
			_, err := w.TryFinish(t.Context(), x)
			return err
		}
	}
	for _, tt := range []struct {
		does string
		f    func() error
		want string
	}{
		{"a beat that brings nothing", beat(), "beat"},
		{"a beat that brings something", beat(line(w, entries[0], 1)), "logs, beat"},
		{"an outcome that brings nothing", end(entries[1], nil), "finish"},
		{"an outcome that brings something", end(entries[0], new(line(w, entries[0], 2))), "finish with logs"},
	} {
		if got := ran(tt.f); got != tt.want {
			t.Errorf("%s runs %s, want %s", tt.does, got, tt.want)
		}
	}
	w.Leave()
}

// BenchmarkBeat sends beats of an engine with 200 jobs, of which none or each has logged lines and got on since the one
// before.
func BenchmarkBeat(b *testing.B) {
	for _, lines := range []int{0, 1, 10} {
		b.Run(fmt.Sprintf("lines=%d", lines), func(b *testing.B) {
			s := newStore(b)
			exec(b, s, `insert into stint.entries (lane, queue, kind, args) select $1, 'default', 'k', '{"n":1}' from generate_series(1, 200)`, int64(normal))
			w := storetest.Join(b, s, "k")
			entries := w.Claim(normal, 200)
			beat := store.Heartbeat{}
			for _, e := range entries {
				beat.Running = append(beat.Running, e.Pos)
			}
			n := 0
			for b.Loop() {
				n++
				beat.Number, beat.Logs = int64(n), nil
				for _, e := range entries {
					if lines == 0 {
						break
					}
					r := line(w, e, 0)
					l := r.Lines[0]
					r.Lines = nil
					for i := range lines {
						l.N = n*lines + i
						r.Lines = append(r.Lines, l)
					}
					r.Progress = &stint.Progress{N: n, At: time.Now(), Fraction: 0.5, Text: "page 40 of 100"}
					beat.Logs = append(beat.Logs, r)
				}
				if _, err := s.Heartbeat(b.Context(), w.Info.Token, beat); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
