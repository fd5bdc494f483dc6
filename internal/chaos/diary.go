//go:build unix

package chaos

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/observe"
)

// diary is the file to which a worker with Diary logs as a program would, by default
// settings.
const diary = ".diary"

func (w *Worker) keepDiary() (func(stint.Event), io.Closer, error) {
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
