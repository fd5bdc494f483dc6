package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// ScaleFilter says for what engines are counted. The zero value is for all queues, with what is
// usual.
type ScaleFilter struct {
	Queues []string // that the engines work on; none means all

	// Target is how long a job may wait for a slot, and in what time a backlog is to be
	// cleared. 0 means [ScaleTarget].
	Target time.Duration

	// Startup is how long it takes until a new engine works: what becomes due meanwhile counts. 0 means
	// [ScaleStartup].
	Startup time.Duration

	// Slots is how many slots an engine has. 0 means as many as those that run have, or as the last
	// one had.
	Slots int

	// Min and Max bound the answer. A Max of 0 does not.
	Min, Max int

	// Kinds are performed by engines although none has declared them yet.
	Kinds []string
}

// What is usual, and what is assumed where nothing is known.
const (
	ScaleTarget  = 30 * time.Second
	ScaleStartup = 30 * time.Second

	manyTook     = 20          // attempts of which the mean is enough
	assumedTook  = time.Second // of a kind that never ran
	assumedSlots = 4           // of an engine, if there never was one
)

// Check reports what is wrong with the filter, or nil.
func (f ScaleFilter) Check() error {
	for _, queue := range f.Queues {
		if err := valid.Name("queues", queue); err != nil {
			return err
		}
	}
	switch {
	case f.Target != 0 && (f.Target < time.Second || f.Target > 24*time.Hour):
		return valid.Invalid("target", "%v is not between a second and a day", f.Target)
	case f.Startup < 0 || f.Startup > time.Hour:
		return valid.Invalid("startup", "%v is not between 0 and an hour", f.Startup)
	case f.Slots < 0:
		return valid.Invalid("slots", "%d is negative", f.Slots)
	case f.Min < 0:
		return valid.Invalid("min", "%d is negative", f.Min)
	case f.Max < 0 || f.Max > 0 && f.Max < f.Min:
		return valid.Invalid("max", "%d is less than the least, %d", f.Max, f.Min)
	}
	return nil
}

func (f ScaleFilter) usual() ScaleFilter {
	f.Target, f.Startup = cmp.Or(f.Target, ScaleTarget), cmp.Or(f.Startup, ScaleStartup)
	return f
}

// serves reports whether an engine works on any of the queues.
func (f ScaleFilter) serves(e store.EngineInfo) bool {
	return len(f.Queues) == 0 || slices.ContainsFunc(f.Queues, e.WorksOn)
}

// Scaling says how many engines keep up with the work. Durations are nanoseconds in JSON. All numbers
// are 0, and the lists empty, where nothing is to be done.
type Scaling struct {
	At        time.Time     `json:"at"`
	Target    time.Duration `json:"target"`
	Engines   int           `json:"engines" doc:"How many engines keep up with what arrives, and clear the backlog within the target"`
	Slots     int           `json:"slots" doc:"How many slots that takes, of all engines together"`
	PerEngine int           `json:"slots_per_engine" doc:"How many slots each engine is taken to have"`
	Running   int           `json:"running" doc:"How many engines work on the queues now, without those that were asked to leave"`

	Backlog  int64          `json:"backlog" doc:"Jobs that are ready and that more engines could run"`
	Blocked  int64          `json:"blocked" doc:"Jobs that are ready, or due soon, and that more engines could not run within the target: see why"`
	Due      int64          `json:"due" doc:"Jobs that become due until a new engine works, and that it could run"`
	RateIn   float64        `json:"rate_in" doc:"How many jobs arrive per second"`
	ClearsIn *time.Duration `json:"clears_in,omitempty" doc:"In what time the engines that run now clear the backlog; left out when they do not"`
	Oldest   time.Time      `json:"oldest,omitzero" doc:"When the first job of the backlog was due"`

	Queues []QueueScaling `json:"queues" doc:"The queues that have work, by name"`
	Why    []string       `json:"why" doc:"What more engines would not change, and what was assumed: sentences"`
}

// QueueScaling is what one queue takes.
type QueueScaling struct {
	Queue   string  `json:"queue"`
	Slots   float64 `json:"slots" doc:"Slots, not rounded"`
	Backlog int64   `json:"backlog"`
	Blocked int64   `json:"blocked"`
}

