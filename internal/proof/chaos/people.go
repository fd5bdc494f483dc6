//go:build unix

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/store"
)

// People do to jobs and queues what people do: they look for some, and cancel
// them, run them again or delete them, whatever state these are in by then.
type People struct {
	Fleet *Fleet
	Store Store // past all proxies

	// Recovered counts what was made to be done again, and Deleted what is gone,
	// as they were told. Failed counts calls of which nobody knows what they did.
	Recovered, Deleted, Failed int
}

// queues are those of the workload.
var queues = []string{stint.DefaultQueue, "other", "third"}

// find chooses a few jobs of one of these states, which may be another by the
// time that something is done to them.
func (p *People) find(ctx context.Context, dice *rand.Rand, states ...stint.State) []stint.ID {
	found, err := p.Store.Find(ctx, store.Filter{States: states[dice.IntN(len(states)):][:1], Limit: 40})
	if err != nil || len(found) == 0 {
		return nil
	}
	ids := make([]stint.ID, 1+dice.IntN(5))
	for i := range ids {
		ids[i] = found[dice.IntN(len(found))]
	}
	return ids
}

// States to look in; those that are rarely seen stand there twice.
var (
	waitingStates = []stint.State{stint.Scheduled, stint.Retrying, stint.Retrying}
	endedStates   = []stint.State{stint.Failed, stint.Cancelled, stint.Completed}
	openStates    = []stint.State{stint.Scheduled, stint.Retrying, stint.Available, stint.Running, stint.Running}
)

// cancel cancels some jobs.
func (p *People) cancel(ctx context.Context, dice *rand.Rand) string {
	ids := p.find(ctx, dice, append(endedStates[:1:1], openStates...)...)
	if ids == nil {
		return ""
	}
	p.Fleet.Cancels(ids...)
	answers, err := p.Store.Cancel(ctx, ids, "a test's whim")
	told := check.Now()
	for id, a := range answers {
		if a == stint.CancelledNow {
			p.Fleet.Cancelled(id, told)
		}
	}
	return p.say("cancel", ids, answers, err)
}

// retry has jobs that wait run now or at another time.
func (p *People) retry(ctx context.Context, dice *rand.Rand) string {
	again := stint.RerunOptions{}
	if dice.IntN(3) == 0 {
		again.Delay = time.Duration(dice.IntN(3000)) * time.Millisecond
	}
	return p.again(ctx, "retry", p.find(ctx, dice, waitingStates...), again)
}

// recover has jobs that ended done again.
func (p *People) recover(ctx context.Context, dice *rand.Rand) string {
	again := stint.RerunOptions{Once: dice.IntN(2) == 0}
	if dice.IntN(3) == 0 {
		again.RunAt = time.Now().Add(time.Duration(dice.IntN(3000)-500) * time.Millisecond)
	}
	return p.again(ctx, "recover", p.find(ctx, dice, endedStates...), again)
}

func (p *People) again(ctx context.Context, what string, ids []stint.ID, again stint.RerunOptions) string {
	if ids == nil {
		return ""
	}
	answers, err := p.Store.Retry(ctx, ids, again)
	for _, a := range answers {
		if a.Answer == stint.RerunRecovered {
			p.Recovered++
		}
	}
	return p.say(what, ids, answers, err)
}

// delete deletes some jobs, most of which have ended.
func (p *People) delete(ctx context.Context, dice *rand.Rand) string {
	ids := p.find(ctx, dice, append(openStates[:1:1], endedStates...)...)
	if ids == nil {
		return ""
	}
	answers, err := p.Store.Delete(ctx, ids)
	told := check.Now()
	for id, a := range answers {
		if a == store.DeletedNow {
			p.Deleted++
			p.Fleet.Deletes(check.Deletion{Job: int64(id), At: told})
		}
	}
	if err != nil {
		for _, id := range ids {
			p.Fleet.Deletes(check.Deletion{Job: int64(id)})
		}
	}
	return p.say("delete", ids, answers, err)
}

// pause pauses a queue; who knows for how long.
func (p *People) pause(ctx context.Context, dice *rand.Rand) string {
	queue := queues[dice.IntN(len(queues))]
	done, err := p.Store.Pause(ctx, queue, "chaos", "a test's whim")
	return p.say("pause", queue, done, err)
}

// resume has a queue go on.
func (p *People) resume(ctx context.Context, dice *rand.Rand) string {
	queue := queues[dice.IntN(len(queues))]
	done, err := p.Store.Resume(ctx, queue)
	return p.say("resume", queue, done, err)
}

// Leave has all queues go on.
func (p *People) Leave(ctx context.Context) error {
	for _, queue := range queues {
		if _, err := p.Store.Resume(ctx, queue); err != nil {
			return fmt.Errorf("resume the queue %s: %w", queue, err)
		}
	}
	return nil
}

// say tells what was done, and counts what nobody knows the end of.
func (p *People) say(what string, to, answers any, err error) string {
	if err != nil {
		p.Failed++
		return fmt.Sprintf("%s %v: %v", what, to, err)
	}
	return fmt.Sprintf("%s %v: %v", what, to, answers)
}
