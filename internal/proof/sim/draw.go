package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// kinds are the types of jobs; not every engine knows all of them.
var kinds = []string{"alpha", "beta", "gamma"}

// together is the one of which some engines take several jobs in one call.
const together = "gamma"

// kept is one more, whose handlers go on when their engine was buried.
const kept = "kept"

// args are what a job is told to do.
type args struct {
	Key   string        `json:"key"`             // its name in the history
	Work  time.Duration `json:"work,omitempty"`  // how long it is busy
	Deaf  bool          `json:"deaf,omitempty"`  // it does not heed its cancellation
	Fail  int           `json:"fail,omitempty"`  // attempts that fail
	By    string        `json:"by,omitempty"`    // how: by an error, or one of these
	Kill  int           `json:"kill,omitempty"`  // attempts that kill their process
	Naps  int           `json:"naps,omitempty"`  // how often it snoozes
	Last  string        `json:"last,omitempty"`  // how it ends at last: as done, or one of these
	Grant int           `json:"grant,omitempty"` // attempts that its policy grants; 0: it tries once, and again only when lost
	Tx    bool          `json:"tx,omitempty"`    // its handler completes it in a transaction of its own
	Early bool          `json:"early,omitempty"` // that is open while it works
	Blind bool          `json:"blind,omitempty"` // it does not heed its cancellation while it commits
	Shrug bool          `json:"shrug,omitempty"` // should that fail, it returns no error all the same
	Then  string        `json:"then,omitempty"`  // should it succeed, it returns this
	Asks  bool          `json:"asks,omitempty"`  // its policy asks a retry function, and counts no losses
	Acts  []act         `json:"acts,omitempty"`  // what it does in steps
	Only  string        `json:"only,omitempty"`  // of these one at most is unfinished
}

// The ways in which a job can fail, but for an error, and end, but for success.
const (
	byPanic  = "panic"
	byGoexit = "goexit"

	lastCancel = "cancel"
	lastGiveUp = "give up"
)

// endless is more attempts than any job needs.
const endless = 1 << 20

// draw makes a job, and says whether people will do something about it.
func draw(seed Seed, key string) (job stint.NewJob, h *whim) {
	job, a := drawPlain(roll(seed.N, key, 0), key)
	if seed.Age < Plain {
		h = twist(roll(seed.N, key, 1), &job, &a)
	}
	if seed.Age < Twisted {
		h = twistMore(roll(seed.N, key, 2), &job, &a, h)
	}
	if seed.Age < Boundless {
		bind(roll(seed.N, key, 3), &job, a)
	}
	job.Args, _ = json.Marshal(a)
	return job, h
}

// drawUnique makes a job as draw does, now and then one of a few that are unique until they have ended.
func drawUnique(seed Seed, key string) (job stint.NewJob, h *whim) {
	job, h = draw(seed, key)
	if d := roll(seed.N, key, 4); seed.Age < Manifold && d.chance(40) {
		var a args
		must(0, json.Unmarshal(job.Args, &a))
		a.Only = fmt.Sprint("only-", d.IntN(3))
		job.Args, _ = json.Marshal(a)
		job.Unique = "until-ended,by=none,across=" + a.Only
	}
	return job, h
}

// drawPlain makes a job. Most are quick and do what they should; a fleet in
// which everything is odd would hardly move.
func drawPlain(d dice, key string) (stint.NewJob, args) {
	a := args{Key: key}
	if d.chance(40) {
		a.Work = d.between(0, 300*time.Millisecond)
	}
	if d.chance(12) {
		a.Work = d.between(time.Second, 8*time.Second)
		a.Deaf = d.chance(30)
	}
	if d.chance(25) {
		a.Fail, a.By = 1+d.IntN(3), []string{"", "", byPanic, byGoexit}[d.IntN(4)]
	}
	if d.chance(1) {
		a.Kill = 1 + d.IntN(4)
	}
	if d.chance(8) {
		a.Naps = 1 + d.IntN(2)
	}
	if d.chance(10) {
		a.Last = []string{lastCancel, lastGiveUp}[d.IntN(2)]
	}
	job := stint.NewJob{Kind: kinds[d.IntN(len(kinds))], Queue: stint.DefaultQueue}
	switch d.IntN(5) {
	case 0:
		n := 1 + d.IntN(3)
		job.Retry, a.Grant = retry.Fixed(n, d.between(10*time.Millisecond, 2*time.Second)), n+1
	case 1:
		job.Retry, a.Grant = retry.Exponential(3, 500*time.Millisecond).Jitter(0.3), 4
	case 2:
		job.Retry, a.Grant = retry.Forever(time.Second), endless
	case 3:
		job.Retry, a.Grant = retry.Timetable(retry.Row{Younger: time.Hour, Wait: 700 * time.Millisecond}), endless
	default:
		job.Retry, a.Grant = retry.Fixed(8, 100*time.Millisecond), 9
	}
	if d.chance(3) {
		job.Retry, a.Grant = retry.None(), 0
	}
	if d.chance(20) {
		job.Queue = "other"
	}
	if d.chance(20) {
		job.Priority = d.IntN(5) - 2
	}
	if d.chance(20) {
		job.Delay = d.between(time.Millisecond, 15*time.Second)
	}
	if d.chance(8) {
		job.Timeout = d.between(time.Second, 4*time.Second)
		job.Retry, a.Grant = retry.Fixed(2, time.Second), 3 // it may time out each time
	}
	return job, a
}