// ScaleReading is what a store says, and [Wanted] computes with. [Scale] reads it.
type ScaleReading struct {
	Demand
	Paused  []string           // queues
	Kinds   []string           // that engines have declared
	Engines []store.EngineInfo // of the roster
	Last    *store.EngineInfo  // the engine that left last; nil if there is none

	// Minutes are attempts by the minute, distributed, of the last [ScaleWindow]; and Usual those of the
	// last week, together.
	Minutes, Usual []Stats
}

const (
	// ScaleWindow is the time whose whole minutes count beside the last sixty seconds: while it lasts,
	// a peak keeps its engines. So the answer is steady, and nothing has to be remembered. A long one
	// costs as many engine-hours after each burst.
	ScaleWindow = 2 * time.Minute

	scaleSlack   = 1.05 // engines go when fewer would do for so much more work
	failingScale = 0.5  // share of a kind's attempts that fail, from which on its retries do not count
)

// Wanted computes how many engines keep up with the work, from nothing but its arguments.
//
// For each kind it takes the slots that arrivals keep busy, or what runs, if that is more; and for
// each job that waits a slot for as long as it takes, within the target:
//
//	slots = max(rate × mean, running × part) + (ready + due) × part, where part = min(1, mean ÷ target)
//
// Arrivals are those of the last sixty seconds by the log, without what waits; or those of the second busiest
// of the whole minutes before by the sums, if these are more. An attempt that had waited for longer than a minute
// is no arrival but backlog that was cleared: to count it would make engines of engines. Mean is
// that of the attempts of these minutes or, if they are few, of the week.
//
// Engines that run go only if fewer would do with a twentieth more work.
//
// It leaves out what more engines could not run: jobs of paused queues; of kinds that nobody
// performs; beyond what their limits let run, and start, within the target; and retries of a
// kind most of whose attempts fail, as in an outage. Jobs that are blocked, by a flow or
// until a signal comes, are not ready and do not count. Of each, Why says so.
func Wanted(f ScaleFilter, r ScaleReading) Scaling {
	f = f.usual()
	w := &wanted{ScaleFilter: f, r: &r, gates: map[string]*gateRoom{}, waits: map[string]int64{}, queues: map[string]*QueueScaling{}}
	for _, g := range r.Gates {
		w.gates[g.Gate] = roomOf(g, r.At, r.At.Add(f.Startup+f.Target))
	}
	w.readEngines()
	w.works = w.worksOf()
	for _, k := range slices.SortedFunc(maps.Keys(w.works), func(a, b workKey) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.kind, b.kind))
	}) {
		w.add(k, w.works[k])
	}
	return w.answer()
}

// wanted is one computation.
type wanted struct {
	ScaleFilter
	r      *ScaleReading
	crew   crew // that lives and works on the queues
	works  map[workKey]*work
	gates  map[string]*gateRoom
	waits  map[string]int64 // by what is said of it
	queues map[string]*QueueScaling
	notes  []string // what was assumed

	slots, busy, load float64 // wanted; what arrivals keep busy; slot-seconds of the backlog
	out               Scaling
}

type workKey struct{ queue, kind string }

// work is all work of a kind in a queue.
type work struct {
	groups  map[string]*DemandGroup // by limits
	running int64
	minutes map[time.Time]float64 // arrivals, by the sums
}

func (w *wanted) readEngines() {
	draining, last := 0, w.r.Last
	var slots []int
	for _, e := range w.r.Engines {
		switch {
		case !w.serves(e):
		case e.Silent(w.r.At):
			last = &e
		default:
			w.crew, slots = append(w.crew, e), append(slots, e.Slots)
			if e.Draining {
				draining++
			}
		}
	}
	slices.Sort(slots)
	w.out.Running = len(w.crew) - draining
	switch {
	case w.Slots > 0:
		w.out.PerEngine = w.Slots
	case len(slots) > 0:
		w.out.PerEngine = slots[len(slots)/2]
	case last != nil:
		w.out.PerEngine = last.Slots
		w.notes = append(w.notes, fmt.Sprintf("no engine runs: each is taken to have %s, as the last one had", words.Counted(int64(last.Slots), "slot")))
	default:
		w.out.PerEngine = assumedSlots
		w.notes = append(w.notes, fmt.Sprintf("no engine has worked on these queues yet: each is taken to have %d slots", assumedSlots))
	}
}

