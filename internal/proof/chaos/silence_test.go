//go:build unix

package chaos_test

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

func beatBegins(m chaos.Message) bool {
	return m.Type == 'B' && strings.Contains(m.SQL, "update stint.beats")
}

func TestTwoBeatsInARowThatFailCostAnEngineNothing(t *testing.T) {
	t.Parallel()
	for range 3 {
		if twoBeatsFail(t) {
			return
		}
	}
	t.Error("three times an engine lost its place, other beats than the two had failed, and the server was slow for everybody")
}

// twoBeatsFail reports whether the round counts. It does not if the engine lost its place after other
// beats had failed, too, while the server kept also the test itself waiting: where the machine gives no
// processor the engine is right to end its work.
func twoBeatsFail(t *testing.T) bool {
	w := newWorld(t, pgtest.New(t))
	proxy := w.behind()
	ttl := pace.Of(4 * time.Second)
	worker := w.Start(chaos.Worker{Name: "worker", DB: proxy.URL(w.url), Slots: 4, TimeToLive: ttl})
	w.Await("worker", event.EventJoined, 1, time.Minute)
	slowest := w.slowestAnswer()
	var beats atomic.Int64
	proxy.Hook(func(m chaos.Message) chaos.Fate {
		if !chaos.BeatCommits(m) || beats.Add(1) > 2 {
			return chaos.Pass
		}
		return chaos.Cut
	})
	w.enqueue("long", 0, 4, func(int) chaos.Args { return chaos.Args{Work: 5000} })
	return w.keepsItsPlace(worker, proxy, func(beat chaos.Event) bool {
		return !strings.Contains(beat.Err, "unexpected EOF") && slowest() > ttl/20
	})
}

// slowestAnswer begins to ask the server all the time, past the proxy, and returns what tells the longest
// wait for an answer.
func (w *world) slowestAnswer() func() time.Duration {
	var slowest atomic.Int64
	go func() {
		for ; w.t.Context().Err() == nil; time.Sleep(20 * time.Millisecond) {
			asked := time.Now()
			_ = w.pool.Ping(w.t.Context())
			slowest.Store(max(slowest.Load(), int64(time.Since(asked))))
		}
	}()
	return func() time.Duration { return time.Duration(slowest.Load()) }
}

// A connection that goes silent (a firewall forgot it, say) is not told from
// an answer that takes long. A beat must not wait for it until it is too late.
func TestAConnectionThatGoesSilentUnderABeatCostsAnEngineNothing(t *testing.T) {
	atLength(t)
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	proxy := w.behind()
	worker := w.Start(chaos.Worker{Name: "worker", DB: proxy.URL(w.url), Slots: 4, TimeToLive: pace.Of(10 * time.Second)})
	w.Await("worker", event.EventJoined, 1, time.Minute)
	silent := proxy.Once(1, beatBegins, func() chaos.Fate { return chaos.Hold(time.Minute) })
	w.enqueue("long", 0, 4, func(int) chaos.Args { return chaos.Args{Work: 10_000} })
	within(t, 30*time.Second, "a beat is sent", silent)
	w.keepsItsPlace(worker, proxy, func(chaos.Event) bool { return false })
}

// keepsItsPlace waits until all work is done, and makes sure that one engine
// did it in one session. It says nothing of one that lost its place after a beat had failed that does not
// count, and returns false.
func (w *world) keepsItsPlace(p *chaos.Process, proxy *chaos.Proxy, countsNot func(beat chaos.Event) bool) bool {
	w.t.Helper()
	w.Drain(w.t.Context(), w.store, 30*time.Second)
	events := w.Events(p.Name)
	joined := chaos.Count(events, event.EventJoined)
	lost := slices.IndexFunc(events, func(e chaos.Event) bool { return e.Type == event.EventBuried })
	counts := joined == 1 || lost < 0 || !slices.ContainsFunc(events[:lost], func(e chaos.Event) bool {
		return e.Type == event.EventTrouble && e.Doing == "beat" && countsNot(e)
	})
	if joined != 1 && counts {
		w.t.Errorf("the engine joined %d times: %+v", joined, events)
	}
	proxy.Calm() // or the driver waits for its silent connection a while
	if err := p.Stop(); err != nil {
		w.t.Errorf("%s: %v", p.Name, err)
	}
	w.t.Log(w.Judge(w.t.Context(), w.ground))
	return counts
}

