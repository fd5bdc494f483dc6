package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// said reads what is kept of a job: its lines, each with its number, and the texts of its progress.
func said(t *testing.T, s any, id stint.ID) (lines, progress []string) {
	t.Helper()
	l := s.(store.LogReader)
	all, err := l.Log(t.Context(), id, store.LogFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range all {
		lines = append(lines, fmt.Sprint(line.N, " ", line.Level, " ", line.Text))
	}
	runs, err := l.Progress(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range runs {
		progress = append(progress, fmt.Sprint(p.Fraction, " ", p.Text))
	}
	return lines, progress
}

func expectSaid(t *testing.T, s any, id stint.ID, wantLines, wantProgress []string) {
	t.Helper()
	if lines, progress := said(t, s, id); !slices.Equal(lines, wantLines) || !slices.Equal(progress, wantProgress) {
		t.Errorf("job %d said %q and got to %q, want %q and %q", id, lines, progress, wantLines, wantProgress)
	}
}

func TestWhatAHandlerSaysIsSeenWhileItRuns(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		seen := make(chan struct{})
		mux := stint.NewMux()
		log := slog.New(stint.LogHandler(slog.DiscardHandler))
		handle(mux, "talks", func(ctx context.Context, job *stint.Job) error {
			stint.SetProgress(ctx, 0.1, "not for long")
			stint.SetProgress(ctx, 0.25, "page 1")
			stint.Logger(ctx).Info("begun", "attempt", job.Attempt)
			log.WarnContext(ctx, "by the context")
			log.Warn("not by it")
			log.DebugContext(ctx, "too little")
			select {
			case <-seen:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			stint.Logger(ctx).Error("over")
			stint.SetProgress(ctx, 1, "")
			return nil
		})
		start(t, s, mux, engine.Config{})
		id, silent := enqueue(t, s, "talks", `{}`), enqueue(t, s, "talks", `{}`, stint.Delay(time.Hour))
		begun := []string{"1 INFO begun attempt=1", "2 WARN by the context"}
		eventually(t, "it is seen", func() bool { _, progress := said(t, s, id); return len(progress) > 0 })
		expectSaid(t, s, id, begun, []string{"0.25 page 1"})
		if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Running {
			t.Errorf("it is %v, %v", job, err)
		}
		close(seen)
		until(t, s, id, stint.Completed)
		expectSaid(t, s, id, append(begun, "3 ERROR over"), []string{"1 "})
		expectSaid(t, s, silent, nil, nil)
	})
}

// noted is a store that looks at what beats and outcomes bring of what handlers say.
type noted struct {
	*sqlite.Store
	beat    func(store.Heartbeat) error // nil for nothing
	brought atomic.Int64                // with outcomes
	beats   atomic.Int64
}

func (n *noted) Heartbeat(ctx context.Context, e store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	n.beats.Add(1)
	if n.beat != nil {
		if err := n.beat(b); err != nil {
			return store.HeartbeatReply{}, err
		}
	}
	return n.Store.Heartbeat(ctx, e, b)
}

func (n *noted) Finish(ctx context.Context, e store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	for i := range done {
		if done[i].Log != nil {
			n.brought.Add(1)
		}
	}
	return n.Store.Finish(ctx, e, claims, done)
}

func TestAJobThatSaysNothingBringsNothing(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		n := &noted{Store: s, beat: func(b store.Heartbeat) error {
			if b.Logs != nil {
				t.Errorf("a beat brings %v", b.Logs)
			}
			return nil
		}}
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
			time.Sleep(10 * time.Second)
			if said := stint.JobFrom(ctx); said == nil {
				t.Error("there is no job")
			}
			return nil
		})
		stop := start(t, n, mux, engine.Config{})
		id := enqueue(t, s, "k", `{}`)
		time.Sleep(time.Minute)
		until(t, s, id, stint.Completed)
		if n.brought.Load() != 0 || n.beats.Load() < 5 {
			t.Errorf("%d outcomes brought something, after %d beats", n.brought.Load(), n.beats.Load())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestOfAHandlerThatSaysTooMuchTheFirstAndTheLastLinesStay(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		seen := make(chan struct{})
		text := strings.Repeat("x", 100-stint.LineCost)
		first, last := stint.MaxLogHead/100, stint.MaxLogTail/100
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
			for range 1000 {
				stint.Logger(ctx).Info(text)
			}
			stint.SetProgress(ctx, 0.5, "half")
			select {
			case <-seen:
			case <-ctx.Done():
			}
			for range 100 {
				stint.Logger(ctx).Info(text)
			}
			return nil
		})
		start(t, s, mux, engine.Config{})
		id := enqueue(t, s, "k", `{}`)
		check := func(n int) {
			t.Helper()
			lines, err := s.(store.LogReader).Log(t.Context(), id, store.LogFilter{})
			if err != nil || len(lines) != first+last {
				t.Fatalf("%d lines are kept, want %d and %d: %v", len(lines), first, last, err)
			}
			if lines[first-1].N != first || lines[first].N != n-last+1 || lines[first+last-1].N != n {
				t.Errorf("of %d lines there are 1 to %d and %d to %d", n, lines[first-1].N, lines[first].N, lines[first+last-1].N)
			}
		}
		eventually(t, "it is seen", func() bool { _, progress := said(t, s, id); return len(progress) > 0 })
		check(1000)
		close(seen)
		until(t, s, id, stint.Completed)
		check(1100)
	})
}

