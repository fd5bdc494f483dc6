package storetest

import (
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// limitPauseTests are about limits that are paused, and about keys with rules of their own.
var limitPauseTests = []test{
	{"Of a paused gate nothing is given until the pause ends or is taken back, and what is held stays", func(t *T) {
		l, a, b := as[store.Limiter](t), t.join("k"), t.join("k")
		t.rules(map[string]string{"x": "3"})
		t.takes(a, "x", 0, 1, 1)
		before := t.now()
		t.must(l.PauseLimit(t.ctx, "x", store.Pause{For: time.Hour}))
		h := t.takes(a, "x", 1, 2, 1)
		expect(t, between(h.Until, before.Add(time.Hour), t.now().Add(time.Hour)) && h.Next.Equal(h.Until) && h.Over == 1 && h.Left == 0 && !h.Trial,
			"paused for an hour at %v, it shows as %+v", before, h)
		t.takes(b, "x", 0, 1, 0)
		t.takes(b, "y", 0, 1, 1)
		t.returns(a, "x", 1, 1)
		t.resumes("x", true)
		t.resumes("x", false)
		h = t.takes(b, "x", 0, 5, 2)
		expect(t, h.Until.IsZero(), "resumed it shows as %+v", h)
		t.soonEnough(func() string {
			t.must(l.PauseLimit(t.ctx, "x", store.Pause{For: 250 * time.Millisecond}))
			if h := t.takes(b, "x", 2, 2, 2); h.Until.IsZero() {
				return "it was not paused"
			}
			t.until(func() bool { return t.permits(b, keeping("x", 2))[0].Until.IsZero() })
			return ""
		})
	}},
	{"A pause of a limit is of its keys, and one of a key is of that alone", func(t *T) {
		l, w := as[store.Limiter](t), t.join("k")
		t.must(l.PauseLimit(t.ctx, "x=a", store.Pause{For: time.Hour}))
		t.takes(w, "x=a", 0, 1, 0)
		t.takes(w, "x=b", 0, 1, 1)
		t.takes(w, "x", 0, 1, 1)
		t.must(l.PauseLimit(t.ctx, "x", store.Pause{For: time.Minute}))
		t.takes(w, "x=c", 0, 1, 0)
		t.takes(w, "x", 1, 2, 1)
		t.takes(w, "xx=c", 0, 1, 1)
		until := t.takes(w, "x=a", 0, 1, 0).Until
		expect(t, until.After(t.now().Add(59*time.Minute)), "of two pauses the end is %v, want that of the longer one", until)
		t.resumes("x=a", true)
		t.takes(w, "x=a", 0, 1, 0)
		t.resumes("x", true)
		t.takes(w, "x=a", 0, 1, 1)
	}},
	{"A longer pause stays, and a longer one takes the place of a shorter", func(t *T) {
		l := as[store.Limiter](t)
		paused := func(by string, least time.Duration) {
			t.Helper()
			info, _ := t.limit("x")
			expect(t, info.Paused != nil && info.Paused.By == by && info.Paused.Until.After(t.now().Add(least)), "people see the pause %+v, want that of %s", info.Paused, by)
		}
		t.must(l.PauseLimit(t.ctx, "x", store.Pause{For: time.Minute, By: "one"}))
		paused("one", 59*time.Second)
		t.must(l.PauseLimit(t.ctx, "x", store.Pause{For: time.Hour, By: "two"}))
		paused("two", 59*time.Minute)
		t.must(l.PauseLimit(t.ctx, "x", store.Pause{For: time.Second, By: "three"}))
		paused("two", 59*time.Minute)
	}},
	{"After a pause with a trial one job starts alone, until it is taken back", func(t *T) {
		l, a, b := as[store.Limiter](t), t.join("k"), t.join("k")
		t.rules(map[string]string{"x": "5"})
		t.must(l.PauseLimit(t.ctx, "x=a", store.Pause{For: time.Microsecond, Trial: true}))
		t.until(func() bool { return t.permits(a, keeping("x=a", 0))[0].Left == 1 })
		h := t.takes(a, "x=a", 0, 3, 1)
		expect(t, h.Trial && h.Left == 0, "it shows as %+v", h)
		t.takes(b, "x=a", 0, 1, 0)
		t.takes(b, "x=b", 0, 5, 5)
		info, _ := t.limit("x=a")
		expect(t, info.Paused != nil && info.Paused.Trial, "people see the pause %+v", info.Paused)
		a.Leave()
		t.takes(b, "x=a", 0, 2, 1)
		t.must(l.PauseLimit(t.ctx, "x=a", store.Pause{For: time.Microsecond}))
		expect(t, t.permits(b, keeping("x=a", 1))[0].Trial, "a pause without a trial ended the trial")
		t.resumes("x=a", true)
		t.takes(b, "x=a", 1, 5, 5)
	}},
	{"What people see of a pause is until when, by whom and why", func(t *T) {
		l, w := as[store.Limiter](t), t.join("k")
		t.rules(map[string]string{"x": "3"})
		t.takes(w, "x=a", 0, 2, 2)
		t.takes(w, "x=b", 0, 1, 1)
		t.must(l.PauseLimit(t.ctx, "x=a", store.Pause{For: time.Hour, By: "ann", Why: "they asked", Trial: true}))
		t.must(l.PauseLimit(t.ctx, "unused", store.Pause{For: time.Minute}))
		soon := t.now().Add(time.Hour)
		for _, name := range []string{"x=a", "unused", "x"} {
			info, there := t.limit(name)
			want := map[string]store.LimitInfo{
				"x=a":    {Name: "x=a", Rule: "3", Gates: 1, Held: 2, Engines: 1, Paused: &store.Paused{Until: soon, Trial: true, By: "ann", Why: "they asked"}},
				"unused": {Name: "unused", Rule: "any", Paused: &store.Paused{Until: soon.Add(-59 * time.Minute)}},
				"x":      {Name: "x", Rule: "3", Declared: "3", Gates: 2, Held: 3, Engines: 1},
			}[name]
			expect(t, there, "%s is not there", name)
			noDiff(t, cmp.Diff(want, info, cmpopts.EquateApproxTime(time.Minute)), "of "+name+" people see (-want +got)")
		}
		for _, g := range must(l.Gates(t.ctx, "x", 9))(t) {
			equal(t, g.Paused != nil, g.Key == "a", "%s is paused: %v, want %v", g.Gate)
		}
		t.must(l.PauseLimit(t.ctx, "x", store.Pause{For: time.Minute}))
		for _, g := range must(l.Gates(t.ctx, "x", 9))(t) {
			expect(t, g.Paused != nil, "%s is not paused", g.Gate)
		}
	}},
	{"A key has its own rule, or else that of its limit", func(t *T) {
		l, w := as[store.Limiter](t), t.join("k")
		t.rules(map[string]string{"x": "3", "x=b": "1"})
		t.takes(w, "x=a", 0, 9, 3)
		t.takes(w, "x=b", 0, 9, 1)
		t.takes(w, "x=ab", 0, 9, 3)
		t.must(l.SetLimit(t.ctx, "x=a", stint.LimitRule{AtOnce: 7}, "", ""))
		t.takes(w, "x=a", 3, 9, 7)
		t.must(l.SetLimit(t.ctx, "x", stint.LimitRule{AtOnce: 5}, "", ""))
		t.takes(w, "x=a", 7, 9, 7)
		t.takes(w, "x=ab", 3, 9, 5)
		t.takes(w, "x=b", 1, 9, 1)
		info, _ := t.limit("x=a")
		expect(t, info.Rule == "7" && info.Set == "7" && info.Held == 7 && info.Gates == 1, "people see %+v", info)
		for _, g := range must(l.Gates(t.ctx, "x", 9))(t) {
			equal(t, g.Rule, map[string]string{"a": "7", "b": "1", "ab": "5"}[g.Key], "of %s people see the rule %s, want %s", g.Gate)
		}
		t.must(errOf(l.ResetLimit(t.ctx, "x=a")))
		t.returns(w, "x=a", 0, 0)
		t.takes(w, "x=a", 0, 9, 5)
	}},
	{"Pauses that can never be right are refused, and engines are woken for the others", func(t *T) {
		l := as[store.Limiter](t)
		for _, name := range []string{"", "a b", "a=", "a\nb", strings.Repeat("l", 101), "a=" + strings.Repeat("k", 256)} {
			fails(t, l.PauseLimit(t.ctx, name, store.Pause{For: time.Second}), stint.ErrInvalid, "pausing %.20q gives %v", name)
			fails(t, errOf(l.ResumeLimit(t.ctx, name)), stint.ErrInvalid, "resuming %.20q gives %v", name)
		}
		for _, d := range []time.Duration{0, -time.Second, 25 * time.Hour} {
			fails(t, l.PauseLimit(t.ctx, "x", store.Pause{For: d}), stint.ErrInvalid, "a pause of %v gives %v", d)
		}
		expect(t, l.PauseLimit(t.over(), "x", store.Pause{For: time.Second}) != nil, "a call whose context has ended succeeds")
		equal(t, len(must(l.Limits(t.ctx))(t)), 0, "there are %d limits, want %d")
		news := t.hear(t.again())
		news.hears(store.News{Permits: "x=a b"}, func() { t.must(l.PauseLimit(t.ctx, "x=a b", store.Pause{For: time.Hour})) })
		news.hears(store.News{Permits: "x=a b"}, func() { t.resumes("x=a b", true) })
	}},
	{"A pause that is over is forgotten, and its trial is not, nor is one that goes on", func(t *T) {
		l := as[store.Limiter](t)
		t.must(l.PauseLimit(t.ctx, "x", store.Pause{For: time.Microsecond}))
		t.must(l.PauseLimit(t.ctx, "y", store.Pause{For: time.Microsecond, Trial: true}))
		t.must(l.PauseLimit(t.ctx, "z", store.Pause{For: time.Hour}))
		t.until(func() bool { _, there := t.limit("x"); return !there })
		t.must(errOf(l.TidyPermits(t.ctx)))
		t.resumes("x", false)
		t.resumes("y", true)
		t.resumes("z", true)
	}},
}

// resumes ends a pause, and checks whether there was one.
func (t *T) resumes(gate string, want bool) {
	t.Helper()
	equal(t, must(as[store.Limiter](t).ResumeLimit(t.ctx, gate))(t), want, "resuming %s gives %v, want %v", gate)
}