// twist makes a drawn job odder. It has dice of its own, so that what was drawn
// before there were twists is drawn as ever; a new twist goes to the end. The
// whim is nil when the job is never cancelled.
func twist(d dice, job *stint.NewJob, a *args) *whim {
	var h *whim
	if d.chance(14) {
		h = newWhim(d)
		if (h.when == whenBegun || h.when == whenEnded) && d.chance(70) {
			a.Work, a.Deaf = d.between(0, 2*time.Second), d.chance(50)
		}
	}
	if d.chance(12) {
		a.Tx = true
		a.Blind, a.Shrug = d.chance(50), d.chance(10)
		a.Then = []string{"", "", "", "", "", "", thenError, thenError, thenPanic, thenGoexit, thenSnooze, thenCancel}[d.IntN(12)]
		if d.chance(20) {
			a.Early, a.Work = true, d.between(0, 200*time.Millisecond)
		}
	}
	if d.chance(8) {
		job.Kind = kept
		if d.chance(50) {
			a.Work = d.between(time.Second, 8*time.Second)
		}
	}
	return h
}

// twistMore makes it odder still, likewise.
func twistMore(d dice, job *stint.NewJob, a *args, h *whim) *whim {
	if d.chance(8) {
		job.Retry, a.Grant, a.Asks = retry.Function(judgement), bears, true
		if d.chance(70) {
			a.Fail = 1 + d.IntN(4)
		}
	}
	if h == nil && d.chance(8) {
		h = newWhim(d)
		h.does = []wish{itAgain, itGone, itGone}[d.IntN(3)]
		if h.does == itGone && d.chance(60) {
			h.when = whenEnded
		}
	}
	return h
}

// Seed is where everything that is left to chance comes from. The workload has
// grown, and a seed that was kept from before means what it meant then.
type Seed struct {
	N   uint64
	Age Age
}

// Age says what the workload of a seed leaves out.
type Age int

// The ages, the youngest first.
const (
	Young     Age = iota // nothing
	Manifold             // jobs that are unique until they have ended
	Unlinked             // and flows, and jobs that do several things
	Boundless            // and limits
	Apart                // and kinds whose jobs come in batches
	Beating              // and sessions by which the server knows who lives
	Lasting              // and retention, and leases with it
	Single               // and schedules
	Twisted              // and people who operate, callers, pools of slots and retry functions
	Plain                // and the twists of jobs
)

var ages = map[Age]string{Young: "", Manifold: "-manifold", Unlinked: "-unlinked", Boundless: "-boundless", Apart: "-apart", Beating: "-beating", Lasting: "-lasting", Single: "-single", Twisted: "-twisted", Plain: "-plain"}

// String is how the seed is written.
func (s Seed) String() string { return strconv.FormatUint(s.N, 10) + ages[s.Age] }

// dice are the random decisions of one thing in the simulation.
type dice struct{ *rand.Rand }

// roll makes the dice of the thing that a seed, a name and a number tell
// apart. The same three always make the same decisions, in whatever order
// things come to pass.
func roll(seed uint64, name string, n int) dice {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	_, _ = h.Write(strconv.AppendInt([]byte{0}, int64(n), 10))
	return dice{rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// chance is true in p of 100 cases.
func (d dice) chance(p int) bool { return d.IntN(100) < p }

// between is a duration of the interval, to the nanosecond: two that end at the
// same instant by accident are as rare here as anywhere.
func (d dice) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64(high-low)))
}

// whim is one job that its client thinks better of at a moment of its life.
type whim struct {
	when  moment
	does  wish
	dice  dice
	begun chan struct{} // an attempt of the job begins
	ended chan struct{} // and ends
}

