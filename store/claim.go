package store

import (
	"context"
)

// Claimer hands out ready work.
//
// A claim takes everything that it takes in the order of the lane: the order
// in which entries became ready. It never waits for a producer or for a row
// that somebody locked.
type Claimer interface {
	// Look reports the lanes that have something to claim. It writes
	// nothing, takes no lock, and costs an index probe or two for each lane.
	// Lanes in known.Mine and lanes never heard of are probed; lanes in
	// known.Foreign are passed over.
	Look(ctx context.Context, known LaneHints) ([]LaneHead, error)

	// LookSince reports the lanes with something to claim among those that
	// something was appended to since a mark was made. It costs as much as was
	// appended, however many lanes there are. It is for engines that look at all
	// lanes now and then, too: what was appended long before it was committed may
	// stay out of its sight. It passes over no lane, foreign or not.
	//
	// When more was appended than it reads, which is a thousand entries or so, and
	// of the zero mark, it reports no lanes, All, and a mark that was made before it
	// returned: then a look at all lanes shows the rest.
	LookSince(ctx context.Context, since Mark) (Appended, error)

	// Claim takes up to Max entries of a lane for an engine, durably: when
	// it returns, no other claim will ever take them. Without Wait it
	// answers [ErrLaneBusy] when another claim of that lane is under way. It
	// answers [ErrBuried] when the engine is not in the roster.
	//
	// When the entries were taken but could not be read, it returns the
	// claim with Positions and without Entries together with the error:
	// [Claimer.Fetch] reads them. After any other error the claim may
	// nevertheless have been committed, under the request's serial number;
	// [Roster.Held] tells.
	Claim(ctx context.Context, req ClaimRequest) (Claim, error)

	// ClaimLanes claims from several lanes in their order, up to Max entries
	// together, as calls of Claim one after the other would, but in one call that
	// waits for the disk once. Of req it takes no lane, Wait and Settle; of the
	// lanes it takes Lane, Settle and Most.
	//
	// It answers one claim for each lane that it came to, in their order, with
	// serial numbers that count up from req.Serial. It comes to one at least, and
	// not to those behind the one that filled Max; how many it comes to at most is
	// the store's choice. It never waits for a lane that another claim is under way
	// of, and answers Busy for that one. No lane may be named twice.
	//
	// Either all that is answered was taken, or nothing was. When entries were
	// taken but could not be read, it returns the claims with Positions and without
	// Entries together with the error. After any other error the claims may
	// nevertheless have been committed, under serial numbers up to as many as there
	// are lanes.
	ClaimLanes(ctx context.Context, req ClaimRequest, lanes []LaneHead) ([]Claim, error)

	// Fetch reads entries by position. It answers in the order asked, and
	// leaves out positions that do not exist.
	Fetch(ctx context.Context, at []Position) ([]Entry, error)
}

// LaneHints is what an engine remembers of earlier looks.
type LaneHints struct {
	Mine    []LaneID
	Foreign []LaneID
}

// Mark is a moment of the log, as the store that made it knows it. The zero mark is
// before everything.
type Mark struct {
	Pos  Position
	Seen string // what was visible then, where more may become so behind Pos
	Set  bool   // it was made by a store
}

// Appended is what [Claimer.LookSince] saw.
type Appended struct {
	Heads []LaneHead
	Until Mark // for the next look
	All   bool // it did not see everything: look at all lanes
}

// LaneHead is one lane that has work, with what its first entry, at First, tells
// about it.
// Settle says that nothing is there to take, but that much had to be stepped
// over to know it: a claim with Settle spares the next look the way. Paused
// says that somebody paused the queue (see [Pauser]): it is not to be claimed.
type LaneHead struct {
	Lane     LaneID
	Queue    string
	Priority int
	Kind     string
	Limits   string
	First    Position
	Settle   bool
	Paused   bool
	Limited  bool // its queue has a rule or a pause under [stint.QueueLimit]

	// Most is how many entries of the lane a claim takes at most, if it is not 0. Looks leave it.
	Most int
}

// Nonce is a random number that tells one claim from any other, also from
// the one that stood under the same number before a database lost it.
type Nonce int64

// ClaimRequest asks for work. Engine, Serial and Nonce make it known again
// when the answer is lost: an engine numbers its requests from 1. Low is the
// promise of [Heartbeat], as of the moment of the request: a store may use it to
// look at less between two beats, and 0 promises nothing.
type ClaimRequest struct {
	Engine EngineID
	Serial int64
	Low    int64
	Nonce  Nonce
	Lane   LaneID
	Max    int
	Wait   bool // wait for the lane instead of answering ErrLaneBusy
	Settle bool // move the frontier on even when nothing is there to take
}

// ClaimRef names a claim.
type ClaimRef struct {
	Lane  LaneID
	N     int64 // counts the lane's claims
	Nonce Nonce
}

// Claim is a batch of entries of one lane, taken by one engine. An empty one
// (no Positions) was not recorded, or only moved the frontier.
type Claim struct {
	ClaimRef
	Serial    int64
	Busy      bool // of [Claimer.ClaimLanes]: another claim of the lane was under way
	Positions []Position
	Entries   []Entry
}

// DealEntries gives each claim its own of the entries that were read of all their
// positions, in that order. An entry that is gone is left out.
func DealEntries(claims []Claim, entries []Entry) {
	for i := range claims {
		n := 0
		for _, pos := range claims[i].Positions {
			if n < len(entries) && entries[n].Pos == pos {
				n++
			}
		}
		claims[i].Entries, entries = entries[:n:n], entries[n:]
	}
}
