package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// limitRules are the limits that programs declare. People change the one called tuned, and allow at most
// mostTuned at once.
var limitRules = map[string]stint.LimitRule{
	"serial": {AtOnce: 2},
	"key":    {AtOnce: 1},
	"order":  {AtOnce: 1, InOrder: true},
	"rate":   {Starts: 1, Per: 5 * time.Second},
	"tuned":  {AtOnce: 2},
}

const mostTuned = 4

// slowestAnswer is by how much a process may be wrong about the store's clock: an answer takes that long.
const slowestAnswer = 3100 * time.Millisecond

// bind has a job wait for limits.
func bind(d dice, job *stint.NewJob, a args) {
	if !d.chance(35) {
		return
	}
	switch d.IntN(6) {
	case 0:
		job.Limits = []string{"serial"}
	case 1:
		job.Limits = []string{fmt.Sprintf("key=%d", d.IntN(4))}
	case 2:
		if job.Queue == stint.DefaultQueue && !a.Asks { // in a queue that is paused to the end it would hold up the others
			job.Limits = []string{fmt.Sprintf("order=%d", d.IntN(4))}
		}
	case 3:
		if job.Kind != together { // a batch waits for its jobs
			job.Limits = []string{"rate"}
			if d.chance(30) {
				job.Limits[0] = "2*rate"
			}
		}
	case 4:
		job.Limits = []string{"tuned"}
	default:
		job.Limits = []string{"serial", fmt.Sprintf("key=%d", d.IntN(4))}
	}
}

// tune sets the rule of a limit, pauses it and takes that back while there is trouble.
func (w *world) tune(d dice) {
	p := w.newProcess("tuner", weathers[d.IntN(len(weathers))])
	ctx := context.Background()
	for !w.over.Load() {
		w.rest(d.between(time.Second, 15*time.Second))
		var err error
		switch d.IntN(5) {
		case 0, 1:
			_, err = ask(ctx, p, opRule, func(ctx context.Context) (none, error) {
				return none{}, w.store.SetLimit(ctx, "tuned", stint.LimitRule{AtOnce: 1 + d.IntN(mostTuned)}, p.name, "")
			})
		case 2:
			_, err = ask(ctx, p, opRule, func(ctx context.Context) (bool, error) { return w.store.ResetLimit(ctx, "tuned") })
		case 3:
			pause := store.Pause{For: d.between(time.Second, 5*time.Second), Trial: d.chance(30), By: p.name}
			_, err = ask(ctx, p, opRule, func(ctx context.Context) (none, error) { return none{}, w.store.PauseLimit(ctx, "tuned", pause) })
		case 4:
			_, err = ask(ctx, p, opRule, func(ctx context.Context) (bool, error) { return w.store.ResumeLimit(ctx, "tuned") })
		}
		w.note(p.name, nil, "the limit tuned is changed: %v", err)
	}
}

func (p *process) Permits(ctx context.Context, engine store.EngineID, req store.PermitRequest) ([]store.Hold, error) {
	return ask(ctx, p, opPermits, func(ctx context.Context) ([]store.Hold, error) {
		holds, err := p.store.Permits(ctx, engine, req)
		p.w.note(p.name, nil, "permits, engine %x: keep %v, take %v: %+v, %v", engine, req.Keep, req.Take, holds, err)
		return holds, err
	})
}

func (p *process) DeclareLimits(ctx context.Context, rules map[string]stint.LimitRule) error {
	_, err := ask(ctx, p, opRule, func(ctx context.Context) (none, error) { return none{}, p.store.DeclareLimits(ctx, rules) })
	return err
}

func (p *process) TidyPermits(ctx context.Context) (int, error) {
	return ask(ctx, p, opRule, p.store.TidyPermits)
}

func (p *process) PauseLimit(ctx context.Context, gate string, pause store.Pause) error {
	_, err := ask(ctx, p, opRule, func(ctx context.Context) (none, error) { return none{}, p.store.PauseLimit(ctx, gate, pause) })
	return err
}

func (p *process) ResumeLimit(ctx context.Context, gate string) (bool, error) {
	return ask(ctx, p, opRule, func(ctx context.Context) (bool, error) { return p.store.ResumeLimit(ctx, gate) })
}

