package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
)

// longestAnswer bounds the query whether the database answers.
const longestAnswer = 2 * time.Second

// Alive returns nil unless the process should be restarted: Run has returned, or one of the loops
// that claim and beat has been stuck for far longer than any call to the store may take. An engine
// that was not started yet is alive, and so is one whose database is away. The call is cheap and
// does not touch the store. The error is an [event.UnreadyError].
func (e *Engine) Alive() error {
	stuck := func(p *lastRound, most time.Duration, what string) error {
		if silent := p.silent(); silent > most {
			return &event.UnreadyError{Condition: event.ConditionRunning, Problem: fmt.Sprintf("its %s has been stuck for %v", what, silent.Round(time.Second))}
		}
		return nil
	}
	state, _, _ := e.liveness.read()
	if state == returned {
		return &event.UnreadyError{Condition: event.ConditionRunning, Problem: "the engine has returned"}
	}
	most := longestJoin + 4*e.config.TimeToLive
	if err := stuck(&e.liveness.beats, most, "beat"); err != nil {
		return err
	}
	return stuck(&e.liveness.claims, most+max(e.config.Poll, e.config.PollTo), "claim stage")
}

// Ready returns nil while the engine works: it is alive, stands in the roster, takes jobs, its last
// beat arrived within the time to live, and the database answers now, within two seconds or until
// ctx ends, and has the engine in its roster. The error is an [event.UnreadyError] and names the
// first of these that does not hold.
func (e *Engine) Ready(ctx context.Context) error {
	not := func(condition, problem string, err error) error {
		return &event.UnreadyError{Condition: condition, Problem: problem, Err: err}
	}
	if err := e.Alive(); err != nil {
		return err
	}
	now := e.Status()
	switch age := time.Since(now.Beat); {
	case !now.Running:
		return not(event.ConditionRunning, "the engine was not started yet", nil)
	case now.Leaving:
		return not(event.ConditionTaking, "it takes no more jobs", nil)
	case now.Engine == 0:
		return not(event.ConditionRoster, "it does not stand in the roster", nil)
	case age > e.config.TimeToLive:
		return not(event.ConditionBeat, fmt.Sprintf("the last one arrived %v ago", age.Round(time.Second)), nil)
	}
	ctx, cancel := context.WithTimeout(ctx, longestAnswer)
	defer cancel()
	roster, err := e.store.Engines(ctx)
	switch {
	case err != nil:
		return not(event.ConditionDatabase, "it does not answer", err)
	case !slices.ContainsFunc(roster, func(i store.EngineInfo) bool { return i.Token == now.Engine }):
		return not(event.ConditionRoster, "the database does not have it there", nil)
	}
	return nil
}
