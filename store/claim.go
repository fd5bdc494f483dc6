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

	// Fetch reads entries by position. It answers in the order asked, and
	// leaves out positions that do not exist.
	Fetch(ctx context.Context, at []Position) ([]Entry, error)
}

// LaneHints is what an engine remembers of earlier looks.
type LaneHints struct {
	Mine    []LaneID
	Foreign []LaneID
}

// LaneHead is one lane that has work, with what its first entry tells about it.
// Settle says that nothing is there to take, but that much had to be stepped
// over to know it: a claim with Settle spares the next look the way. Paused
// says that somebody paused the queue (see [Pauser]): it is not to be claimed.
type LaneHead struct {
	Lane     LaneID
	Queue    string
	Priority int
	Kind     string
	Settle   bool
	Paused   bool
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
	Positions []Position
	Entries   []Entry
}
