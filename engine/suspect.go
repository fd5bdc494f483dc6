package engine

import (
	"context"
	"slices"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

// Levels of suspicion that an entry carries from the death of an engine that
// held it, until an attempt of it ends in any other way.
const (
	announced = 1 // a beat must announce it before it starts
	alone     = 2 // and an engine runs one of these at a time
)

// scene is what was running when an engine died: somebody among it may have
// killed it, and the others only stood by.
type scene struct {
	begun int  // announced and unfinished
	alone bool // one of these had been suspected before, and was run alone for it
}

// inspect looks at what a dead engine was doing.
func inspect(ctx context.Context, store stint.Store, engine stint.Token) (scene, error) {
	begun, err := store.Announced(ctx, engine)
	if err != nil {
		return scene{}, err
	}
	return scene{
		begun: len(begun),
		alone: slices.ContainsFunc(begun, func(e stint.Entry) bool { return e.Suspect >= alone }),
	}, nil
}

// judge says how an unfinished attempt of a dead engine ended.
//
// What had not been announced goes back uncharged, and suspect. What had is
// lost, and charged, and suspect too: it runs again at once, with the others.
// Should an engine die again with several of these running, there is no
// telling which of them it was: they go back uncharged this time, each to be
// run alone. What kills an engine that runs it alone has given itself away,
// and it alone is charged. So a job that kills its process ends after its
// budget, and no bystander is charged more than once.
func (c scene) judge(e *stint.Entry, begun bool) stint.Ending {
	returned := stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront, Suspect: announced}
	lost := stint.Ending{Outcome: stint.OutcomeLost, Err: retry.ErrLost, Part: stint.PartFront, Suspect: announced}
	switch {
	case !begun:
		return returned
	case e.Suspect >= alone, e.MaxLosses == 0:
		return lost
	case c.alone:
		return returned
	case e.Suspect < announced:
		return lost
	case e.Losses == 0 || c.begun == 1:
		lost.Suspect = alone
		return lost
	default:
		returned.Suspect = alone
		return returned
	}
}
