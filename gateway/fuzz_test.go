package gateway_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/gateway"
)

func FuzzReceipt(f *testing.F) {
	f.Add(gateway.ReceiptOf(engine.Hold{Pos: 1, Nonce: 1<<63 - 1}))
	f.Add("")
	f.Add("AAAAAAAAAAAAAAAAAAAAAB")
	f.Add("AAAAAAAAAAAAAAAAAAAAAA==")
	f.Fuzz(func(t *testing.T, text string) {
		hold, err := gateway.ParseReceipt(text)
		switch {
		case err == nil && gateway.ReceiptOf(hold) != text:
			t.Errorf("%q is read as %+v, which is written as %q", text, hold, gateway.ReceiptOf(hold))
		case err != nil && !errors.Is(err, stint.ErrInvalid):
			t.Error(err)
		}
	})
}

// What a worker says of the end of a run is one thing, or refused.
func FuzzEnding(f *testing.F) {
	for _, text := range []string{`{}`, `{"result":null}`, `{"result":{"a":1}}`, `{"error":{"message":"x","retry":false}}`, `{"snooze":"5m"}`, `{"cancel":"x","return":true}`, `{"snooze":"-1s"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var x gateway.Ending
		if json.Unmarshal([]byte(text), &x) != nil {
			return
		}
		result, err := gateway.EndOf(&x)
		if result != nil && (err != nil || !json.Valid(result) || len(result) > gateway.MaxResult) {
			t.Errorf("%s is %s, %v", text, result, err)
		}
	})
}
