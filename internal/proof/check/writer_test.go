package check

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAHistoryComesBackAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	one, two := begin(t, dir, "one"), begin(t, dir, "two")
	a := one.Intend("a", "b")
	b := one.Intend("c")
	one.Intend("d")
	e := one.Intend("e")
	e.Unknown()
	e.Committed(13)
	b.RolledBack()
	a.Committed(11, 12)
	r := two.Start(Run{Job: 11, Pos: 11, Engine: 7, Attempt: 1, Slot: 3})
	two.Start(Run{Job: 12, Attempt: 2})
	r.End(Cancelled, "the \"engine\"\nstops")
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := &History{
		Processes: []Process{{Name: "one", PID: os.Getpid()}, {Name: "two", PID: os.Getpid()}},
		Enqueues: []Enqueue{
			{Key: "a", Fate: Committed, Job: 11},
			{Key: "b", Fate: Committed, Job: 12},
			{Key: "c", Fate: RolledBack, Batch: 1},
			{Key: "d", Fate: Unknown, Batch: 2},
			{Key: "e", Fate: Committed, Job: 13, Batch: 3},
		},
		Runs: []Run{
			{Job: 11, Pos: 11, Engine: 7, Attempt: 1, Slot: 3, Process: 1, How: Cancelled, Cause: "the \"engine\"\nstops"},
			{Job: 12, Attempt: 2, Process: 1},
		},
	}
	times := cmpopts.IgnoreTypes(Instant(0), time.Time{})
	if diff := cmp.Diff(want, h, times); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if p := h.Processes[1]; p.Started == 0 || h.Runs[0].Start < p.Started || h.Runs[0].End < h.Runs[0].Start || p.Stopped < h.Runs[0].End {
		t.Errorf("the instants are out of order: %+v %+v", p, h.Runs[0])
	}
	if got := h.Processes[0].instant(time.Now()); got < h.Processes[1].Stopped || got.Sub(h.Processes[1].Stopped) > time.Minute {
		t.Errorf("the wall clock is converted to %d, soon after %d", got, h.Processes[1].Stopped)
	}
}

func begin(tb testing.TB, dir, name string) *Writer {
	tb.Helper()
	w, err := Create(dir, name)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { w.f.Close() })
	return w
}

func TestManyGoroutinesShareAWriter(t *testing.T) {
	dir := t.TempDir()
	w := begin(t, dir, "one")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 500 {
				id := int64(g*1000 + n + 1)
				w.Intend(number(id)).Committed(id)
				w.Start(Run{Job: id, Attempt: 1}).End(OK, number(id))
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Enqueues) != 4000 || len(h.Runs) != 4000 {
		t.Fatalf("%d enqueues and %d runs, want 4000 of each", len(h.Enqueues), len(h.Runs))
	}
	for _, e := range h.Enqueues {
		if e.Key != number(e.Job) {
			t.Fatalf("job %d has the key %q", e.Job, e.Key)
		}
	}
	for _, r := range h.Runs {
		if r.Cause != number(r.Job) {
			t.Fatalf("the end of job %d went to job %s", r.Job, r.Cause)
		}
	}
}

func TestAWriterKeepsItsFirstError(t *testing.T) {
	w := begin(t, t.TempDir(), "one")
	w.Intend("a").Committed(1, 2)
	if w.Err() == nil {
		t.Error("two jobs for one key were accepted")
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "2 jobs for 1 keys") {
		t.Errorf("Close answers %v", err)
	}
}

func TestANameIsUsedOnce(t *testing.T) {
	dir := t.TempDir()
	begin(t, dir, "one")
	for _, name := range []string{"one", "", "a/b"} {
		if _, err := Create(dir, name); err == nil {
			t.Errorf("a second process is named %q", name)
		}
	}
}
