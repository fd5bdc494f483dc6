package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

const (
	// Levels of suspicion that an entry carries after the death of an engine that held it, until an
	// attempt of it ends in any other way.
	suspectAnnounced = 1 // a beat must announce it before it starts
	suspectAlone     = 2 // and an engine runs one of these at a time
)

// crashScene is what ran when an engine died: one of these may have killed it, the others are
// bystanders.
type crashScene struct {
	running int  // announced and unfinished
	alone   bool // one of these was a suspect that ran alone
}

// inspectCrash finds out what a dead engine was doing.
func inspectCrash(ctx context.Context, st store.Store, engine store.EngineID) (crashScene, error) {
	begun, err := st.Announced(ctx, engine)
	if err != nil {
		return crashScene{}, err
	}
	return crashScene{
		running: len(begun),
		alone:   slices.ContainsFunc(begun, func(e store.Entry) bool { return e.Suspect >= suspectAlone }),
	}, nil
}

// judge says how an unfinished attempt of a dead engine ended.
//
// What was not announced may have begun all the same: it goes back uncharged, as a suspect. What was
// announced is lost, charged, and a suspect: it runs again at once, with the others. If an engine
// dies again while several of these run, it is unknown which of them killed it: they go back
// uncharged this time, each to run alone. A job that kills the engine that runs it alone is proven
// guilty, and it alone is charged. So a job that kills its process ends after its budget, and no
// bystander is charged more than once.
func (c crashScene) judge(e *store.Entry, begun bool) store.Result {
	returned := store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront, Suspect: suspectAnnounced, Note: retry.ReasonBystander}
	lost := store.Result{Outcome: stint.OutcomeLost, Err: retry.ErrLost, Part: store.PartFront, Suspect: suspectAnnounced}
	switch {
	case !begun:
		returned.Note = retry.ReasonMayHaveBegun
		return returned
	case e.Suspect >= suspectAlone, e.MaxLosses == 0:
		return lost
	case c.alone:
		return returned
	case e.Suspect < suspectAnnounced:
		return lost
	case e.Losses == 0 || c.running == 1:
		lost.Suspect = suspectAlone
		return lost
	default:
		returned.Suspect = suspectAlone
		return returned
	}
}

// lostAttempts are attempts that were lost with their engine. A burial that is tried again judges
// twice.
type lostAttempts map[store.Position]*hookRun

// judge returns the function by which a store ends the attempts of a dead engine, and collects
// those that are lost.
func (c lostAttempts) judge(scene crashScene, clock *clock) func(*store.Entry, bool) store.Completion {
	return func(e *store.Entry, begun bool) store.Completion {
		x := store.Conclude(e, scene.judge(e, begun), clock.at(time.Now()), random01())
		delete(c, e.Pos)
		if x.Outcome == stint.OutcomeLost {
			c[e.Pos] = &hookRun{job: e.Job, done: x}
		}
		return x
	}
}

// reportLost reports lost attempts after the burial is recorded.
func (s *session) reportLost(lost lostAttempts) {
	for _, t := range slices.SortedFunc(maps.Values(lost), func(a, b *hookRun) int { return cmp.Compare(a.done.Pos, b.done.Pos) }) {
		s.emitFailed(&t.job, &t.done)
		s.callHooks(&t.job, &t.done, false)
	}
}
