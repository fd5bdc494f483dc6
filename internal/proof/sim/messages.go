package sim

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// message is a signal that was sent, or an answer that was given.
type message struct {
	job      stint.ID
	step     string // the question that it answers; empty for a signal
	accepted bool   // as somebody was told
}

// wanted is what a job waits for, or will.
type wanted struct {
	job   stint.ID
	act   act
	step  string
	asked bool // the question is
}

const (
	// actorsSQL are the jobs that have acts and have not ended.
	actorsSQL = `
	select e.pos, e.args from stint_entries e
	where e.job is null and e.args like '%"acts"%' and not exists (select 1 from stint_executions x where ifnull(x.job, x.pos) = e.pos and x.final)`
	takenSQL   = `select name, result is null from stint_steps where job = ?`
	untakenSQL = `select name, count(*) from stint_signals s where job = ? and not exists (select 1 from stint_steps t where t.signal = s.n) group by name`
)

// correspond has people send signals to jobs, before and while they wait for them, and answer questions; all that
// is still wanted when the trouble is over.
func (p *process) correspond(d dice) {
	for p.w.rest(d.between(0, 1500*time.Millisecond)) {
		if all := p.w.wanted(); len(all) > 0 {
			p.write(d, all[d.IntN(len(all))], d.chance(10))
		}
	}
	for {
		select {
		case <-p.w.done:
			return
		case <-time.After(500 * time.Millisecond):
		}
		for _, one := range p.w.wanted() {
			p.write(d, one, false)
		}
	}
}

// wanted is what jobs wait for, or will, and what is not there.
func (w *world) wanted() (all []wanted) {
	type actor struct {
		id stint.ID
		args
	}
	var actors []actor
	ctx := context.Background()
	must(0, w.ground.each(ctx, actorsSQL, func(rows *sql.Rows) error {
		var a actor
		var text string
		if err := rows.Scan(&a.id, &text); err != nil {
			return err
		}
		actors = append(actors, a)
		return json.Unmarshal([]byte(text), &actors[len(actors)-1].args)
	}))
	for _, a := range actors {
		recorded, open, left := map[string]bool{}, map[string]bool{}, map[string]int{}
		must(0, each(ctx, w.ground.db, takenSQL, func(rows *sql.Rows) error {
			var name string
			var isOpen bool
			err := rows.Scan(&name, &isOpen)
			recorded[name], open[name] = !isOpen, isOpen
			return err
		}, int64(a.id)))
		must(0, each(ctx, w.ground.db, untakenSQL, func(rows *sql.Rows) error {
			var name string
			var n int
			err := rows.Scan(&name, &n)
			left[name] = n
			return err
		}, int64(a.id)))
		for i, act := range a.Acts {
			step := act.name(i)
			switch {
			case recorded[step]:
			case act.Do == doAsk && open[step]:
				all = append(all, wanted{a.id, act, step, true})
			case act.Do == doAwait && left[act.Signal] > 0:
				left[act.Signal]--
			case act.Do == doAwait:
				all = append(all, wanted{a.id, act, step, false})
			}
		}
	}
	return all
}

// write sends a signal, or more than one that only the first counts of, or answers a question.
func (p *process) write(d dice, one wanted, again bool) {
	client, value := stint.NewClient(p), fmt.Sprintf("%s %d", p.name, p.w.tick())
	m := &message{job: one.job}
	if one.asked {
		m.step = one.step
	}
	p.w.mu.Lock()
	p.w.messages[value] = m
	p.w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), d.between(time.Second, 10*time.Second))
	defer cancel()
	var err error
	switch {
	case one.asked:
		err = client.Answer(ctx, one.job, one.step, stint.Answer{Choice: "this", By: p.name, Comment: value})
	case d.chance(50):
		err = client.Signal(ctx, one.job, one.act.Signal, value)
	default:
		for range 3 {
			if err = client.SignalOnce(ctx, one.job, value, one.act.Signal, value); err == nil && !again || errors.Is(err, stint.ErrEnded) {
				break
			}
		}
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	m.accepted = err == nil
}

// Signal implements [store.Signaler].
func (p *process) Signal(ctx context.Context, tx stint.Tx, job stint.ID, s stint.Signal) error {
	_, err := ask(ctx, p, opMessage, func(ctx context.Context) (none, error) {
		err := p.store.Signal(ctx, tx, job, s)
		p.w.note(p.name, []int64{int64(job)}, "signal %q, %s: %v", s.Name, s.Value, err)
		return none{}, err
	})
	return err
}

// Signals implements [store.SignalReader].
func (p *process) Signals(ctx context.Context, job stint.ID) ([]stint.SentSignal, error) {
	return p.store.Signals(ctx, job)
}

// Answer implements [store.Questioner].
func (p *process) Answer(ctx context.Context, tx stint.Tx, job stint.ID, question string, a stint.Answer) error {
	_, err := ask(ctx, p, opMessage, func(ctx context.Context) (none, error) {
		err := p.store.Answer(ctx, tx, job, question, a)
		p.w.note(p.name, []int64{int64(job)}, "answer %q by %s: %v", question, a.Comment, err)
		return none{}, err
	})
	return err
}

// Questions implements [store.QuestionReader].
func (p *process) Questions(ctx context.Context, f store.QuestionFilter) ([]store.OpenQuestion, error) {
	return p.store.Questions(ctx, f)
}

// checkMessages checks that each signal that was accepted is there, and was taken by one step at most, and that an answer
// that was accepted is the one that counts.
func (j *judging) checkMessages(w *world) {
	there := map[stint.ID]map[string]int{}
	must(0, w.ground.each(context.Background(), `select job, value ->> '$' from stint_signals`, func(rows *sql.Rows) error {
		var id stint.ID
		var value string
		err := rows.Scan(&id, &value)
		if there[id] == nil {
			there[id] = map[string]int{}
		}
		there[id][value]++
		return err
	}))
	steps := map[stint.ID]map[string]string{} // by job and name
	for _, s := range j.steps {
		id := stint.ID(s.Job)
		if steps[id] == nil {
			steps[id] = map[string]string{}
		}
		steps[id][s.Name] = s.Value
	}
	for value, m := range w.messages {
		_, known := j.told[m.job]
		switch n := there[m.job][value]; {
		case j.gone[m.job] || !known:
		case m.step == "" && n > 1:
			j.wrong(m.job, "it has the signal %s %d times", value, n)
		case m.step == "" && m.accepted && n == 0:
			j.wrong(m.job, "somebody was told that it has the signal %s, and it has not", value)
		case m.step != "" && m.accepted && steps[m.job][m.step] != value:
			j.wrong(m.job, "somebody was told that %s answers %q, which %s does", value, m.step, steps[m.job][m.step])
		}
	}
	by := map[string]string{}
	for _, t := range j.history.Told {
		if !strings.HasPrefix(t.Step, doAwait) || t.Value == overdue {
			continue
		}
		if w.messages[t.Value] == nil {
			j.wrong(stint.ID(t.Job), "the step %q took %s, which nobody sent", t.Step, t.Value)
		}
		if other, twice := by[t.Value]; twice && other != t.Step {
			j.wrong(stint.ID(t.Job), "the steps %q and %q both took %s", other, t.Step, t.Value)
		}
		by[t.Value] = t.Step
	}
}
