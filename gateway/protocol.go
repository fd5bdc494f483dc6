package gateway

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/failure"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// Bounds of what a worker may ask for.
const (
	MaxSlots      = 1000
	MaxWorkers    = 5000             // of one gateway
	MaxWait       = 25 * time.Second // of a long poll: proxies cut what takes 30
	MinTimeToLive = 5 * time.Second
	MaxTimeToLive = 15 * time.Minute

	MaxResult = 1 << 20 // bytes of JSON

	// DefaultTimeToLive is that of a worker that names none.
	DefaultTimeToLive = 30 * time.Second
)

// Joining is what a worker says of itself.
type Joining struct {
	Instance   string           // its name in the roster; empty for one of the gateway's making
	Kinds      []stint.KindInfo // one or more; what is declared of one already stays; stint.AnyKind for all
	Queues     []string         // none for all
	Slots      int              // how many jobs it performs at once
	TimeToLive time.Duration    // 0 for the default
	Version    string
	Host       string
	PID        int

	// OnDemand has the worker take no more jobs than its claims ask for at the time. Its claims wait beside each
	// other: a later one does not end those before it. Its heartbeats do not list what runs, and a run whose timeout
	// is over ends without it, since it cannot be told.
	OnDemand bool
}

// Joined is what a worker is told when it has joined.
type Joined struct {
	Worker     string         `json:"worker" doc:"Its number in the roster, for the other calls"`
	Instance   string         `json:"instance"`
	TimeToLive retry.Duration `json:"time_to_live" doc:"How long without a heartbeat after which it counts as dead"`
	BeatEvery  retry.Duration `json:"beat_every" doc:"The time between two heartbeats"`
}

// News is what a worker is told.
type News struct {
	Jobs   []ClaimedJob `json:"jobs" doc:"To be begun at once"`
	Cancel []Cancel     `json:"cancel" doc:"Running jobs that are to end"`
	Drain  bool         `json:"drain" doc:"Take no more jobs, and leave when those that run have ended"`
}

func newNews(drain bool) News { return News{Jobs: []ClaimedJob{}, Cancel: []Cancel{}, Drain: drain} }

// ClaimedJob is one that a worker is to perform.
type ClaimedJob struct {
	Receipt     string                     `json:"receipt" doc:"Stands for the job in the other calls"`
	ID          stint.ID                   `json:"id"`
	Kind        string                     `json:"kind"`
	Queue       string                     `json:"queue"`
	Args        json.RawMessage            `json:"args"`
	Attempt     int                        `json:"attempt" doc:"Which one it is, from 1"`
	Timeout     retry.Duration             `json:"timeout,omitempty" doc:"How long the attempt may take; absent for no bound"`
	Tags        []string                   `json:"tags,omitempty"`
	Metadata    json.RawMessage            `json:"metadata,omitempty"`
	Correlation string                     `json:"correlation,omitempty"`
	MayHaveRun  bool                       `json:"may_have_run,omitempty" doc:"An engine died with it: perhaps a part of its work is done"`
	Created     time.Time                  `json:"created"`
	Steps       map[string]json.RawMessage `json:"steps,omitempty" doc:"What its steps came to that earlier runs have recorded"`
}

// Cancel says that a running job is to end, and why.
type Cancel struct {
	Receipt string `json:"receipt"`
	Reason  string `json:"reason" enum:"cancelled,timeout,stopping,lost" doc:"lost: another run counts, and nothing of this one will"`
}

// Reasons for which a job is to end.
const (
	ReasonCancelled = "cancelled"
	ReasonTimeout   = "timeout"
	ReasonStopping  = "stopping"
	ReasonLost      = "lost"
)

// Ending says how a run ended: by one of its fields, or with the result if none is set.
type Ending struct {
	Receipt string          `json:"receipt"`
	Result  json.RawMessage `json:"result,omitempty" doc:"Any JSON value: the job is completed"`
	Error   *RunError       `json:"error,omitempty" doc:"The attempt failed"`
	Snooze  string          `json:"snooze,omitempty" doc:"Run again after this time, such as 5m; not charged as an attempt"`
	Cancel  string          `json:"cancel,omitempty" doc:"The job is cancelled, for this reason"`
	Return  bool            `json:"return,omitempty" doc:"It was not done: it goes back to the front of its queue, uncharged"`
}

