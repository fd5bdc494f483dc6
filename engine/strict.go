package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// NameTakenError says that an engine was not started because the roster has an engine of the same
// name that holds unfinished jobs.
type NameTakenError struct {
	Instance string
	Engines  []store.EngineInfo
	Jobs     []stint.ID
}

// Error lists the first ten jobs and says how to free them.
func (e *NameTakenError) Error() string {
	const shown = 10
	ids := make([]string, 0, shown)
	for _, id := range e.Jobs[:min(shown, len(e.Jobs))] {
		ids = append(ids, id.String())
	}
	if more := len(e.Jobs) - shown; more > 0 {
		ids = append(ids, fmt.Sprintf("and %d more", more))
	}
	tokens := make([]string, len(e.Engines))
	for i, other := range e.Engines {
		tokens[i] = fmt.Sprint(other.Token)
	}
	return fmt.Sprintf("engine: the roster has an engine named %s already, with unfinished jobs: %s; bury it to have them run again: stint engines bury %s",
		e.Instance, strings.Join(ids, ", "), strings.Join(tokens, " "))
}

// checkName looks for engines of the same name that hold something.
func (e *Engine) checkName(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, longestJoin)
	defer cancel()
	roster, err := e.store.Engines(ctx)
	if err != nil {
		return err
	}
	taken := &NameTakenError{Instance: e.config.Instance}
	for _, other := range roster {
		if other.Instance != e.config.Instance {
			continue
		}
		claims, err := e.store.Held(ctx, other.Token, other.Low)
		if err != nil {
			return err
		}
		var at []store.Position
		for _, c := range claims {
			at = append(at, c.Positions...)
		}
		if len(at) == 0 {
			continue
		}
		entries, err := e.store.Fetch(ctx, at)
		if err != nil {
			return err
		}
		taken.Engines = append(taken.Engines, other)
		for _, entry := range entries {
			taken.Jobs = append(taken.Jobs, entry.ID)
		}
	}
	if taken.Engines == nil {
		return nil
	}
	slices.Sort(taken.Jobs)
	return taken
}
