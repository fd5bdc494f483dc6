package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
)

// Bug is a fault to plant between the calls of the processes and the store.
type Bug string

// NoBug is the store as it is.
const NoBug Bug = ""

// Bugs are the faults that a simulation must find, each with what it stands
// for.
var Bugs = slices.Concat(jobBugs, scheduleBugs, retentionBugs)

var jobBugs = []Bug{
	bugFence,    // a store that lets the buried claim
	bugGhost,    // a burial that leaves the engine in the roster
	bugHeld,     // an engine that never asks what it holds
	bugJudge,    // a burial that forgets the successor
	bugFlush,    // a flush that is not repeated
	bugBeat,     // an engine that does not hear that it was buried, nor that it is cut off
	bugEnqueue,  // a client that repeats an enqueue of unknown fate
	bugPromote,  // a promoter that skips what is due
	bugLow,      // a beat that promises too much
	bugMurder,   // a watch that buries the living
	bugForgiven, // a burial that charges nobody, however often

	bugUnmarked, // a cancellation whose marker is dropped
	bugTooSoon,  // one that claims to have come in time when it did not
	bugSilent,   // a store that tells no engine whom to stop
	bugHandsOut, // one that hands out the cancelled like any other
	bugRetries,  // one that tries the cancelled again

	bugHollow,  // a completion that is acknowledged and was not made
	bugRepeats, // one that is made twice
	bugSplit,   // one that commits what the handler wrote by itself
	bugCertain, // one of unknown fate that is told to have failed

	bugUnswept, // a sweep that is skipped
	bugSweeps,  // one that takes from the living too

	bugEarly,   // a job that runs again before the time that was named
	bugCharges, // one that is charged for being run again
	bugOrphans, // one that does another again and does not name it
	bugErases,  // a deletion of what has not ended
	bugLingers, // one that is acknowledged and was not made
	bugRelapse, // one whose engine may bring the job back

	bugOpen,     // a pause that is acknowledged and was not made
	bugShut,     // a resumption likewise
	bugHushed,   // a store that tells no engine of paused queues
	bugHeedless, // an engine that knows of them and goes on
	bugCrowds,   // an engine with more slots for a queue than it was given

	bugEager,   // a job that is performed at once and claimed by nobody
	bugHides,   // one that no beat announces
	bugForgets, // one whose failure is acknowledged and not recorded

	bugPuts,  // a store that puts decisions off for ever
	bugHasty, // one that waits for none
	bugRules, // one that lets everybody decide
}

// scheduleBugs are those of schedules, which not every seed has.
var scheduleBugs = []Bug{
	bugAgain,    // a firing whose jobs are there, and whose schedule does not know of it
	bugMoves,    // one whose schedule has moved on, and whose jobs are not there
	bugUnbound,  // one that makes up for more than is wanted
	bugOmits,    // one that leaves out the newest of what it makes up for
	bugOverlaps, // one that takes a job that waits to be tried again for ended
	bugRestarts, // a declaration that forgets where the schedule stood
	bugRestless, // a pause of a schedule that is acknowledged and was not made
	bugMakesUp,  // a resumption that makes up for what came while it was paused
	bugStays,    // a removal that is acknowledged and was not made
	bugReturns,  // a schedule that is brought back by who fires it late
}

// retentionBugs are those of retention, which not every seed has either.
var retentionBugs = []Bug{
	bugHurries, // a retention that deletes what is too young
	bugReaps,   // one that deletes what waits
}

// fits tells whether a seed has what the bug is in.
func (b Bug) fits(seed Seed) bool {
	switch {
	case slices.Contains(scheduleBugs, b):
		return newCalendar(seed) != nil
	case slices.Contains(retentionBugs, b):
		return retentionOf(seed).Shortest() != stint.Forever
	}
	return true
}

