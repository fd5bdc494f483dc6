package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Bug is a fault to plant between the calls of the processes and the store.
type Bug string

// NoBug is the store as it is.
const NoBug Bug = ""

// Bugs are the faults that a simulation must find.
var Bugs = slices.Concat(jobBugs, scheduleBugs, retentionBugs)

var jobBugs = []Bug{
	bugFence, bugGhost, bugHeld, bugJudge, bugFlush, bugBeat, bugEnqueue, bugPromote, bugLow, bugMurder, bugForgiven,
	bugUnmarked, bugTooSoon, bugSilent, bugHandsOut, bugRetries, bugHollow, bugRepeats, bugSplit, bugCertain,
	bugUnswept, bugSweeps, bugEarly, bugCharges, bugOrphans, bugErases, bugLingers, bugRelapse, bugOpen, bugShut,
	bugHushed, bugHeedless, bugCrowds, bugEager, bugHides, bugForgets, bugPuts, bugHasty, bugRules,
}

// scheduleBugs are those of schedules, which not every seed has.
var scheduleBugs = []Bug{
	bugAgain, bugMoves, bugUnbound, bugOmits, bugOverlaps, bugRestarts, bugRestless, bugMakesUp, bugStays, bugReturns,
}

// retentionBugs are those of retention, which not every seed has either.
var retentionBugs = []Bug{
	bugHurries, bugReaps,
}

// fits tells whether a seed has what the bug is in.
func (b Bug) fits(seed Seed) bool {
	switch {
	case slices.Contains(scheduleBugs, b):
		return newCalendar(seed) != nil
	case slices.Contains(retentionBugs, b):
		return retentionOf(seed).Shortest() != store.Forever
	}
	return true
}

const (
	bugFence    Bug = "claims for the buried"           // the store lets buried engines claim
	bugGhost    Bug = "leaves the buried in the roster" // a burial leaves the engine in the roster
	bugHeld     Bug = "hides what is held"              // an engine never asks what it holds
	bugJudge    Bug = "buries without successors"       // a burial forgets the successor
	bugFlush    Bug = "records once or never"           // a flush is not repeated
	bugBeat     Bug = "beats in vain"                   // an engine does not learn that it was buried or is cut off
	bugEnqueue  Bug = "enqueues again"                  // a client repeats an enqueue of unknown result
	bugPromote  Bug = "skips what is due"               // a promoter skips what is due
	bugLow      Bug = "promises too much"               // a beat promises too much
	bugMurder   Bug = "buries the living"               // a watch buries living engines
	bugForgiven Bug = "charges nobody"                  // a burial never counts a loss

	bugUnmarked Bug = "drops the marker"          // the marker of a cancellation is dropped
	bugTooSoon  Bug = "is never too late"         // a cancellation that came too late says that it came in time
	bugSilent   Bug = "tells nobody to stop"      // the store tells no engine what to stop
	bugHandsOut Bug = "hands out the cancelled"   // the store hands out a cancelled job like any other
	bugRetries  Bug = "tries the cancelled again" // the store retries a cancelled job

	bugHollow  Bug = "acknowledges and does not complete" // a completion is acknowledged and not made
	bugRepeats Bug = "completes twice"                    // a completion is made twice
	bugSplit   Bug = "commits before it completes"        // what the handler wrote is committed on its own
	bugCertain Bug = "takes the unknown for a failure"    // a completion of unknown result is reported as failed

	bugUnswept Bug = "sweeps nothing"    // a sweep is skipped
	bugSweeps  Bug = "sweeps the living" // a sweep takes from living engines too

	bugEarly   Bug = "runs again too early"       // a job runs again before the time that was named
	bugCharges Bug = "charges for running again"  // running a job again counts as an attempt
	bugOrphans Bug = "forgets what is done again" // a job that does another again does not name it
	bugErases  Bug = "deletes the unfinished"     // a job that has not ended is deleted
	bugLingers Bug = "deletes nothing"            // a deletion is acknowledged and not made
	bugRelapse Bug = "brings the deleted back"    // an engine may bring a deleted job back

	bugOpen     Bug = "pauses nothing"         // a pause is acknowledged and not made
	bugShut     Bug = "resumes nothing"        // a resumption is acknowledged and not made
	bugHushed   Bug = "tells nobody of pauses" // the store tells no engine of paused queues
	bugHeedless Bug = "begins what is paused"  // an engine knows of paused queues and goes on
	bugCrowds   Bug = "crowds the slots"       // an engine uses more slots for a queue than it was given

	bugEager   Bug = "hands out what nobody claimed" // a job is performed at once without a claim
	bugHides   Bug = "announces no guests"           // no beat announces an inline run
	bugForgets Bug = "forgets what guests came to"   // the failure of an inline run is acknowledged and not recorded

	bugPuts  Bug = "decides nothing"       // the store never offers retries to decide
	bugHasty Bug = "waits for no decision" // a failure does not wait for its decision
	bugRules Bug = "decides twice"         // the store accepts every decision

	bugAgain    Bug = "fires and stays"               // a firing makes its jobs, and the schedule does not move on
	bugMoves    Bug = "goes on and does not fire"     // a firing moves the schedule on, and makes no jobs
	bugUnbound  Bug = "makes up for everything"       // a firing makes up for more than is wanted
	bugOmits    Bug = "omits the newest"              // a firing leaves out the newest of what it makes up for
	bugOverlaps Bug = "overlaps retries"              // a firing takes a job that waits for its retry for ended
	bugRestarts Bug = "forgets where schedules stand" // a declaration forgets where the schedule stood
	bugRestless Bug = "pauses no schedule"            // the pause of a schedule is acknowledged and not made
	bugMakesUp  Bug = "makes up for pauses"           // a resumption makes up for what came during the pause
	bugStays    Bug = "removes no schedule"           // a removal is acknowledged and not made
	bugReturns  Bug = "brings schedules back"         // a late firing brings a removed schedule back

	bugHurries Bug = "deletes the young"  // retention deletes what is too young
	bugReaps   Bug = "deletes what waits" // retention deletes what waits
)

