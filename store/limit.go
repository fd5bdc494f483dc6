package store

import (
	"context"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
)

// Limiter keeps what limits allow, and which engines hold permits to start jobs under them.
//
// A gate is a limit, or one of its keys: "smtp", "tenant=acme". Jobs that wait for gates are in lanes of
// their own, one for each set of gates ([Lane.Limits]), so a claim takes only jobs of one set. An engine
// starts such a job while it holds a permit of each of them. It keeps permits from one job to the next,
// so that a job costs nothing, until it has no more to do or others ask for them.
//
// Together the engines of the roster never hold more permits of a gate than it has, unless its rule was
// changed to fewer: then none is given out until enough have come back. Permits are lost with their
// engine's place in the roster, and in no other way.
type Limiter interface {
	// Permits changes what an engine holds, durably, and answers what it holds then of each gate that
	// was named, in the order of their names. [ErrBuried] when it is not in the roster.
	//
	// After an error, permits that were asked for may be held, and those given back may not be. The
	// engine must not count on either, until a later call has named these gates as Doubted. When
	// others change a gate at the same time, it may be left as it was: the answer says Busy.
	Permits(ctx context.Context, engine EngineID, req PermitRequest) ([]Hold, error)

	// DeclareLimits stores the rules that a program declares. What people set is left as it is. A rule of
	// one key ("tenant=acme") counts in place of the one of its limit, here and in SetLimit.
	DeclareLimits(ctx context.Context, rules map[string]stint.LimitRule) error

	// SetLimit sets a rule over what programs declare, also of a limit that nobody has declared, and
	// wakes the engines. By and why are kept for those who wonder.
	SetLimit(ctx context.Context, name string, rule stint.LimitRule, by, why string) error

	// ResetLimit takes back what SetLimit set, so that the declared rule counts again, and wakes the
	// engines. It reports false when nothing was set.
	ResetLimit(ctx context.Context, name string) (bool, error)

	// PauseLimit lets no job of a limit, or of one of its keys ("tenant=acme"), start for a time, and
	// wakes the engines. A pause that lasts longer already is left as it is.
	PauseLimit(ctx context.Context, gate string, p Pause) error

	// ResumeLimit ends a pause, and wakes the engines. It reports false when there was none.
	ResumeLimit(ctx context.Context, gate string) (bool, error)

	// Limits lists the limits by name, with what engines hold of all their keys together: those that
	// have a rule, and those of which an engine holds or asks for permits. It reads every gate that
	// was used lately.
	Limits(ctx context.Context) ([]LimitInfo, error)

	// Gates lists the gates of a limit of which permits are held or asked for, whose jobs are held up (see
	// [GateOrder]), or whose next start under a rate has to wait: those that are halted, then those that most is asked for, up to a number.
	// Instead of a limit a gate can be named: tenant=acme.
	Gates(ctx context.Context, limit string, most int) ([]GateInfo, error)

	// Unblock lets the jobs of a gate go on that is halted, and wakes the engines. It returns the
	// failed jobs that they waited for.
	Unblock(ctx context.Context, gate string) ([]stint.ID, error)

	// TidyPermits forgets what is known of gates that nobody uses, and reports how many rows that
	// were.
	TidyPermits(ctx context.Context) (int, error)
}

// PermitRequest is what an engine wants to hold.
type PermitRequest struct {
	// Keep says of gates how many permits to keep at most: the rest is given back.
	Keep []Keeping

	// Take asks for permits to start jobs.
	Take []Taking
}

// Keeping is how much to keep of a gate. Doubted says that the outcome of an earlier call about the
// gate is unknown: after this one it has none.
type Keeping struct {
	Gate    string
	Permits int
	Doubted bool
}

// Taking asks to start jobs that need a permit of each of a set of gates. As many are granted as all of
// the gates allow, up to Want. Of a gate that allows none, the engine counts as waiting.
type Taking struct {
	Gates []TakingGate // sorted by name
	Want  int          // jobs; 1 or more
	Try   bool         // if there are none, do not count as waiting
	Again bool         // the jobs come again: they go first where there is an order (see [GateOrder])
}

// TakingGate is a gate with what the engine has unused of it: that is not asked for again.
type TakingGate struct {
	Gate            string
	Cost            int // how many starts each of the jobs counts as; 0 for 1
	Permits, Starts int // starts of this cost
}

