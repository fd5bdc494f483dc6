package sim

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/store"
)

// links is in how many of 100 seeds there are flows, and jobs that do several things.
const links = 40

// linked tells whether there are in a seed.
func linked(seed Seed) bool { return seed.Age < Unlinked && roll(seed.N, "flows", 0).chance(links) }

// plans is how many flows, or jobs without one, are enqueued in such a seed.
const plans = 14

// plan enqueues flows, and jobs that do several things, over a time.
func (p *process) plan(d dice, over time.Duration) {
	var second sync.WaitGroup // thoughts
	defer second.Wait()
	for n := range plans {
		if !p.w.rest(d.between(0, 2*over/plans)) || !p.awake() {
			return
		}
		name := fmt.Sprintf("%s-%d", p.name, n)
		s := &sketch{seed: p.w.seed, dice: d}
		send := func(ctx context.Context, c *stint.Client) ([]stint.ID, error) { return c.EnqueueMany(ctx, s.jobs) }
		if d.chance(30) {
			s.job(name)
		} else {
			send = s.draw(name)
		}
		var intent check.Intent
		p.log(func(w *check.Writer) { intent = w.Intend(s.keys...) })
		for i, h := range s.whims {
			p.w.expect(s.keys[i], h)
		}
		ids, err := p.sendJobs(d, p.w.ground.db, send)
		p.hears(intent, ids, err)
		if err == nil {
			p.thinkAgain(&second, s.whims, s.jobs, ids)
			if s.whim != nil {
				second.Go(func() {
					if s.whim.comes(p.w, 0) {
						s.whim.comeTrue(p, s.root.ID(), append(ids, s.root.ID()))
					}
				})
			}
		}
	}
}

// sketch is what one client enqueues together: jobs, or a flow.
type sketch struct {
	seed  Seed
	dice  dice
	keys  []string
	jobs  []stint.NewJob
	whims []*whim

	nodes []*stint.Node // of the jobs
	needs []*stint.Node // what a job can need: these, and flows within the flow
	root  *stint.Node
	whim  *whim // about the flow
}

// job adds a job, which has acts more often than not.
func (s *sketch) job(key string) stint.NewJob {
	job, a := drawPlain(roll(s.seed.N, key, 0), key)
	h := twist(roll(s.seed.N, key, 1), &job, &a)
	h = twistMore(roll(s.seed.N, key, 2), &job, &a, h)
	d := roll(s.seed.N, key, 4)
	if d.chance(60) {
		a.Acts, a.Early = drawActs(d, true), false // a step would wait for the transaction
	}
	if d.chance(15) {
		a.Last = lastGiveUp
	}
	job.Args, _ = json.Marshal(a)
	s.keys, s.jobs, s.whims = append(s.keys, key), append(s.jobs, job), append(s.whims, h)
	return job
}

// draw makes a flow, and returns what enqueues it.
func (s *sketch) draw(name string) func(ctx context.Context, c *stint.Client) ([]stint.ID, error) {
	d := s.dice
	kind, timeout := "flow", time.Duration(0)
	if d := roll(s.seed.N, name, 7); d.chance(15) {
		kind, timeout = timed, d.between(time.Second, time.Minute)
	}
	f := stint.NewFlow(kind, stint.Timeout(timeout))
	s.grow(f, name, 1+d.IntN(4))
	if d.chance(25) {
		in := f.Flow("inner", "inner")
		s.grow(in, name+".in", d.IntN(4))
		s.needs = append(s.needs, in.Node())
	}
	s.grow(f, name+".out", d.IntN(4))
	if s.root = f.Node(); d.chance(25) && timeout == 0 {
		s.whim = newWhim(d)
		s.whim.does = []wish{itCancelled, itAgain, itGone}[d.IntN(3)]
	}
	return func(ctx context.Context, c *stint.Client) ([]stint.ID, error) {
		_, err := f.Enqueue(ctx, c)
		ids := make([]stint.ID, len(s.nodes))
		for i, n := range s.nodes {
			ids[i] = n.ID()
		}
		return ids, err
	}
}

// grow adds jobs to a flow that need those before them: none, chains, joins.
func (s *sketch) grow(f *stint.Flow, name string, n int) {
	for i := range n {
		name := fmt.Sprintf("%s.%d", name, i)
		node := f.Add(name, s.job(name), needSome(s.dice, s.needs)...)
		s.nodes, s.needs = append(s.nodes, node), append(s.needs, node)
	}
}

// needSome chooses what a job needs, and what it wants of that.
func needSome(d dice, nodes []*stint.Node) (opts []stint.Option) {
	wants := []func(...*stint.Node) stint.Option{stint.Needs, stint.Needs, stint.NeedsEnd, stint.NeedsFailure}
	for _, n := range nodes {
		if d.chance(40) {
			opts = append(opts, wants[d.IntN(len(wants))](n))
		}
	}
	return opts
}

