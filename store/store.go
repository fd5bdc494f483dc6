// Package store is the contract of a store: the roles that it plays, the values that it
// is given and gives back, and what follows from the end of an attempt.
//
// A store is a set of small roles, each with a file of its name:
//
//	for engines    [stint.Enqueuer] [Claimer] [Finisher] [Roster] [Promoter] [RetryDecider]:
//	               together a [Store]
//	beside these   [Scheduler] [Leaser] [Retainer] [ClaimedEnqueuer] [TxFinisher]
//	               [Limiter] [StepKeeper]
//	for people     [Inspector] [Canceller] [Operator] [Pauser] [ScheduleKeeper] [ChangeKeeper]
//	               [StepReader] [LogReader] [Signaler] [SignalReader]
//	               [Questioner] [QuestionReader]
//	for operators  [Migrator] [Auditor]
//	where it can   [Awaiter] [Listener] [IdleNotifier] [Clock] [LivenessLocker]
//	               [SessionTerminator] [OrphanRecoverer] [History]
//
// Package report has the roles that figures and the doctor need. The doc comments are the
// promise, and package storetest proves it of every store.
//
// Everything that changes what becomes of a job goes through two writes: finish, which
// appends a [Completion] and at most one [Next], and promote, which moves what is due
// from waiting to the log. What follows from the end of an attempt is decided by one pure
// function, [Conclude].
package store

import (
	"context"
	"time"

	"github.com/stint-go/stint"
)

// Store is what an engine needs of a database. Producers need [stint.Enqueuer]
// only, people [Inspector]; every consumer accepts the narrowest role. The
// contract of each role is proven for every store by package storetest.
//
// All methods may be called concurrently unless they say otherwise.
type Store interface {
	stint.Enqueuer
	Claimer
	Finisher
	Roster
	Promoter
	RetryDecider
}

// Clock is a store with a clock of its own, which is then the one that decides
// everything that is compared between machines. Without it the clock of this
// machine does.
type Clock interface {
	Now(ctx context.Context) (time.Time, error)
}
