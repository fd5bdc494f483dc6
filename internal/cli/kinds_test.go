package cli

import (
	"errors"
	"testing"

	"github.com/stint-go/stint"
)

func TestAnUnknownOperationIsRefusedWithThoseThereAre(t *testing.T) {
	known := []stint.KindInfo{{Name: "invoice.send"}, {Name: "invoice.print"}, {Name: "invoices"}, {Name: "sh"}}
	for kind, want := range map[string]string{
		"invoice.send": "",
		"invoice.typo": "the operations of invoice are invoice.print, invoice.send; --force enqueues it anyway",
		"invoice":      "the operations of invoice are invoice.print, invoice.send; --force enqueues it anyway",
		"receipt.typo": "known are invoice.print, invoice.send, invoices, sh; --force enqueues it anyway",
	} {
		got := ""
		if err := knows(known, kind); err != nil {
			hinted, _ := errors.AsType[*hintedError](err)
			got = hinted.hint
		}
		if got != want {
			t.Errorf("%s: the hint is %q, want %q", kind, got, want)
		}
	}
}
