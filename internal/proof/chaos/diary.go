//go:build unix

package chaos

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/observe"
)

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
	text, err := os.ReadFile(filepath.Join(filepath.Dir(f.Dir), process+diary))
	if err != nil {
		f.t.Fatal(err)
	}
	return text
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
