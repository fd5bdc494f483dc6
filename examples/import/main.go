// Import loads the lines of a file, a thousand at a time, and after a crash goes on
// with the page at which it was.
//
//	go run ./examples/import FILE
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
)

// File is what an import is told. Its result is how many lines there were.
type File struct{ Path string }

var Import = stint.NewResultKind[File, int]("import", stint.Retry(retry.Exponential(10, time.Second)))

// Cursor is what the step of a page returns: where the next one begins.
type Cursor struct {
	Offset int64 // in bytes
	Lines  int   // before it
	End    bool
}

const pageSize = 1000

// handlers load pages by a function. It can get a page twice, so it stores each line under its
// number: insert … on conflict do nothing.
func handlers(load func(ctx context.Context, first int, lines []string) error) *stint.Mux {
	mux := stint.NewMux()
	stint.HandleResult(mux, Import, func(ctx context.Context, _ *stint.Job, in File) (int, error) {
		file, err := os.Open(in.Path)
		if err != nil {
			return 0, err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return 0, err
		}
		var at Cursor
		for !at.End {
			at, err = stint.Step(ctx, fmt.Sprintf("page from line %d", at.Lines), func(ctx context.Context) (Cursor, error) {
				lines, next, err := read(file, at)
				if err != nil {
					return at, err
				}
				return next, load(ctx, at.Lines, lines)
			})
			if err != nil {
				return 0, err
			}
			stint.SetProgress(ctx, float64(at.Offset)/float64(info.Size()), fmt.Sprintf("%d lines", at.Lines))
		}
		return at.Lines, nil
	})
	return mux
}

// read reads a page, and returns where the next one begins.
func read(file *os.File, at Cursor) (lines []string, next Cursor, err error) {
	if _, err := file.Seek(at.Offset, io.SeekStart); err != nil {
		return nil, at, err
	}
	in := bufio.NewReader(file)
	for len(lines) < pageSize {
		line, err := in.ReadString('\n')
		if line != "" {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
			at.Offset += int64(len(line))
			at.Lines++
		}
		if errors.Is(err, io.EOF) {
			at.End = true
			break
		} else if err != nil {
			return nil, at, err
		}
	}
	return lines, at, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "import:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: import FILE")
	}
	db, err := sqlite.Open(ctx, "import.db")
	if err != nil {
		return err
	}
	defer db.Close()
	worker, err := engine.New(db, handlers(func(_ context.Context, first int, lines []string) error {
		fmt.Printf("lines %d to %d\n", first+1, first+len(lines))
		return nil
	}), engine.Config{})
	if err != nil {
		return err
	}
	client := stint.NewClient(db)
	// A second import of a file that is under way waits for the first one.
	id, err := Import.Enqueue(ctx, client, File{args[0]}, stint.UniqueUntilEnded())
	if err != nil {
		return err
	}
	working, enough := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(working) }()
	lines, err := Import.Await(ctx, client, id)
	enough()
	if err := errors.Join(err, <-ended); err != nil {
		return err
	}
	fmt.Println(lines, "lines are loaded")
	return nil
}
