package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/store"
)

// act is one of the things that a handler does one after the other.
type act struct {
	Do     string        `json:"do"`
	For    time.Duration `json:"for,omitempty"`    // it takes, or waits at most
	Signal string        `json:"signal,omitempty"` // the name of the signal that it awaits
}

// The acts. The name of each step begins with that of its act.
const (
	doStep  = "step"
	doSleep = "sleep"
	doAwait = "await"
	doAsk   = "ask"
	doCall  = "call"
	doAdd   = "add" // to the flow of the job
)

func (a act) name(i int) string { return fmt.Sprintf("%s %d", a.Do, i) }

// drawActs makes what a handler does. A job that was called calls none.
func drawActs(d dice, top bool) []act {
	all := make([]act, 1+d.IntN(4))
	for i := range all {
		a := &all[i]
		a.Do = []string{doStep, doStep, doSleep, doAwait, doAwait, doAsk, doCall, doAdd}[d.IntN(8)]
		if !top && (a.Do == doCall || a.Do == doAdd) {
			a.Do = doStep
		}
		switch a.Do {
		case doStep:
			a.For = d.between(0, time.Second)
		case doSleep:
			a.For = d.between(0, 20*time.Second)
		case doAwait, doAsk:
			a.Signal = []string{"go on", "stop"}[d.IntN(2)]
			if a.For = time.Hour; d.chance(30) {
				a.For = d.between(0, 30*time.Second)
			}
		}
	}
	return all
}

// overdue is what is written down of a wait whose time was over.
const overdue = "overdue"

// act has a job do all of its acts, each as a step. How is [check.Open] when it did, or its process is dead.
func (p *process) act(ctx context.Context, a args, job *stint.Job, run check.Running) (how check.How, err error) {
	for i, act := range a.Acts {
		name := act.name(i)
		value, err := p.do(ctx, a, job, act, name)
		switch end := (store.Result{}); {
		case !p.awake():
			return check.Open, errGone
		case err == nil && value != "":
			p.log(func(*check.Writer) { run.Told(name, value) })
			p.w.note(p.name, []int64{int64(job.ID)}, "%s: %s", name, value)
		case err == nil:
		case store.AsResult(err, &end) && end.Outcome == stint.OutcomeSnoozed:
			return check.Snooze, err
		default:
			if errors.Is(err, stint.ErrStepChanged) || errors.Is(err, stint.ErrInvalid) {
				p.w.wrong("job %d: %s on %s: %v", job.ID, name, p.name, err)
			}
			return p.failed(ctx, err)
		}
	}
	return check.Open, nil
}

// do does one act, and says what its step came to, in a word that no other step has, if that is of interest.
func (p *process) do(ctx context.Context, a args, job *stint.Job, act act, name string) (value string, err error) {
	switch act.Do {
	case doStep:
		return stint.Step(ctx, name, func(ctx context.Context) (string, error) {
			p.work(ctx, args{Work: act.For, Deaf: a.Deaf})
			return fmt.Sprintf("%s at %d", p.name, p.w.tick()), nil
		})
	case doSleep:
		return "", stint.Sleep(ctx, name, act.For)
	case doAwait:
		value, err = stint.AwaitAs[string](ctx, name, act.Signal, act.For)
	case doAsk:
		var answer stint.Answer
		answer, err = stint.Ask(ctx, name, "What now?", act.For, "this", "that")
		value = answer.Comment
	case doCall:
		return p.calls(ctx, job, a.Key+"/"+name, name)
	case doAdd:
		return "", p.adds(ctx, job, a.Key+"+"+name)
	}
	if errors.Is(err, stint.ErrNoSignal) || errors.Is(err, stint.ErrNoAnswer) {
		return overdue, nil
	}
	return value, err
}

// calls calls another job, which must have ended when the call returns.
func (p *process) calls(ctx context.Context, job *stint.Job, key, name string) (value string, err error) {
	called, a := drawPlain(roll(p.w.seed.N, key, 0), key)
	if d := roll(p.w.seed.N, key, 4); d.chance(30) {
		a.Acts = drawActs(d, false)
	}
	called.Args, _ = json.Marshal(a)
	err = stint.NewKind[args](called.Kind).Call(ctx, name, a, func(j *stint.NewJob) { *j = called })
	failed, did := errors.AsType[*stint.JobError](err)
	if err != nil && !did {
		return "", err
	}
	value = string(stint.Completed)
	if did {
		value = string(failed.State)
	}
	const openSQL = `
	select e.pos from stint_steps s join stint_entries e on e.pos = s.question ->> 'job'
	where s.job = ? and s.name = ? and not exists (select 1 from stint_executions x where ifnull(x.job, x.pos) = e.pos and x.final)`
	var open stint.ID
	if p.w.ground.db.QueryRow(openSQL, int64(job.ID), name).Scan(&open) == nil {
		p.w.wrong("job %d: it went on on %s, and job %d has not ended, which it called", job.ID, p.name, open)
	}
	return value, nil
}

