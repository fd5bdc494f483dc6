package event

import "fmt"

// Conditions of an engine that works, in the order in which they are looked at.
const (
	ConditionRunning  = "running"  // the engine was started, has not returned, and its loops turn
	ConditionRoster   = "roster"   // it stands in the roster
	ConditionTaking   = "taking"   // it takes jobs: nobody asked it to stop or to leave
	ConditionBeat     = "beat"     // its last beat arrived within the time to live
	ConditionDatabase = "database" // the database answers, and has it in the roster
)

// UnreadyError says which condition of an engine that works does not hold.
type UnreadyError struct {
	Condition string
	Problem   string // in a few words, without names of servers or users
	Err       error  // what was answered, if that was an error; it may name them
}

// Error begins with the condition.
func (e *UnreadyError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Condition, e.Problem, e.Err)
	}
	return e.Condition + ": " + e.Problem
}

// Unwrap returns what was answered.
func (e *UnreadyError) Unwrap() error { return e.Err }