// into adds jobs to a flow, or to the job that calls them, for a handler: what its names have is there already. Of those
// that were deleted the names are free.
func (p *process) into(jobs []stint.NewJob, add func() ([]stint.Receipt, error)) ([]stint.Receipt, error) {
	intents := make([]check.Intent, len(jobs))
	p.log(func(w *check.Writer) {
		for i := range jobs {
			var a args
			must(0, json.Unmarshal(jobs[i].Args, &a))
			intents[i] = w.Intend(a.Key)
		}
	})
	receipts, err := add()
	for i := range jobs {
		if err == nil && receipts[i].Duplicate {
			p.hears(intents[i], nil, errRolledBack)
		} else if err == nil {
			p.hears(intents[i], []stint.ID{receipts[i].ID}, nil)
		}
	}
	return receipts, err
}

// mayBeginAfter checks that what a job needs has ended when an attempt of it begins. What was retried since did so before.
func (w *world) mayBeginAfter(p *process, job *stint.Job) {
	if !w.linked || job.Flow == 0 {
		return
	}
	const openSQL = `
	select ifnull(max(n.parent), 0) from stint_needs n join stint_entries e on e.pos = n.parent
	where n.child = ? and not exists (select 1 from stint_executions x where ifnull(x.job, x.pos) in (e.pos, e.recovered) and x.final)`
	var open stint.ID
	if err := w.ground.db.QueryRow(openSQL, int64(job.ID)).Scan(&open); err != nil {
		w.wrong("job %d: look what it needs: %v", job.ID, err)
	} else if open != 0 {
		w.wrong("job %d: %s began it, and job %d has not ended, which it needs", job.ID, p.name, open)
	}
}

// timed is the kind of flows that have a timeout, which may cancel them.
const timed = "timed"

// upSQL finds a job, the flows around it, and those that called it, also of what was deleted, and whether it has a timeout.
const upSQL = `
with recursive up(job) as (
  select ?1
  union
  select ifnull((select flow from stint_entries where pos = up.job), (select flow from sim_gone_entries where pos = up.job)) from up where job is not null)
select job, exists (select 1 from stint_entries where pos = up.job and kind = 'timed') or exists (select 1 from sim_gone_entries where pos = up.job and kind = 'timed')
from up where job is not null`

// wasAsked tells whether anybody, or a timeout, may have cancelled a job, a flow that it is in, or a job that called it.
func (w *world) wasAsked(job stint.ID) bool {
	if _, asked := w.cancels.of(job); asked || !w.linked {
		return asked
	}
	asked := false
	must(0, each(context.Background(), w.ground.db, upSQL, func(rows *sql.Rows) error {
		var id stint.ID
		var late bool
		err := rows.Scan(&id, &late)
		_, one := w.cancels.of(id)
		asked = asked || one || late
		return err
	}, int64(job)))
	return asked
}

// checkFlows checks what the auditor does not know: that nothing was added or called twice, and what people were told
// who sent signals and gave answers.
func (j *judging) checkFlows(w *world) {
	if !w.linked {
		return
	}
	type place struct {
		flow stint.ID
		key  string
	}
	in := map[place]stint.ID{}
	for id, t := range j.told {
		at := place{t.info.Flow, t.Key}
		if t.info.Flow == 0 || t.info.IsFlow || t.info.Origin.Recovered != 0 || j.gone[id] {
			continue // of what was deleted the name was free
		}
		if other := in[at]; other != 0 {
			j.wrong(id, "it is %s in job %d, as job %d is", t.Key, t.info.Flow, other)
		}
		in[at] = id
	}
	j.checkMessages(w)
}

// Node, Needed and FlowGraph implement [store.FlowReader].

func (p *process) Node(ctx context.Context, flow stint.ID, name string) (stint.ID, error) {
	return ask(ctx, p, opSteps, func(ctx context.Context) (stint.ID, error) { return p.store.Node(ctx, flow, name) })
}

func (p *process) Needed(ctx context.Context, job, after stint.ID, limit int) ([]stint.NeededJob, error) {
	return ask(ctx, p, opSteps, func(ctx context.Context) ([]stint.NeededJob, error) { return p.store.Needed(ctx, job, after, limit) })
}

func (p *process) FlowGraph(ctx context.Context, flow stint.ID, jobs, needs int) (store.FlowGraph, error) {
	return p.store.FlowGraph(ctx, flow, jobs, needs)
}

// inherits tells whether a job was cancelled for the sake of another one.
func inherits(reason string) bool {
	return slices.ContainsFunc([]string{"its flow ", "needs job ", "which called it, was cancelled"}, func(part string) bool { return strings.Contains(reason, part) })
}
