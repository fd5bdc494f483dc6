package storetest

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

var buryTests = []test{
	{"The judge sees each unfinished entry once, and whether it was announced", func(t *T) {
		t.enqueue(jobs(6, "k")...)
		w := t.join("k")
		all := append(w.Claim(lane(stint.DefaultQueue), 4), w.Claim(lane(stint.DefaultQueue), 2)...)
		w.Beat(all[3].Pos)
		w.Beat(all[1].Pos, all[5].Pos, all[0].Pos)
		w.Complete(all[0], all[2])
		begun := map[stint.Position]bool{}
		n, err := Bury(t.ctx, t.Store, stint.Burial{Engine: w.Info.Token}, func(e *stint.Entry, announced bool) stint.Execution {
			if _, twice := begun[e.Pos]; twice {
				t.Errorf("position %d was judged twice", e.Pos)
			}
			if e.Kind != "k" || e.ID == 0 || !sameJSON(e.Args, []byte("{}")) {
				t.Errorf("the judge sees %+v", e)
			}
			begun[e.Pos] = announced
			return Judge(e, announced)
		})
		t.must(err)
		want := map[stint.Position]bool{all[1].Pos: true, all[3].Pos: false, all[4].Pos: false, all[5].Pos: true}
		if n != 4 || len(begun) != 4 {
			t.Errorf("%d entries were concluded and %d judged, want 4", n, len(begun))
		}
		for pos, announced := range want {
			if begun[pos] != announced {
				t.Errorf("position %d: announced is %v, want %v", pos, begun[pos], announced)
			}
		}
	}},
	{"What the judge says is recorded, and comes first in line", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		held := w.ClaimAll()
		w.Beat(held[1].Pos)
		fresh := t.enqueue(jobs(2, "k")...)
		before := t.now()
		w.Leave()
		after := t.now()
		front := stint.LaneOf(stint.DefaultQueue, 0, stint.PartFront, "").ID
		next := t.join("k")
		got := next.Claim(front, 10)
		if !slices.Equal(jobIDs(got), ids) {
			t.Fatalf("the front lane has %v, want %v", jobIDs(got), ids)
		}
		if !slices.Equal(jobIDs(next.Claim(lane(stint.DefaultQueue), 10)), fresh) {
			t.Errorf("new work is not where it was")
		}
		for i, e := range got {
			want := [][3]int{{1, 0, 1}, {2, 1, 0}, {1, 0, 1}}[i]
			if have := [3]int{e.Attempt, e.Losses, e.Suspect}; have != want {
				t.Errorf("job %d has attempt, losses, suspicion %v, want %v", e.ID, have, want)
			}
			x := t.info(e.ID).Executions[0]
			if o := []stint.Outcome{stint.OutcomeReturned, stint.OutcomeLost, stint.OutcomeReturned}[i]; x.Outcome != o ||
				x.Engine != w.Info.Token || x.Final || x.Finished.Before(before) || x.Finished.After(after) {
				t.Errorf("job %d: recorded %+v, want %s between %v and %v", e.ID, x, o, before, after)
			}
		}
		next.Complete(got...)
	}},
	{"An engine that beat lately is left alone", func(t *T) {
		t.enqueue(job("k"))
		w := t.join("k")
		e := w.One()
		w.Release() // so that its beats count
		never := func(e *stint.Entry, begun bool) stint.Execution {
			t.Errorf("a living engine was judged")
			return Judge(e, begun)
		}
		for range 2 {
			_, err := Bury(t.ctx, t.Store, stint.Burial{Engine: w.Info.Token, Unless: time.Hour}, never)
			if !errors.Is(err, stint.ErrAlive) {
				t.Errorf("the burial gives %v, want ErrAlive", err)
			}
			w.Beat()
		}
		w.Complete(e)
	}},
	{"An engine that has not beaten for long enough is buried", func(t *T) {
		t.enqueue(job("k"))
		w := t.join("k")
		w.ClaimAll()
		w.Release()
		time.Sleep(30 * time.Millisecond)
		n, err := Bury(t.ctx, t.again(), stint.Burial{Engine: w.Info.Token, Unless: 10 * time.Millisecond, Why: "silent"}, Judge)
		if err != nil || n != 1 {
			t.Errorf("the burial concluded %d, error %v", n, err)
		}
	}},
	{"Of several engines the one that is named is buried, by what its own beats say", func(t *T) {
		t.enqueue(jobs(6, "k")...)
		t.join("k") // it says nothing
		var all []*Worker
		for range 5 {
			all = append(all, t.join("k"))
		}
		slices.SortFunc(all, func(a, b *Worker) int { return cmp.Compare(a.Info.Token, b.Info.Token) })
		silent := all[2]
		held := silent.Claim(lane(stint.DefaultQueue), 2)
		silent.Beat(held[1].Pos)
		silent.Release()
		time.Sleep(30 * time.Millisecond)
		for _, w := range all {
			if w != silent {
				w.Complete(w.Claim(lane(stint.DefaultQueue), 1)...)
				w.Release()
				_, err := t.Store.Beat(t.ctx, w.Info.Token, stint.Beat{Number: 1, Low: 100})
				t.must(err)
			}
		}
		begun := map[stint.Position]bool{}
		n, err := Bury(t.ctx, t.Store, stint.Burial{Engine: silent.Info.Token, Unless: 25 * time.Millisecond}, func(e *stint.Entry, announced bool) stint.Execution {
			begun[e.Pos] = announced
			return Judge(e, announced)
		})
		if want := map[stint.Position]bool{held[0].Pos: false, held[1].Pos: true}; err != nil || n != 2 || !maps.Equal(begun, want) {
			t.Errorf("the burial concluded %d and saw %v, error %v; want %v", n, begun, err, want)
		}
		for _, w := range all {
			if w != silent {
				t.engine(w)
			}
		}
	}},
	{"The buried can do nothing any more, and their token does not come back", func(t *T) {
		t.enqueue(jobs(2, "k")...)
		w := t.join("k")
		e := w.Claim(lane(stint.DefaultQueue), 1)[0]
		w.Leave()
		if _, err := w.TryClaim(t.ctx, stint.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1, Wait: true}); !errors.Is(err, stint.ErrBuried) {
			t.Errorf("its claim gives %v", err)
		}
		refuses(t, w, stint.ErrBuried, w.Conclude(e, completed))
		if _, err := t.Store.Beat(t.ctx, w.Info.Token, stint.Beat{Running: []stint.Position{e.Pos}}); !errors.Is(err, stint.ErrBuried) {
			t.Errorf("its beat gives %v", err)
		}
		all, err := t.Store.Engines(t.ctx)
		t.must(err)
		if len(all) != 0 {
			t.Errorf("the roster still has %v", all)
		}
		if l := t.ledger(); l.Buried[w.Info.Token].IsZero() {
			t.Errorf("the ledger does not know that it was buried")
		}
	}},
	{"An engine that holds nothing leaves nothing", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		w.Complete(w.ClaimAll()...)
		if n := w.Leave(); n != 0 {
			t.Errorf("leaving concluded %d entries", n)
		}
		if n := t.join("k").Leave(); n != 0 {
			t.Errorf("leaving without a claim concluded %d entries", n)
		}
		for _, id := range ids {
			t.state(id, stint.Completed)
		}
	}},
	{"The judge may end a job, or hand it on to another part", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		held := w.ClaimAll()
		ends := map[stint.Position]stint.Ending{
			held[0].Pos: {Outcome: stint.OutcomeCancelled, Note: "nobody wants it"},
			held[1].Pos: {Outcome: stint.OutcomeReturned, Part: stint.PartKind},
			held[2].Pos: {Outcome: stint.OutcomeReturned, Part: stint.PartNormal},
		}
		_, err := Bury(t.ctx, t.Store, stint.Burial{Engine: w.Info.Token}, func(e *stint.Entry, begun bool) stint.Execution {
			return stint.Conclude(e, ends[e.Pos], time.Now(), 0)
		})
		t.must(err)
		for i, want := range []stint.State{stint.Cancelled, stint.Available, stint.Available} {
			t.state(ids[i], want)
		}
		heir := t.join("k")
		for i, part := range []stint.Part{stint.PartKind, stint.PartNormal} {
			got := heir.Claim(stint.LaneOf(stint.DefaultQueue, 0, part, "k").ID, 10)
			if !slices.Equal(jobIDs(got), ids[i+1:i+2]) {
				t.Errorf("the %s lane has %v, want %v", part, jobIDs(got), ids[i+1:i+2])
			}
		}
	}},
}
