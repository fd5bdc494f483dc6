package storetest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var savedFilterTests = []test{
	{"Filters are saved under names, exactly as they are written, and listed by name", func(t *T) {
		t.savedFilters()
		longest := store.SavedFilter{Name: strings.Repeat("n", valid.MaxName), Query: strings.Repeat("q", store.MaxFilterQuery), By: "ann"}
		before := t.now()
		for _, name := range []string{"b", "ä", "A", "a", "a b", "%", "x'y"} {
			t.saves(store.SavedFilter{Name: name, Query: "kind=" + name, By: "ann"}, false)
		}
		t.saves(longest, false)
		t.savedFilters("%", "A", "a", "a b", "b", longest.Name, "x'y", "ä")
		for _, f := range must(as[store.FilterKeeper](t).SavedFilters(t.ctx))(t) {
			expect(t, between(f.At, before, t.now()), "%q was saved at %v, after %v", f.Name, f.At, before)
		}
	}},
	{"A filter that is saved replaces the one of its name, which is told", func(t *T) {
		first := t.saves(store.SavedFilter{Name: "mine", Query: "kind=a", By: "ann"}, false)
		time.Sleep(2 * time.Millisecond)
		second := t.saves(store.SavedFilter{Name: "mine", Query: "kind=b"}, true)
		expect(t, second.At.After(first.At), "it was saved at %v, and then at %v", first.At, second.At)
		t.savedFilters("mine")
	}},
	{"Filters are saved up to a bound, and those that are there can still be replaced", func(t *T) {
		keeper := as[store.FilterKeeper](t)
		for n := range store.MaxSavedFilters {
			t.saves(store.SavedFilter{Name: fmt.Sprintf("f%03d", n), Query: "kind=k"}, false)
		}
		fails(t, errOf2(keeper.SaveFilter(t.ctx, store.SavedFilter{Name: "more", Query: "kind=k"})), store.ErrManyFilters, "one too many gives %v")
		t.saves(store.SavedFilter{Name: "f007", Query: "kind=l"}, true)
		expect(t, must(keeper.DeleteFilter(t.ctx, "f007"))(t), "it is not deleted")
		t.saves(store.SavedFilter{Name: "more", Query: "kind=k"}, false)
	}},
	{"A filter is renamed as it is, unless there is none or the other name is taken", func(t *T) {
		keeper := as[store.FilterKeeper](t)
		was := t.saves(store.SavedFilter{Name: "a", Query: "kind=a", By: "ann"}, false)
		t.saves(store.SavedFilter{Name: "b", Query: "kind=b", By: "ben"}, false)
		for _, c := range []struct {
			name, to string
			want     error
		}{{"a", "b", store.ErrFilterExists}, {"a", "a", store.ErrFilterExists}, {"c", "d", store.ErrNoFilter}, {"c", "a", store.ErrNoFilter}} {
			fails(t, keeper.RenameFilter(t.ctx, c.name, c.to), c.want, "renaming "+c.name+" to "+c.to+" gives %v")
		}
		t.savedFilters("a", "b")
		must(0, keeper.RenameFilter(t.ctx, "a", "z"))(t)
		t.savedFilters("b", "z")
		was.Name = "z"
		noDiff(t, cmp.Diff(was, must(keeper.SavedFilters(t.ctx))(t)[1], sameInstant), "it is another one (-want +got)")
	}},
	{"Of those who rename one filter at once, one does", func(t *T) {
		keeper := as[store.FilterKeeper](t)
		for round := range 30 {
			t.saves(store.SavedFilter{Name: "a", Query: "kind=a"}, false)
			var errs [4]error
			var wait sync.WaitGroup
			for i := range errs {
				wait.Go(func() { errs[i] = keeper.RenameFilter(t.ctx, "a", fmt.Sprint(round, i)) })
			}
			wait.Wait()
			renamed := 0
			for _, err := range errs {
				if err == nil {
					renamed++
					continue
				}
				fails(t, err, store.ErrNoFilter, "another one gets %v")
			}
			need(t, renamed == 1 && len(must(keeper.SavedFilters(t.ctx))(t)) == round+1, "in round %d, %d renamed it", round, renamed)
		}
	}},
	{"A saved filter is deleted once", func(t *T) {
		keeper := as[store.FilterKeeper](t)
		t.saves(store.SavedFilter{Name: "a", Query: "kind=a"}, false)
		t.saves(store.SavedFilter{Name: "b", Query: "kind=a"}, false)
		for _, want := range []bool{true, false} {
			equal(t, must(keeper.DeleteFilter(t.ctx, "a"))(t), want, "deleting it says %v, want %v")
		}
		t.savedFilters("b")
	}},
	{"Saved filters that can never be right are refused, and odd names of people are kept as a database can", func(t *T) {
		keeper := as[store.FilterKeeper](t)
		for _, name := range []string{"", "a\nb", " a", strings.Repeat("n", valid.MaxName+1), "a\x00b", "\xff"} {
			fails(t, errOf2(keeper.SaveFilter(t.ctx, store.SavedFilter{Name: name, Query: "kind=k"})), stint.ErrInvalid, "saving %.20q gives %v", name)
			fails(t, keeper.RenameFilter(t.ctx, name, "b"), stint.ErrInvalid, "renaming %.20q gives %v", name)
			fails(t, keeper.RenameFilter(t.ctx, "b", name), stint.ErrInvalid, "renaming to %.20q gives %v", name)
			fails(t, errOf(keeper.DeleteFilter(t.ctx, name)), stint.ErrInvalid, "deleting %.20q gives %v", name)
		}
		for _, query := range []string{"", "a\x00b", "\xff", strings.Repeat("q", store.MaxFilterQuery+1)} {
			fails(t, errOf2(keeper.SaveFilter(t.ctx, store.SavedFilter{Name: "n", Query: query})), stint.ErrInvalid, "saving %.20q gives %v", query)
		}
		got, _, err := keeper.SaveFilter(t.ctx, store.SavedFilter{Name: "n", Query: "kind=k", By: "a\x00" + strings.Repeat("b", 300)})
		expect(t, err == nil && got.By == valid.CleanText("a\x00"+strings.Repeat("b", 300), 255), "it is saved by %q, %v", got.By, err)
		t.savedFilters("n")
	}},
}

var sameInstant = cmp.Comparer(time.Time.Equal)

// saves saves a filter, and wants it to be listed so.
func (t *T) saves(f store.SavedFilter, replaces bool) store.SavedFilter {
	t.Helper()
	keeper := as[store.FilterKeeper](t)
	got, replaced, err := keeper.SaveFilter(t.ctx, f)
	need(t, err == nil, "saving %.20q gives %v", f.Name, err)
	equal(t, replaced, replaces, "saving says replaced %v, want %v")
	noDiff(t, cmp.Diff(f, got, cmpopts.IgnoreFields(f, "At")), "another filter is saved (-want +got)")
	for _, one := range must(keeper.SavedFilters(t.ctx))(t) {
		if one.Name == f.Name {
			noDiff(t, cmp.Diff(got, one, sameInstant), "it is listed otherwise (-want +got)")
			return got
		}
	}
	t.Fatalf("%q is not listed", f.Name)
	return got
}

// savedFilters wants the filters to have these names.
func (t *T) savedFilters(want ...string) {
	t.Helper()
	var names []string
	for _, f := range must(as[store.FilterKeeper](t).SavedFilters(t.ctx))(t) {
		names = append(names, f.Name)
	}
	equalAll(t, names, want, "the filters are %q, want %q")
}
