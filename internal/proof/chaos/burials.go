//go:build unix

package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
)

// Burials counts the engines that others buried, and fails the test for each
// that did not have it coming: its process had ended, or stood still, or the
// engine had fenced itself before, or the answer to its joining was lost and
// nobody ever was that engine. Where the server's clock is wrong it is asked of those
// whose buriers lived to tell when that was.
func (f *Fleet) Burials(ctx context.Context, g *Ground) int {
	f.t.Helper()
	history, ended := `stint.engine_history`, `(extract(epoch from ended) * 1000000)::bigint`
	if g.file != nil {
		history, ended = `stint_engine_history`, `ended`
	}
	var (
		all, token, micros int64
		instance           string
	)
	known, untold := map[int64]time.Time{}, 0
	if f.Slack > 0 {
		known = f.burials()
	}
	text := `select token, instance, ` + ended + ` from ` + history + ` where ended is not null and why <> 'left'`
	err := g.each(ctx, text, []any{&token, &instance, &micros}, func() error {
		all++
		at := time.UnixMicro(micros)
		if f.Slack > 0 {
			var told bool
			if at, told = known[token]; !told {
				untold++
				return nil
			}
		}
		if !f.wasHarmed(instance, at) && !f.fenced(instance, store.EngineID(token), at) {
			f.t.Errorf("%s was buried as engine %d at %v, but it lived and had not fenced itself", instance, token, at)
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(fmt.Errorf("read the burials: %w", err))
	}
	if untold > 0 {
		f.t.Logf("of %d of %d burials only the server tells when they were, and its clock was wrong", untold, all)
	}
	return int(all)
}

// fenced tells whether an engine had ended its session before a moment, or had
// never begun it.
func (f *Fleet) fenced(process string, engine store.EngineID, before time.Time) bool {
	began := false
	for _, e := range f.Events(process) {
		switch {
		case e.Engine != engine:
		case e.Type == event.EventJoined:
			began = true
		case e.Type == event.EventBuried:
			return e.At.Before(before)
		}
	}
	return !began
}
