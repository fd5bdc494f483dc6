package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// demandTests are about what waits for engines, and how many would keep up with it.
var demandTests = []test{
	{"What waits, arrived and runs is told by queue, kind and limits", func(t *T) {
		as[report.DemandStore](t)
		w := t.join("k")
		t.rules(map[string]string{"smtp": "2"})
		t.enqueue(jobs(3, "k")...)
		w.Claim(lane(stint.DefaultQueue), 1)
		again := t.enqueue(job("k", stint.Queue("again"), stint.Retry(retry.Fixed(3, 10*time.Second))), job("k", stint.Queue("again"), stint.Retry(retry.Fixed(3, time.Hour))))
		w.Finish(failed, w.Claim(lane("again"), 2)...)
		t.enqueue(slices.Concat(jobs(2, "k", stint.Limited("smtp")), jobs(4, "k", stint.Limited("3*smtp", "api")), jobs(1, "other", stint.Queue("q")))...)
		t.enqueue(job("k", stint.Delay(20*time.Second)), job("k", stint.Delay(time.Hour)), job("other", stint.Limited("smtp"), stint.Delay(10*time.Second)))
		t.demand(nil, 30*time.Second,
			"again/k: 2 arrived, 1 due, 1 later", "default/k: 2 ready, 3 arrived, 1 running, 1 due", "default/k 3*smtp+api: 4 ready, 4 arrived", "default/k smtp: 2 ready, 2 arrived",
			"default/other smtp: 1 due", "q/other: 1 ready, 1 arrived")
		t.demand([]string{"q", "nobody's"}, 30*time.Second, "q/other: 1 ready, 1 arrived")
		d := t.demand(nil, 5*time.Second, "again/k: 2 arrived", "default/k: 2 ready, 3 arrived, 1 running", "default/k 3*smtp+api: 4 ready, 4 arrived", "default/k smtp: 2 ready, 2 arrived", "q/other: 1 ready, 1 arrived")
		rules := map[string]string{}
		for _, g := range d.Gates {
			rules[g.Gate] = g.Rule.String()
		}
		want := map[string]string{"api": "any", "smtp": "2", "queue=again": "any", "queue=default": "any", "queue=q": "any"}
		expect(t, maps.Equal(rules, want), "the gates are %v, want %v", rules, want)
		t.retry(stint.RerunOptions{}, again[0])
		t.demand([]string{"again"}, 5*time.Second, "again/k: 1 ready, 2 arrived, 1 again")
	}},
	{"A lane is told of as a whole, though its first jobs are read only", func(t *T) {
		as[report.DemandStore](t)
		n := report.SampleOf(1) + 1000
		for at := 0; at < n; at += 1000 {
			t.enqueue(jobs(1000, "k")...)
		}
		d := t.demand(nil, 0, fmt.Sprintf("default/k: %d ready, %d arrived", n, report.SampleOf(1)))
		for _, g := range d.Groups {
			expect(t, g.Ready == 0 || between(g.Oldest, t.clock().Add(-time.Minute), t.clock()), "the oldest is of %v", g.Oldest)
		}
	}},
	{"What waits until an engine looks at it is told", func(t *T) {
		as[report.DemandStore](t)
		c := t.awaiting()
		c.takes("x", "a", "")
		c.parks(time.Hour, `{"x":"a"}`)
		t.promoteAll(0)
		looks := func() bool { // or a store has looked itself, and the job is due
			d := must(as[report.DemandStore](t).Demand(t.ctx, nil, 0))(t)
			return d.Looks || slices.ContainsFunc(d.Groups, func(g report.DemandGroup) bool { return g.Due+g.Ready > 0 })
		}
		expect(t, !looks(), "before the signal there is something to look at")
		t.sends(c.id, "a", `1`)
		expect(t, looks(), "after the signal there is nothing to look at")
	}},
	{"Engines are wanted for what they could run, and what they could not is named", func(t *T) {
		scale := func(f report.ScaleFilter) report.Scaling {
			t.Helper()
			return must(report.Scale(t.ctx, as[report.ScaleStore](t), f))(t)
		}
		empty := scale(report.ScaleFilter{})
		expect(t, empty.Engines == 0 && empty.Slots == 0 && empty.Backlog == 0 && empty.Blocked == 0 && empty.Why != nil && empty.Queues != nil, "of nothing it says %+v", empty)
		w := t.join("k")
		w.Info.Slots = 1
		t.rules(map[string]string{"erp": "2"})
		t.permits(w, taking(2, store.TakingGate{Gate: "erp"}))
		t.enqueue(slices.Concat(jobs(60, "k"), jobs(7, "k", stint.Queue("off")), jobs(5, "nobody"), jobs(100, "k", stint.Limited("erp")), jobs(30, "k", stint.Delay(10*time.Second)), jobs(1, "k", stint.Delay(time.Hour)))...)
		must(as[store.Pauser](t).Pause(t.ctx, "off", "ann", ""))(t)
		s := scale(report.ScaleFilter{Slots: 2, Target: 30 * time.Second, Startup: 20 * time.Second})
		// A second each: 90 of those in 30 s take 3 slots, and of the limit 60 in 2 slots.
		expect(t, s.Engines == 3 && s.Slots == 5 && s.Backlog == 120 && s.Due == 30 && s.Blocked == 52 && s.Running == 1, "it says %+v", s)
		for _, why := range []string{"limit erp is full (2 at once): more engines change nothing for 40 jobs", "queue off is paused: more engines change nothing for 7 jobs", "performs kind nobody: more engines change nothing for 5 jobs"} {
			expect(t, strings.Contains(strings.Join(s.Why, "\n"), why), "it says %q, want %q", s.Why, why)
		}
		s = scale(report.ScaleFilter{Queues: []string{"off"}, Slots: 2})
		expect(t, s.Engines == 0 && s.Blocked == 7 && s.Backlog == 0, "of a paused queue it says %+v", s)
		w.Leave()
	}},
	{"Without engines, one is wanted for what schedules make while it starts, by the slots of the last", func(t *T) {
		as[store.Scheduler](t)
		scale := func() report.Scaling {
			t.Helper()
			return must(report.Scale(t.ctx, as[report.ScaleStore](t), report.ScaleFilter{Startup: time.Minute}))(t)
		}
		w := t.join("k")
		w.Leave()
		t.declare(every("s"))
		s := scale()
		expect(t, s.Engines == 1 && s.Due == 0, "before its next occurrence is known it says %+v", s)
		t.fire(store.FireRequest{}, ticking("s", time.Hour, 1))
		s = scale()
		expect(t, s.Engines == 0 && s.Due == 0 && s.PerEngine == w.Info.Slots, "of an occurrence in an hour it says %+v", s)
		t.declare(every("soon"))
		t.fire(store.FireRequest{}, ticking("soon", 30*time.Second, 1))
		s = scale()
		expect(t, s.Engines == 1 && s.Due == 1, "of an occurrence in half a minute it says %+v", s)
	}},
}