// Hold is what an engine holds of one gate.
type Hold struct {
	GateRef // the newest state; N is 0 if nobody used the gate before
	Permits int
	Asked   int // how many permits other engines wait for
	Left    int // how many nobody holds
	Over    int // how many more permits are held than there are, since the rule was changed
	Fair    int // how many each engine gets if those who hold or wait for some get the same
	Rule    stint.LimitRule
	Blocked bool // jobs that come again hold up the others: it may be used for the former only
	Busy    bool // another call changed the gate at the same time, and this one did not: ask again

	// Until is when a pause of the gate ends, by the store's clock; zero for none. With Trial, one job
	// starts alone after it, and the others when [Limiter.ResumeLimit] was called.
	Until time.Time
	Trial bool

	// Starts are the times, by the store's clock, at which a job may start under the rule's rate: one
	// for each start that was bought by the call, all of them of one Cost. Others will not get them. Next
	// is the time from which more can be had, if the rule has a rate or the gate is paused.
	Starts []time.Time
	Cost   int
	Next   time.Time
}

// Pause asks for a pause of a limit.
type Pause struct {
	For   time.Duration // up to [stint.MaxPause]
	Trial bool          // see [Hold.Trial]
	By    string        // who pauses it: a person, or the name of an engine
	Why   string
}

// CheckPause reports what is wrong with a pause, or nil.
func CheckPause(gate string, p Pause) error {
	if err := stint.CheckGate(gate); err != nil {
		return err
	}
	if p.For <= 0 || p.For > stint.MaxPause {
		return valid.Invalid("for", "a pause of %v is not between a microsecond and a day", p.For)
	}
	return nil
}

// Paused is a pause of a limit as people see it.
type Paused struct {
	Until time.Time `json:"until"`
	Trial bool      `json:"trial,omitempty"` // after Until one job starts alone, and the others when it has completed
	By    string    `json:"by,omitempty"`
	Why   string    `json:"why,omitempty"`
}

// LimitInfo is a limit as people see it.
type LimitInfo struct {
	Name string `json:"name"` // or one of its keys, if that has a rule or a pause of its own

	// Rule is the one that counts, as text (see [stint.ParseLimitRule]): what people set, or else what
	// a program declared, or else "any".
	Rule     string    `json:"rule"`
	Declared string    `json:"declared,omitempty"` // by programs; empty for not at all
	Set      string    `json:"set,omitempty"`      // by people
	SetAt    time.Time `json:"set_at,omitzero"`
	By       string    `json:"set_by,omitempty"` // who set it
	Why      string    `json:"set_why,omitempty"`

	Paused *Paused `json:"paused,omitempty"` // nil while it is not

	Gates   int   `json:"gates"` // its keys in use, or 1
	Held    int64 `json:"held"`  // permits that engines hold
	Asked   int64 `json:"asked"` // permits that engines wait for
	Engines int   `json:"engines"`
}

// GateInfo is a gate as people see it.
type GateInfo struct {
	Gate  string        `json:"gate"`
	Key   string        `json:"key,omitempty"`
	Rule  string        `json:"rule"` // its own, or that of its limit, as in [LimitInfo]
	Held  int64         `json:"held"`
	Asked int64         `json:"asked"`
	Holds []GateHolding `json:"holds"`

	Next   time.Time `json:"next,omitzero"`    // when the next job can start under the rule's rate; zero if one can at once
	Paused *Paused   `json:"paused,omitempty"` // itself, or its limit
	GateOrder
	AgainDue time.Time `json:"again_due,omitzero"` // when Again is due, if that was asked for; stores leave it
}

// Unused reports whether no engine holds or asks for permits of the gate, and nothing holds up its jobs.
func (g GateInfo) Unused() bool {
	return len(g.Holds) == 0 && g.Next.IsZero() && g.GateOrder == GateOrder{}
}

// GateHolding is what one engine holds of a gate, and asks for.
type GateHolding struct {
	Engine   EngineID  `json:"engine,string"`
	Instance string    `json:"instance"`
	Held     int       `json:"held"`
	Asked    int       `json:"asked,omitempty"`
	Since    time.Time `json:"since,omitzero"` // when it asked
}

// AtOnce is how many jobs may run at once under a rule that is given as text, for each key of a limit
// with keys. It reports false for any number.
func AtOnce(rule string) (most int64, bounded bool) {
	r, err := stint.ParseLimitRule(rule)
	return int64(max(0, r.AtOnce)), err == nil && r.AtOnce != 0
}

// Most is how many jobs may run at once under the limit, of all of its keys in use together. It reports
// false for any number.
func (l LimitInfo) Most() (most int64, bounded bool) {
	most, bounded = AtOnce(l.Rule)
	return most * int64(max(1, l.Gates)), bounded
}

// More is how many of its gates engines use beyond those of a list.
func (l LimitInfo) More(gates []GateInfo) int {
	n := l.Gates
	for _, g := range gates {
		if len(g.Holds) > 0 {
			n--
		}
	}
	return max(0, n)
}

// Full reports whether engines hold all permits that the gate has.
func (g GateInfo) Full() bool {
	most, bounded := AtOnce(g.Rule)
	return bounded && g.Held >= most
}