// An engine that cannot reach its database any more, and gets no error either,
// fences itself even while a flush waits for its answer. When the database is
// back it joins anew, without anybody's help.
func TestAnEngineCutOffInSilenceAmidAFlushComesBackByItself(t *testing.T) {
	atLength(t)
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	proxy := w.behind()
	ttl := pace.Of(6 * time.Second)
	beat := ttl / 4
	lone := w.Start(chaos.Worker{Name: "lone", DB: proxy.URL(w.url), Slots: 4, TimeToLive: ttl})
	w.Await("lone", event.EventJoined, 1, time.Minute)
	within(t, 10*time.Second, "a beat is sent", proxy.Once(1, chaos.BeatCommits, func() chaos.Fate { return chaos.Pass }))
	began := time.Now()

	// The next beat is the last one that succeeds. Half a second before the
	// engine fences itself for that, the job ends and its outcome is sent.
	fence := began.Add(beat + 3*beat)
	w.enqueue("long", 0, 1, func(int) chaos.Args { return chaos.Args{Work: int((4*beat - 500*time.Millisecond).Milliseconds())} })
	time.Sleep(time.Until(began.Add(beat + 300*time.Millisecond)))
	over := w.CutOff("lone")
	proxy.Stall(chaos.Both, 4*ttl)

	fenced := w.Await("lone", event.EventBuried, 1, 2*ttl)
	if late := fenced.At.Sub(fence); late > pace.Of(time.Second) {
		t.Errorf("it had ended its work %v after it fenced itself", late)
	}
	other := w.Start(chaos.Worker{Name: "other", DB: w.url, Slots: 4, TimeToLive: ttl})
	w.Drain(t.Context(), w.store, 5*ttl)
	proxy.Calm()
	over()
	w.Await("lone", event.EventJoined, 2, 2*ttl)
	for _, p := range []*chaos.Process{lone, other} {
		if err := p.Stop(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	w.Burials(t.Context(), w.ground)
	t.Log(w.Judge(t.Context(), w.ground))
}

// The other calls of an engine must not wait for ever either: it would beat,
// and so nobody would bury it, but do only a part of its work.
func TestAConnectionThatGoesSilentUnderACallHoldsUpAnEngineForAWhileOnly(t *testing.T) {
	for name, text := range few(1, maps.All(map[string]string{
		"looking for work": "stint.look(", "promoting": "stint.promote(", "looking at the roster": "from stint.engines e join stint.beats",
		"claiming": "stint.claim(", "finishing": "stint.finish(", "reading what it holds": "from stint.claims c cross join",
	})) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.New(t))
			proxy := w.behind()
			ttl := pace.Of(2 * time.Second)
			worker := w.Start(chaos.Worker{Name: "worker", DB: proxy.URL(w.url), Slots: 4, TimeToLive: ttl})
			w.Await("worker", event.EventJoined, 1, time.Minute)
			silent := proxy.Once(1, func(m chaos.Message) bool { return m.Type == 'B' && strings.Contains(m.SQL, text) },
				func() chaos.Fate { return chaos.Hold(time.Minute) })
			w.enqueue("before", 0, 10, quick)
			w.enqueue("long", 0, 1, func(int) chaos.Args { return chaos.Args{Work: 1500} }) // a beat finds it running
			within(t, 10*time.Second, "the call is made", silent)
			doomed := w.Start(chaos.Worker{Name: "doomed", DB: w.url, Slots: 1, TimeToLive: ttl})
			w.Await("doomed", event.EventJoined, 1, time.Minute)
			doomed.Kill()
			began := time.Now()
			w.enqueue("behind", 0, 10, quick)
			w.enqueue("later", 0, 10, quick, stint.Delay(100*time.Millisecond))
			w.Drain(t.Context(), w.store, 20*time.Second)
			w.until("the dead one is buried", `select count(*) = 1 from stint.engines`)
			if took := time.Since(began); took > 2*ttl+pace.Of(3*time.Second) {
				t.Errorf("it was held up for %v", took)
			} else {
				t.Logf("it was held up for %v", took)
			}
			proxy.Calm()
			if err := worker.Stop(); err != nil {
				t.Error(err)
			}
			t.Log(w.Judge(t.Context(), w.ground))
		})
	}
}
