package store

import (
	"context"
	"time"

	"github.com/stint-go/stint"
)

// StepKeeper keeps what the steps of handlers came to (see [stint.Step]), by job and name. A step that
// was recorded is never changed, but for the answer to a question (see [Questioner]), and is gone with its job. A job that is recovered takes along what the
// one before it had recorded, if that had not completed.
type StepKeeper interface {
	// RecordSteps records steps of attempts that run, durably, while the engine stands in the roster
	// ([ErrBuried] otherwise). The first record of a job's step counts: for each step it returns the
	// one that is there. It returns none (the zero value) if the attempt cannot record it, because the
	// claim that it comes from is gone, or the attempt has an outcome; only the name of one that
	// waits for a signal that is not there yet; and a question without a result while that has no
	// answer. So it is safe to repeat.
	//
	// An error that matches [stint.ErrUnstorable] says that the database refuses one of the steps;
	// nothing was recorded, and a smaller batch finds out which.
	RecordSteps(ctx context.Context, engine EngineID, steps []StepRecord) ([]stint.RecordedStep, error)

	// RecordStepTx does that for one step as the last act of the caller's transaction, and commits it. If
	// the step is recorded already, or the attempt cannot record it ([ErrStepRefused] for both), nothing
	// of the transaction stays, nor after any other error but [stint.ErrCommitUnknown].
	RecordStepTx(ctx context.Context, tx stint.Tx, engine EngineID, step StepRecord) error

	StepReader
}

// StepReader shows what a [StepKeeper] keeps.
type StepReader interface {
	// Steps reads the recorded steps of a job, in the order in which they ended. An open question
	// has neither end nor result, and stands where it was asked.
	Steps(ctx context.Context, job stint.ID) ([]stint.RecordedStep, error)
}

// StepRecord is a step of an attempt, ready to be recorded. Began and Ended are this process's instants,
// as in a [Completion].
type StepRecord struct {
	Claim ClaimRef // that the attempt comes from
	Pos   Position // of the attempt
	Job   stint.ID
	Name  string
	Began time.Time
	Ended time.Time

	Result []byte // JSON

	// Signal is the name of a signal that the step takes, and Until when its wait for it is over by the
	// store's clock; empty for a step that brings its Result. Recorded is {"signal": N, "value": …} with
	// the first of the job's signals of that name that no step has taken, or {"timeout": true} if there is
	// none and the wait is over.
	Signal string
	Until  time.Time

	// Question is what the step asks people, with the end of the time to answer by the store's clock; nil
	// for other steps. Recorded is that question, or what it came to: the JSON of the [stint.Answer], or
	// {"timeout": true} if there is none and the time is over. While an answer is being given in a
	// transaction, the time is not over.
	Question *stint.Question
}
