package check

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// sample is a log with every kind of record.
func sample(tb testing.TB) []byte {
	dir := tb.TempDir()
	w := begin(tb, dir, "one")
	w.Intend("a", "ä").Committed(1, 2)
	w.Intend("b").RolledBack()
	w.Intend("c").Unknown()
	w.Start(Run{Job: 1, Pos: 1, Engine: 5, Attempt: 1, Slot: 1}).End(Error, "no luck")
	w.Start(Run{Job: 2, Pos: 2, Engine: 5, Attempt: 1, Slot: 2})
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "one"+suffix))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func TestALogMayBeCutAnywhere(t *testing.T) {
	data := sample(t)
	for n := range data {
		p, err := readPart(bytes.NewReader(data[:n]))
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if whole := n == 0 || data[n-1] == '\n'; p.torn == whole {
			t.Fatalf("cut at %d: torn is %v", n, p.torn)
		}
	}
}

func TestALogWithAHoleIsRefused(t *testing.T) {
	lines := bytes.SplitAfter(sample(t), []byte("\n"))
	lines = lines[:len(lines)-1]
	// Without an intent or a start, the numbers have a gap; without the
	// first record, the process has no name.
	for _, i := range []int{0, 1, 3, 7} {
		var holed []byte
		for k, line := range lines {
			if k != i {
				holed = append(holed, line...)
			}
		}
		if _, err := readPart(bytes.NewReader(holed)); err == nil {
			t.Errorf("without line %d, %s it is accepted", i+1, lines[i])
		}
	}
	for _, more := range []string{"\n", "{}\n", "close\n", "close\t1\t0\n", "what\t1\t0\n", string(lines[0])} {
		if _, err := readPart(strings.NewReader(string(lines[0]) + "close\t1\t0\n" + more)); err == nil {
			t.Errorf("with %q after its end it is accepted", more)
		}
	}
}

func TestTwoLogsOfOneNameAreRefused(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	begin(t, a, "one")
	begin(t, b, "one")
	if _, err := Read(a, b); err == nil {
		t.Error("two processes of one name are accepted")
	}
	if _, err := Read(filepath.Join(a, "one"+suffix)); err != nil {
		t.Errorf("one file: %v", err)
	}
}

func FuzzReadPart(f *testing.F) {
	data := sample(f)
	f.Add(data)
	f.Add(data[:len(data)/2])
	for line := range bytes.Lines(data) {
		f.Add(append(bytes.Clone(data[:bytes.IndexByte(data, '\n')+1]), line...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := readPart(bytes.NewReader(data))
		if err != nil {
			return
		}
		if p.process.Name == "" && len(p.enqueues)+len(p.runs) > 0 {
			t.Error("records of nobody")
		}
		h, err := merge([]*part{p})
		if err != nil {
			t.Fatal(err)
		}
		Compare(h, new(Facts), Options{}) // must not panic, whatever it holds
	})
}

func FuzzKeysAndCauses(f *testing.F) {
	f.Add("a", "b")
	f.Add(`"\`, "\x00\n\u2028<é")
	f.Fuzz(func(t *testing.T, key, cause string) {
		if !utf8.ValidString(key) || !utf8.ValidString(cause) {
			t.Skip("keys are UTF-8")
		}
		dir := t.TempDir()
		w := begin(t, dir, "one")
		w.Intend(key)
		w.Start(Run{}).End(Panic, cause)
		h, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if h.Enqueues[0].Key != key || h.Runs[0].Cause != cause {
			t.Errorf("%q and %q came back as %q and %q", key, cause, h.Enqueues[0].Key, h.Runs[0].Cause)
		}
	})
}
