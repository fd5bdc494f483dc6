package storetest

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
)

// pausing is a change that says all that one can say.
var pausing = stint.NewChange{
	By: "ann", Role: "operator", Way: stint.WayAPI, Operation: "pause-queue", Subject: "mail",
	Details: json.RawMessage(`{"n":12345678901234567890,"why":"it's ä"}`),
}

var changeTests = []test{
	{"A change is kept as it was written down, at the time of the store's clock", func(t *T) {
		bare := stint.NewChange{Way: stint.WayCommand, Operation: "migrate"}
		before := t.now()
		first, second := t.begins(pausing), t.begins(bare)
		after := t.now()
		if second <= first {
			t.Errorf("behind change %d comes %d", first, second)
		}
		got := t.changes(stint.ChangeFilter{})
		want := []stint.Change{
			{ID: second, NewChange: bare, Result: stint.ChangeUnknown},
			{ID: first, NewChange: pausing, Result: stint.ChangeUnknown},
		}
		compact := cmp.Transformer("compact", func(raw json.RawMessage) string { return strings.ReplaceAll(string(raw), " ", "") })
		if diff := cmp.Diff(want, got, compact, cmpopts.IgnoreFields(stint.Change{}, "At")); diff != "" {
			t.Errorf("the changes are (-want +got):\n%s", diff)
		}
		for _, c := range got {
			if c.At.Before(before) || c.At.After(after) {
				t.Errorf("between %v and %v was written %v", before, after, c.At)
			}
		}
	}},
	{"What came of a change is told once, and what was said first stands", func(t *T) {
		done, failed, dead := t.begins(pausing), t.begins(pausing), t.begins(pausing)
		before := t.now()
		t.ends(done, "")
		t.ends(failed, "no such queue\x00")
		t.ends(failed, "")
		t.ends(done, "too late")
		t.ends(dead+100, "there is none") // nothing comes of it
		after := t.now()
		for id, want := range map[int64]stint.ChangeResult{done: stint.ChangeDone, failed: stint.ChangeFailed, dead: stint.ChangeUnknown} {
			c := t.change(id)
			problem := map[bool]string{true: "no such queue\uFFFD"}[id == failed]
			if c.Result != want || c.Problem != problem || c.Ended.IsZero() != (id == dead) {
				t.Errorf("change %d is %+v, want %s", id, c, want)
			}
			if !c.Ended.IsZero() && (c.Ended.Before(before) || c.Ended.After(after)) {
				t.Errorf("between %v and %v it ended at %v", before, after, c.Ended)
			}
		}
	}},
	{"Changes are found by who, what, to what and when, and paged by their numbers", func(t *T) {
		var all []stint.Change
		for i := range 24 {
			c := pausing
			c.By = []string{"ann", "ben"}[i%2]
			c.Operation = []string{"pause-queue", "resume-queue", "cancel-jobs"}[i%3]
			c.Subject = []string{"", "mail", "Mail", "42"}[i%4]
			if t.begins(c); i%8 == 7 {
				time.Sleep(3 * time.Millisecond)
			}
		}
		all = t.changes(stint.ChangeFilter{})
		if len(all) != 24 {
			t.Fatalf("there are %d changes, want 24", len(all))
		}
		middle := all[12].At
		for _, f := range []stint.ChangeFilter{
			{}, {By: "ann"}, {By: "nobody"}, {Operation: "cancel-jobs"}, {Subject: "mail"}, {Subject: "42", By: "ben", Operation: "pause-queue"},
			{At: stint.Span{From: middle}}, {At: stint.Span{To: middle}}, {At: stint.Span{From: all[20].At, To: middle}, By: "ben"},
		} {
			var want []int64
			for _, c := range all {
				if (f.By == "" || c.By == f.By) && (f.Operation == "" || c.Operation == f.Operation) && (f.Subject == "" || c.Subject == f.Subject) && f.At.Holds(c.At) {
					want = append(want, c.ID)
				}
			}
			if got := t.paged(f, 100); !slices.Equal(got, want) {
				t.Errorf("%+v finds %v, want %v", f, got, want)
			}
			if got := t.paged(f, 5); !slices.Equal(got, want) {
				t.Errorf("%+v finds in pages %v, want %v", f, got, want)
			}
		}
	}},
	{"A change that can never be written down is refused", func(t *T) {
		for name, spoil := range map[string]func(*stint.NewChange){
			"no way":         func(c *stint.NewChange) { c.Way = "" },
			"no operation":   func(c *stint.NewChange) { c.Operation = "" },
			"a list":         func(c *stint.NewChange) { c.Details = json.RawMessage(`[1]`) },
			"no JSON":        func(c *stint.NewChange) { c.Details = json.RawMessage(`{"a":`) },
			"nothing":        func(c *stint.NewChange) { c.Details = json.RawMessage{} },
			"NUL in details": func(c *stint.NewChange) { c.Details = json.RawMessage(`{"a":"\u0000"}`) },
			"long details": func(c *stint.NewChange) {
				c.Details = json.RawMessage(`{"a":"` + strings.Repeat("x", stint.MaxDetails) + `"}`)
			},
		} {
			c := pausing
			spoil(&c)
			if _, err := t.changeKeeper().BeginChange(t.ctx, c); !errors.Is(err, stint.ErrInvalid) {
				t.Errorf("%s gives %v, want ErrInvalid", name, err)
			}
		}
		if all := t.changes(stint.ChangeFilter{}); len(all) != 0 {
			t.Errorf("there are %+v", all)
		}
	}},
	{"What no database keeps of a text is replaced, and what is too long is cut", func(t *T) {
		c := pausing
		c.By, c.Subject = "a\x00b\xff", strings.Repeat("ä", stint.MaxName)
		got := t.change(t.begins(c))
		if got.By != "a\uFFFDb\uFFFD" || len(got.Subject) > stint.MaxName || !strings.HasPrefix(got.Subject, "ää") || !utf8.ValidString(got.Subject) {
			t.Errorf("it is %+v", got)
		}
	}},
	{"Many who change something at once are all written down", func(t *T) {
		other, _ := t.again().(stint.ChangeKeeper)
		keepers := []stint.ChangeKeeper{t.changeKeeper(), other}
		t.must(errors.Join(atOnce(40, func(i int) error {
			n, err := keepers[i%2].BeginChange(t.ctx, pausing)
			if err == nil && i%4 < 3 {
				err = keepers[i%2].EndChange(t.ctx, n, "")
			}
			return err
		})...))
		results, ids := map[stint.ChangeResult]int{}, map[int64]bool{}
		for _, c := range t.changes(stint.ChangeFilter{}) {
			ids[c.ID] = true
			results[c.Result]++
		}
		if len(ids) != 40 || results[stint.ChangeDone] != 30 || results[stint.ChangeUnknown] != 10 {
			t.Errorf("%d changes are there: %v", len(ids), results)
		}
	}},
	{"Retention leaves young changes, however short jobs are kept", func(t *T) {
		t.ends(t.begins(pausing), "")
		t.begins(pausing)
		if n := t.retain(atOnceKept)[stint.RetainChanges]; n != 0 {
			t.Errorf("%d changes were deleted", n)
		}
		if all := t.changes(stint.ChangeFilter{}); len(all) != 2 {
			t.Errorf("%d changes are left, want 2", len(all))
		}
	}},
}