// demand checks what waits: queue/kind limits, and the numbers that are not 0.
func (t *T) demand(queues []string, within time.Duration, want ...string) report.Demand {
	t.Helper()
	d := must(as[report.DemandStore](t).Demand(t.ctx, queues, within))(t)
	sums := map[string]report.DemandGroup{}
	for _, g := range d.Groups {
		name := g.Queue + "/" + g.Kind
		if g.Limits != "" {
			name += " " + strings.ReplaceAll(g.Limits, "\n", "+")
		}
		s := sums[name]
		s.Ready, s.Due, s.Retries, s.Later, s.Arrived, s.Running = s.Ready+g.Ready, s.Due+g.Due, s.Retries+g.Retries, s.Later+g.Later, s.Arrived+g.Arrived, s.Running+g.Running
		sums[name] = s
	}
	var got []string
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		g, numbers := sums[name], []string{}
		for _, n := range []struct {
			n    int64
			what string
		}{{g.Ready, "ready"}, {g.Arrived, "arrived"}, {g.Running, "running"}, {g.Due, "due"}, {g.Retries, "again"}, {g.Later, "later"}} {
			if n.n != 0 {
				numbers = append(numbers, fmt.Sprint(n.n, " ", n.what))
			}
		}
		got = append(got, name+": "+strings.Join(numbers, ", "))
	}
	equalAll(t, got, want, "there waits\n%q, want\n%q")
	return d
}
