package report_test

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

var scaleNow = time.Date(2026, 3, 4, 5, 6, 30, 0, time.UTC)

// ran are attempts of a kind in each of some minutes: how many, how long each took and had waited.
func ran(kind string, outcome stint.Outcome, took, waited time.Duration, perMinute ...int) (all []report.Stats) {
	for i, n := range perMinute {
		s := report.Stats{Start: scaleNow.Truncate(time.Minute).Add(-time.Duration(i+1) * time.Minute), Kind: kind, Queue: "q", Outcome: outcome}
		for range n {
			s.Ran(took, waited, s.Start)
		}
		all = append(all, s)
	}
	return all
}

func engineOf(slots int, kinds ...string) store.EngineInfo {
	return store.EngineInfo{Slots: slots, Kinds: kinds, Beat: scaleNow, TimeToLive: time.Minute}
}

func rule(t *testing.T, gate, text string, change ...func(*store.GateState)) store.GateState {
	t.Helper()
	r, err := stint.ParseLimitRule(text)
	if err != nil {
		t.Fatal(err)
	}
	s := store.GateState{Gate: gate, Rule: r}
	for _, c := range change {
		c(&s)
	}
	return s
}

func TestEnginesAreWantedForWhatTheyCouldRun(t *testing.T) {
	const done, failed = stint.OutcomeCompleted, stint.OutcomeFailed
	second := func(kinds ...string) (all []report.Stats) { // attempts of a second, none of them lately
		for _, k := range kinds {
			all = append(all, ran(k, done, time.Second, 0, 100)...)
		}
		return all
	}
	ready := func(kind string, jobs int64) report.DemandGroup {
		return report.DemandGroup{Queue: "q", Kind: kind, Ready: jobs, Oldest: scaleNow.Add(-time.Minute)}
	}
	under := func(limits string, g report.DemandGroup) report.DemandGroup { g.Limits = limits; return g }
	for _, c := range []struct {
		name string
		f    report.ScaleFilter
		r    report.ScaleReading

		engines, slots        int
		backlog, blocked, due int64
		rate                  float64
		why                   string // what stands in it; empty for nothing at all
	}{
		{name: "nothing", r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}}},
		{name: "nothing, and no engine ever", why: "no engine has worked on these queues yet: each is taken to have 4 slots"},
		{
			name: "a backlog is cleared within the target",
			r:    report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{Groups: []report.DemandGroup{ready("k", 600)}}},
			// 600 slot-seconds in 30 s
			slots: 20, engines: 3, backlog: 600,
		},
		{
			name:  "within another target",
			f:     report.ScaleFilter{Target: 10 * time.Minute},
			r:     report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{Groups: []report.DemandGroup{ready("k", 600)}}},
			slots: 1, engines: 1, backlog: 600,
		},
		{
			name:  "a job needs one slot, however long it takes",
			r:     report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: ran("k", done, time.Hour, 0, 100), Demand: report.Demand{Groups: []report.DemandGroup{ready("k", 10)}}},
			slots: 10, engines: 2, backlog: 10,
		},
		{
			name: "what runs long keeps its slots beside what waits",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: ran("k", done, time.Hour, 0, 100), Demand: report.Demand{Groups: []report.DemandGroup{
				ready("k", 10), {Queue: "q", Kind: "k", Running: 7}}}},
			slots: 17, engines: 3, backlog: 10,
		},
		{
			name:  "what runs long keeps its slots though nothing waits",
			r:     report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: ran("k", done, time.Hour, 0, 100), Demand: report.Demand{Groups: []report.DemandGroup{{Queue: "q", Kind: "k", Running: 7}}}},
			slots: 7, engines: 1,
		},
		{
			name: "arrivals keep slots busy, by the log",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{Groups: []report.DemandGroup{
				{Queue: "q", Kind: "k", Arrived: 600}}}},
			slots: 10, engines: 2, rate: 10,
		},
		{
			name: "what arrived and waits counts once",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{Groups: []report.DemandGroup{
				{Queue: "q", Kind: "k", Ready: 600, Arrived: 600, Oldest: scaleNow}}}},
			slots: 20, engines: 3, rate: 10, backlog: 600,
		},
		{
			name:  "arrivals by the sums: the second busiest minute keeps its engines",
			r:     report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Minutes: ran("k", done, time.Second, 0, 0, 600, 480)},
			slots: 8, engines: 1, rate: 8,
		},
		{
			name:  "one busy minute is a burst that is over",
			r:     report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Minutes: ran("k", done, time.Second, 0, 0, 600, 0)},
			slots: 0, engines: 0,
		},
		{
			name:  "backlog that was cleared is no arrival",
			r:     report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Minutes: ran("k", done, time.Second, 2*time.Minute, 600, 600)},
			slots: 0, engines: 0,
		},
		{
			name:  "the minute that goes on does not count",
			r:     report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Minutes: slices.Concat(ran("k", done, time.Second, 0, 60), []report.Stats{{Start: scaleNow.Truncate(time.Minute), Kind: "k", Queue: "q", Outcome: done, Totals: ran("k", done, time.Second, 0, 600)[0].Totals}})},
			slots: 0, engines: 0,
		},
		{
			name:  "few attempts of the last minutes do not say how long they take",
			r:     report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Minutes: ran("k", done, 101*time.Second, 2*time.Minute, 1), Usual: ran("k", done, time.Second, 0, 99), Demand: report.Demand{Groups: []report.DemandGroup{ready("k", 30)}}},
			slots: 2, engines: 1, backlog: 30,
		},
		{
			name: "what becomes due while an engine starts counts",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{Groups: []report.DemandGroup{
				{Queue: "q", Kind: "k", Due: 300}}}},
			slots: 10, engines: 2, due: 300,
		},
		{
			name: "a paused queue is left out",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Paused: []string{"q"}, Demand: report.Demand{Groups: []report.DemandGroup{
				ready("k", 600), {Queue: "q", Kind: "k", Due: 5}}}},
			blocked: 605, why: "queue q is paused: more engines change nothing for 605 jobs",
		},
		{
			name: "what runs of a paused queue goes on",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: ran("k", done, time.Hour, 0, 100), Paused: []string{"q"}, Demand: report.Demand{Groups: []report.DemandGroup{
				ready("k", 600), {Queue: "q", Kind: "k", Running: 9}}}},
			slots: 9, engines: 2, blocked: 600, why: "queue q is paused",
		},
		{
			name: "a kind that no engine of the queue performs",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Kinds: []string{"k", "other"}, Usual: second("k", "other"), Demand: report.Demand{Groups: []report.DemandGroup{
				ready("other", 600), ready("k", 30)}}},
			slots: 1, engines: 1, backlog: 30, blocked: 600, why: "no engine of those that work on queue q performs kind other: more engines change nothing for 600 jobs",
		},
		{
			name:    "a kind that nobody declared, without engines",
			r:       report.ScaleReading{Last: new(engineOf(8, "k")), Usual: second("k"), Demand: report.Demand{Groups: []report.DemandGroup{ready("new", 600)}}},
			blocked: 600, why: "no engine has declared kind new",
		},
		{
			name:  "scale from zero: a declared kind, with the slots of the last engine",
			r:     report.ScaleReading{Last: new(engineOf(10, "k")), Kinds: []string{"k"}, Usual: second("k"), Demand: report.Demand{Groups: []report.DemandGroup{ready("k", 600)}}},
			slots: 20, engines: 2, backlog: 600, why: "no engine runs: each is taken to have 10 slots, as the last one had",
		},
		{
			name: "the only engine has died, and is still in the roster",
			r: report.ScaleReading{Engines: []store.EngineInfo{{Slots: 10, Kinds: []string{"k"}, Beat: scaleNow.Add(-time.Hour), TimeToLive: time.Minute}}, Kinds: []string{"k"}, Usual: second("k"),
				Demand: report.Demand{Groups: []report.DemandGroup{ready("k", 600)}}},
			slots: 20, engines: 2, backlog: 600, why: "no engine runs: each is taken to have 10 slots, as the last one had",
		},
		{
			name: "an engine of other queues says nothing of the kind, and does not run here",
			f:    report.ScaleFilter{Queues: []string{"q"}},
			r: report.ScaleReading{Engines: []store.EngineInfo{func() store.EngineInfo { e := engineOf(8, "x"); e.Queues = []string{"other"}; return e }()},
				Last: new(engineOf(10, "k")), Kinds: []string{"k"}, Usual: second("k"), Demand: report.Demand{Groups: []report.DemandGroup{ready("k", 600), {Queue: "other", Kind: "x", Ready: 9}}}},
			slots: 20, engines: 2, backlog: 600, why: "the last one had",
		},
		{
			name: "an engine that is dead performs nothing",
			r: report.ScaleReading{Engines: []store.EngineInfo{func() store.EngineInfo { e := engineOf(8, "k"); e.Beat = scaleNow.Add(-time.Hour); return e }()},
				Usual: second("k"), Demand: report.Demand{Groups: []report.DemandGroup{ready("k", 30)}}},
			blocked: 30, why: "no engine has declared kind k",
		},
		{
			name:  "an engine for any kind performs it",
			r:     report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, stint.AnyKind)}, Usual: second("k"), Demand: report.Demand{Groups: []report.DemandGroup{ready("k", 30)}}},
			slots: 1, engines: 1, backlog: 30,
		},
		{
			name:  "a kind that never ran",
			r:     report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Demand: report.Demand{Groups: []report.DemandGroup{ready("k", 600)}}},
			slots: 20, engines: 3, backlog: 600, why: "kind k has not run in the last week: an attempt is taken to last 1s",
		},
		{
			name: "a limit of so many at once bounds the slots",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{
				Gates: []store.GateState{rule(t, "erp", "5")}, Groups: []report.DemandGroup{under("erp", ready("k", 600))}}},
			slots: 5, engines: 1, backlog: 150, blocked: 450, why: "limit erp lets 5 run at once: more engines change nothing for 450 jobs",
		},
		{
			name: "one that is full",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{
				Gates:  []store.GateState{rule(t, "erp", "5", func(s *store.GateState) { s.Used = []store.GateUse{{Engine: 1, Held: 5}} })},
				Groups: []report.DemandGroup{under("erp", ready("k", 600)), ready("k", 30)}}},
			slots: 6, engines: 1, backlog: 180, blocked: 450, why: "limit erp is full (5 at once)",
		},
		{
			name: "a limit with room hides nothing",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{
				Gates: []store.GateState{rule(t, "erp", "50")}, Groups: []report.DemandGroup{under("erp", ready("k", 600))}}},
			slots: 20, engines: 3, backlog: 600,
		},
		{
			name: "kinds share a limit",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "a", "b")}, Usual: second("a", "b"), Demand: report.Demand{
				Gates: []store.GateState{rule(t, "erp", "5")}, Groups: []report.DemandGroup{under("erp", ready("a", 600)), under("erp", ready("b", 600))}}},
			slots: 5, engines: 1, backlog: 150, blocked: 1050, why: "limit erp lets 5 run at once: more engines change nothing for 1,050 jobs",
		},
		{
			name: "each key has its own count, and they are told of together",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{
				Gates:  []store.GateState{rule(t, "tenant=a", "2"), rule(t, "tenant=b", "2")},
				Groups: []report.DemandGroup{under("tenant=a", ready("k", 600)), under("tenant=b", ready("k", 600))}}},
			slots: 4, engines: 1, backlog: 120, blocked: 1080, why: "limit tenant lets 2 run at once: more engines change nothing for 1,080 jobs",
		},
		{
			name: "the least of several limits binds",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{
				Gates: []store.GateState{rule(t, "erp", "5"), rule(t, "crm", "3")}, Groups: []report.DemandGroup{under("crm\nerp", ready("k", 600))}}},
			slots: 3, engines: 1, backlog: 90, blocked: 510, why: "limit crm lets 3",
		},
		{
			name: "what runs under a limit, and arrives, counts within it",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Minutes: ran("k", done, time.Second, 0, 300, 300), Demand: report.Demand{
				Gates: []store.GateState{rule(t, "erp", "5")}, Groups: []report.DemandGroup{under("erp", ready("k", 600)), {Queue: "q", Kind: "k", Running: 5}}}},
			slots: 5, engines: 1, blocked: 600, rate: 5, why: "limit erp lets 5 run at once: more engines change nothing for 600 jobs",
		},
		{
			name: "a rate bounds what starts",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{
				Gates: []store.GateState{rule(t, "api", "2/1s")}, Groups: []report.DemandGroup{under("api", ready("k", 600))}}},
			slots: 2, engines: 1, backlog: 60, blocked: 540, why: "limit api lets 2 start in 1s",
		},
		{
			name: "a job may count as several starts",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{
				Gates: []store.GateState{rule(t, "api", "6/1s")}, Groups: []report.DemandGroup{under("3*api", ready("k", 600))}}},
			slots: 2, engines: 1, backlog: 60, blocked: 540, why: "limit api lets 6 start in 1s",
		},
		{
			name: "a rate that is spent",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{
				Gates:  []store.GateState{rule(t, "api", "1/1h", func(s *store.GateState) { s.Next = scaleNow.Add(50 * time.Minute) })},
				Groups: []report.DemandGroup{under("api", ready("k", 6))}}},
			blocked: 6, why: "limit api has no start left until 2026-03-04",
		},
		{
			name: "a limit that lets none start",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{
				Gates: []store.GateState{rule(t, "erp", "0")}, Groups: []report.DemandGroup{under("erp", ready("k", 6))}}},
			blocked: 6, why: "limit erp is full (0 at once)",
		},
		{
			name: "a pause that outlasts the target",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{
				Gates:  []store.GateState{rule(t, "erp", "any", func(s *store.GateState) { s.Until = scaleNow.Add(time.Hour) })},
				Groups: []report.DemandGroup{under("erp", ready("k", 6))}}},
			blocked: 6, why: "limit erp is paused until 2026-03-04 06:06:30 UTC",
		},
		{
			name: "one job on trial",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{
				Gates:  []store.GateState{rule(t, "erp", "any", func(s *store.GateState) { s.Until, s.Trial = scaleNow.Add(-time.Hour), true })},
				Groups: []report.DemandGroup{under("erp", ready("k", 600))}}},
			slots: 1, engines: 1, backlog: 30, blocked: 570, why: "limit erp is on trial after a pause",
		},
		{
			name: "an order that is halted",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{
				Gates:  []store.GateState{rule(t, "order", "1,in-order,halt", func(s *store.GateState) { s.Failed = 17 })},
				Groups: []report.DemandGroup{under("order", ready("k", 600))}}},
			blocked: 600, why: "limit order is halted by job 17, which failed",
		},
		{
			name: "one after the other",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{
				Gates: []store.GateState{rule(t, "order", "1,in-order")}, Groups: []report.DemandGroup{under("order", ready("k", 600))}}},
			slots: 1, engines: 1, backlog: 30, blocked: 570, why: "limit order lets 1 run at once",
		},
		{
			name: "a limit of all jobs of a queue",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{
				Gates: []store.GateState{rule(t, "queue=q", "4")}, Groups: []report.DemandGroup{ready("k", 600)}}},
			slots: 4, engines: 1, backlog: 120, blocked: 480, why: "limit queue=q lets 4 run at once",
		},
		{
			name: "retries of a kind that fails do not count",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Minutes: ran("k", failed, time.Second, 0, 600, 600), Demand: report.Demand{Groups: []report.DemandGroup{
				{Queue: "q", Kind: "k", Ready: 630, Retries: 600, Due: 300, Later: 270, Oldest: scaleNow}}}},
			slots: 2, engines: 1, backlog: 30, due: 30, blocked: 870, why: "most attempts of kind k fail: its retries do not count: more engines change nothing for 870 jobs",
		},
		{
			name: "retries of a kind that mostly succeeds do",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Minutes: slices.Concat(ran("k", failed, time.Second, 2*time.Minute, 100), ran("k", done, time.Second, 2*time.Minute, 120)), Demand: report.Demand{Groups: []report.DemandGroup{
				{Queue: "q", Kind: "k", Ready: 600, Retries: 600, Oldest: scaleNow}}}},
			slots: 20, engines: 3, backlog: 600,
		},
		{
			name:  "engines have as many slots as they are said to have",
			f:     report.ScaleFilter{Slots: 5},
			r:     report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{Groups: []report.DemandGroup{ready("k", 600)}}},
			slots: 20, engines: 4, backlog: 600,
		},
		{
			name:  "the least",
			f:     report.ScaleFilter{Min: 2, Max: 4},
			r:     report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}},
			slots: 0, engines: 2, why: "0 would do, and 2 are the least",
		},
		{
			name:  "the most",
			f:     report.ScaleFilter{Max: 2},
			r:     report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{Groups: []report.DemandGroup{ready("k", 600)}}},
			slots: 20, engines: 2, backlog: 600, why: "3 would be needed, and 2 are the most",
		},
		{
			name:    "what any engine looks at needs one",
			r:       report.ScaleReading{Last: new(engineOf(8, "k")), Demand: report.Demand{Looks: true}},
			engines: 1, why: "one engine has to look at what jobs wait for",
		},
		{
			name: "engines that run look by themselves",
			r:    report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k")}, Demand: report.Demand{Looks: true}},
		},
		{
			name: "an engine stays if it is a close thing",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k"), engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{Groups: []report.DemandGroup{
				{Queue: "q", Kind: "k", Arrived: 471}}}},
			slots: 8, engines: 2, rate: 7.85,
		},
		{
			name: "and goes if it is not",
			r: report.ScaleReading{Engines: []store.EngineInfo{engineOf(8, "k"), engineOf(8, "k")}, Usual: second("k"), Demand: report.Demand{Groups: []report.DemandGroup{
				{Queue: "q", Kind: "k", Arrived: 420}}}},
			slots: 7, engines: 1, rate: 7,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.r.At = scaleNow
			s := report.Wanted(c.f, c.r)
			if s.Engines != c.engines || s.Slots != c.slots || s.Backlog != c.backlog || s.Blocked != c.blocked || s.Due != c.due || math.Abs(s.RateIn-c.rate) > 1e-6 {
				t.Errorf("%d engines, %d slots, backlog %d, blocked %d, due %d, %g arrive; want %d, %d, %d, %d, %d, %g", s.Engines, s.Slots, s.Backlog, s.Blocked, s.Due, s.RateIn,
					c.engines, c.slots, c.backlog, c.blocked, c.due, c.rate)
			}
			if why := strings.Join(s.Why, "\n"); (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
				t.Errorf("it says %q, want %q", why, c.why)
			}
			if s.Why == nil || s.Queues == nil || s.At != scaleNow || s.Target != cmp.Or(c.f.Target, report.ScaleTarget) {
				t.Errorf("it is incomplete: %+v", s)
			}
		})
	}
}

