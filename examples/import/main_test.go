package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stint-go/stint/stinttest"
)

func fileOf(t *testing.T, lines int) File {
	t.Helper()
	var text strings.Builder
	for i := range lines {
		fmt.Fprintln(&text, "line", i)
	}
	path := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(path, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return File{path}
}

// The third page fails at first: pages before it are not loaded again.
func TestAnImportGoesOnWithThePageAtWhichItFailed(t *testing.T) {
	var loaded []int
	down := errors.New("the database is down")
	w := stinttest.New(t, handlers(func(_ context.Context, first int, lines []string) error {
		if lines[0] != fmt.Sprint("line ", first) || len(lines) != pageSize && first+len(lines) != 3500 {
			t.Errorf("from %d on it gets %d lines, the first is %q", first, len(lines), lines[0])
		}
		loaded = append(loaded, first)
		if first == 2000 && len(loaded) == 3 {
			return down
		}
		return nil
	}))
	if run := stinttest.Perform(w, Import.Kind, fileOf(t, 3500)); !run.Failed() {
		t.Error("the first run does not fail")
	}
	report := w.Drain()
	if last := report.Runs[len(report.Runs)-1]; string(last.Result) != "3500" {
		t.Errorf("it ends as\n%s", report)
	}
	if want := []int{0, 1000, 2000, 2000, 3000}; !slices.Equal(loaded, want) {
		t.Errorf("it loads from %v, want %v", loaded, want)
	}
}

func TestAnImportOfWholePagesAndOfNone(t *testing.T) {
	for _, lines := range []int{0, 1, 1000, 2000} {
		got := 0
		w := stinttest.New(t, handlers(func(_ context.Context, first int, lines []string) error {
			got += len(lines)
			return nil
		}))
		result, run := stinttest.PerformResult(w, Import, fileOf(t, lines))
		if run.Failed() || result != lines || got != lines {
			t.Errorf("of %d lines it loads %d and says %d, %v", lines, got, result, run.Err())
		}
		if p := w.Progress(run.Job.ID); lines > 0 && (p == nil || p.Text != fmt.Sprint(lines, " lines")) {
			t.Errorf("of %d lines the progress is %+v", lines, p)
		}
	}
}

func TestAFileThatIsNotThereIsAnError(t *testing.T) {
	w := stinttest.New(t, handlers(nil))
	if run := stinttest.Perform(w, Import.Kind, File{filepath.Join(t.TempDir(), "none")}); !run.Failed() {
		t.Error("it does not fail")
	}
}
