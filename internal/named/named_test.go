package named

import (
	"slices"
	"testing"
)

func TestANameIsTakenOnceAndWhatIsMissingIsNil(t *testing.T) {
	var f Funcs[func() int]
	for _, name := range []string{"b", "a"} {
		if err := f.Register("function", name, "", func() int { return len(name) }, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Register("function", "a", "", func() int { return 7 }, false); err == nil || err.Error() != `register function "a": it is registered already` {
		t.Errorf("a second a: %v", err)
	}
	if got := f.Find("a")(); got != 1 {
		t.Errorf("the second a replaced the first: %d", got)
	}
	if got := f.Names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the names are %v", got)
	}
	if f.Find("c") != nil {
		t.Error("something was found that is not there")
	}
}