// What only people call.

func (p *process) SetLimit(ctx context.Context, name string, rule stint.LimitRule, by, why string) error {
	return p.store.SetLimit(ctx, name, rule, by, why)
}

func (p *process) ResetLimit(ctx context.Context, name string) (bool, error) {
	return p.store.ResetLimit(ctx, name)
}

func (p *process) Unblock(ctx context.Context, gate string) ([]stint.ID, error) {
	return p.store.Unblock(ctx, gate)
}

func (p *process) Limits(ctx context.Context) ([]store.LimitInfo, error) { return p.store.Limits(ctx) }

func (p *process) Gates(ctx context.Context, limit string, most int) ([]store.GateInfo, error) {
	return p.store.Gates(ctx, limit, most)
}

// rounding is how much longer an attempt seems to take than it did: the store keeps microseconds.
const rounding = 2 * time.Microsecond

// turn is an attempt under a gate.
type turn struct {
	job      stint.ID
	from, to time.Time
	cost     int
}

// allowed is how many jobs may run at once, by each limit of one and its key.
func allowed(limits []string) map[string]int {
	all := map[string]int{}
	for _, limit := range limits {
		_, gate := stint.LimitCost(limit)
		if gate == "tuned" {
			all[gate] = mostTuned
		} else if n := limitRules[store.LimitOf(gate)].AtOnce; n > 0 {
			all[gate] = n
		}
	}
	return all
}

// checkLimits checks that attempts began no faster than a rule allows, and in its order, of those that their
// engines recorded: one that was frozen or cut off may go on while others have its permits, and records nothing.
func (j *judging) checkLimits(w *world) {
	gates := map[string][]turn{}
	for _, x := range j.ledger.Executions {
		if !x.Started.IsZero() && x.Slot > 0 && x.Outcome != stint.OutcomeLost {
			for _, limit := range j.told[x.Job].info.Limits {
				cost, gate := stint.LimitCost(limit)
				gates[gate] = append(gates[gate], turn{x.Job, x.Started, x.Finished, cost})
			}
		}
	}
	for gate, turns := range gates {
		slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to)) })
		rule := limitRules[store.LimitOf(gate)]
		if rule.Starts > 0 {
			j.checkRate(gate, turns, rule)
		}
		if rule.InOrder {
			j.checkOrder(gate, turns)
		}
	}
}

func (j *judging) checkRate(gate string, turns []turn, rule stint.LimitRule) {
	within := rule.Per - slowestAnswer
	for i, t := range turns {
		if i > 0 && rule.Burst == 0 {
			last := turns[i-1]
			if least := time.Duration(last.cost)*rule.Per/time.Duration(rule.Starts) - slowestAnswer; t.from.Sub(last.from) < least {
				j.wrong(t.job, "began %v after job %d, which counts as %d starts under %s", t.from.Sub(last.from), last.job, last.cost, gate)
				return
			}
		}
		if first := i - rule.Starts - rule.Burst; first >= 0 && t.from.Sub(turns[first].from) < within {
			j.wrong(t.job, "is one of %d that began in %v under %s, which allows %d and a burst of %d", i-first+1, t.from.Sub(turns[first].from), gate, rule.Starts, rule.Burst)
			return
		}
	}
}

// checkOrder checks that no job of a gate begins between the first start of another one and its end.
func (j *judging) checkOrder(gate string, turns []turn) {
	whole := map[stint.ID]turn{}
	for _, t := range turns {
		was, known := whole[t.job]
		if !known {
			was = t
		}
		was.to = t.to
		whole[t.job] = was
	}
	jobs := make([]turn, 0, len(whole))
	for _, t := range whole {
		jobs = append(jobs, t)
	}
	slices.SortFunc(jobs, func(a, b turn) int { return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to)) })
	for i := 1; i < len(jobs); i++ {
		if before := jobs[i-1]; jobs[i].from.Add(rounding).Before(before.to) {
			j.wrong(jobs[i].job, "began at %v although job %d of %s, which began before, ended at %v", jobs[i].from, before.job, gate, before.to)
			return
		}
	}
}