func TestABacklogThatNoEngineWorksOnIsNotCleared(t *testing.T) {
	other := engineOf(8, "k")
	other.Queues = []string{"other"}
	s := report.Wanted(report.ScaleFilter{}, report.ScaleReading{Kinds: []string{"k"}, Usual: ran("k", stint.OutcomeCompleted, time.Second, 0, 100), Engines: []store.EngineInfo{other, other},
		Demand: report.Demand{At: scaleNow, Groups: []report.DemandGroup{{Queue: "q", Kind: "k", Ready: 6}}}})
	if s.ClearsIn != nil || s.Running != 2 || !slices.Contains(s.Why, "no running engine works on queue q, which has 6 jobs") {
		t.Errorf("it is cleared in %v by %d engines, %q", s.ClearsIn, s.Running, s.Why)
	}
}

func TestABacklogIsClearedByWhatArrivalsLeave(t *testing.T) {
	busy := []report.DemandGroup{{Queue: "q", Kind: "k", Ready: 60, Arrived: 300, Oldest: scaleNow.Add(-time.Minute)}}
	for _, c := range []struct {
		engines int
		groups  []report.DemandGroup
		want    time.Duration // negative for not at all
	}{
		{1, nil, 0}, {0, nil, 0}, {0, busy, -1},
		{1, busy, 15 * time.Second}, // 60 slot-seconds, and 4 of 8 slots are left
		{2, busy, 5 * time.Second},
	} {
		r := report.ScaleReading{Kinds: []string{"k"}, Usual: ran("k", stint.OutcomeCompleted, time.Second, 0, 100), Demand: report.Demand{At: scaleNow, Groups: c.groups}}
		for range c.engines {
			r.Engines = append(r.Engines, engineOf(8, "k"))
		}
		s := report.Wanted(report.ScaleFilter{Slots: 8}, r)
		if (s.ClearsIn == nil) != (c.want < 0) || s.ClearsIn != nil && *s.ClearsIn != c.want || s.Running != c.engines {
			t.Errorf("%d engines clear it in %v, want %v", s.Running, s.ClearsIn, c.want)
		}
		if c.groups != nil && !s.Oldest.Equal(scaleNow.Add(-time.Minute)) || c.groups == nil && !s.Oldest.IsZero() {
			t.Errorf("the oldest is of %v", s.Oldest)
		}
	}
}

