// Package storetest is the conformance suite of the store contract: every
// sentence of the roles in package stint, as tests that a store passes or not.
//
// A store's own tests call [Run] with a [Harness], which says how to get at
// databases and what they can do:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, storetest.Harness{Open: …, Again: …, Begin: …})
//	}
//
// Each test gets a fresh, empty store and drives it as engines and producers
// do, mostly through [Worker]:
//
//	producer ──Enqueue──▶ store ◀──Look, Claim, Finish, Beat, Bury── Worker
//	                        │
//	                      Audit ──▶ [Facts] ──▶ check.Invariants, in each test's cleanup
//
// So a test says what it is about, and the invariants say the rest: whatever
// it did, no job may be lost, doubled, or in two states.
//
// The suite knows time only as it passes: waits are tens of milliseconds, and
// what is compared is the store's clock. Randomness has a seed, which a
// failing test prints and -storetest.seed takes.
package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// Store is what a store offers for the suite to prove. What it is beside that, of
// the roles in package stint that a store may have, is proven too.
type Store interface {
	store.Store
	store.Inspector
	store.Migrator
	store.Auditor
}

// Harness tells the suite how to get at a store and what it can do. Open,
// Again and Begin are required; a test that needs something else that is nil
// is skipped.
type Harness struct {
	// Open opens a store on a fresh, empty database of its own, with the
	// schema installed. It registers with t.Cleanup whatever must be closed.
	Open func(t testing.TB) Store

	// Again opens another handle on the database of a store that Open
	// returned, as another process would. It is called from many goroutines
	// at once, so it returns its errors.
	Again func(t testing.TB, of Store) (Store, error)

	// Begin begins a transaction on the database of a store, as a user's
	// program would: on a connection of its own, unrelated to the store's. A
	// test begins hundreds, up to twenty at once, so each gives its
	// connection back when it ends.
	Begin func(t testing.TB, of Store) (Tx, error)

	// BeginToFinish begins a transaction as Begin does, but one that an
	// outcome can be recorded in, where that asks for more: for an isolation,
	// say. Nil means that Begin's will do.
	BeginToFinish func(t testing.TB, of Store) (Tx, error)

	// SingleWriter says that an open transaction that wrote keeps all
	// others from writing, as in SQLite. Tests then never write beside one.
	SingleWriter bool

	// Pooled says that the store is reached by way of something that shares its sessions, so
	// that none of them tells that an engine lives. The tests of that are left out.
	Pooled bool

	// Pin holds a snapshot open, as a backup or a forgotten session does,
	// until release is called.
	Pin func(t testing.TB, of Store) (release func(), err error)

	// SetSchema makes the database say that a program of another version
	// installed the schema.
	SetSchema func(t testing.TB, of Store, installed, oldest int) error

	// Pass makes what ended, what people changed, and the keys in a database that
	// much older.
	Pass func(t testing.TB, of Store, d time.Duration) error
}

// Tx is a transaction of a user's program. It may also be a [Savepointer] and
// a [Preparer]. Once it has ended, Rollback does nothing; what it returns then
// is not looked at.
type Tx interface {
	// Tx is the transaction as the store's package wraps it.
	Tx() stint.Tx
	Commit() error
	Rollback() error
}

// Savepointer is a transaction that can be rolled back in part.
type Savepointer interface {
	Savepoint(name string) error
	RollbackTo(name string) error
}

// Preparer is a transaction that can be committed in two phases. After
// Prepare, Commit and Rollback decide what was prepared.
type Preparer interface {
	Prepare() error
}

// Run proves a store.
func Run(t *testing.T, h Harness) {
	for _, g := range []group{
		{"Enqueue", enqueueTests}, {"Tx", txTests}, {"Keys", keysTests}, {"Unique", slices.Concat(uniqueTests, startedTests)}, {"Correlation", correlationTests}, {"Beside", besideTests},
		{"Look", lookTests}, {"Since", lookSinceTests}, {"Claim", claimTests}, {"Lanes", claimLanesTests}, {"Late", lateTests},
		{"Finish", finishTests}, {"Record", recordTests}, {"Poison", poisonTests}, {"Successor", successorTests},
		{"Losses", lossesTests}, {"Expiry", expiryTests}, {"Faulty", faultyTests}, {"Undecided", undecidedTests}, {"Complete", completeTests}, {"Steps", stepTests}, {"Signals", slices.Concat(signalTests, wakeTests)}, {"Questions", questionTests}, {"Calls", callTests}, {"Logs", logTests}, {"Flows", slices.Concat(flowTests, flowEdgeTests, flowAgainTests, flowGraphTests)},
		{"Now", nowTests}, {"Cancel", cancelTests}, {"Await", awaitTests}, {"CancelClaimed", cancelClaimedTests}, {"CancelRace", cancelRaceTests},
		{"Retry", retryTests}, {"Delete", deleteTests}, {"OperateRace", operateRaceTests},
		{"Pause", pauseTests}, {"Schedules", schedulesTests}, {"Fire", fireTests}, {"Lease", leaseTests}, {"Retain", retainTests}, {"Age", ageTests}, {"Change", changeTests},
		{"Roster", rosterTests}, {"Bury", buryTests}, {"Former", formerTests}, {"BuryRace", buryRaceTests}, {"Hold", holdTests},
		{"Waiting", waitingTests}, {"Inspect", inspectTests}, {"History", historyTests}, {"Metrics", metricsTests}, {"Analytics", analyticsTests}, {"Demand", demandTests}, {"Stats", statsTests}, {"Errors", errorsTests}, {"SavedFilters", savedFilterTests},
		{"Migrate", migrateTests}, {"Listen", listenTests}, {"Limits", limitedTests}, {"Permits", permitTests}, {"Pauses", limitPauseTests}, {"Order", orderTests}, {"Optional", optionalTests}, {"Doctor", doctorTests},
		{"Interrupted", interruptedTests}, {"Concurrent", concurrentTests},
	} {
		t.Run(g.name, func(t *testing.T) {
			if g.name == "Hold" && h.Pooled {
				t.Skip("sessions are shared")
			}
			t.Parallel()
			for _, c := range g.tests {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(newT(t, h))
				})
			}
		})
	}
}

