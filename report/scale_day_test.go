package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// A day of engines that are started and stopped as [Wanted] says. Time goes in ticks of a tenth of a second.
//
// What arrives: a load that rises and falls over the day by a factor of four, and twelve bursts of twenty times that, of two to
// ten minutes each. Most jobs are mails (250 ms); some are reports (5 s); and some go to a limit of six at once (1 s), which
// has more jobs than it lets run for an hour at noon, and in each burst. Four times a day all engines are deployed: each is
// asked to leave as its successor is started, and ends when its jobs have.
//
// What is measured: jobs that no limit holds up, and how many of them began within the target of 30 s after they
// arrived. An engine has 8 slots, needs 20 s to start, and is paid for from the order to start it to the end of its last
// job. The readings are 15 s apart, and see of the attempts what a store would say.
//
// The oracle knows all arrivals. It has whole engines too, for periods of one target, without any time to start, and none
// is deployed. In each period it pays for as few engines as end the work that arrived in the period before; what these have left
// over, they give to what has arrived since. No plan has fewer engine-hours in which each job of
// a period ends by the end of the next one, so it is lower than what any autoscaler can reach.
const (
	dayTicks   = 24 * 3600 * 10
	dayEngine  = 8 // slots
	dayStart   = 200
	dayTarget  = 300
	dayReading = 150
	dayErp     = 6 // at once
)

var dayKinds = []struct {
	kind  string
	ticks int
}{{"mail", 3}, {"report", 50}, {"erp", 10}}

// dayArrivals are how many jobs of each kind arrive in each tick.
func dayArrivals(seed uint64) [][3]int {
	r := rand.New(rand.NewPCG(seed, 1))
	burst := make([]bool, dayTicks)
	for i := range 12 {
		from := i*dayTicks/12 + r.IntN(dayTicks/20)
		for t, to := from, from+1200+r.IntN(4800); t < to; t++ {
			burst[t] = true
		}
	}
	poisson := func(mean float64) (n int) {
		for p := r.Float64(); p > math.Exp(-mean); n++ {
			p *= r.Float64()
		}
		return n
	}
	all := make([][3]int, dayTicks)
	for t := range all {
		rate := 1 * (1 - 0.6*math.Cos(2*math.Pi*float64(t)/dayTicks)) // jobs in a tick
		erp := rate * 0.1
		if burst[t] {
			rate, erp = 20*rate, 20*erp
		}
		if t > dayTicks/2 && t < dayTicks/2+36000 {
			erp = 0.9 // the limit lets 0.6 run
		}
		all[t] = [3]int{poisson(rate), poisson(rate * 0.04), poisson(erp)}
	}
	return all
}

// dayOracle returns the engine-ticks of the oracle.
func dayOracle(arrivals [][3]int) (ticks float64) {
	const capacity = dayTarget * dayEngine
	due, erp := 0, 0
	for from := 0; from < len(arrivals); from += dayTarget {
		work := 0
		for _, n := range arrivals[from:min(from+dayTarget, len(arrivals))] {
			work += n[0]*dayKinds[0].ticks + n[1]*dayKinds[1].ticks
			erp += n[2] * dayKinds[2].ticks
		}
		lets := min(erp, dayErp*dayTarget) // what the limit lets run is done at once
		erp -= lets
		due += lets
		engines := (due + capacity - 1) / capacity
		due = max(0, work-(engines*capacity-due))
		ticks += float64(engines * dayTarget)
	}
	return ticks
}

type dayEngineState struct {
	from, busy int
	draining   bool
}

type day struct {
	tick                 int
	engines              []*dayEngineState
	waiting              [3][]int     // when they arrived
	ends                 [64][]func() // by tick, in a ring
	running              [3]int
	arrived              [3]int             // in the last minute
	minutes              map[int]*[3]Totals // by minute
	served, late, erpRun int
	paid                 int
	orders, swings       int
}

func (d *day) at(tick int) time.Time {
	return time.Unix(0, 0).UTC().Add(time.Duration(tick) * time.Second / 10)
}

