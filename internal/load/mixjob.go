package load

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stint-go/stint"
)

// Where jobs of a mix go: most into few queues, and few before all others.
var (
	mixQueues     = []string{"mail", "mail", "mail", "reports", "reports", "default"}
	mixPriorities = []int{-10, 0, 0, 0, 0, 0, 10, 10, 10, 10}
)

// drawn is all that chance says of a job of a mix.
type drawn struct {
	queue    string
	priority int
	args     mixArgs
	delay    time.Duration
}

// draw depends on nothing but the seed and the job's number: not on who
// enqueues it, nor when.
func (m *mix) draw(i int64) drawn {
	chance := rand.New(rand.NewPCG(m.Seed, uint64(i)))
	d := drawn{
		queue:    mixQueues[chance.IntN(len(mixQueues))],
		priority: mixPriorities[chance.IntN(len(mixPriorities))],
		args:     mixArgs{Work: within(chance, m.Work), Blank: string(m.blank[:within(chance, m.Args)])},
	}
	for d.args.Fails <= mixRetries && chance.Float64() < m.Failing {
		d.args.Fails++
	}
	if chance.Float64() < m.Scheduled && m.Ahead > 0 {
		d.args.Later = true
		d.delay = 1 + time.Duration(chance.Int64N(int64(m.Ahead)))
	}
	return d
}

// within draws one of a range.
func within[T int | time.Duration](chance *rand.Rand, r Range[T]) T {
	return r.From + T(chance.Int64N(int64(r.To-r.From)+1))
}

// job makes the job of that number.
func (m *mix) job(i int64) stint.NewJob {
	d := m.draw(i)
	args, _ := json.Marshal(d.args) // numbers and letters
	// What they are beside the blank counts as part of their size.
	if over := len(args) - len(d.args.Blank); over > 0 {
		d.args.Blank = d.args.Blank[:max(0, len(d.args.Blank)-over)]
		args, _ = json.Marshal(d.args)
	}
	job := mixed.Job(args)
	job.Queue, job.Priority, job.Delay = d.queue, d.priority, d.delay
	return job
}

// verify asks the store whether every job ended as it was to, in as many
// attempts, and whether no other attempt was made.
func (m *mix) verify(ctx context.Context, store stint.Store, r *MixResult) error {
	states := map[stint.State]int64{}
	attempts := map[stint.Outcome]int64{}
	for i := range int64(m.N) {
		fails := m.draw(i).args.Fails
		attempts[stint.OutcomeFailed] += int64(fails)
		if fails > mixRetries {
			states[stint.Failed]++
		} else {
			states[stint.Completed]++
			attempts[stint.OutcomeCompleted]++
		}
	}
	r.Completed, r.Failed = states[stint.Completed], states[stint.Failed]
	if n := total(attempts); r.Attempts != n {
		return fmt.Errorf("the handlers were called %d times for %d attempts", r.Attempts, n)
	}
	ok, err := ended(ctx, store, states)
	if !ok || err != nil {
		return err
	}
	keeper, ok := store.(stint.Statistician)
	if !ok {
		return nil
	}
	all, err := keeper.Stats(ctx, stint.StatsFilter{})
	if err != nil {
		return err
	}
	told := map[stint.Outcome]int64{}
	for _, s := range all {
		told[s.Outcome] += s.Attempts
	}
	for outcome := range merged(attempts, told) {
		if attempts[outcome] != told[outcome] {
			return fmt.Errorf("the store tells of %d attempts that were %s, and %d were to be", told[outcome], outcome, attempts[outcome])
		}
	}
	r.Verified = true
	return nil
}

// merged has the keys of both.
func merged(a, b map[stint.Outcome]int64) map[stint.Outcome]bool {
	all := map[stint.Outcome]bool{}
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return all
}
