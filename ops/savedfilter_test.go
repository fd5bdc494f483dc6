package ops

import (
	"reflect"
	"slices"
	"testing"
	"unicode/utf8"
)

// What is read is written so that it is read again as the same.
func FuzzSavedFilter(f *testing.F) {
	for _, query := range []string{
		"state=failed&state=running&kind=k", "state=running&state=failed&state=failed", "kind=+&queue=%20a%20", "a=b", "kind=a;b", "state=%00&urn=%ff", "longer=5s&longer=6s",
		"attempts=-1", "flow=1&flows=1&faulty=true", "text=%e2%82%ac&error=x%26y", "after=1", "finished_after=1h&due_before=2026-03-01T09:00:00Z", "%zz", "&&=", "outcome=lost",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		text, in, err := readFilter(query)
		if err != nil {
			return
		}
		again, same, err := readFilter(text)
		if err != nil || again != text {
			t.Fatalf("%q is %q, which is %q: %v", query, text, again, err)
		}
		in.States, same.States = distinct(in.States), distinct(same.States)
		if !reflect.DeepEqual(in, same) {
			t.Errorf("%q is %+v, and again %+v", query, in, same)
		}
		if in.After != 0 || in.Before != 0 || in.Limit != 0 || in.Soon {
			t.Errorf("%q has a page: %+v", query, in)
		}
		if text == "" || utf8.RuneCountInString(in.Text) > 1000 || utf8.RuneCountInString(in.Kind) > 255 || in.Attempts < 0 {
			t.Errorf("%q is beyond its bounds: %+v", query, in)
		}
	})
}

// distinct are texts in order, each once.
func distinct(texts []string) []string { return slices.Compact(slices.Sorted(slices.Values(texts))) }