// RunError is how an attempt failed.
type RunError struct {
	Message string `json:"message"`
	Class   string `json:"class,omitempty" doc:"The type of the error, such as ValueError; policies may choose by it"`
	Stack   string `json:"stack,omitempty"`
	Retry   *bool  `json:"retry,omitempty" doc:"false: the job is not tried again, whatever its policy says"`
}

// Recorded says what became of an [Ending].
type Recorded struct {
	Status  string `json:"status" enum:"ok,fenced,invalid" doc:"ok: it is recorded. fenced: the worker had lost the job, and nothing was recorded. invalid: the job still runs"`
	Problem string `json:"problem,omitempty"`
}

// What became of an ending.
const (
	OK      = "ok"
	Fenced  = "fenced"
	Invalid = "invalid"
)

// Running is a job that a worker works on.
type Running struct {
	Receipt  string       `json:"receipt"`
	Progress *RunProgress `json:"progress,omitempty"`
	Log      []string     `json:"log,omitempty" doc:"Lines since the last heartbeat that was answered"`
}

// RunProgress is how far a job is.
type RunProgress struct {
	Fraction float64 `json:"fraction" doc:"From 0 to 1"`
	Text     string  `json:"text,omitempty"`
}

// receiptOf writes a receipt.
func receiptOf(h engine.Hold) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(h.Pos))
	binary.BigEndian.PutUint64(b[8:], uint64(h.Nonce))
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// ParseReceipt reads a receipt.
func ParseReceipt(text string) (engine.Hold, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != 16 {
		return engine.Hold{}, valid.Invalid("receipt", "%q is none", valid.CleanText(text, 40))
	}
	return engine.Hold{Pos: store.Position(binary.BigEndian.Uint64(b[:8])), Nonce: store.Nonce(binary.BigEndian.Uint64(b[8:]))}, nil
}

// maxClass bounds the class of an error, in bytes.
const maxClass = 255

// end is what a handler would return for the ending.
func (x *Ending) end() (json.RawMessage, error) {
	ways := 0
	for _, way := range []bool{x.Result != nil && string(x.Result) != "null", x.Error != nil, x.Snooze != "", x.Cancel != "", x.Return} {
		if way {
			ways++
		}
	}
	switch {
	case ways > 1:
		return nil, valid.Invalid("results", "a run ends in one way: with a result, an error, a snooze, a cancel or a return")
	case x.Return:
		return nil, &failure.Return{Why: "the worker handed it back"}
	case x.Cancel != "":
		return nil, stint.Cancel(x.Cancel)
	case x.Snooze != "":
		d, err := retry.ParseDuration(x.Snooze)
		if err == nil && (d < 0 || d > retry.MaxWait) {
			err = errors.New("it is not between 0s and " + retry.FormatDuration(retry.MaxWait))
		}
		if err != nil {
			return nil, valid.Invalid("snooze", "%v", err)
		}
		return nil, stint.Snooze(d)
	case x.Error != nil:
		class := valid.CleanText(x.Error.Class, maxClass)
		if class == "" {
			class = "error"
		}
		var err error = &failure.Foreign{Class: class, Message: x.Error.Message, Stack: x.Error.Stack}
		if x.Error.Retry != nil && !*x.Error.Retry {
			err = stint.NoRetry(err)
		}
		return nil, err
	}
	if len(x.Result) == 0 || string(x.Result) == "null" {
		return nil, nil
	}
	if err := valid.JSON("result", x.Result, MaxResult); err != nil {
		return nil, err
	}
	return x.Result, nil
}

// isInvalid reports whether an ending could not be read, and does not ask for anything.
func isInvalid(err error) bool {
	_, invalid := errors.AsType[*valid.Error](err)
	return invalid
}
