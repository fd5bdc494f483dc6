package event_test

import (
	"testing"

	"github.com/stint-go/stint/event"
)

func TestAListenerToQueriesThatPanicsHarmsNothing(t *testing.T) {
	heard := ""
	q := event.Query{Text: "select 1"}
	q.TellTo(func(q event.Query) { heard = q.Text; panic("no room") })
	if heard != "select 1" {
		t.Errorf("it heard %q", heard)
	}
}
