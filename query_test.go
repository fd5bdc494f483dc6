package stint_test

import (
	"testing"

	"github.com/stint-go/stint"
)

func TestAListenerToQueriesThatPanicsHarmsNothing(t *testing.T) {
	heard := ""
	q := stint.Query{Text: "select 1"}
	q.TellTo(func(q stint.Query) { heard = q.Text; panic("no room") })
	if heard != "select 1" {
		t.Errorf("it heard %q", heard)
	}
}
