package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

// longestAnswer bounds the question whether the database answers.
const longestAnswer = 2 * time.Second

// Alive answers with nil unless the process should be started anew: Run has
// returned, or one of the loops that claim and beat has not gone round for far
// longer than any call to the store may take. An engine that was not started
// yet, and one whose database is away, is alive. It asks nobody, and is cheap.
// The error is a [stint.UnreadyError].
func (e *Engine) Alive() error {
	stuck := func(p *pulse, most time.Duration, what string) error {
		if silent := p.silent(); silent > most {
			return &stint.UnreadyError{Condition: stint.ConditionRunning, Problem: fmt.Sprintf("its %s has been stuck for %v", what, silent.Round(time.Second))}
		}
		return nil
	}
	state, _, _ := e.vitals.look()
	if state == returned {
		return &stint.UnreadyError{Condition: stint.ConditionRunning, Problem: "the engine has returned"}
	}
	most := longestJoin + 4*e.config.TimeToLive
	if err := stuck(&e.vitals.beats, most, "beat"); err != nil {
		return err
	}
	return stuck(&e.vitals.claims, most+max(e.config.Poll, e.config.PollTo), "claim stage")
}

// Ready answers with nil while the engine works: it is alive, stands in the
// roster, takes jobs, its last beat arrived within the time to live, and the
// database answers now, within two seconds or ctx, and has it in the roster.
// The error is a [stint.UnreadyError] and names the first of these that does
// not hold.
func (e *Engine) Ready(ctx context.Context) error {
	not := func(condition, problem string, err error) error {
		return &stint.UnreadyError{Condition: condition, Problem: problem, Err: err}
	}
	if err := e.Alive(); err != nil {
		return err
	}
	now := e.Status()
	switch age := time.Since(now.Beat); {
	case !now.Running:
		return not(stint.ConditionRunning, "the engine was not started yet", nil)
	case now.Leaving:
		return not(stint.ConditionTaking, "it takes no more jobs", nil)
	case now.Engine == 0:
		return not(stint.ConditionRoster, "it does not stand in the roster", nil)
	case age > e.config.TimeToLive:
		return not(stint.ConditionBeat, fmt.Sprintf("the last one arrived %v ago", age.Round(time.Second)), nil)
	}
	ctx, cancel := context.WithTimeout(ctx, longestAnswer)
	defer cancel()
	roster, err := e.store.Engines(ctx)
	switch {
	case err != nil:
		return not(stint.ConditionDatabase, "it does not answer", err)
	case !slices.ContainsFunc(roster, func(i stint.EngineInfo) bool { return i.Token == now.Engine }):
		return not(stint.ConditionRoster, "the database does not have it there", nil)
	}
	return nil
}