func TestALostRunSaysNoMoreAndTheNextOneItsOwn(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		lost, over := make(chan struct{}), make(chan struct{})
		handle(mux, "k", func(ctx context.Context, job *stint.Job) error {
			if job.MayHaveRun || job.Losses > 0 {
				stint.Logger(ctx).Info("second")
				return nil
			}
			stint.Logger(ctx).Info("first")
			<-lost
			stint.Logger(ctx).Info("too late")
			close(over)
			return nil
		})
		stop := start(t, s, mux, engine.Config{TimeToLive: 4 * time.Second})
		id := enqueue(t, s, "k", `{}`)
		eventually(t, "it is seen", func() bool { lines, _ := said(t, s, id); return len(lines) > 0 })
		buryLiving(t, s)
		close(lost)
		<-over
		_ = stop()
		expectSaid(t, s, id, []string{"1 INFO first"}, nil)
		start(t, s, mux, engine.Config{})
		until(t, s, id, stint.Completed)
		expectSaid(t, s, id, []string{"1 INFO first", "1 INFO second"}, nil)
	})
}

// A beat that brings something and fails is followed by one that brings nothing: what handlers say never
// costs an engine its life.
func TestABeatThatFailsLeavesWhatHandlersSayForLater(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var refused, plain atomic.Int64
		fail := atomic.Bool{}
		fail.Store(true)
		n := &noted{Store: s, beat: func(b store.Heartbeat) error {
			switch {
			case b.Logs == nil:
				plain.Add(1)
			case fail.Load():
				refused.Add(1)
				return errors.New("the table is locked")
			}
			return nil
		}}
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
			stint.Logger(ctx).Info("kept")
			time.Sleep(time.Minute)
			if ctx.Err() == nil {
				fail.Store(false)
			}
			time.Sleep(10 * time.Second)
			stint.Logger(ctx).Info("too")
			return ctx.Err()
		})
		stop := start(t, n, mux, engine.Config{})
		id := enqueue(t, s, "k", `{}`)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		expectSaid(t, s, id, nil, nil)
		if refused.Load() < 5 || plain.Load() < 5 {
			t.Errorf("%d beats were refused, and %d brought nothing", refused.Load(), plain.Load())
		}
		time.Sleep(35 * time.Second)
		expectSaid(t, s, id, []string{"1 INFO kept"}, nil)
		time.Sleep(30 * time.Second)
		if job := until(t, s, id, stint.Completed); len(job.Attempts) != 1 {
			t.Errorf("it ran %d times", len(job.Attempts))
		}
		expectSaid(t, s, id, []string{"1 INFO kept", "2 INFO too"}, nil)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestLinesThatTheDatabaseRefusesAreLeftOut(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var refused atomic.Int64
		n := &noted{Store: s, beat: func(b store.Heartbeat) error {
			for _, r := range b.Logs {
				if r.Lines[0].Text == "refused" {
					refused.Add(1)
					return fmt.Errorf("its encoding has no such character: %w", stint.ErrUnstorable)
				}
			}
			return nil
		}}
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
			stint.Logger(ctx).Info("refused")
			time.Sleep(20 * time.Second)
			stint.Logger(ctx).Info("kept")
			time.Sleep(20 * time.Second)
			return nil
		})
		stop := start(t, n, mux, engine.Config{})
		id := enqueue(t, s, "k", `{}`)
		time.Sleep(time.Minute)
		until(t, s, id, stint.Completed)
		expectSaid(t, s, id, []string{"2 INFO kept"}, nil)
		if refused.Load() != 1 {
			t.Errorf("%d beats were refused, want 1", refused.Load())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Whatever becomes of the answers to beats, each line is kept once.
func TestAnAnswerToABeatThatIsLostDoublesNoLine(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		n := &hushed{Store: s}
		var want []string
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
			for i := range 40 {
				stint.Logger(ctx).Info(fmt.Sprint("line ", i))
				time.Sleep(time.Second)
			}
			return nil
		})
		for i := range 40 {
			want = append(want, fmt.Sprintf("%d INFO line %d", i+1, i))
		}
		stop := start(t, n, mux, engine.Config{})
		id := enqueue(t, s, "k", `{}`)
		time.Sleep(time.Minute)
		until(t, s, id, stint.Completed)
		expectSaid(t, s, id, want, nil)
		if n.lost.Load() < 5 {
			t.Errorf("%d answers were lost", n.lost.Load())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// hushed loses the answer to every beat that brings something.
type hushed struct {
	*sqlite.Store
	lost atomic.Int64
}

func (f *hushed) Heartbeat(ctx context.Context, e store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	reply, err := f.Store.Heartbeat(ctx, e, b)
	if err == nil && b.Logs != nil {
		f.lost.Add(1)
		return store.HeartbeatReply{}, errors.New("the answer is gone")
	}
	return reply, err
}

// One beat carries a bounded part, and all have their turn.
func TestManyThatSayMuchAreAllSeen(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		const jobs = 60
		var most atomic.Int64
		n := &noted{Store: s, beat: func(b store.Heartbeat) error {
			bytes := 0
			for _, r := range b.Logs {
				bytes += r.Bytes
			}
			most.Store(max(most.Load(), int64(bytes)))
			return nil
		}}
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
			for range 600 {
				for range 20 {
					stint.Logger(ctx).Info(strings.Repeat("x", 1000))
				}
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
		stop := start(t, n, mux, engine.Config{Slots: jobs})
		var ids []stint.ID
		for range jobs {
			ids = append(ids, enqueue(t, s, "k", `{}`))
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		for _, id := range ids {
			if lines, _ := said(t, s, id); len(lines) == 0 {
				t.Errorf("nothing is seen of job %d after half a minute", id)
			}
		}
		if most.Load() < 1<<19 || most.Load() > 1<<20 {
			t.Errorf("a beat brought %d bytes", most.Load())
		}
		time.Sleep(time.Minute)
		for _, id := range ids {
			until(t, s, id, stint.Completed)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatIsSaidAfterTheHandlerIsDiscarded(t *testing.T) {
	s := openSQLite(t)
	late := make(chan *slog.Logger, 1)
	mux := stint.NewMux()
	handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
		stint.Logger(ctx).Info("in time")
		late <- stint.Logger(ctx)
		return nil
	})
	start(t, s, mux, engine.Config{})
	id := enqueue(t, s, "k", `{}`)
	until(t, s, id, stint.Completed)
	(<-late).Info("too late")
	expectSaid(t, s, id, []string{"1 INFO in time"}, nil)
}

func TestAJobThatCompletesInATransactionBringsWhatItSaid(t *testing.T) {
	s, db := sqliteAndPool(t)
	mux := stint.NewMux()
	handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
		stint.Logger(ctx).Info("before")
		stint.SetProgress(ctx, 0.5, "half")
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		err = engine.CompleteTx(ctx, sqlite.Tx(tx), nil)
		stint.Logger(ctx).Info("after")
		return err
	})
	start(t, s, mux, engine.Config{})
	id := enqueue(t, s, "k", `{}`)
	until(t, s, id, stint.Completed)
	expectSaid(t, s, id, []string{"1 INFO before"}, []string{"0.5 half"})
}
