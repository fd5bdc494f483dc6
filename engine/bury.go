package engine

import (
	"context"
	"fmt"

	"github.com/stint-go/stint/store"
)

// Bury takes an engine out of the roster by hand, dead or alive. What it held runs again elsewhere,
// as after a missed beat. It returns how many entries that was. An engine that is alive cancels its
// handlers when it notices, records nothing more, and joins again. The error matches
// [store.ErrBuried] when there is no such engine.
func Bury(ctx context.Context, st store.Store, token store.EngineID, why string) (int, error) {
	roster, err := st.Engines(ctx)
	if err != nil {
		return 0, err
	}
	for _, e := range roster {
		if e.Token != token {
			continue
		}
		scene, err := inspectCrash(ctx, st, e.Token)
		if err != nil {
			return 0, err
		}
		var c clock
		c.sample(ctx, st)
		return st.Bury(ctx, store.Burial{Engine: token, Why: why}, lostAttempts{}.judge(scene, &c))
	}
	return 0, fmt.Errorf("engine %d: %w", token, store.ErrBuried)
}
