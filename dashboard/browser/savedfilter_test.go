package browser_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAFilterIsSavedAndChosenByAClick(t *testing.T) {
	b := newBoard(t)
	rules := axe(t)
	b.enqueue("good")
	b.enqueue("bad")
	saved := func(want ...string) {
		t.Helper()
		all, err := b.store.SavedFilters(t.Context())
		var got []string
		for _, f := range all {
			got = append(got, f.Name+" "+f.Query)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("saved are %q, %v, want %q", got, err, want)
		}
	}
	passes := func() {
		t.Helper()
		act(b.tab, "open what is folded", run(`document.querySelectorAll("main > details.more, main > details.more details").forEach((d) => { d.open = true; })`))
		if diff := cmp.Diff([]string{}, b.barriers(rules)); diff != "" {
			t.Errorf("it keeps people out (-want +got):\n%s", diff)
		}
	}
	b.visit("/jobs?kind=bad&state=available")
	passes()
	b.enter(`form[action="/filters"] input[name=name]`, "bad ones")
	b.submit(`form[action="/filters"] button`)
	saved("bad ones kind=bad&state=available")
	b.says("The filter bad ones is saved.")
	b.visit("/jobs")
	if rows := eval[int](b.tab, `document.querySelectorAll("table.rows tbody tr").length`); rows != 2 {
		t.Errorf("of all jobs there are %d, want 2", rows)
	}
	b.submit(`nav[aria-label="Saved filters"] a`)
	if rows := eval[int](b.tab, `document.querySelectorAll("table.rows tbody tr").length`); rows != 1 {
		t.Errorf("of the filter there are %d jobs, want 1", rows)
	}
	if is := eval[bool](b.tab, `document.querySelector('nav[aria-label="Saved filters"] a').ariaCurrent === "true" && document.querySelector("input[name=kind]").value === "bad"`); !is {
		t.Error("the page does not say which filter it shows")
	}
	passes()
	b.enter(`form[action$="/rename"] input[name=to]`, "worst")
	b.submit(`form[action$="/rename"] button`)
	saved("worst kind=bad&state=available")
	b.visit("/jobs")
	act(b.tab, "open what is folded", run(`document.querySelectorAll("main > details.more, main > details.more details").forEach((d) => { d.open = true; })`))
	b.submit(`form[action$="/delete"] button`)
	saved()
}
