package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
)

var pauseTests = []test{
	{"A look marks what is seen of a paused queue, in each of its lanes, until it is resumed", func(t *T) {
		w := t.join("k")
		t.enqueue(job("k", stint.Queue("p")))
		w.Finish(stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront}, w.One())
		t.enqueue(job("k", stint.Queue("p")), job("k", stint.Queue("p"), stint.Priority(-7)), job("k", stint.Queue("q")), job("k", stint.Queue("P")))
		marked := func() (all []string) {
			for _, sight := range t.look(stint.KnownLanes{}) {
				if sight.Paused {
					all = append(all, sight.Queue)
				}
			}
			return all
		}
		if got := marked(); len(got) != 0 {
			t.Errorf("before anything is paused, %v are marked", got)
		}
		t.pause("p", true)
		if got := marked(); !slices.Equal(got, []string{"p", "p", "p"}) {
			t.Errorf("marked are %v, want the three lanes of p", got)
		}
		t.resume("p", true)
		if got := marked(); len(got) != 0 {
			t.Errorf("after the resumption %v are marked", got)
		}
		w.Complete(w.ClaimAll()...)
	}},
	{"A queue is paused once, and the first who did stands", func(t *T) {
		p := t.pauser()
		before := t.now()
		t.pause("mail", true)
		again, err := p.Pause(t.ctx, "mail", "somebody else", "another reason")
		if err != nil || again {
			t.Errorf("pausing it again gives %v, error %v", again, err)
		}
		t.paused("mail")
		info := t.queue("mail")
		if info.By != "who" || info.Why != "why" || info.Paused.Before(before) || info.Paused.After(t.now()) {
			t.Errorf("people see %+v", info)
		}
		t.resume("mail", true)
		t.resume("mail", false)
		t.paused()
		t.pause("mail", true)
		t.paused("mail")
	}},
	{"Queues are paused by their exact names, whatever these are", func(t *T) {
		names := []string{"a", "A", "a b", "ä", "%", "x'y", strings.Repeat("q", stint.MaxName)}
		for _, name := range names {
			t.pause(name, true)
		}
		slices.Sort(names)
		t.paused(names...)
		t.resume("a", true)
		t.paused(slices.DeleteFunc(names, func(n string) bool { return n == "a" })...)
	}},
	{"What names no queue is refused, with what is wrong about it", func(t *T) {
		p := t.pauser()
		for _, name := range []string{"", "*", "a\nb", " a", strings.Repeat("q", stint.MaxName+1), "a\x00b", "\xff"} {
			if _, err := p.Pause(t.ctx, name, "", ""); !errors.Is(err, stint.ErrInvalid) {
				t.Errorf("pausing %.20q gives %v", name, err)
			}
			if _, err := p.Resume(t.ctx, name); !errors.Is(err, stint.ErrInvalid) {
				t.Errorf("resuming %.20q gives %v", name, err)
			}
		}
		t.paused()
	}},
	{"Who paused it and why are cleaned, and may be nobody and nothing", func(t *T) {
		p := t.pauser()
		if _, err := p.Pause(t.ctx, "a", "x\x00y\xff", strings.Repeat("ü", 1<<20)); err != nil {
			t.Error(err)
		}
		if info := t.queue("a"); len(info.By) < 2 || len(info.Why) < 10 || len(info.Why) > 1<<12 {
			t.Errorf("people see %.100q, %.100q", info.By, info.Why)
		}
		if _, err := p.Pause(t.ctx, "b", "", ""); err != nil {
			t.Error(err)
		}
		if info := t.queue("b"); info.By != "" || info.Why != "" || info.Paused.IsZero() {
			t.Errorf("people see %+v", info)
		}
	}},
	{"The jobs of a paused queue show as they are, and are counted", func(t *T) {
		all := t.oneOfEach()
		t.pause("available", true)
		t.pause("nobody has heard of it", true)
		t.state(all[stint.Available], stint.Available)
		queues, err := t.pauser().Queues(t.ctx)
		t.must(err)
		var names []string
		for _, q := range queues {
			names = append(names, q.Name)
			if paused := q.Name == "available" || q.Name == "nobody has heard of it"; paused == q.Paused.IsZero() {
				t.Errorf("%q is paused: %v", q.Name, q.Paused)
			}
		}
		want := []string{"another", "available", "cancelled", "completed", "failed", "nobody has heard of it", "retrying", "running", "scheduled"}
		if !slices.Equal(names, want) {
			t.Errorf("the queues are %q, want %q", names, want)
		}
		if teller, ok := t.pauser().(stint.PauseTeller); ok {
			pauses, err := teller.Pauses(t.ctx)
			t.must(err)
			paused := slices.DeleteFunc(queues, func(q stint.QueueInfo) bool { return q.Paused.IsZero() })
			if diff := cmp.Diff(paused, pauses, cmpopts.IgnoreFields(stint.QueueInfo{}, "Counts")); diff != "" {
				t.Errorf("the pauses (-among all queues +alone):\n%s", diff)
			}
		}
		none := cmpopts.IgnoreMapEntries(func(_ stint.State, n int64) bool { return n == 0 })
		for name, want := range map[string]map[stint.State]int64{
			"available": {stint.Available: 2}, "scheduled": {stint.Scheduled: 2}, "running": {stint.Running: 1}, "nobody has heard of it": {},
		} {
			if diff := cmp.Diff(want, t.queue(name).Counts, none, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the counts of %q (-want +got):\n%s", name, diff)
			}
		}
	}},
	{"A paused queue takes jobs as ever, and they can be cancelled and deleted", func(t *T) {
		t.pause(stint.DefaultQueue, true)
		ids := t.enqueue(job("k"), job("k", stint.In(time.Hour)))
		t.cancels(map[stint.ID]stint.Cancellation{ids[0]: stint.CancelledNow, ids[1]: stint.CancelledNow}, "")
		t.deletes(map[stint.ID]stint.Deletion{ids[0]: stint.DeleteTooEarly, ids[1]: stint.DeletedNow})
		t.state(ids[0], stint.Cancelled)
		w := t.join("k")
		w.Finish(stint.Ending{Outcome: stint.OutcomeCancelled}, w.One())
		t.deletes(map[stint.ID]stint.Deletion{ids[0]: stint.DeletedNow})
	}},
	{"Engines are rung when a queue is paused and when it is resumed", func(t *T) {
		p := t.pauser()
		bell := t.listen(t.Store)
		bell.wait("when it began to listen")
		other, _ := t.again().(stint.Pauser)
		for _, p := range []stint.Pauser{p, other} {
			bell.rings("at a pause", func() { t.must(errOf(p.Pause(t.ctx, "q", "", ""))) })
			bell.rings("at a resumption", func() { t.must(errOf(p.Resume(t.ctx, "q"))) })
		}
	}},
	{"Many who pause and resume at once each do it or do not", func(t *T) {
		p := t.pauser()
		for _, do := range []func() (bool, error){
			func() (bool, error) { return p.Pause(t.ctx, "q", "", "") },
			func() (bool, error) { return p.Resume(t.ctx, "q") },
		} {
			did := make(chan bool, 8)
			errs := atOnce(8, func(int) error {
				yes, err := do()
				did <- yes
				return err
			})
			t.must(errors.Join(errs...))
			close(did)
			n := 0
			for yes := range did {
				if yes {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%d of them did it, want one", n)
			}
		}
	}},
	{"A call whose context has ended pauses nothing", func(t *T) {
		ended, cancel := context.WithCancel(t.ctx)
		cancel()
		if _, err := t.pauser().Pause(ended, "q", "", ""); err == nil {
			t.Error("it succeeded")
		}
		t.paused()
	}},
}

// pause and resume do that and check whether it was news.
func (t *T) pause(queue string, want bool) {
	t.Helper()
	got, err := t.pauser().Pause(t.ctx, queue, "who", "why")
	t.must(err)
	if got != want {
		t.Errorf("pausing %q gives %v, want %v", queue, got, want)
	}
}

func (t *T) resume(queue string, want bool) {
	t.Helper()
	got, err := t.pauser().Resume(t.ctx, queue)
	t.must(err)
	if got != want {
		t.Errorf("resuming %q gives %v, want %v", queue, got, want)
	}
}

// paused checks which queues are.
func (t *T) paused(want ...string) {
	t.Helper()
	got, err := t.pauser().Paused(t.ctx)
	t.must(err)
	if !slices.Equal(got, want) {
		t.Errorf("paused are %q, want %q", got, want)
	}
}

// queue shows one queue.
func (t *T) queue(name string) stint.QueueInfo {
	t.Helper()
	all, err := t.pauser().Queues(t.ctx)
	t.must(err)
	i := slices.IndexFunc(all, func(q stint.QueueInfo) bool { return q.Name == name })
	if i < 0 {
		t.Fatalf("there is no queue %q among %+v", name, all)
	}
	return all[i]
}