const (
	bugFence    Bug = "claims for the buried"
	bugGhost    Bug = "leaves the buried in the roster"
	bugHeld     Bug = "hides what is held"
	bugJudge    Bug = "buries without successors"
	bugFlush    Bug = "records once or never"
	bugBeat     Bug = "beats in vain"
	bugEnqueue  Bug = "enqueues again"
	bugPromote  Bug = "skips what is due"
	bugLow      Bug = "promises too much"
	bugMurder   Bug = "buries the living"
	bugForgiven Bug = "charges nobody"

	bugUnmarked Bug = "drops the marker"
	bugTooSoon  Bug = "is never too late"
	bugSilent   Bug = "tells nobody to stop"
	bugHandsOut Bug = "hands out the cancelled"
	bugRetries  Bug = "tries the cancelled again"

	bugHollow  Bug = "acknowledges and does not complete"
	bugRepeats Bug = "completes twice"
	bugSplit   Bug = "commits before it completes"
	bugCertain Bug = "takes the unknown for a failure"

	bugUnswept Bug = "sweeps nothing"
	bugSweeps  Bug = "sweeps the living"

	bugEarly   Bug = "runs again too early"
	bugCharges Bug = "charges for running again"
	bugOrphans Bug = "forgets what is done again"
	bugErases  Bug = "deletes the unfinished"
	bugLingers Bug = "deletes nothing"
	bugRelapse Bug = "brings the deleted back"

	bugOpen     Bug = "pauses nothing"
	bugShut     Bug = "resumes nothing"
	bugHushed   Bug = "tells nobody of pauses"
	bugHeedless Bug = "begins what is paused"
	bugCrowds   Bug = "crowds the slots"

	bugEager   Bug = "hands out what nobody claimed"
	bugHides   Bug = "announces no guests"
	bugForgets Bug = "forgets what guests came to"

	bugPuts  Bug = "decides nothing"
	bugHasty Bug = "waits for no decision"
	bugRules Bug = "decides twice"

	bugAgain    Bug = "fires and stays"
	bugMoves    Bug = "goes on and does not fire"
	bugUnbound  Bug = "makes up for everything"
	bugOmits    Bug = "omits the newest"
	bugOverlaps Bug = "overlaps retries"
	bugRestarts Bug = "forgets where schedules stand"
	bugRestless Bug = "pauses no schedule"
	bugMakesUp  Bug = "makes up for pauses"
	bugStays    Bug = "removes no schedule"
	bugReturns  Bug = "brings schedules back"

	bugHurries Bug = "deletes the young"
	bugReaps   Bug = "deletes what waits"
)

// planted is the real store with a bug.
type planted struct {
	*ground
	bug Bug
}

func plant(bug Bug, ground *ground) store {
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

func (s *planted) Claim(ctx context.Context, req stint.ClaimRequest) (stint.Claim, error) {
	c, err := s.Store.Claim(ctx, req)
	if s.bug == bugFence && errors.Is(err, stint.ErrBuried) {
		s.exec(standSQL, int64(req.Engine))
		c, err = s.Store.Claim(ctx, req)
		s.exec(`delete from stint_engines where token = ?`, int64(req.Engine))
	}
	c.Entries = s.welcome(c.Entries)
	return c, err
}

func (s *planted) Bury(ctx context.Context, b stint.Burial, judge func(e *stint.Entry, begun bool) stint.Execution) (int, error) {
	if s.bug == bugMurder {
		b.Unless = 0
	}
	n, err := s.Store.Bury(ctx, b, func(e *stint.Entry, begun bool) stint.Execution {
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

func (s *planted) Engines(ctx context.Context) ([]stint.EngineInfo, error) {
	list, err := s.Store.Engines(ctx)
	if s.bug == bugMurder {
		for i := range list {
			list[i].TimeToLive /= 20 // nobody beats that often
		}
	}
	return list, err
}

func (s *planted) Held(ctx context.Context, engine stint.Token, serial int64) ([]stint.Claim, error) {
	if s.bug == bugHeld {
		return nil, nil
	}
	return s.Store.Held(ctx, engine, serial)
}

func (s *planted) Beat(ctx context.Context, engine stint.Token, b stint.Beat) (stint.Orders, error) {
	switch s.bug {
	case bugLow:
		b.Low++
	case bugHides:
		b = s.unannounced(b)
	}
	return s.Store.Beat(ctx, engine, b)
}

func (s *planted) Promote(ctx context.Context, from time.Time, limit int) (stint.Promotion, error) {
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
		return o == opFinish && !errors.Is(err, stint.ErrBuried)
	}
	return b == bugBeat && o == opBeat
}
