package store

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint"
)

// Position is a place in the log of ready work. A job has one for each time
// that it became ready; the first of a job that was ready at once is its ID.
type Position int64

// Entry is one appearance of a job in the log of ready work: what an engine
// gets when it claims.
type Entry struct {
	stint.Job
	Pos     Position
	Ready   time.Time // when this entry became ready, by the store's clock
	Suspect int       // how closely to watch it, since engines died with it in hand
	Limits  string    // the gates that it waits for, as in Lane

	// Cancelled says that somebody cancelled the job, itself or with its flow or with
	// the job that called it: it is not to be begun.
	Cancelled bool
}

// Lane is the unit that claims proceed along: one queue at one priority, and
// the part of it that tells new work from work that came back. Jobs with limits
// have lanes of their own, one for each set of gates (see [Limiter]).
type Lane struct {
	ID       LaneID
	Queue    string
	Priority int
	Part     Part
	Kind     string // the kind that a [PartKind] lane is for; empty otherwise
	Limits   string // the gates of its jobs, sorted, one on each line (see [stint.NewJob.LimitKeys]); empty for none
}

// LaneID is a hash of what makes a lane, so that lanes need no registry:
// producers never wait for each other to name one. It is never negative.
type LaneID int64

// NoLane is the lane of entries that nobody claims: of jobs that are not ready
// yet, and of those that were cancelled before an engine claimed them.
const NoLane LaneID = -1

// Part tells the lanes of one queue and priority apart.
type Part string

// The parts, in the order in which they are claimed.
const (
	PartFront  Part = "front"  // returned and lost work: it has waited already
	PartKind   Part = "kind"   // entries that their first claimer could not run
	PartNormal Part = "normal" // everything else
)

// LaneOf computes a lane. Kind matters to [PartKind] only. The identity is
// the first 63 bits of the SHA-256 of queue, priority, part and kind, each
// ended by a NUL (which no name may hold); the stores' SQL computes the same.
func LaneOf(queue string, priority int, part Part, kind string) Lane {
	return LimitedLane(queue, priority, part, kind, "")
}

// LimitedLane computes the lane of jobs with limits, which come last in what is hashed, if there are
// any.
func LimitedLane(queue string, priority int, part Part, kind, limits string) Lane {
	if part != PartKind {
		kind = ""
	}
	text := queue + "\x00" + strconv.Itoa(priority) + "\x00" + string(part) + "\x00" + kind + "\x00"
	if limits != "" {
		text += limits + "\x00"
	}
	sum := sha256.Sum256([]byte(text))
	id := LaneID(binary.BigEndian.Uint64(sum[:8]) >> 1)
	return Lane{ID: id, Queue: queue, Priority: priority, Part: part, Kind: kind, Limits: limits}
}

// Correlate gives entries that say no correlation id that of their own job, for
// stores. The ids share the memory of one text: one that somebody keeps, keeps
// some bytes for each of the others.
func Correlate(entries []Entry) {
	var text strings.Builder
	var room [20]byte
	for i := range entries {
		if entries[i].Correlation == "" {
			text.Write(strconv.AppendInt(room[:0], int64(entries[i].ID), 10))
		}
	}
	left := text.String()
	for i := range entries {
		if e := &entries[i]; e.Correlation == "" {
			n := len(strconv.AppendInt(room[:0], int64(e.ID), 10))
			e.Correlation, left = left[:n], left[n:]
		}
	}
}