// wish is what a client wants of its job by then.
type wish int

const (
	itCancelled wish = iota
	itAgain
	itGone
)

// comeTrue does what the client wants, of others too if it is careless.
func (h *whim) comeTrue(p *process, job stint.ID, others []stint.ID) {
	switch h.does {
	case itCancelled:
		p.cancelSome(h.dice, job, others)
	case itAgain:
		p.againSome(h.dice, []stint.ID{job})
	case itGone:
		p.tidy(h.dice, job)
	}
}

// moment is when a client thinks so.
type moment int

const (
	anyTime   moment = iota // wherever it is by then
	atOnce                  // when it is there
	whenDue                 // when it is promoted, or just before or after
	whenBegun               // when an attempt of it runs
	whenEnded               // when the end of one is being recorded
	whenDone                // when it has most likely ended
	moments
)

func newWhim(d dice) *whim {
	return &whim{when: moment(d.IntN(int(moments))), dice: d, begun: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
}

// expect remembers a whim before its job is there.
func (w *world) expect(key string, h *whim) {
	if h == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.whims[key] = h
}

// begins and ends tell whoever waits for it.
func (w *world) begins(a args) { w.signal(a, func(h *whim) chan struct{} { return h.begun }) }
func (w *world) ends(a args)   { w.signal(a, func(h *whim) chan struct{} { return h.ended }) }

func (w *world) signal(a args, which func(h *whim) chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.whims[a.Key]; h != nil {
		select {
		case which(h) <- struct{}{}:
		default:
		}
	}
}

// comes waits until the moment comes, in the life of a job that is due after a
// delay; false says that the trouble is over before.
func (h *whim) comes(w *world, delay time.Duration) bool {
	d := h.dice
	var event chan struct{}
	var after time.Duration
	switch h.when {
	case anyTime:
		after = d.between(0, 20*time.Second)
	case atOnce:
		after = d.between(0, 5*time.Millisecond)
	case whenDue:
		after = max(0, delay+d.between(-3*time.Millisecond, 5*time.Millisecond))
	case whenBegun:
		event, after = h.begun, d.between(0, time.Second)
	case whenEnded:
		event, after = h.ended, d.between(0, 5*time.Millisecond)
	case whenDone:
		after = d.between(15*time.Second, 30*time.Second)
	}
	if event != nil {
		select {
		case <-event:
		case <-time.After(30 * time.Second):
		case <-w.calm:
			return false
		}
	}
	select {
	case <-time.After(after):
		return true
	case <-w.calm:
		return false
	}
}

// cancelSome cancels a job, at times with others and with some that do not
// exist, and at times again when it does not know what came of it.
func (p *process) cancelSome(d dice, job stint.ID, others []stint.ID) {
	ids := []stint.ID{job}
	if d.chance(15) {
		for range 1 + d.IntN(4) {
			ids = append(ids, others[d.IntN(len(others))])
		}
	}
	if d.chance(10) {
		ids = append(ids, stint.ID(1<<40+d.Int64N(1<<40)), job)
	}
	for try := range 5 {
		ctx, cancel := context.WithTimeout(context.Background(), d.between(time.Second, 10*time.Second))
		_, err := p.Cancel(ctx, slices.Clone(ids), fmt.Sprintf("%s does not want job %d, call %d", p.name, job, try+1))
		cancel()
		if err == nil || d.chance(30) || p.w.over.Load() {
			return
		}
	}
}

// regret has a client cancel something that an engine holds: before its burial,
// beside it, or just after.
func (w *world) regret(d dice, engine store.EngineID) {
	ctx := context.Background()
	claims, err := w.real.Held(ctx, engine, 0)
	if err != nil || len(claims) == 0 {
		return
	}
	claim := claims[d.IntN(len(claims))]
	at := claim.Positions[d.IntN(len(claim.Positions))]
	entries, err := w.real.Fetch(ctx, []store.Position{at})
	if err != nil || len(entries) != 1 {
		return
	}
	client := w.clients[d.IntN(len(w.clients))]
	after := d.between(0, 4*time.Millisecond)
	if d.chance(20) {
		after = d.between(0, time.Second)
	}
	own := roll(w.seed.N, client.name+"regrets", int(entries[0].ID)) // d goes on beside it
	w.strays.Go(func() {
		time.Sleep(after)
		client.cancelSome(own, entries[0].ID, []stint.ID{entries[0].ID})
	})
}