// worksOf sorts what was read by queue and kind.
func (w *wanted) worksOf() map[workKey]*work {
	all := map[workKey]*work{}
	of := func(queue, kind string) *work {
		k := workKey{queue, kind}
		if all[k] == nil {
			all[k] = &work{groups: map[string]*DemandGroup{}, minutes: map[time.Time]float64{}}
		}
		return all[k]
	}
	for _, d := range w.r.Groups {
		if len(w.Queues) > 0 && !slices.Contains(w.Queues, d.Queue) {
			continue
		}
		k := of(d.Queue, d.Kind)
		k.running += d.Running
		if d.Ready+d.Due+d.Arrived == 0 {
			continue
		}
		g := k.groups[d.Limits]
		if g == nil {
			g = &DemandGroup{Limits: d.Limits}
			k.groups[d.Limits] = g
		}
		g.Ready, g.Due, g.Arrived = g.Ready+d.Ready, g.Due+d.Due, g.Arrived+d.Arrived
		g.Retries, g.Later = g.Retries+d.Retries, g.Later+d.Later
		if g.Oldest.IsZero() || !d.Oldest.IsZero() && d.Oldest.Before(g.Oldest) {
			g.Oldest = d.Oldest
		}
	}
	for _, s := range w.r.Minutes {
		if len(w.Queues) > 0 && !slices.Contains(w.Queues, s.Queue) || s.Start.Add(time.Minute).After(w.r.At) {
			continue // the minute that goes on says too little
		}
		if (s.Outcome == stint.OutcomeFailed || s.Outcome == stint.OutcomeLost) && w.fails(s.Kind) {
			continue
		}
		of(s.Queue, s.Kind).minutes[s.Start] += float64(s.WaitedBy.below(time.Minute))
	}
	return all
}

// fails reports whether most attempts of a kind fail.
func (w *wanted) fails(kind string) bool {
	e := endsByKind(slices.DeleteFunc(slices.Clone(w.r.Minutes), func(s Stats) bool { return s.Kind != kind }))[kind]
	return e.all >= failingLeast && e.share() >= failingScale
}

// took is how long an attempt of a kind takes, and whether that is known.
func (w *wanted) took(kind string) (mean time.Duration, known bool) {
	var sum Durations
	for _, all := range [][]Stats{w.r.Minutes, w.r.Usual} {
		for _, s := range all {
			if s.Kind == kind {
				sum.merge(s.Took)
			}
		}
		if sum.Count >= manyTook {
			break // of these minutes alone
		}
	}
	if sum.Count == 0 {
		return assumedTook, false
	}
	return max(sum.Mean(), time.Millisecond), true
}

// rates are how many jobs arrive in a second, and how many of these keep slots busy: those that
// wait are in the backlog, and would count twice.
func (k *work) rates() (arrive, busy float64) {
	var arrived, taken int64
	for _, g := range k.groups {
		arrived, taken = arrived+g.Arrived, taken+max(0, g.Arrived-g.Ready)
	}
	second := 0.0
	if busiest := slices.Sorted(maps.Values(k.minutes)); len(busiest) > 1 {
		second = busiest[len(busiest)-2]
	}
	return max(float64(arrived), second) / 60, max(float64(taken), second) / 60
}

// hindered is why no engine runs a kind of a queue; empty if one could.
func (w *wanted) hindered(k workKey) string {
	c := slices.DeleteFunc(slices.Clone(w.crew), func(e store.EngineInfo) bool { return !e.WorksOn(k.queue) })
	switch {
	case slices.Contains(w.r.Paused, k.queue):
		return "queue " + k.queue + " is paused"
	case c.performs(k.kind):
		return ""
	case len(c) > 0:
		return "no engine of those that work on queue " + k.queue + " performs kind " + k.kind
	case !slices.Contains(w.r.Kinds, k.kind) && (w.r.Last == nil || !w.r.Last.Performs(k.kind)):
		return "no engine has declared kind " + k.kind
	}
	return ""
}