// adds adds jobs to the flow of a job, if it is in one.
func (p *process) adds(ctx context.Context, job *stint.Job, key string) error {
	if job.Flow == 0 {
		return nil
	}
	d := roll(p.w.seed.N, key, 4)
	f := stint.FlowFrom(ctx)
	nodes := []*stint.Node{stint.Existing(job.ID)}
	for i := range 1 + d.IntN(3) {
		key := fmt.Sprintf("%s.%d", key, i)
		added, a := drawPlain(roll(p.w.seed.N, key, 0), key)
		added.Args, _ = json.Marshal(a)
		nodes = append(nodes, f.Add(key, added, needSome(d, nodes)...))
	}
	_, err := f.Enqueue(ctx, stint.ClientFrom(ctx))
	if errors.Is(err, stint.ErrEnded) && !p.w.wasAsked(job.Flow) || errors.Is(err, stint.ErrNotFound) || errors.Is(err, stint.ErrInvalid) {
		p.w.wrong("job %d: %s adds to the flow %d of it, which nobody cancelled: %v", job.ID, p.name, job.Flow, err)
	}
	return err
}

// stepping is what the database says of a step before it is recorded.
type stepping struct {
	recorded string // what is recorded of it; empty for nothing
	over     bool   // its attempt has ended, or its engine was buried
	signal   int64  // the first that it may take; 0 for none
}

const (
	steppingSQL = `
	select ifnull((select result from stint_steps where job = ?1 and name = ?2), ''),
	  exists (select 1 from stint_executions where pos = ?3) or not exists (select 1 from stint_engines where token = ?4),
	  ifnull((select min(n) from stint_signals s where s.job = ?1 and s.name = ?5 and not exists (select 1 from stint_steps t where t.signal = s.n)), 0)`
	recorderSQL = `select ifnull((select pos from stint_steps where job = ? and name = ?), 0)`
)

// RecordSteps implements [store.StepKeeper]. A step is recorded for an attempt that has not ended, and takes the first signal
// that is there.
func (p *process) RecordSteps(ctx context.Context, engine store.EngineID, steps []store.StepRecord) ([]stint.RecordedStep, error) {
	steps = slices.Clone(steps)
	return ask(ctx, p, opRecord, func(ctx context.Context) ([]stint.RecordedStep, error) {
		before := make([]stepping, len(steps))
		for i := range steps {
			before[i] = p.w.stepping(engine, &steps[i])
		}
		recorded, err := p.store.RecordSteps(ctx, engine, steps)
		for i := range recorded {
			p.w.checkStep(engine, &steps[i], before[i], &recorded[i])
			p.w.note(p.name, []int64{int64(steps[i].Job)}, "record %q of entry %d: %s, %v", steps[i].Name, steps[i].Pos, recorded[i].Result, err)
		}
		return recorded, err
	})
}

func (w *world) stepping(engine store.EngineID, r *store.StepRecord) (s stepping) {
	must(0, w.ground.db.QueryRow(steppingSQL, int64(r.Job), r.Name, int64(r.Pos), int64(engine), r.Signal).Scan(&s.recorded, &s.over, &s.signal))
	return s
}

func (w *world) checkStep(engine store.EngineID, r *store.StepRecord, before stepping, got *stint.RecordedStep) {
	result := string(got.Result)
	if result == "" {
		return
	}
	if before.recorded != "" {
		if result != before.recorded {
			w.wrong("job %d: the step %q came to %s, and is said to have come to %s", r.Job, r.Name, before.recorded, result)
		}
		return
	}
	var by store.Position
	must(0, w.ground.db.QueryRow(recorderSQL, int64(r.Job), r.Name).Scan(&by))
	if by == r.Pos && before.over && r.Question == nil {
		w.wrong("job %d: the step %q is recorded by entry %d, which engine %x does not hold any more", r.Job, r.Name, r.Pos, engine)
	}
	if r.Signal == "" || before.signal == 0 {
		return
	}
	var taken struct {
		Signal int64 `json:"signal"`
	}
	must(0, json.Unmarshal(got.Result, &taken))
	if taken.Signal != before.signal && w.stepping(engine, r).signal == before.signal {
		w.wrong("job %d: the step %q came to %s, and the signal %d was there and is not taken", r.Job, r.Name, result, before.signal)
	}
}

// RecordStepTx implements [store.StepKeeper].
func (p *process) RecordStepTx(ctx context.Context, tx stint.Tx, engine store.EngineID, step store.StepRecord) error {
	return p.store.RecordStepTx(ctx, tx, engine, step)
}

// Steps implements [store.StepReader].
func (p *process) Steps(ctx context.Context, job stint.ID) ([]stint.RecordedStep, error) {
	return ask(ctx, p, opSteps, func(ctx context.Context) ([]stint.RecordedStep, error) { return p.store.Steps(ctx, job) })
}

// came is what a recorded step came to, in the word that a handler writes down.
func came(name string, result []byte) string {
	var of struct {
		Value, Comment, State string
		Timeout               bool
	}
	var word string
	if json.Unmarshal(result, &word) == nil {
		return word
	}
	must(0, json.Unmarshal(result, &of))
	switch do, _, _ := strings.Cut(name, " "); {
	case of.Timeout:
		return overdue
	case do == doAwait:
		return of.Value
	case do == doAsk:
		return of.Comment
	}
	return of.State
}
