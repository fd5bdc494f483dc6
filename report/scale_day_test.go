package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// A day of engines that are started and stopped as [Wanted] says, in ticks of a tenth of a second.
//
// What arrives: a load that rises and falls by a factor of four, and twelve bursts of twenty times that, of two to ten
// minutes each. Most jobs are mails (0.3 s); some are reports (5 s); and some go to a limit of six at once (1 s), which gets
// half as much again as it lets run for an hour at noon, and more in each burst. Four times a day all engines are
// deployed: each is asked to leave when its successor is started, and ends when its jobs have.
//
// What is measured: how many of the jobs that no limit holds up began within the target of 30 s after they arrived. An engine
// has 8 slots, needs 20 s to start, and is paid for from the order to start it to the end of its last job. Readings are 15 s
// apart, and tell of attempts what a store would.
//
// The oracle knows all arrivals. It has whole engines as well, for periods of one target, which need no time to start and are
// not deployed. In each period it has as few as end the work that arrived in the period before; what these have
// left they give to what has arrived since. What the limit lets run is done at once. No plan has fewer engine-hours in
// which all jobs of a period end by the end of the next one.
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

// dayOracle returns the engine-ticks of the oracle, and how many jobs the limit lets run.
func dayOracle(arrivals [][3]int) (ticks, limited float64) {
	const capacity = dayTarget * dayEngine
	due, erp := 0, 0
	for from := 0; from < len(arrivals); from += dayTarget {
		work := 0
		for _, n := range arrivals[from:min(from+dayTarget, len(arrivals))] {
			work += n[0]*dayKinds[0].ticks + n[1]*dayKinds[1].ticks
			erp += n[2] * dayKinds[2].ticks
		}
		lets := min(erp, dayErp*dayTarget)
		limited += float64(lets) / float64(dayKinds[2].ticks)
		erp -= lets
		due += lets
		engines := (due + capacity - 1) / capacity
		due = max(0, work-(engines*capacity-due))
		ticks += float64(engines * dayTarget)
	}
	return ticks, limited
}

// dayWorker is an engine.
type dayWorker struct {
	from, busy int
	draining   bool
}

type day struct {
	tick    int
	engines []*dayWorker
	waiting [3][]int           // when they arrived
	ends    [64][]func()       // by tick, in a ring
	running [3]int             // jobs
	arrived [3]int             // in the last minute
	minutes map[int]*[3]Totals // by minute

	begun        [3]int
	late         int // of mails and reports
	paid, orders int // engine-ticks; how often the number of engines changed
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
			came := d.waiting[k][0]
			d.waiting[k] = d.waiting[k][1:]
			if k != 2 && d.tick-came > dayTarget {
				d.late++
			}
			d.run(d.engines[i], k, came)
		}
	}
}

// run runs a job.
func (d *day) run(e *dayWorker, k, came int) {
	d.begun[k]++
	d.running[k]++
	e.busy++
	took, waited := time.Duration(dayKinds[k].ticks)*time.Second/10, time.Duration(d.tick-came)*time.Second/10
	slot := (d.tick + dayKinds[k].ticks) % len(d.ends)
	d.ends[slot] = append(d.ends[slot], func() {
		d.running[k]--
		e.busy--
		m := d.tick / 600
		if d.minutes[m] == nil {
			d.minutes[m] = new([3]Totals)
		}
		d.minutes[m][k].Ran(took, waited, d.at(d.tick))
	})
}

// reading is what a store would say.
func (d *day) reading() ScaleReading {
	r := ScaleReading{Kinds: []string{"mail", "report", "erp"}, Demand: Demand{At: d.at(d.tick)}}
	r.Gates = []store.GateState{{Gate: "erp", Rule: stint.LimitRule{AtOnce: dayErp}, Used: []store.GateUse{{Engine: 1, Held: d.running[2]}}}}
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
		for k := range dayKinds {
			if sums := d.minutes[m]; sums != nil {
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

// scale starts engines, or asks those with the least to do to leave.
func (d *day) scale(want int) {
	var staying []*dayWorker
	for _, e := range d.engines {
		if !e.draining {
			staying = append(staying, e)
		}
	}
	if want != len(staying) {
		d.orders++
	}
	for range want - len(staying) {
		d.engines = append(d.engines, &dayWorker{from: d.tick + dayStart})
	}
	slices.SortStableFunc(staying, func(a, b *dayWorker) int { return a.busy - b.busy })
	for i := range len(staying) - want {
		staying[i].draining = true
	}
}

// deploy has each engine followed by a new one.
func (d *day) deploy() {
	for _, e := range slices.Clone(d.engines) {
		if !e.draining {
			e.draining = true
			d.engines = append(d.engines, &dayWorker{from: d.tick + dayStart})
		}
	}
}

func (d *day) pass(arrivals [][3]int, wanted func(ScaleReading) int) {
	d.minutes = map[int]*[3]Totals{}
	for d.tick = range arrivals {
		slot := d.tick % len(d.ends)
		for _, end := range d.ends[slot] {
			end()
		}
		d.ends[slot] = d.ends[slot][:0]
		for k, n := range arrivals[d.tick] {
			d.waiting[k] = append(d.waiting[k], slices.Repeat([]int{d.tick}, n)...)
			if d.arrived[k] += n; d.tick >= 600 {
				d.arrived[k] -= arrivals[d.tick-600][k]
			}
		}
		if d.tick%(dayTicks/4) == dayTicks/8 {
			d.deploy()
		}
		if d.tick%dayReading == 0 {
			d.scale(wanted(d.reading()))
		}
		d.start()
		d.engines = slices.DeleteFunc(d.engines, func(e *dayWorker) bool { return e.draining && (e.busy == 0 || e.from > d.tick) })
		d.paid += len(d.engines)
	}
}

func TestADayOfBurstsLimitsAndDeploysKeepsTheTargetAtLittleMoreThanAnOracle(t *testing.T) {
	f := ScaleFilter{Target: dayTarget * time.Second / 10, Startup: dayStart * time.Second / 10}
	for seed := range uint64(3) {
		var d day
		arrivals := dayArrivals(seed)
		d.pass(arrivals, func(r ScaleReading) int { return Wanted(f, r).Engines })
		var came [3]int
		for _, n := range arrivals {
			for k := range came {
				came[k] += n[k]
			}
		}
		for k := range came {
			if lost := came[k] - d.begun[k] - len(d.waiting[k]); lost != 0 {
				t.Errorf("seed %d: %d jobs of kind %s are lost", seed, lost, dayKinds[k].kind)
			}
		}
		within := 1 - float64(d.late)/float64(d.begun[0]+d.begun[1])
		oracle, limited := dayOracle(arrivals)
		cost, used := float64(d.paid)/oracle, float64(d.begun[2])/limited
		t.Logf("seed %d: %.2f%% of %d jobs begin within the target, at %.3f of the oracle's %.0f engine-hours, with %d orders; the limit is used by %.3f", seed, 100*within, d.begun[0]+d.begun[1], cost, oracle/36000, d.orders, used)
		if within < 0.95 || cost > 1.3 {
			t.Errorf("seed %d: %.1f%% begin within the target, at %.2f of the oracle's engine-hours", seed, 100*within, cost)
		}
		if used < 0.97 {
			t.Errorf("seed %d: of what the limit lets run, %.1f%% ran", seed, 100*used)
		}
		if d.orders > 288 { // there are 5,760 readings, and as many orders in a day as there are times of five minutes
			t.Errorf("seed %d: the number of engines changed %d times", seed, d.orders)
		}
	}
}