func (t *T) begins(c stint.NewChange) int64 {
	t.Helper()
	n, err := t.changeKeeper().BeginChange(t.ctx, c)
	t.must(err)
	return n
}

func (t *T) ends(change int64, problem string) {
	t.Helper()
	t.must(t.changeKeeper().EndChange(t.ctx, change, problem))
}

func (t *T) changes(f stint.ChangeFilter) []stint.Change {
	t.Helper()
	list, err := t.changeKeeper().Changes(t.ctx, f)
	t.must(err)
	return list
}

// change is the one of a number.
func (t *T) change(n int64) stint.Change {
	t.Helper()
	list := t.changes(stint.ChangeFilter{Before: n + 1, Limit: 1})
	if len(list) != 1 || list[0].ID != n {
		t.Fatalf("change %d is %+v", n, list)
	}
	return list[0]
}

// paged lists numbers, so many at a time.
func (t *T) paged(f stint.ChangeFilter, size int) (all []int64) {
	t.Helper()
	f.Limit = size
	for len(all) <= 1000 {
		page := t.changes(f)
		for _, c := range page {
			all = append(all, c.ID)
		}
		if len(page) < size {
			return all
		}
		f.Before = page[len(page)-1].ID
	}
	t.Fatal("the pages do not end")
	return nil
}
