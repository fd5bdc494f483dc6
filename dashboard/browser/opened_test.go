package browser_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/seal"
)

// keysOf are those with which a board opens what is sealed.
func keysOf(t *testing.T) seal.Keys {
	t.Helper()
	ring, err := seal.NewRing(seal.Key{ID: "2026-11", Secret: bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func TestASealedJobIsShownInClearByAClick(t *testing.T) {
	rules, b := axe(t), newBoard(t)
	sealed := stint.KindInfo{Name: "pay", Sealed: []string{"/iban"}}
	id, err := stint.NewClient(b.store).Seal(keysOf(t)).Enqueue(t.Context(), sealed.Job(json.RawMessage(`{"iban":"CH93 0076 2011","amount":7}`)))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []look{looks[0], looks[3]} {
		b.as(l)
		b.visit("/jobs/" + id.String())
		text := func() string { return eval[string](b.tab, `document.querySelector("main").innerText`) }
		if strings.Contains(text(), "CH93") {
			t.Errorf("the page of the job says %s", text())
		}
		b.submit(`form[action$="/open"] button`)
		if !strings.Contains(text(), "CH93 0076 2011") {
			t.Errorf("in clear it says %s", text())
		}
		for _, barrier := range b.barriers(rules) {
			t.Errorf("%s: %s", l.name, barrier)
		}
		if wide := eval[int64](b.tab, `document.documentElement.scrollWidth`); wide > l.width {
			t.Errorf("%s: the page is %d pixels wide", l.name, wide)
		}
	}
	b.submit(`main a[href^="/changes"]`)
	if rows := eval[int](b.tab, `document.querySelectorAll("table.rows tbody tr").length`); rows != 2 {
		t.Errorf("of %d looks it is written down", rows)
	}
}