func TestEachQueueIsToldOf(t *testing.T) {
	leaves := engineOf(8, "k")
	leaves.Draining = true
	s := report.Wanted(report.ScaleFilter{}, report.ScaleReading{
		Engines: []store.EngineInfo{engineOf(8, "k"), leaves}, Usual: ran("k", stint.OutcomeCompleted, time.Second, 0, 100), Paused: []string{"b"},
		Demand: report.Demand{At: scaleNow, Groups: []report.DemandGroup{{Queue: "b", Kind: "k", Ready: 5}, {Queue: "a", Kind: "k", Ready: 10, Oldest: scaleNow}}},
	})
	want := []report.QueueScaling{{Queue: "a", Slots: 0.334, Backlog: 10}, {Queue: "b", Blocked: 5}}
	if !slices.Equal(s.Queues, want) || s.Running != 1 {
		t.Errorf("they are %+v, and %d engines run; want %+v and 1", s.Queues, s.Running, want)
	}
}

func TestALaneIsEstimatedBeyondWhatIsCounted(t *testing.T) {
	for _, c := range []struct {
		of   report.LaneCount
		want int64
	}{
		{report.LaneCount{}, 0},
		{report.LaneCount{Jobs: 7, First: 3, Last: 50, End: 50}, 7},
		{report.LaneCount{Jobs: report.DemandLimit, First: 1, Last: report.DemandLimit, End: report.DemandLimit}, report.DemandLimit},
		{report.LaneCount{Jobs: report.DemandLimit, First: 1, Last: 2 * report.DemandLimit, End: 20 * report.DemandLimit}, 10 * report.DemandLimit},
	} {
		if got := c.of.Estimate(); got != c.want {
			t.Errorf("%+v is %d jobs, want %d", c.of, got, c.want)
		}
	}
	groups := []report.DemandGroup{{Kind: "a", Ready: 30, Retries: 3}, {Kind: "b", Ready: 70}}
	report.GrowDemand(groups, report.LaneCount{Jobs: 1000})
	if groups[0].Ready != 300 || groups[0].Retries != 30 || groups[1].Ready != 700 {
		t.Errorf("a tenth of a lane stands for %+v", groups)
	}
}

func TestAScaleThatCannotBeIsInvalid(t *testing.T) {
	for _, f := range []report.ScaleFilter{
		{Queues: []string{""}}, {Target: time.Millisecond}, {Target: -time.Second}, {Target: 25 * time.Hour}, {Startup: -1}, {Startup: 2 * time.Hour},
		{Slots: -1}, {Min: -1}, {Max: -1}, {Min: 3, Max: 2},
	} {
		if err := f.Check(); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	for _, f := range []report.ScaleFilter{{}, {Queues: []string{"mail"}, Target: time.Second, Startup: time.Hour, Slots: 1, Min: 3, Max: 3}, {Min: 3}} {
		if err := f.Check(); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