// add adds what a kind takes.
func (w *wanted) add(key workKey, k *work) {
	q := w.queues[key.queue]
	if q == nil {
		q = &QueueScaling{Queue: key.queue}
		w.queues[key.queue] = q
	}
	mean, known := w.took(key.kind)
	part := min(1, mean.Seconds()/w.Target.Seconds())
	take := func(slots float64) { w.slots, q.Slots = w.slots+slots, q.Slots+slots }
	if why := w.hindered(key); why != "" {
		take(float64(k.running) * part)
		for _, g := range k.groups {
			w.block(q, why, g.Ready+g.Due)
		}
		return
	}
	if w.fails(key.kind) {
		for _, g := range k.groups {
			w.block(q, "most attempts of kind "+key.kind+" fail: its retries do not count", g.Retries+g.Later)
			g.Ready, g.Due = g.Ready-g.Retries, g.Due-g.Later
		}
	}
	arrive, rate := k.rates()
	w.out.RateIn += arrive
	w.busy += rate * mean.Seconds()
	if len(k.groups) == 0 {
		take(max(rate*mean.Seconds(), float64(k.running)*part))
		return
	}
	if !known {
		w.notes = append(w.notes, fmt.Sprintf("kind %s has not run in the last week: an attempt is taken to last %v", key.kind, assumedTook))
	}
	weights, total := k.weights()
	for _, limits := range slices.Sorted(maps.Keys(k.groups)) {
		g := k.groups[limits]
		base := max(rate*mean.Seconds(), float64(k.running)*part) * weights[limits] / max(1, total)
		allowed, gate := w.within(key.queue, limits, base+float64(g.Ready+g.Due)*part, mean)
		if gate != nil {
			runs := min(g.Ready+g.Due, int64(max(0, allowed-base)/part))
			w.block(q, "limit "+gate.limit+" "+gate.why, g.Ready+g.Due-runs) // its keys together
			g.Ready = min(g.Ready, runs)
			g.Due = min(g.Due, runs-g.Ready)
		}
		take(allowed)
		w.load += float64(g.Ready) * mean.Seconds()
		w.out.Due, q.Backlog = w.out.Due+g.Due, q.Backlog+g.Ready
		if g.Ready > 0 && (w.out.Oldest.IsZero() || g.Oldest.Before(w.out.Oldest)) {
			w.out.Oldest = g.Oldest
		}
	}
}

// weights say how what arrives and runs is shared out among the sets of limits: by what arrived, or
// else by what waits.
func (k *work) weights() (of map[string]float64, total float64) {
	of = map[string]float64{}
	for limits, g := range k.groups {
		of[limits] = float64(g.Arrived)
		total += of[limits]
	}
	if total > 0 {
		return of, total
	}
	for limits, g := range k.groups {
		of[limits] = float64(g.Ready + g.Due)
		total += of[limits]
	}
	return of, total
}

// within returns how many of the slots the limits of a job allow, takes them from these, and
// returns the one that allows the least, if it is less than wanted.
func (w *wanted) within(queue, limits string, slots float64, mean time.Duration) (allowed float64, binds *gateRoom) {
	type of struct {
		*gateRoom
		cost float64 // starts that a job counts as
	}
	gates := []of{{w.gates[store.QueueGate(queue)], 1}}
	for line := range strings.SplitSeq(limits, "\n") {
		cost, gate := stint.LimitCost(line)
		gates = append(gates, of{w.gates[gate], float64(cost)})
	}
	allowed = slots
	for _, g := range gates {
		if g.gateRoom == nil {
			continue
		}
		if room := min(g.slots, g.starts/g.cost*mean.Seconds()); room < allowed {
			allowed, binds = room, g.gateRoom
		}
	}
	for _, g := range gates {
		if g.gateRoom != nil {
			g.slots -= allowed
			g.starts = max(0, g.starts-allowed/mean.Seconds()*g.cost)
		}
	}
	return allowed, binds
}

// gateRoom is what is left of a gate.
type gateRoom struct {
	limit, why string  // why says what binds, after the name
	slots      float64 // jobs at once
	starts     float64 // in a second
}