// planted is the real store with a bug.
type planted struct {
	*ground
	bug Bug
}

func plant(bug Bug, ground *ground) anyStore {
	if bug == NoBug {
		return ground
	}
	return &planted{ground, bug}
}

// exec changes the database. That it cannot must not be taken for the store's
// answer: then the bug would not be there at all.
func (s *planted) exec(text string, args ...any) {
	if _, err := s.db.Exec(text, args...); err != nil && !errors.Is(err, sqlite3.BUSY) {
		panic(fmt.Sprintf("sim: the bug %q cannot be planted: %v", s.bug, err))
	}
}

// standSQL puts an engine into the roster.
const standSQL = `insert into stint_engines (token, locked) values (?, 0) on conflict (token) do nothing`

func (s *planted) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	c, err := s.Store.Claim(ctx, req)
	if s.bug == bugFence && errors.Is(err, store.ErrBuried) {
		s.exec(standSQL, int64(req.Engine))
		c, err = s.Store.Claim(ctx, req)
		s.exec(`delete from stint_engines where token = ?`, int64(req.Engine))
	}
	c.Entries = s.welcome(c.Entries)
	return c, err
}

func (s *planted) Bury(ctx context.Context, b store.Burial, judge func(e *store.Entry, begun bool) store.Completion) (int, error) {
	if s.bug == bugMurder {
		b.Unless = 0
	}
	n, err := s.Store.Bury(ctx, b, func(e *store.Entry, begun bool) store.Completion {
		x := judge(e, begun)
		switch s.bug {
		case bugJudge:
			x.Next = nil
		case bugForgiven:
			if x.Outcome == stint.OutcomeLost && x.Next != nil {
				x.Next.Attempt, x.Next.Losses = e.Attempt, e.Losses
			}
		}
		return x
	})
	if s.bug == bugGhost && err == nil {
		s.exec(standSQL, int64(b.Engine))
	}
	return n, err
}

func (s *planted) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	list, err := s.Store.Engines(ctx)
	if s.bug == bugMurder {
		for i := range list {
			list[i].TimeToLive /= 20 // nobody beats that often
		}
	}
	return list, err
}

func (s *planted) Held(ctx context.Context, engine store.EngineID, serial int64) ([]store.Claim, error) {
	if s.bug == bugHeld {
		return nil, nil
	}
	return s.Store.Held(ctx, engine, serial)
}

func (s *planted) Heartbeat(ctx context.Context, engine store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	switch s.bug {
	case bugLow:
		b.Low++
	case bugHides:
		b = s.unannounced(b)
	}
	return s.Store.Heartbeat(ctx, engine, b)
}

func (s *planted) Promote(ctx context.Context, from time.Time, limit int) (store.Promotion, error) {
	p, err := s.Store.Promote(ctx, from, limit)
	if s.bug == bugPromote && err == nil && p.Moved == 0 && p.Next > 0 && p.Next < 20*time.Millisecond {
		s.exec(`delete from stint_waiting where job = (select job from stint_waiting order by due limit 1)`)
	}
	return p, err
}

// hides tells whether a process does not see that a call failed.
func (b Bug) hides(o op, err error) bool {
	switch {
	case err == nil || errors.Is(err, errGone):
		return false
	case b == bugFlush:
		return o == opFinish && !errors.Is(err, store.ErrBuried)
	}
	return b == bugBeat && o == opBeat
}
