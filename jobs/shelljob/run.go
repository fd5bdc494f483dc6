package shelljob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/stint-go/stint"
)

// Times that are nobody's choice.
const (
	fencedGrace = 500 * time.Millisecond // between TERM and KILL of a fenced engine's commands
	stopGrace   = 3 * time.Second        // the same of one that stops: it waits 5 s for its handlers and then exits without them
	drainTime   = 250 * time.Millisecond // for output of a group that is gone
)

// run performs one attempt. The result is nil when the command never ran.
func (c Config) run(ctx context.Context, job *stint.Job, args Args) (*Result, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if args.Dir != "" {
		// What the system says of a missing directory reads as if the
		// program were missing.
		if _, err := os.Stat(args.Dir); err != nil {
			return nil, fmt.Errorf("working directory: %w", err)
		}
	}
	// The pipe is our own, because os/exec would wait for everyone who holds
	// the other end before it says that the command has ended.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open a pipe for the output: %w", err)
	}
	cmd := command(args)
	cmd.Env = c.environ(job, args.Env)
	cmd.Stdout, cmd.Stderr = w, w
	p, err := start(cmd)
	w.Close()
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	defer p.close()
	out := newOutput(cmp.Or(c.OutputLimit, 64<<10))
	said := newLines(ctx)
	copied := collect(io.MultiWriter(out, said), r)

	select {
	case <-p.done:
	case <-ctx.Done():
	}
	cancelled := !p.ended()
	p.end(func() time.Duration { return c.grace(ctx) })
	if !p.ended() {
		return nil, fmt.Errorf("%w; the command survives being killed", context.Cause(ctx))
	}
	drain(r, copied)
	said.end()

	result, err := conclude(cmd.ProcessState, out)
	if !cancelled {
		return result, err
	}
	if err == nil {
		// It obeyed and ended in peace, which is not to say that it had
		// done its work.
		err = errors.New("exit code 0")
	}
	return result, fmt.Errorf("%w; the command was ended: %v", context.Cause(ctx), err)
}

// command is the process to start, without streams and environment.
func command(args Args) *exec.Cmd {
	var cmd *exec.Cmd
	if args.Shell != "" {
		cmd = shell(args.Shell)
	} else {
		cmd = exec.Command(args.Argv[0], args.Argv[1:]...)
	}
	cmd.Dir = args.Dir
	if args.Stdin != "" {
		cmd.Stdin = strings.NewReader(args.Stdin)
	}
	return cmd
}

func (c Config) grace(ctx context.Context) time.Duration {
	grace := cmp.Or(c.Grace, 5*time.Second)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, stint.ErrFenced):
		return min(grace, fencedGrace)
	case errors.Is(cause, stint.ErrStopping):
		return min(grace, stopGrace)
	}
	return grace
}

// collect copies what arrives until the last writer has closed the pipe; then
// it closes the channel.
func collect(out io.Writer, r *os.File) <-chan struct{} {
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		// An error means that drain has closed the pipe.
		_, _ = io.Copy(out, r)
	}()
	return copied
}

// drain waits for what is still in the pipe. Somebody who left the group may
// hold it open for ever; that one is not waited for.
func drain(r *os.File, copied <-chan struct{}) {
	select {
	case <-copied:
		r.Close()
	case <-time.After(drainTime):
		// Where pipes cannot be polled, closing waits for the read.
		go r.Close()
	}
}
