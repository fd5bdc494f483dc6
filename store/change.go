package store

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/stint-go/stint/internal/valid"
)

// ChangeKeeper keeps who changed what, for those who ask later: what people, and
// programs that act for them, do to jobs, queues, schedules, engines and leases
// by the API and by the command line. What they do in Go or in SQL is not in it.
//
// A change is written down before it is made, and what came of it after that.
// So one whose process died on the way is known too, only not whether it was made.
// Changes are forgotten after [ChangesKept], by [Retainer].
type ChangeKeeper interface {
	// BeginChange writes down that somebody is about to change something, and
	// returns the number of the change, which is higher than those of all that were
	// written down before it began. Whoever gets an error leaves the change alone:
	// [stint.ErrInvalid] when it can never be written down (see [NewChange.Check]). What
	// no database keeps of its texts is replaced, and what is too long cut.
	BeginChange(ctx context.Context, c NewChange) (int64, error)

	// EndChange adds what came of a change: it is done when problem is empty, and
	// failed for that reason otherwise. What was said first stands, and a change
	// that is not there any more is no error.
	EndChange(ctx context.Context, change int64, problem string) error

	// Changes lists changes, the newest first. With a Subject the store looks only
	// at those about it; other filters go through all from the newest on until
	// Limit is reached.
	Changes(ctx context.Context, f ChangeFilter) ([]Change, error)
}

// ChangesKept is for how long a change is kept, by the store's clock.
const ChangesKept = 90 * 24 * time.Hour

// MaxDetails bounds the details of a change, in bytes.
const MaxDetails = 64 << 10

// The ways by which changes come.
const (
	WayAPI     = "api"
	WayCommand = "command"
)

// NewChange is a change that somebody is about to make.
type NewChange struct {
	By        string `json:"by,omitempty"`      // who; empty for one without a name
	Role      string `json:"role,omitempty"`    // in which they ask, where there are roles
	Way       string `json:"way"`               // by which it comes: [WayAPI], [WayCommand]
	Operation string `json:"operation"`         // what is done: "queues pause"
	Subject   string `json:"subject,omitempty"` // what it is done to, when that is one thing: a queue, a job's ID

	// Details say what names and chooses what is changed, and why, as a JSON
	// object of at most [MaxDetails]; nil is none. They hold no arguments of jobs.
	Details json.RawMessage `json:"details,omitempty"`
}

// Check reports why the change cannot be written down, or nil.
func (c NewChange) Check() error {
	switch {
	case c.Way == "":
		return valid.Invalid("way", "it is empty")
	case c.Operation == "":
		return valid.Invalid("operation", "it is empty")
	case c.Details == nil:
		return nil
	case !bytes.HasPrefix(bytes.TrimSpace(c.Details), []byte("{")):
		return valid.Invalid("details", "they are no object")
	}
	return valid.JSON("details", c.Details, MaxDetails)
}

// Clean is the change as it is stored: of its texts the first 255 bytes, without
// what no database keeps.
func (c NewChange) Clean() NewChange {
	for _, text := range []*string{&c.By, &c.Role, &c.Way, &c.Operation, &c.Subject} {
		*text = valid.CleanHead(*text, valid.MaxName)
	}
	return c
}

// Change is one as it is kept.
type Change struct {
	ID int64     `json:"id"`
	At time.Time `json:"at"` // when it was written down
	NewChange
	Result  ChangeResult `json:"result"`
	Ended   time.Time    `json:"ended,omitzero"`    // when it was known what came of it
	Problem string       `json:"problem,omitempty"` // why it failed
}

// ChangeResult is what came of a change.
type ChangeResult string

// The results.
const (
	ChangeDone    ChangeResult = "done"
	ChangeFailed  ChangeResult = "failed"  // nothing was changed, or a part
	ChangeUnknown ChangeResult = "unknown" // it is being made, or the process that made it died
)

// ChangeResultOf says what came of a change: by whether that was told, and with which
// problem. It is for stores.
func ChangeResultOf(ended time.Time, problem string) ChangeResult {
	switch {
	case ended.IsZero():
		return ChangeUnknown
	case problem != "":
		return ChangeFailed
	}
	return ChangeDone
}

// ChangeFilter chooses changes: those that fit all of its fields. A zero field
// does not restrict.
type ChangeFilter struct {
	By        string
	Operation string
	Subject   string
	At        TimeRange // when it was written down

	Before int64 // only changes with a lower number: the way to the next page
	Limit  int   // how many at most; 0 means 100
}
