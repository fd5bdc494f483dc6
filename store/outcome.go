package store

import (
	"encoding/json"
	"time"

	"github.com/stint-go/stint"
)

// Result is what an engine knows about an attempt when it is over, before
// anybody decided what follows.
type Result struct {
	Outcome stint.Outcome
	Err     error           // the handler's error, for failed and lost
	Result  json.RawMessage // what it returned; nil for nothing
	Took    time.Duration   // how long it ran, for policies that look at that; 0 when it never began
	Snooze  time.Duration   // how long, for snoozed
	Part    Part            // the lane's part to go back to, for returned
	Suspect int             // the suspicion that the entry is under from now on, for returned and lost
	Note    string          // the reason that people read, where the outcome alone does not say it
	Stack   string          // where a panic happened, if Err does not tell
}