// roomOf is what a gate lets run, until a time.
func roomOf(s store.GateState, now, until time.Time) *gateRoom {
	g := &gateRoom{limit: store.LimitOf(s.Gate), slots: math.Inf(1), starts: math.Inf(1)}
	if g.limit == stint.QueueLimit {
		g.limit = s.Gate
	}
	if s.Rule.AtOnce != 0 {
		most := max(0, s.Rule.AtOnce)
		g.slots, g.why = float64(most), fmt.Sprintf("lets %d run at once", most)
		if s.Full(now) {
			g.why = fmt.Sprintf("is full (%d at once)", most)
		}
	}
	if s.Rule.Starts > 0 {
		g.starts = float64(s.Rule.Starts) / s.Rule.Per.Seconds()
		if per := fmt.Sprintf("lets %d start in %s", s.Rule.Starts, retry.FormatDuration(s.Rule.Per)); g.why == "" || s.Rule.AtOnce == 0 {
			g.why = per
		} else {
			g.why += ", and " + per
		}
	}
	none := func(why string) { g.slots, g.why = 0, why }
	next := s.NextStart(now)
	switch {
	case s.Halted():
		none(fmt.Sprintf("is halted by job %d, which failed", s.Failed))
	case s.Until.After(until):
		none("is paused until " + s.Until.UTC().Format(time.DateTime) + " UTC")
	case s.Trial:
		g.slots, g.why = 1, "is on trial after a pause"
	case s.Rule.Starts > 0 && next.After(until):
		none("has no start left until " + next.UTC().Format(time.DateTime) + " UTC")
	}
	return g
}

// block notes jobs that no engine could run.
func (w *wanted) block(q *QueueScaling, why string, jobs int64) {
	if jobs <= 0 {
		return
	}
	w.out.Blocked, q.Blocked = w.out.Blocked+jobs, q.Blocked+jobs
	w.waits[why] += jobs
}

// answer rounds up.
func (w *wanted) answer() Scaling {
	s := &w.out
	s.At, s.Target = w.r.At, w.Target
	s.Queues, s.Why = []QueueScaling{}, []string{}
	for _, queue := range slices.Sorted(maps.Keys(w.queues)) {
		q := *w.queues[queue]
		q.Slots = math.Ceil(q.Slots*1000) / 1000
		s.Queues = append(s.Queues, q)
		s.Backlog += q.Backlog
	}
	for _, why := range slices.SortedFunc(maps.Keys(w.waits), func(a, b string) int {
		return cmp.Or(cmp.Compare(w.waits[b], w.waits[a]), cmp.Compare(a, b))
	}) {
		s.Why = append(s.Why, fmt.Sprintf("%s: more engines change nothing for %s", why, words.Counted(w.waits[why], "job")))
	}
	s.Slots = int(math.Ceil(w.slots - 1e-9))
	s.Engines = (s.Slots + s.PerEngine - 1) / s.PerEngine
	if s.Engines < s.Running { // some may go if it is not a close thing
		s.Engines = min(s.Running, int(math.Ceil(w.slots*scaleSlack/float64(s.PerEngine))))
	}
	if s.Engines == 0 && w.r.Looks && !slices.ContainsFunc(w.r.Engines, func(e store.EngineInfo) bool { return !e.Silent(w.r.At) }) {
		s.Engines = 1
		w.notes = append(w.notes, "one engine has to look at what jobs wait for, and none runs")
	}
	switch {
	case s.Engines < w.Min:
		w.notes = append(w.notes, fmt.Sprintf("%d would do, and %d are the least", s.Engines, w.Min))
		s.Engines = w.Min
	case w.Max > 0 && s.Engines > w.Max:
		w.notes = append(w.notes, fmt.Sprintf("%d would be needed, and %d are the most", s.Engines, w.Max))
		s.Engines = w.Max
	}
	alone := false // a queue with work that no engine which runs works on
	for _, q := range s.Queues {
		if q.Backlog > 0 && s.Running > 0 && !slices.ContainsFunc(w.crew, func(e store.EngineInfo) bool { return !e.Draining && e.WorksOn(q.Queue) }) {
			alone = true
			w.notes = append(w.notes, fmt.Sprintf("no running engine works on queue %s, which has %s", q.Queue, words.Counted(q.Backlog, "job")))
		}
	}
	if free := float64(s.Running*s.PerEngine) - w.busy; s.Backlog == 0 {
		s.ClearsIn = new(time.Duration(0))
	} else if free > 0 && !alone {
		s.ClearsIn = new(time.Duration(w.load / free * float64(time.Second)).Round(time.Millisecond))
	}
	s.Why = append(s.Why, w.notes...)
	return *s
}
