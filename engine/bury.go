package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
)

// Bury takes an engine out of the roster by hand, whether it is dead or not,
// and has what it held run again elsewhere, as another engine would have when
// it stopped beating. It returns how many entries that was. An engine that
// lives cancels its handlers when it notices, records nothing more, and joins
// anew. The error matches [stint.ErrBuried] when there is no such engine.
func Bury(ctx context.Context, store stint.Store, token stint.Token, why string) (int, error) {
	roster, err := store.Engines(ctx)
	if err != nil {
		return 0, err
	}
	for _, e := range roster {
		if e.Token != token {
			continue
		}
		scene, err := inspect(ctx, store, e.Token)
		if err != nil {
			return 0, err
		}
		var c clock
		c.sample(ctx, store)
		return store.Bury(ctx, stint.Burial{Engine: token, Why: why}, func(entry *stint.Entry, begun bool) stint.Execution {
			return stint.Conclude(entry, scene.judge(entry, begun), c.at(time.Now()), random01())
		})
	}
	return 0, fmt.Errorf("engine %d: %w", token, stint.ErrBuried)
}
