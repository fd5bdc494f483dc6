package storetest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var pauseTests = []test{
	{"A look marks what is seen of a paused queue, in each of its lanes, until it is resumed", func(t *T) {
		w := t.join("k")
		t.enqueue(job("k", stint.Queue("p")))
		w.Finish(returned, w.One())
		t.enqueue(job("k", stint.Queue("p")), job("k", stint.Queue("p"), stint.Priority(-7)), job("k", stint.Queue("q")), job("k", stint.Queue("P")))
		marked := func() (all []string) {
			for _, sight := range t.look(store.LaneHints{}) {
				if sight.Paused {
					all = append(all, sight.Queue)
				}
			}
			return all
		}
		got := marked()
		expect(t, len(got) == 0, "before anything is paused, %v are marked", got)
		t.pause("p", true)
		got = marked()
		expect(t, slices.Equal(got, []string{"p", "p", "p"}), "marked are %v, want the three lanes of p", got)
		t.resume("p", true)
		got = marked()
		expect(t, len(got) == 0, "after the resumption %v are marked", got)
		w.Complete(w.ClaimAll()...)
	}},
	{"A queue is paused once, and the first who did stands", func(t *T) {
		p := as[store.Pauser](t)
		before := t.now()
		t.pause("mail", true)
		again, err := p.Pause(t.ctx, "mail", "somebody else", "another reason")
		expect(t, err == nil && !again, "pausing it again gives %v, error %v", again, err)
		t.paused("mail")
		info := t.queue("mail")
		expect(t, info.By == "who" && info.Why == "why" && between(info.Paused, before, t.now()),
			"people see %+v", info)
		t.resume("mail", true)
		t.resume("mail", false)
		t.paused()
		t.pause("mail", true)
		t.paused("mail")
	}},
	{"Queues are paused by their exact names, whatever these are", func(t *T) {
		names := []string{"a", "A", "a b", "ä", "%", "x'y", strings.Repeat("q", valid.MaxName)}
		for _, name := range names {
			t.pause(name, true)
		}
		slices.Sort(names)
		t.paused(names...)
		t.resume("a", true)
		t.paused(slices.DeleteFunc(names, func(n string) bool { return n == "a" })...)
	}},
	{"What names no queue is refused, with what is wrong about it", func(t *T) {
		p := as[store.Pauser](t)
		for _, name := range []string{"", "*", "a\nb", " a", strings.Repeat("q", valid.MaxName+1), "a\x00b", "\xff"} {
			fails(t, errOf(p.Pause(t.ctx, name, "", "")), stint.ErrInvalid, "pausing %.20q gives %v", name)
			fails(t, errOf(p.Resume(t.ctx, name)), stint.ErrInvalid, "resuming %.20q gives %v", name)
		}
		t.paused()
	}},
	{"Who paused it and why are cleaned, and may be nobody and nothing", func(t *T) {
		p := as[store.Pauser](t)
		if _, err := p.Pause(t.ctx, "a", "x\x00y\xff", strings.Repeat("ü", 1<<20)); err != nil {
			t.Error(err)
		}
		info := t.queue("a")
		expect(t, len(info.By) >= 2 && len(info.Why) >= 10 && len(info.Why) <= 1<<12,
			"people see %.100q, %.100q", info.By, info.Why)
		if _, err := p.Pause(t.ctx, "b", "", ""); err != nil {
			t.Error(err)
		}
		info = t.queue("b")
		expect(t, info.By == "" && info.Why == "" && !info.Paused.IsZero(), "people see %+v", info)
	}},
	{"The jobs of a paused queue show as they are, and are counted", func(t *T) {
		all := t.oneOfEach()
		t.pause("available", true)
		t.pause("nobody has heard of it", true)
		t.state(all[stint.Available], stint.Available)
		queues := must(as[store.Pauser](t).Queues(t.ctx))(t)
		var names []string
		for _, q := range queues {
			names = append(names, q.Name)
			expect(t, q.Name == "available" || q.Name == "nobody has heard of it" != q.Paused.IsZero(),
				"%q is paused: %v", q.Name, q.Paused)
		}
		want := []string{"another", "available", "cancelled", "completed", "failed", "nobody has heard of it", "retrying", "running", "scheduled"}
		equalAll(t, names, want, "the queues are %q, want %q")
		if teller, ok := as[store.Pauser](t).(store.PauseTeller); ok {
			pauses := must(teller.Pauses(t.ctx))(t)
			paused := slices.DeleteFunc(queues, func(q store.QueueInfo) bool { return q.Paused.IsZero() })
			noDiff(t, cmp.Diff(paused, pauses, cmpopts.IgnoreFields(store.QueueInfo{}, "Counts")),
				"the pauses (-among all queues +alone)")
		}
		none := cmpopts.IgnoreMapEntries(func(_ stint.State, n int64) bool { return n == 0 })
		for name, want := range map[string]map[stint.State]int64{
			"available": {stint.Available: 2}, "scheduled": {stint.Scheduled: 2}, "running": {stint.Running: 1}, "nobody has heard of it": {},
		} {
			noDiff(t, cmp.Diff(want, t.queue(name).Counts, none, cmpopts.EquateEmpty()), "the counts of %q (-want +got)", name)
		}
	}},
	{"A paused queue takes jobs as ever, and they can be cancelled and deleted", func(t *T) {
		t.pause(stint.DefaultQueue, true)
		ids := t.enqueue(job("k"), job("k", stint.Delay(time.Hour)))
		t.cancels(map[stint.ID]stint.CancelStatus{ids[0]: stint.CancelledNow, ids[1]: stint.CancelledNow}, "")
		t.deletes(map[stint.ID]store.DeleteStatus{ids[0]: store.DeletedNow, ids[1]: store.DeletedNow})
	}},
	{"Engines are rung when a queue is paused and when it is resumed", func(t *T) {
		p := as[store.Pauser](t)
		bell := t.listen(t.Store)
		other, _ := t.again().(store.Pauser)
		for _, p := range []store.Pauser{p, other} {
			bell.rings("at a pause", func() { t.must(errOf(p.Pause(t.ctx, "q", "", ""))) })
			bell.rings("at a resumption", func() { t.must(errOf(p.Resume(t.ctx, "q"))) })
		}
	}},
	{"Many who pause and resume at once each do it or do not", func(t *T) {
		p := as[store.Pauser](t)
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
			expect(t, n == 1, "%d of them did it, want one", n)
		}
	}},
	{"A call whose context has ended pauses nothing", func(t *T) {
		ended := t.over()
		expect(t, errOf(as[store.Pauser](t).Pause(ended, "q", "", "")) != nil, "it succeeded")
		t.paused()
	}},
}

// pause and resume do that and check whether it was news.
func (t *T) pause(queue string, want bool) {
	t.Helper()
	got := must(as[store.Pauser](t).Pause(t.ctx, queue, "who", "why"))(t)
	equal(t, got, want, "pausing %q gives %v, want %v", queue)
}

func (t *T) resume(queue string, want bool) {
	t.Helper()
	got := must(as[store.Pauser](t).Resume(t.ctx, queue))(t)
	equal(t, got, want, "resuming %q gives %v, want %v", queue)
}

// paused checks which queues are.
func (t *T) paused(want ...string) {
	t.Helper()
	got := must(as[store.Pauser](t).Paused(t.ctx))(t)
	equalAll(t, got, want, "paused are %q, want %q")
}

// queue shows one queue.
func (t *T) queue(name string) store.QueueInfo {
	t.Helper()
	all := must(as[store.Pauser](t).Queues(t.ctx))(t)
	i := slices.IndexFunc(all, func(q store.QueueInfo) bool { return q.Name == name })
	need(t, i >= 0, "there is no queue %q among %+v", name, all)
	return all[i]
}
