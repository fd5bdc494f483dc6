//go:build unix

package chaos_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// point is a place at which a process can be frozen: by the proxy, when a
// message of it passes, and there in what state the server is left.
type point struct {
	name  string
	match func(chaos.Message) bool
	fate  chaos.Fate
	args  chaos.Args // of each job
}

// slack is how long what takes a moment may take on a machine that is busy.
const slack = 10 * time.Second

// held stands for a message that is held back for longer than a time to live.
var held = chaos.Hold(0)

var points = []point{
	{"inside a claim that holds its lane", chaos.ClaimCommits, chaos.Hold(chaos.Forever), chaos.Args{}},
	{"when a claim was sent", chaos.ClaimCommits, chaos.Pass, chaos.Args{}},
	{"before a claim arrives", chaos.ClaimSent, held, chaos.Args{}},
	{"inside a flush", chaos.FinishCommits, chaos.Hold(chaos.Forever), chaos.Args{}},
	{"when a flush was sent", chaos.FinishCommits, chaos.Pass, chaos.Args{}},
	{"before a flush arrives", chaos.FinishSent, held, chaos.Args{}},
	{"inside a beat", chaos.BeatCommits, chaos.Hold(chaos.Forever), chaos.Args{Work: 30}},
	{"inside a transaction that completes its job", chaos.TxCommits, chaos.Hold(chaos.Forever), chaos.Args{Tx: true}},
	{"when the commit of a job's transaction was sent", chaos.TxCommits, chaos.Pass, chaos.Args{Tx: true}},
	{"before a job completes in its transaction", chaos.CompleteSent, held, chaos.Args{Tx: true}},
}

// An engine whose process got no processor for long fences itself, though nothing was done
// to it. That its attempts are returned then is explained by its own word, and by nothing else.
func TestAnEngineThatGotNoProcessorIsJudgedByItsOwnWord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	const ttl = 2 * time.Second // nobody else is there who could bury it before it fences itself
	steady := w.Start(chaos.Worker{Name: "steady", DB: w.url, Slots: 4, TimeToLive: ttl})
	w.Await("steady", event.EventJoined, 1, time.Minute)
	w.enqueue("long", 0, 4, func(int) chaos.Args { return chaos.Args{Work: int(ttl.Milliseconds()) * 5} }) // it is fenced before they end
	w.until("they run", `select exists (select from stint.beats where cardinality(running) = 4)`)
	before := w.joins("steady") // on a machine that is too busy it may have been fenced before it had a job
	for until := time.Now().Add(time.Minute); w.joins("steady") == before; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("it never fenced itself and joined again")
		}
		steady.Starve(ttl * 7 / 8)
	}
	w.Drain(t.Context(), w.store, time.Minute)
	if err := steady.Stop(); err != nil {
		t.Error(err)
	}
	if n := w.Burials(t.Context(), w.ground); n == 0 {
		t.Error("nobody was buried")
	}
	report := w.Judge(t.Context(), w.ground)
	if t.Log(report); report.Runs == report.Jobs {
		t.Error("nothing was cut short")
	}
}

// A process that is frozen for longer than its time to live is buried, at
// whatever point it stood still, its jobs run elsewhere, and when it wakes up it
// records nothing under its old name, joins anew, and works on.
func TestAWorkerFrozenAtAnyPointIsReplacedAndComesBack(t *testing.T) {
	for _, at := range few(2, slices.All(points)) {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.New(t))
			proxy := w.behind()
			ttl := pace.Of(2 * time.Second)
			frozen := w.Start(chaos.Worker{Name: "frozen", DB: proxy.URL(w.url), Slots: 4, TimeToLive: ttl})
			other := w.Start(chaos.Worker{Name: "other", DB: w.url, Slots: 4, TimeToLive: patient})
			w.Await("frozen", event.EventJoined, 1, time.Minute)
			w.Await("other", event.EventJoined, 1, time.Minute)
			stands := proxy.Once(1, at.match, func() chaos.Fate {
				frozen.Freeze()
				if at.fate == held {
					return chaos.Hold(3 * ttl)
				}
				return at.fate
			})
			for i := 0; !closed(stands); i++ {
				w.enqueue("before", 8*i, 8, func(int) chaos.Args { return at.args })
				time.Sleep(100 * time.Millisecond)
			}
			since := time.Now()
			w.enqueue("behind", 0, 100, quick)

			// Its burial may be blocked for another time to live by what it
			// left open; then its sessions are ended. Looks are a second apart.
			w.Drain(t.Context(), w.store, 2*ttl+5*time.Second)
			t.Logf("everything was done %v after the freeze", time.Since(since))
			w.until("it is buried", `select count(*) = 1 from stint.engines`)

			lives := w.joins("frozen") // on a machine that is too busy it has ended one by itself
			frozen.Thaw()
			w.Await("frozen", event.EventJoined, lives+1, slack)
			w.enqueue("again", 0, 100, quick)
			w.Drain(t.Context(), w.store, slack)
			// A worker that is thawed amid its joining ends that session by itself, and joins once more.
			w.until("nobody else stands", `select count(*) = 2 from stint.engines`)
			for _, p := range []*chaos.Process{frozen, other} {
				if err := p.Stop(); err != nil {
					t.Errorf("%s: %v", p.Name, err)
				}
			}
			ended := w.joins("frozen") + w.joins("other") - 2
			w.Burials(t.Context(), w.ground)
			if n := w.buried("frozen", "other"); n != ended {
				t.Errorf("%d engines were buried, and %d ended otherwise than by a stop", n, ended)
			}
			t.Log(w.Judge(t.Context(), w.ground))
		})
	}
}

