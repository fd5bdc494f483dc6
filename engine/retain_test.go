package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
)

// U112: as long as was said of a queue and of a state.
func TestJobsAreDeletedWhenTheyAreOld(t *testing.T) {
	inBubble(t, 12*time.Hour, func(t *testing.T, s *sqlite.Store) {
		const day = 2 * time.Minute // an engine looks around every second, which months of would take long
		mux := stint.NewMux()
		handle(mux, "ok", func(context.Context, *stint.Job) error { return nil })
		handle(mux, "no", func(context.Context, *stint.Job) error { return stint.NoRetry(errors.New("no")) })
		handle(mux, "slow", func(context.Context, *stint.Job) error { time.Sleep(3 * day); return nil })
		handle(mux, "late", func(context.Context, *stint.Job) error { return nil })
		var deleted atomic.Int32
		stop := start(t, struct {
			stint.Store
			stint.Leaser
			stint.Retainer
		}{s, s, s}, mux, engine.Config{
			TimeToLive: time.Hour, LeaseFor: time.Hour, PollTo: time.Minute,
			Retention: stint.Retention{
				Kept:   stint.Kept{All: 5 * day, Failed: 30 * day},
				Queues: map[string]stint.Kept{"short": {All: day}, "audit": {Completed: stint.Forever}},
			},
			OnEvent: func(e stint.Event) {
				if e.Type == stint.EventRetained {
					deleted.Add(int32(e.Count))
				}
			},
		})
		lives := map[string]struct {
			id       stint.ID
			from, to time.Duration // there at the first, gone at the second
		}{
			"slow":               {enqueue(t, s, "slow", `{}`), 6 * day, 24 * day},
			"completed":          {enqueue(t, s, "ok", `{}`), 4 * day, 6 * day},
			"failed":             {enqueue(t, s, "no", `{}`), 29 * day, 31 * day},
			"completed, short":   {enqueue(t, s, "ok", `{}`, stint.Queue("short")), day / 2, 3 * day},
			"failed, short":      {enqueue(t, s, "no", `{}`, stint.Queue("short")), day / 2, 3 * day},
			"completed, audited": {enqueue(t, s, "ok", `{}`, stint.Queue("audit")), 60 * day, 0},
			"failed, audited":    {enqueue(t, s, "no", `{}`, stint.Queue("audit")), 29 * day, 31 * day},
			"late":               {enqueue(t, s, "late", `{}`, stint.In(20*day)), 24 * day, 27 * day},
		}
		began := time.Now()
		for _, at := range []time.Duration{day / 2, 3 * day, 4 * day, 6 * day, 24 * day, 27 * day, 29 * day, 31 * day, 60 * day} {
			time.Sleep(time.Until(began.Add(at)))
			synctest.Wait()
			for name, life := range lives {
				_, err := s.Job(t.Context(), life.id)
				if at <= life.from && err != nil {
					t.Errorf("%s: after %v it is gone: %v", name, at, err)
				}
				if life.to > 0 && at >= life.to && !errors.Is(err, stint.ErrNotFound) {
					t.Errorf("%s: after %v it is there, error %v", name, at, err)
				}
			}
		}
		if n := deleted.Load(); n != int32(len(lives)-1) {
			t.Errorf("%d deletions were told, want %d", n, len(lives)-1)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// After a storm of kills nothing of the dead is left but their history, and
// in the end not even that.
func TestOfDeadEnginesNothingStays(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, job *stint.Job) error {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		var tokens []stint.Token
		for i := range 5 {
			stop := start(t, s, mux, engine.Config{Instance: fmt.Sprint("engine-", i), Grace: time.Second, LeaseWait: 20 * time.Millisecond})
			for range 10 {
				enqueue(t, s, "k", `{}`, stint.Retry(retry.Fixed(3, time.Millisecond)))
			}
			eventually(t, "it leads", func() bool {
				all, err := s.(stint.Leaser).Leases(t.Context())
				return err == nil && len(all) == 1 && all[0].Engine != 0
			})
			roster, err := s.Engines(t.Context())
			if err != nil || len(roster) != 1 {
				t.Fatal(roster, err)
			}
			tokens = append(tokens, roster[0].Token)
			if _, err := engine.Bury(t.Context(), s, roster[0].Token, "the test"); err != nil && !errors.Is(err, stint.ErrBuried) {
				t.Fatal(err)
			}
			_ = stop()
			if roster, err = s.Engines(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, e := range roster {
				if _, err := engine.Bury(t.Context(), s, e.Token, "the test"); err != nil && !errors.Is(err, stint.ErrBuried) {
					t.Fatal(err)
				}
			}
		}
		l, err := s.Audit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leases, err := s.(stint.Leaser).Leases(t.Context())
		if err != nil || len(l.Engines) != 0 || slices.ContainsFunc(leases, func(l stint.Lease) bool { return l.Engine != 0 }) {
			t.Errorf("the roster has %v, the leases are %+v, error %v", l.Engines, leases, err)
		}
		for _, token := range tokens {
			if _, ok := l.Buried[token]; !ok {
				t.Errorf("engine %d is not in the history", token)
			}
		}
		// The last ones do the rest; what is kept for a second is gone soon.
		stop := start(t, s, mux, engine.Config{Retention: stint.Retention{Kept: stint.Kept{All: time.Second}}, LeaseWait: 20 * time.Millisecond})
		eventually(t, "everything is gone", func() bool {
			l, err = s.Audit(t.Context())
			return err == nil && len(l.Jobs)+len(l.Entries)+len(l.Executions)+len(l.Waiting) == 0
		})
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestARetentionThatMakesNoSenseIsRefused(t *testing.T) {
	for _, r := range []stint.Retention{
		{Kept: stint.Kept{All: -1}}, {Kept: stint.Kept{Failed: time.Millisecond}},
		{Queues: map[string]stint.Kept{"": {All: time.Hour}}}, {Queues: map[string]stint.Kept{"*": {All: time.Hour}}},
		{Queues: map[string]stint.Kept{"q": {Cancelled: 1}}},
	} {
		if _, err := engine.New(nil, stint.NewMux(), engine.Config{Retention: r}); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%+v gives %v", r, err)
		}
	}
}
