// Hashfiles hashes the files below a directory by jobs, and checks its own
// counts: a job for each file, an engine in the same process, and in the end
// a recomputation without any of that.
//
//	go run ./examples/hashfiles DIR
//	go run ./examples/hashfiles --db postgres://localhost/test --slots 16 DIR
//
// It may be killed at any moment and started again: what was hashed stays so,
// since each file's job has an idempotency key made of its path, size and
// modification time. What was changed meanwhile is hashed anew, and so is what
// could not be read. With PostgreSQL several of them share the work, as far as
// they see the same files, and the server may be restarted meanwhile.
//
// It exits with 0 when everything adds up, and with 1 otherwise, having said
// what does not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "hashfiles:", err)
		os.Exit(1)
	}
}

// run is the program.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("hashfiles", flag.ContinueOnError)
	db := flags.String("db", "hashfiles.db", "where jobs and hashes are kept: a file, or postgres://…")
	slots := flags.Int("slots", runtime.GOMAXPROCS(0), "how many files are hashed at once")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: hashfiles [--db FILE|URL] [--slots N] DIR")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return fmt.Errorf("want one directory, got %d", flags.NArg())
	}
	root, err := filepath.Abs(flags.Arg(0))
	if err != nil {
		return err
	}
	store, closeStore, err := open(ctx, *db)
	if err != nil {
		return err
	}
	defer closeStore()
	s, err := find(root, *db)
	if err != nil {
		return err
	}
	if err := outlast(ctx, func() error { return s.enqueue(ctx, store) }); err != nil {
		return err
	}
	fmt.Fprintf(out, "found %d files with %d bytes below %s; %d were hashed before\n", len(s.files), s.bytes(), root, s.before)
	if err := s.work(ctx, store, *slots, out); err != nil {
		return err
	}
	return s.check(ctx, store, out)
}

// patience is for how long a database may be away.
const patience = time.Minute

// outlast does something again that failed, since the database may be restarting, as its
// engine does by itself. What is done again changes nothing that was done before.
func outlast(ctx context.Context, do func() error) error {
	for until := time.Now().Add(patience); ; {
		err := do()
		if err == nil || errors.Is(err, stint.ErrInvalid) || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Store is what the program needs of a database.
type Store interface {
	store.Store
	store.Inspector
	store.Operator
}

func open(ctx context.Context, db string) (Store, func(), error) {
	if strings.HasPrefix(db, "postgres://") || strings.HasPrefix(db, "postgresql://") {
		store, err := postgres.Open(ctx, db)
		if err != nil {
			return nil, nil, err
		}
		return store, store.Close, nil
	}
	store, err := sqlite.Open(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	return store, func() { _ = store.Close() }, nil
}

// work runs an engine until no job of the scan is left to do, and shows how far
// it has come.
func (s *scan) work(ctx context.Context, store Store, slots int, out io.Writer) error {
	mux := stint.NewMux()
	stint.HandleResult(mux, hashFile, hashing)
	worker, err := engine.New(store, mux, engine.Config{Slots: slots})
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(working) }()

	look, say := time.NewTicker(100*time.Millisecond), time.NewTicker(time.Second)
	defer look.Stop()
	defer say.Stop()
	for {
		left := 0
		err := outlast(ctx, func() (err error) {
			left, err = s.left(ctx, store)
			return err
		})
		if ctx.Err() != nil {
			stop()
			return errors.Join(errors.New("stopped; start it again to go on"), <-ended)
		}
		if err != nil {
			return err
		}
		if left == 0 {
			stop()
			return <-ended
		}
		select {
		case <-look.C:
		case <-say.C:
			fmt.Fprintf(out, "%d of %d files\n", max(0, len(s.files)-left), len(s.files))
		case <-ctx.Done():
		case err := <-ended:
			return fmt.Errorf("the engine ended: %w", err)
		}
	}
}