// joins is how often a process has joined.
func (w *world) joins(process string) (n int) {
	for _, e := range w.Events(process) {
		if e.Type == event.EventJoined {
			n++
		}
	}
	return n
}

// buried counts the engines that were buried, of those that processes said to be. Where the answer to a joining comes too
// late, as on a busy machine, an engine is in the roster that nobody ever was.
func (w *world) buried(processes ...string) (n int) {
	w.t.Helper()
	var tokens []int64
	for _, p := range processes {
		for _, e := range w.Events(p) {
			if e.Type == event.EventJoined {
				tokens = append(tokens, int64(e.Engine))
			}
		}
	}
	if err := w.pool.QueryRow(w.t.Context(), `
		select count(*) from stint.engine_history
		where ended is not null and why <> 'left' and token = any ($1)`, tokens).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestAWorkerFrozenWhileIdleComesBackAndExitsCleanly(t *testing.T) {
	atLength(t)
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	frozen := w.Start(chaos.Worker{Name: "frozen", DB: w.url, Slots: 4, TimeToLive: pace.Of(2 * time.Second)})
	other := w.Start(chaos.Worker{Name: "other", DB: w.url, Slots: 4, TimeToLive: patient})
	w.until("both joined", `select count(*) = 2 from stint.engines`)
	frozen.Freeze()
	w.until("the frozen one is buried", `select count(*) = 1 from stint.engines`)
	frozen.Thaw()
	w.Await("frozen", event.EventJoined, 2, slack)
	w.enqueue("quick", 0, 100, quick)
	w.Drain(t.Context(), w.store, slack)
	for _, p := range []*chaos.Process{frozen, other} {
		if err := p.Stop(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	w.Burials(t.Context(), w.ground)
	t.Log(w.Judge(t.Context(), w.ground))
}

// An engine whose process stood still, and lost the session that the server knows it by meanwhile, was
// buried: when it wakes up it begins nothing that it holds, although it may get such a session again.
func TestAWorkerThatWakesUpWithoutItsSessionBeginsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	frozen := w.Start(chaos.Worker{Name: "frozen", DB: w.url, Slots: 4, TimeToLive: pace.Of(2 * time.Second), MaxOutage: pace.Of(10 * time.Second)})
	w.Await("frozen", event.EventJoined, 1, time.Minute)
	w.enqueue("before", 0, 1000, func(int) chaos.Args { return chaos.Args{Work: 10} })
	w.until("it works, and claims ahead", `select count(*) > 200 from stint.executions`)
	lives := w.joins("frozen")
	frozen.Freeze()
	if n := w.number(`select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'stint engine' and datname = current_database()`); n != 1 {
		t.Fatalf("%d sessions of engines were ended, want 1", n)
	}
	other := w.Start(chaos.Worker{Name: "other", DB: w.url, Slots: 4, TimeToLive: patient})
	w.until("it is buried", `select count(*) = 1 from stint.engines`)
	w.Drain(t.Context(), w.store, time.Minute)
	woken := check.Now()
	frozen.Thaw()
	w.Await("frozen", event.EventJoined, lives+1, slack)
	for _, r := range w.history().Runs {
		if r.Start >= woken {
			t.Errorf("it began job %d %v after it woke up, which had run elsewhere", r.Job, r.Start.Sub(woken))
		}
	}
	for _, p := range []*chaos.Process{frozen, other} {
		if err := p.Stop(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	w.Burials(t.Context(), w.ground)
	t.Log(w.Judge(t.Context(), w.ground))
}