// group is the tests of one role of the contract.
type group struct {
	name  string
	tests []test
}

// test is one property. Its name is a sentence that is true of every store.
type test struct {
	name string
	run  func(t *T)
}

// Facts turns a ledger into what package check judges.
func Facts(l *store.Ledger) *check.Facts {
	f := &check.Facts{Buried: make(map[int64]time.Time, len(l.Buried))}
	holds := map[stint.ID]bool{}
	for _, job := range l.Holders {
		holds[job] = true
	}
	for _, j := range l.Jobs {
		f.Jobs = append(f.Jobs, check.Job{
			ID: int64(j.ID), State: string(j.State), Final: j.State.Final(), Schedule: j.Schedule, Occurrence: j.Occurrence,
			Flow: int64(j.Flow), IsFlow: j.IsFlow, Recovers: int64(j.Recovered),
			Keyless: j.Unique && !holds[j.ID],
		})
	}
	for _, e := range l.Entries {
		f.Entries = append(f.Entries, check.Entry{
			Pos: int64(e.Pos), Job: int64(e.Job), Lane: int64(e.Lane), Attempt: e.Attempt, Behind: e.Behind,
		})
	}
	unclaimed := map[store.Position]bool{}
	for _, e := range l.Entries {
		unclaimed[e.Pos] = e.Lane == store.NoLane
	}
	for _, x := range l.Executions {
		// A flow ends without an engine, too.
		decided := x.Final && unclaimed[x.Pos] && (x.Outcome == stint.OutcomeFailed || x.Outcome == stint.OutcomeCompleted && x.Nonce == 0)
		f.Executions = append(f.Executions, check.Execution{
			Pos: int64(x.Pos), Job: int64(x.Job), Attempt: x.Attempt, Outcome: x.Outcome.String(), Final: x.Final,
			Charged: (x.Outcome == stint.OutcomeFailed || x.Outcome == stint.OutcomeLost) && !decided, Decided: decided,
			Engine: int64(x.Engine), Nonce: int64(x.Nonce), Started: x.Started, Finished: x.Finished,
			Unbegun: x.Outcome == stint.OutcomeReturned && x.Slot == 0 && x.Reason != retry.ReasonMayHaveBegun && x.Reason != retry.ReasonBystander,
			Reason:  x.Reason,
		})
	}
	for _, c := range l.Claims {
		claim := check.Claim{Lane: int64(c.Lane), N: c.N, Nonce: int64(c.Nonce), Engine: int64(c.Engine)}
		for _, pos := range c.Positions {
			claim.Positions = append(claim.Positions, int64(pos))
		}
		f.Claims = append(f.Claims, claim)
	}
	for _, w := range l.Waiting {
		f.Waiting = append(f.Waiting, check.Waiting{Job: int64(w.Job), Attempt: w.Attempt})
	}
	wants := map[stint.Want]check.Want{stint.WantsSuccess: check.WantsSuccess, stint.WantsFailure: check.WantsFailure, stint.WantsEnd: check.WantsEnd}
	for _, n := range l.Needs {
		f.Needs = append(f.Needs, check.Need{Child: int64(n.Child), Parent: int64(n.Parent), Wants: wants[n.Wants]})
	}
	for _, job := range l.Kept {
		f.Kept = append(f.Kept, int64(job))
	}
	for _, token := range l.Engines {
		f.Roster = append(f.Roster, int64(token))
	}
	for token, at := range l.Buried {
		f.Buried[int64(token)] = at
	}
	return f
}

// Verify checks the invariants of everything in a store, as the cleanup of
// each test of the suite does.
func Verify(t testing.TB, s store.Auditor) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	l, err := s.Audit(ctx)
	if err != nil {
		t.Errorf("audit: %v", err)
		return
	}
	claimNumbers(t, l)
	for _, v := range check.Invariants(Facts(l)) {
		t.Error(v)
	}
}

// claimNumbers checks that the claims of each lane are numbered in their order:
// that is what turns a stale frontier into an error. Without a gap they are only
// while nothing was deleted.
func claimNumbers(t testing.TB, l *store.Ledger) {
	t.Helper()
	last := map[store.LaneID]int64{}
	for _, c := range l.Claims {
		expect(t, c.N > last[c.Lane], "in lane %d claim %d follows claim %d", c.Lane, c.N, last[c.Lane])
		last[c.Lane] = c.N
	}
}