// start begins what has slots.
func (d *day) start() {
	i := 0
	for k := range d.waiting {
		for len(d.waiting[k]) > 0 && (k != 2 || d.running[2] < dayErp) {
			for i < len(d.engines) && (d.engines[i].draining || d.engines[i].from > d.tick || d.engines[i].busy == dayEngine) {
				i++
			}
			if i == len(d.engines) {
				return
			}
			e, came := d.engines[i], d.waiting[k][0]
			d.waiting[k] = d.waiting[k][1:]
			if d.served++; d.tick-came > dayTarget {
				d.late++
			}
			if k == 2 {
				d.served--
				d.late -= b2i(d.tick-came > dayTarget)
				d.erpRun++
			}
			e.busy++
			d.running[k]++
			began, ticks := d.tick, dayKinds[k].ticks
			slot := (d.tick + ticks) % len(d.ends)
			d.ends[slot] = append(d.ends[slot], func() {
				e.busy--
				d.running[k]--
				m := d.tick / 600
				if d.minutes[m] == nil {
					d.minutes[m] = new([3]Totals)
				}
				d.minutes[m][k].Ran(time.Duration(ticks)*100*time.Millisecond, time.Duration(began-came)*100*time.Millisecond, d.at(d.tick))
			})
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (d *day) reading() ScaleReading {
	r := ScaleReading{Kinds: []string{"mail", "report", "erp"}, Demand: Demand{At: d.at(d.tick)}}
	erp := store.GateState{Gate: "erp", Rule: stint.LimitRule{AtOnce: dayErp}, Used: []store.GateUse{{Engine: 1, Held: d.running[2]}}}
	r.Gates = []store.GateState{erp}
	for k, n := range d.waiting {
		g := DemandGroup{Queue: "q", Kind: dayKinds[k].kind, Ready: int64(len(n)), Arrived: int64(d.arrived[k]), Running: int64(d.running[k])}
		if k == 2 {
			g.Limits = "erp"
		}
		if len(n) > 0 {
			g.Oldest = d.at(n[0])
		}
		r.Groups = append(r.Groups, g)
	}
	for m := d.tick/600 - int(ScaleWindow/time.Minute); m <= d.tick/600; m++ {
		if sums := d.minutes[m]; sums != nil {
			for k := range sums {
				r.Minutes = append(r.Minutes, Stats{Start: d.at(m * 600), Kind: dayKinds[k].kind, Queue: "q", Outcome: stint.OutcomeCompleted, Totals: sums[k]})
			}
		}
	}
	for _, e := range d.engines {
		if e.from <= d.tick {
			r.Engines = append(r.Engines, store.EngineInfo{Slots: dayEngine, Kinds: r.Kinds, Draining: e.draining, Beat: r.At, TimeToLive: time.Minute})
		}
	}
	r.Last = &store.EngineInfo{Slots: dayEngine, Kinds: r.Kinds}
	return r
}

// scale has as many engines as are wanted.
func (d *day) scale(want int) {
	var working []*dayEngineState
	for _, e := range d.engines {
		if !e.draining {
			working = append(working, e)
		}
	}
	if want != len(working) {
		d.orders++
	}
	for range want - len(working) {
		d.engines = append(d.engines, &dayEngineState{from: d.tick + dayStart})
	}
	slices.SortStableFunc(working, func(a, b *dayEngineState) int { return a.busy - b.busy })
	for i := range len(working) - want {
		working[i].draining = true
	}
}

func (d *day) run(arrivals [][3]int, f ScaleFilter) {
	d.minutes = map[int]*[3]Totals{}
	for d.tick = range arrivals {
		slot := d.tick % len(d.ends)
		for _, end := range d.ends[slot] {
			end()
		}
		d.ends[slot] = d.ends[slot][:0]
		for k, n := range arrivals[d.tick] {
			for range n {
				d.waiting[k] = append(d.waiting[k], d.tick)
			}
			d.arrived[k] += n
			if d.tick >= 600 {
				d.arrived[k] -= arrivals[d.tick-600][k]
			}
		}
		if d.tick%(dayTicks/4) == dayTicks/8 { // a deployment
			for _, e := range slices.Clone(d.engines) {
				if !e.draining {
					e.draining = true
					d.engines = append(d.engines, &dayEngineState{from: d.tick + dayStart})
				}
			}
		}
		if d.tick%dayReading == 0 {
			d.scale(Wanted(f, d.reading()).Engines)
		}
		d.start()
		d.engines = slices.DeleteFunc(d.engines, func(e *dayEngineState) bool { return e.draining && (e.busy == 0 || e.from > d.tick) })
		d.paid += len(d.engines)
	}
}

func TestADayOfBurstsLimitsAndDeploysKeepsTheTargetAtLittleMoreThanAnOracle(t *testing.T) {
	for seed := range uint64(3) {
		arrivals := dayArrivals(seed)
		var d day
		d.run(arrivals, ScaleFilter{Target: dayTarget * 100 * time.Millisecond, Startup: dayStart * 100 * time.Millisecond})
		within, cost := 1-float64(d.late)/float64(d.served), float64(d.paid)/dayOracle(arrivals)
		fmt.Printf("seed %d: %.2f%% of %d within, %.3f of the oracle's %.0f engine-hours, %d orders, erp %d\n", seed, 100*within, d.served, cost, dayOracle(arrivals)/36000, d.orders, d.erpRun)
	}
}
