package store

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

// EngineID is an engine's identity in the roster: 63 random bits, new each time
// that it joins. An engine that is not in the roster can neither claim nor record.
type EngineID int64

// Roster is the list of running engines.
type Roster interface {
	// Join enters an engine. Its token must be fresh and random. If Former was
	// asked to drain, so is this one. [ErrSchema]
	// when the schema is not for this program any more: it may have been
	// upgraded since the store was opened.
	Join(ctx context.Context, e EngineInfo, kinds []stint.KindInfo) error

	// Heartbeat says that an engine is alive, and returns what it is asked to do.
	// It never brings one back: [ErrBuried] tells an engine that it was
	// buried, or that another server has taken the place of the one that it joined at. With
	// [ErrMoved] it may find out by [ServerMover] whether it can go on there. One whose
	// program the schema does not allow any more is asked to drain.
	Heartbeat(ctx context.Context, engine EngineID, b Heartbeat) (HeartbeatReply, error)

	// Drain asks an engine to take no more jobs and to leave when those that
	// run have ended: it learns of that with its next beat. [ErrBuried] when
	// it is not in the roster.
	Drain(ctx context.Context, engine EngineID) error

	// Held lists the engine's claims numbered from serial on that have
	// entries without an outcome, with the positions of those only, except those
	// whose numbers the caller knows already. A claim whose request was cut off
	// may still appear later. An engine that the store does not know holds nothing.
	Held(ctx context.Context, engine EngineID, serial int64, known ...int64) ([]Claim, error)

	// Announced lists the entries that an engine's last beat said are running, and
	// that have no outcome. What that costs is not a matter of how long the engine
	// has lived: nobody could bury it otherwise.
	Announced(ctx context.Context, engine EngineID) ([]Entry, error)

	// Bury takes an engine out of the roster and concludes its unfinished
	// entries as judge says; the judge sees each entry and whether its last
	// beat announced it as running. With Unless positive, an engine that beat
	// within that time is left alone ([ErrAlive]), and so is one whose place
	// is held (see [LivenessLocker]). An engine that leaves
	// buries itself. Whoever loses the race to another burier gets
	// [ErrBuried]. With [ErrBurialBlocked], whatever Unless says, a write of
	// the engine is under way: nothing was done, and a later call may do it.
	//
	// The store fills in the nonce of the claim and, where the judge sets no
	// times, the moment of the burial. A death is known only afterwards, so
	// an execution of it says when it was concluded and not when it happened.
	Bury(ctx context.Context, b Burial, judge func(e *Entry, begun bool) Completion) (buried int, err error)

	// Engines lists the roster, oldest first.
	Engines(ctx context.Context) ([]EngineInfo, error)
}

// LivenessLocker is a store that knows without beats which engines live: the process
// of an engine holds its place in the roster as long as it lives, and whoever
// looks sees whether it does. Then an engine that cannot beat for a while, as
// when a long transaction of the user's keeps everybody from writing, or when the
// database is restarted, need not fear to be buried.
//
// A process that was stopped holds its places too: its jobs wait for it.
type LivenessLocker interface {
	// Vouches returns until when nobody buries an engine that joined by this store, though no
	// beat arrives after the one that was sent at the given time; only who does so in any case does (a
	// [Burial] without Unless). A time that has passed, such as the zero one, says that beats alone
	// decide. The answer may change at any time, also to an earlier one.
	Vouches(engine EngineID, beat time.Time) time.Time

	// Release lets go of a place for an engine that is no longer worked for,
	// though its process lives: from now on its beats decide.
	Release(engine EngineID)
}

// ServerMover is a store whose server can be replaced by another one, which may have lost the last
// of what was acknowledged.
type ServerMover interface {
	// Move has an engine go on at the server that Heartbeat said ErrMoved of, if that has
	// everything that is in proof. Otherwise it fails with [ErrBuried], and so it does if it
	// cannot be told.
	Move(ctx context.Context, engine EngineID, proof Proof) error
}

// Proof is what was acknowledged to an engine last: what came before was committed
// before. So a server that has it has lost nothing.
type Proof struct {
	Beat     int64      // the number of the last beat
	Claims   []ClaimRef // since that was sent
	Recorded []Position // outcomes, of each transaction at least one
	Permits  []GateRef  // of each gate that it holds permits of, the last state that it wrote
}

// SessionTerminator is a store whose sessions can keep an engine from being buried, and
// that can end them: a frozen client in the middle of a write, for one.
type SessionTerminator interface {
	// Evict ends the sessions of claims, beats and outcomes that hold the
	// engine's fence, and returns how many those were. A burial in progress is
	// left alone, or one that takes long would be begun for ever.
	Evict(ctx context.Context, engine EngineID) (int, error)
}

