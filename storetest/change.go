package storetest

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// pausing is a change that says all that one can say.
var pausing = store.NewChange{
	By: "ann", Role: "operator", Way: store.WayAPI, Operation: "queues pause", Subject: "mail",
	Details: json.RawMessage(`{"n":12345678901234567890,"why":"it's ä"}`),
}

var changeTests = []test{
	{"A change is kept as it was written down, at the time of the store's clock", func(t *T) {
		bare := store.NewChange{Way: store.WayCommand, Operation: "migrate"}
		before := t.now()
		first, second := t.begins(pausing), t.begins(bare)
		after := t.now()
		expect(t, second > first, "behind change %d comes %d", first, second)
		got := t.changes(store.ChangeFilter{})
		want := []store.Change{
			{ID: second, NewChange: bare, Result: store.ChangeUnknown},
			{ID: first, NewChange: pausing, Result: store.ChangeUnknown},
		}
		compact := cmp.Transformer("compact", func(raw json.RawMessage) string { return strings.ReplaceAll(string(raw), " ", "") })
		noDiff(t, cmp.Diff(want, got, compact, cmpopts.IgnoreFields(store.Change{}, "At")), "the changes are (-want +got)")
		for _, c := range got {
			expect(t, between(c.At, before, after), "between %v and %v was written %v", before, after, c.At)
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
		for id, want := range map[int64]store.ChangeResult{done: store.ChangeDone, failed: store.ChangeFailed, dead: store.ChangeUnknown} {
			c := t.change(id)
			problem := map[bool]string{true: "no such queue\uFFFD"}[id == failed]
			expect(t, c.Result == want && c.Problem == problem && c.Ended.IsZero() == (id == dead),
				"change %d is %+v, want %s", id, c, want)
			expect(t, c.Ended.IsZero() || between(c.Ended, before, after),
				"between %v and %v it ended at %v", before, after, c.Ended)
		}
	}},
	{"Changes are found by who, what, to what and when, and paged by their numbers", func(t *T) {
		var all []store.Change
		for i := range 24 {
			c := pausing
			c.By = []string{"ann", "ben"}[i%2]
			c.Operation = []string{"queues pause", "queues resume", "jobs cancel"}[i%3]
			c.Subject = []string{"", "mail", "Mail", "42"}[i%4]
			if t.begins(c); i%8 == 7 {
				time.Sleep(3 * time.Millisecond)
			}
		}
		all = t.changes(store.ChangeFilter{})
		need(t, len(all) == 24, "there are %d changes, want 24", len(all))
		middle := all[12].At
		for _, f := range []store.ChangeFilter{
			{}, {By: "ann"}, {By: "nobody"}, {Operation: "jobs cancel"}, {Subject: "mail"}, {Subject: "42", By: "ben", Operation: "queues pause"},
			{At: store.TimeRange{From: middle}}, {At: store.TimeRange{To: middle}}, {At: store.TimeRange{From: all[20].At, To: middle}, By: "ben"},
		} {
			var want []int64
			for _, c := range all {
				if (f.By == "" || c.By == f.By) && (f.Operation == "" || c.Operation == f.Operation) && (f.Subject == "" || c.Subject == f.Subject) && f.At.Holds(c.At) {
					want = append(want, c.ID)
				}
			}
			equalAll(t, t.paged(f, 100), want, "%+v finds %v, want %v", f)
			equalAll(t, t.paged(f, 5), want, "%+v finds in pages %v, want %v", f)
		}
	}},
	{"A change that can never be written down is refused", func(t *T) {
		for name, spoil := range map[string]func(*store.NewChange){
			"no way":         func(c *store.NewChange) { c.Way = "" },
			"no operation":   func(c *store.NewChange) { c.Operation = "" },
			"a list":         func(c *store.NewChange) { c.Details = json.RawMessage(`[1]`) },
			"no JSON":        func(c *store.NewChange) { c.Details = json.RawMessage(`{"a":`) },
			"nothing":        func(c *store.NewChange) { c.Details = json.RawMessage{} },
			"NUL in details": func(c *store.NewChange) { c.Details = json.RawMessage(`{"a":"\u0000"}`) },
			"long details": func(c *store.NewChange) {
				c.Details = json.RawMessage(`{"a":"` + strings.Repeat("x", store.MaxDetails) + `"}`)
			},
		} {
			c := pausing
			spoil(&c)
			fails(t, errOf(as[store.ChangeKeeper](t).BeginChange(t.ctx, c)), stint.ErrInvalid, "%s gives %v, want ErrInvalid", name)
		}
		all := t.changes(store.ChangeFilter{})
		expect(t, len(all) == 0, "there are %+v", all)
	}},
	{"What no database keeps of a text is replaced, and what is too long is cut", func(t *T) {
		c := pausing
		c.By, c.Subject = "a\x00b\xff", strings.Repeat("ä", valid.MaxName)
		got := t.change(t.begins(c))
		expect(t, got.By == "a\uFFFDb\uFFFD" && len(got.Subject) <= valid.MaxName && strings.HasPrefix(got.Subject, "ää") &&
			utf8.ValidString(got.Subject),
			"it is %+v", got)
	}},
	{"Many who change something at once are all written down", func(t *T) {
		other, _ := t.again().(store.ChangeKeeper)
		keepers := []store.ChangeKeeper{as[store.ChangeKeeper](t), other}
		t.must(errors.Join(atOnce(40, func(i int) error {
			n, err := keepers[i%2].BeginChange(t.ctx, pausing)
			if err == nil && i%4 < 3 {
				err = keepers[i%2].EndChange(t.ctx, n, "")
			}
			return err
		})...))
		results, ids := map[store.ChangeResult]int{}, map[int64]bool{}
		for _, c := range t.changes(store.ChangeFilter{}) {
			ids[c.ID] = true
			results[c.Result]++
		}
		expect(t, len(ids) == 40 && results[store.ChangeDone] == 30 && results[store.ChangeUnknown] == 10,
			"%d changes are there: %v", len(ids), results)
	}},
	{"Retention leaves young changes, however short jobs are kept", func(t *T) {
		t.ends(t.begins(pausing), "")
		t.begins(pausing)
		equal(t, t.retain(atOnceKept)[store.RetainChanges], 0, "%d changes were deleted, want %d")
		equal(t, len(t.changes(store.ChangeFilter{})), 2, "%d changes are left, want %d")
	}},
}

func (t *T) begins(c store.NewChange) int64 {
	t.Helper()
	return must(as[store.ChangeKeeper](t).BeginChange(t.ctx, c))(t)
}

func (t *T) ends(change int64, problem string) {
	t.Helper()
	t.must(as[store.ChangeKeeper](t).EndChange(t.ctx, change, problem))
}

func (t *T) changes(f store.ChangeFilter) []store.Change {
	t.Helper()
	return must(as[store.ChangeKeeper](t).Changes(t.ctx, f))(t)
}

// change is the one of a number.
func (t *T) change(n int64) store.Change {
	t.Helper()
	list := t.changes(store.ChangeFilter{Before: n + 1, Limit: 1})
	need(t, len(list) == 1 && list[0].ID == n, "change %d is %+v", n, list)
	return list[0]
}

// paged lists numbers, so many at a time.
func (t *T) paged(f store.ChangeFilter, size int) (all []int64) {
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
