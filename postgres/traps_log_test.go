package postgres

import (
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// says has an engine say what an attempt said, and reports whether that failed.
func (a attempt) says(r store.LogRecord) error {
	_, err := a.b.s.Heartbeat(a.b.Context(), a.w.Info.Token, store.Heartbeat{Logs: []store.LogRecord{r}})
	return err
}

// said says what is wrong when there are not as many lines, and states of progress.
func (b *bench) said(want int) error {
	if n := value[int](b, b.s.pool, `select (select count(*) from stint.lines) + (select count(*) from stint.progress)`); n != want {
		return fmt.Errorf("%d rows are there of what was said, want %d", n, want)
	}
	return nil
}

var logTraps = []trap{
	{"What an attempt says counts for the claim that it came from only", func(b *bench) error {
		a := b.attempt()
		r := line(a.w, a.e, 1)
		b.must(attempt{b, b.join(), a.e}.says(r))
		if err := b.said(0); err != nil {
			return fmt.Errorf("of another engine: %w", err)
		}
		// The database fell back and handed the same positions out again, or forgot the claim.
		for _, text := range []string{`update stint.claims set nonce = nonce + 1`, `delete from stint.claims`} {
			exec(b, b.s, text)
			b.must(a.says(r))
			if err := b.said(0); err != nil {
				return fmt.Errorf("after %s: %w", text, err)
			}
		}
		return nil
	}},
	{"What is said after the outcome is refused", func(b *bench) error {
		a := b.attempt()
		a.w.Finish(returned, a.e)
		b.must(a.says(line(a.w, a.e, 1)))
		return b.said(0)
	}},
	{"The buried say nothing", func(b *bench) error {
		a := b.attempt()
		x := a.w.Conclude(a.e, completed)
		x.Log = new(line(a.w, a.e, 1))
		exec(b, b.s, `delete from stint.engines`)
		if _, err := a.w.TryFinish(b.Context(), x); !errors.Is(err, store.ErrBuried) {
			return fmt.Errorf("an outcome is recorded with %v, want ErrBuried", err)
		}
		text, args := a.keep(*x.Log)
		if _, err := b.s.pool.Exec(b.Context(), text, args...); err == nil {
			return errors.New("they are not told")
		}
		return b.said(0)
	}},
	{"A progress that was held up changes nothing", func(b *bench) error {
		a := b.attempt()
		for _, n := range []int{1, 3, 2} {
			r := line(a.w, a.e, 1)
			r.Progress = &stint.Progress{N: n, At: time.Now(), Fraction: float64(n) / 4}
			b.must(a.says(r))
		}
		if got := value[float64](b, b.s.pool, `select fraction from stint.progress`); got != 0.75 {
			return fmt.Errorf("after the progress 1, 3 and 2 it is at %v, want 0.75", got)
		}
		return b.said(2)
	}},
	{"No line stays behind of a job that is deleted while a beat brings it", func(b *bench) error {
		a := b.attempt()
		r := line(a.w, a.e, 1)
		r.Progress = &stint.Progress{N: 1, At: time.Now(), Fraction: 0.5}
		tx := begin(b, b.s)
		text, args := a.keep(r)
		_, err := tx.Exec(b.Context(), text, args...)
		b.must(err)
		a.w.Complete(a.e)
		deleted := make(chan error, 1)
		go func() {
			_, err := b.s.Delete(b.Context(), []stint.ID{a.e.ID})
			deleted <- err
		}()
		if err := b.blockedMany(1); err != nil {
			return fmt.Errorf("the deletion does not wait: %w", err)
		}
		b.must(tx.Commit(b.Context()))
		b.must(<-deleted)
		return b.said(0)
	}},
	{"A beat does not wait for the deletion of a job that it says something of", func(b *bench) error {
		a := b.attempt()
		r := line(a.w, a.e, 1)
		a.w.Complete(a.e)
		tx := begin(b, b.s)
		_, err := tx.Exec(b.Context(), `select stint.remove($1)`, []int64{int64(a.e.ID)})
		b.must(err)
		b.must(a.says(r))
		b.must(tx.Commit(b.Context()))
		return b.said(0)
	}},
}

// keep is the statement that keeps what an attempt said.
func (a attempt) keep(r store.LogRecord) (text string, args []any) {
	return a.b.s.sql.in(keepLogsSQL), append([]any{a.w.Info.Token}, newLogColumns([]store.LogRecord{r}).args()...)
}