// OrphanRecoverer is a store whose burials may leave something to look through after
// them: what an engine had long done with, as it believed.
type OrphanRecoverer interface {
	// Sweep concludes what burials that were cut short left unfinished, and
	// returns how much that was. Nothing is left nearly always.
	Sweep(ctx context.Context, judge func(e *Entry, begun bool) Completion) (int, error)
}

// EngineInfo is an engine as the roster shows it.
type EngineInfo struct {
	Token      EngineID               `json:"id,string"`
	Instance   string                 `json:"instance"`
	Host       string                 `json:"host"`
	BootID     string                 `json:"boot_id,omitempty"`
	PID        int                    `json:"pid"`
	PIDStarted int64                  `json:"pid_started,omitempty"` // clock ticks after boot, where the system tells
	Version    string                 `json:"version"`
	Queues     []string               `json:"queues"`
	Kinds      []string               `json:"kinds"`
	Slots      int                    `json:"slots"`
	TimeToLive time.Duration          `json:"time_to_live"`
	MaxOutage  time.Duration          `json:"max_outage,omitempty"` // how long the store may be away from it before it gives up what it runs, if it can tell that from its own death
	Joined     time.Time              `json:"joined"`               // set by the store
	Beat       time.Time              `json:"last_beat"`            // set by the store: the last beat
	Running    []Position             `json:"running"`              // announced by the last beat
	Started    map[Position]time.Time `json:"-"`                    // when those of them began of which a beat said it, by the store's clock
	Former     EngineID               `json:"-"`                    // which the engine was before it was buried and joined again; 0 for none. Said when it joins, and not read
	Low        int64                  `json:"-"`                    // by the last beat, no claim of a lower number has anything open
	Draining   bool                   `json:"draining,omitempty"`
	Held       bool                   `json:"process_lives,omitempty"` // its process lives, whatever the beat says
	Gone       bool                   `json:"process_gone,omitempty"`  // its process does not, whatever the beat says
}

// WorkerBoot is the boot id of engines that work for somebody outside their process.
const WorkerBoot = "worker"

// ByBeats reports whether beats alone say that the engine lives: others may speak for it when its process is gone.
func (e EngineInfo) ByBeats() bool { return e.BootID == WorkerBoot }

// Silent reports whether the engine counts as dead at a time of the store's
// clock: its process is gone, or it did not beat within its time to live.
func (e EngineInfo) Silent(now time.Time) bool {
	return e.Gone || now.Sub(e.Beat) > e.TimeToLive
}

// WorksOn reports whether the engine works on a queue.
func (e EngineInfo) WorksOn(queue string) bool {
	return len(e.Queues) == 0 || slices.Contains(e.Queues, "*") || slices.Contains(e.Queues, queue)
}

// Performs reports whether the engine has a handler for a kind.
func (e EngineInfo) Performs(kind string) bool {
	return slices.Contains(e.Kinds, kind) || slices.Contains(e.Kinds, stint.AnyKind)
}

// Heartbeat is what an engine says of itself each time.
type Heartbeat struct {
	// Number counts an engine's beats. One that arrives after a later one,
	// because its request was held up and tried again, is a sign of life and
	// changes nothing of what the later one said.
	Number int64

	// Running are the entries that its slots work on now, and of those that
	// must run at most once also what has ended and is not yet recorded.
	Running []Position

	// Started is when the attempts at some of Running began, by this process's clock. Of one
	// that is not in it the store keeps what an earlier beat of the engine said.
	Started map[Position]time.Time

	// Low is a promise: every claim of this engine with a lower serial
	// number has an outcome for each entry, and no request with a lower
	// number is on its way.
	Low int64

	// Slots is how many jobs the engine runs at once now; 0 for as many as when it joined. The roster shows the last
	// number that came.
	Slots int

	// Logs are what attempts said since the last beat that arrived: see [LogReader].
	Logs []LogRecord
}

// HeartbeatReply are what an engine is asked to do, as it learns with a beat.
type HeartbeatReply struct {
	Drain bool      // take no more jobs, and leave when the running ones have ended
	Now   time.Time // what a store that is a [Clock] showed when it took the beat; zero for others
}

// Burial says whom to bury.
type Burial struct {
	Engine EngineID
	Unless time.Duration // leave it alone if it beat within this time, or its place is held; 0 buries in any case
	Silent time.Duration // for how long the burier saw no beat of it, by working calls
	Why    string        // kept in the engine's history: [WhyLeft] and the others, or what a person said
	By     EngineID      // the engine that buries it; 0 for itself, and for a person
}
