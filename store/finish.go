package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/failure"
)

// Finisher records how attempts ended.
type Finisher interface {
	// Finish writes a batch of executions and their successors, all or
	// nothing, durably. It writes only while the engine stands in the roster
	// ([ErrBuried] otherwise) and while every claim named exists with its
	// nonce ([ErrClaimGone] otherwise). Repeating a batch whose fate is
	// unknown is safe: what was recorded before is left alone, with its
	// successor. It returns how many executions were new.
	//
	// An error that matches [stint.ErrUnstorable] says that the batch holds a value
	// that the database refuses; nothing was written, and a smaller batch
	// finds the culprit.
	//
	// An engine has one batch under way at a time, and beside it at most
	// single executions whose fate is in doubt. The slices are the engine's
	// again when Finish returns.
	Finish(ctx context.Context, engine EngineID, claims []ClaimRef, done []Completion) (int, error)
}

// TxFinisher is a store that can record an outcome in the handler's own
// transaction, so that what the handler wrote and the outcome become true
// together.
type TxFinisher interface {
	// FinishTx records one completed attempt as [Finisher.Finish] does, as
	// the last act of the caller's transaction, and commits that. The fence
	// is taken here and not before: held for as long as the handler runs, it
	// would keep the engine from being buried. With an error nothing of the
	// transaction stays, but for [stint.ErrCommitUnknown]: then nobody knows.
	FinishTx(ctx context.Context, tx stint.Tx, engine EngineID, claim ClaimRef, done Completion) error
}

// Completion is the record of one attempt, ready to be written. Started and
// Ended are this process's instants; the store turns their age on the
// monotonic clock into its own time.
type Completion struct {
	Pos     Position
	Job     stint.ID
	Nonce   Nonce // of the claim that took the entry
	Attempt int
	Slot    int // which slot ran it, from 1; 0 when it never began
	Started time.Time
	Ended   time.Time
	Outcome stint.Outcome
	Final   bool
	Reason  string // empty when the outcome says it all
	Result  json.RawMessage
	Error   *stint.Failure
	Next    *Next // nil exactly when Final

	Flow bool // whether the job belongs to a flow: then who waits for its end is looked at

	// Limits are those of the entry, if the job comes again or failed: there may be an order that it
	// holds up (see [GateOrder]).
	Limits string

	Log *LogRecord // what it said that no beat brought: see [LogReader]; nil for nothing
}

// Next is what follows an attempt that was not the last: a row in
// waiting when Wait is set, otherwise a new entry at once.
type Next struct {
	Wait     bool
	Delay    time.Duration // of a wait, from the moment that the attempt ended
	Func     string        // of a wait without a date: the retry function that is to decide
	Why      stint.State   // what the job shows while it waits: Scheduled, Retrying or Blocked
	Awaits   string        // of a blocked one, the signals that end its wait: a JSON object, of steps and the signal that each waits for, empty for the answer to the question that it asks
	Part     Part          // of the lane, when it does not wait
	Kind     string
	Queue    string
	Priority int
	Limits   string // of the entry, and the lane
	Attempt  int
	Losses   int
	Suspect  int
	Faulty   bool // whether so much has failed that people should look at it
}

// Awaited are the names of the signals, and of the questions, that it awaits, each once, in order; nil for none.
func (n *Next) Awaited() (signals, questions []string, err error) {
	if n.Awaits == "" {
		return nil, nil, nil
	}
	var by map[string]string
	if err := json.Unmarshal([]byte(n.Awaits), &by); err != nil {
		return nil, nil, fmt.Errorf("what the job awaits is no JSON object of strings: %w", err)
	}
	signals, questions = failure.Awaited(by)
	return signals, questions, nil
}
