package storetest

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
)

// doctorTests are about what a store tells of itself. What is made of that is
// package stint's affair.
var doctorTests = []test{
	{"What is ready is told by queue, priority and kind, and what was taken or waits is not", func(t *T) {
		w := t.join("taken")
		t.enqueue(job("taken"), job("taken", stint.Queue("q")))
		w.ClaimAll()
		before := t.clock()
		t.enqueue(job("a"), job("b"), job("a"), job("a", stint.Queue("q")), job("a", stint.Priority(-7)), job("a", stint.In(time.Hour)))
		want := []stint.Backlog{{Queue: "default", Kind: "a", Jobs: 2}, {Queue: "default", Kind: "b", Jobs: 1}, {Queue: "default", Priority: -7, Kind: "a", Jobs: 1}, {Queue: "q", Kind: "a", Jobs: 1}}
		got := t.backlogs()
		for i, b := range got {
			if b.Oldest.Before(before) || b.Oldest.After(t.clock().Add(time.Millisecond)) {
				t.Errorf("the first %s is ready since %v, which is before %v or not yet", b.Kind, b.Oldest, before)
			}
			got[i].Oldest = time.Time{}
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}},
	{"What it takes is told by its parts, and grows with what is enqueued", func(t *T) {
		takes := func() (bytes int64) {
			t.Helper()
			for _, s := range t.examine().Sizes {
				if s.Name == "" || s.Bytes < 0 || s.Rows < 0 {
					t.Errorf("a part is %+v", s)
				}
				bytes += s.Bytes
			}
			return bytes
		}
		before := takes()
		chance := rand.New(rand.NewPCG(1, 2))
		for range 300 { // of what cannot be made smaller
			large := job("k")
			large.Args = fmt.Appendf(nil, "%q", hex.EncodeToString(fmt.Append(nil, chance.Perm(2000))))
			t.enqueue(large)
		}
		if grown := takes() - before; grown < 500_000 {
			t.Errorf("300 jobs of 20 kB take %d bytes", grown)
		}
	}},
	{"What did not begin in time is counted among what is ready", func(t *T) {
		past := stint.StartBy(t.clock().Add(-time.Minute))
		t.enqueue(job("k", past), job("k"), job("k", past), job("k", stint.StartWithin(time.Hour)))
		if got := t.backlogs(); len(got) != 1 || got[0].Jobs != 4 || got[0].Late != 2 {
			t.Errorf("told is %+v, want 2 late ones of 4", got)
		}
	}},
	{"Of what is ready in a paused queue is told who paused it", func(t *T) {
		t.enqueue(job("k", stint.Queue("p")), job("k"))
		t.pause("p", true)
		t.pause("empty", true)
		got := t.backlogs()
		if len(got) != 2 || !got[0].Paused.IsZero() || got[0].By+got[0].Why != "" {
			t.Fatalf("told is %+v", got)
		}
		if p := got[1]; p.Queue != "p" || p.By != "who" || p.Why != "why" || !p.Paused.Equal(t.queue("p").Paused) {
			t.Errorf("told is %+v", p)
		}
	}},
	{"What is undecided is told by its retry function, since it failed", func(t *T) {
		ids := t.undecided("f", "g", "f")
		t.enqueue(job("k", stint.In(time.Hour)))
		got := t.examine().Undecided
		slices.SortFunc(got, func(a, b stint.UndecidedBacklog) int { return cmp.Compare(a.Func, b.Func) })
		first := t.info(ids[0]).Finished
		if third := t.info(ids[2]).Finished; third.Before(first) {
			first = third
		}
		second := t.info(ids[1]).Finished
		if len(got) != 2 || got[0].Func != "f" || got[0].Jobs != 2 || !got[0].Oldest.Equal(first) || got[1].Func != "g" || got[1].Jobs != 1 || !got[1].Oldest.Equal(second) {
			t.Errorf("told is %+v, want two for f since %v and one for g since %v", got, first, second)
		}
	}},
	{"What engines hold that fell silent is counted, and nothing of others", func(t *T) {
		t.enqueue(slices.Concat(jobs(2, "k"), jobs(3, "k", stint.Queue("q")), jobs(4, "k"))...)
		lives, silent := t.join("k"), NewWorker(t, t.Store, "k")
		silent.Info.TimeToLive = time.Millisecond
		t.must(silent.TryJoin(t.ctx))
		// Before, behind and beside what it takes is what another one does.
		lives.Claim(lane("default"), 1)
		lives.Claim(lane("q"), 3)
		taken := silent.Claim(lane("default"), 4)
		lives.Claim(lane("default"), 1)
		silent.Complete(taken[:2]...)
		t.delete(taken[0].ID)
		t.due()
		holds := t.examine().Holds
		if _, told := holds[lives.Info.Token]; told || len(holds) != 1 || holds[silent.Info.Token] != 2 {
			t.Errorf("told is %v, want 2 entries of engine %d", holds, silent.Info.Token)
		}
	}},
	{"Looking changes nothing", func(t *T) {
		t.undecided("f")
		t.enqueue(jobs(3, "k")...)
		t.join("k").Claim(lane("default"), 2)
		before := t.ledger()
		t.examine()
		byPos := cmpopts.SortSlices(func(a, b stint.LedgerExecution) bool { return a.Pos < b.Pos })
		if diff := gocmp.Diff(before, t.ledger(), byPos); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
	}},
	{"A store that is well has no findings of a schema that was changed", func(t *T) {
		findings, err := stint.Diagnose(t.ctx, t.Store, stint.Examination{Deep: true})
		t.must(err)
		for _, f := range findings {
			switch f.Code {
			case "fsync_off", "full_page_writes_off", "isolation", "database_copied": // what throw-away servers are, and tests make them
			default:
				t.Errorf("%s: %s %s: %s", f.Severity, f.Code, f.Subject, f.Problem)
			}
		}
	}},
}

// examine looks, and fails the test where that was not possible.
func (t *T) examine() stint.Signs {
	t.Helper()
	x, ok := t.Store.(stint.Examiner)
	if !ok {
		t.Skip("the store tells nothing of itself")
	}
	signs, err := x.Examine(t.ctx, stint.Examination{})
	t.must(err)
	for _, f := range signs.Findings {
		if f.Code == stint.CodeNotLookedAt {
			t.Errorf("%s: %s", f.Subject, f.Problem)
		}
	}
	return signs
}

// backlogs are what is told to be ready, by queue, priority falling, and kind.
func (t *T) backlogs() []stint.Backlog {
	t.Helper()
	all := t.examine().Backlogs
	slices.SortFunc(all, func(a, b stint.Backlog) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}
