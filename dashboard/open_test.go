package dashboard_test

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/seal"
	"github.com/stint-go/stint/store"
)

// ringOf is a key of its own for each id.
func ringOf(t *testing.T, id string) seal.Keys {
	t.Helper()
	r, err := seal.NewRing(seal.Key{ID: id, Secret: bytes.Repeat([]byte(id[:1]), 32)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type payment struct {
	IBAN   string `json:"iban"`
	CVC    string `json:"cvc"`
	Amount int    `json:"amount"`
}

func TestWhatIsSealedOfAJobIsShownToAdminsAndItIsWrittenDownWhoLooks(t *testing.T) {
	s := open(t)
	pay := stint.NewResultKind[payment, string]("pay", stint.Sealed("/iban", "/cvc"), stint.Redact("/cvc"))
	mux := stint.NewMux()
	stint.HandleResult(mux, pay, func(ctx context.Context, _ *stint.Job, in payment) (string, error) {
		return stint.Step(ctx, "charge", func(context.Context) (string, error) { return "STEP of " + in.IBAN, nil })
	})
	var ids []stint.ID
	for _, key := range []string{"known", "other"} {
		client := stint.NewClient(s.store).Seal(ringOf(t, key))
		id, err := pay.Enqueue(t.Context(), client, payment{"CH93", canary, 7})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		e, err := engine.New(s.store, mux, engine.Config{Client: client})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := e.RunReady(t.Context(), nil); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	page := "/jobs/" + ids[0].String()
	const offer = ">Show in clear</button>"
	hidden := func(text string) bool { return !strings.Contains(text, "CH93") && !strings.Contains(text, canary) }
	if text := s.page(page); !hidden(text) || strings.Contains(text, offer) {
		t.Errorf("a viewer is shown %s", said(text))
	}
	if status, text := s.post(page+"/open", nil); status != http.StatusForbidden || !hidden(text) {
		t.Errorf("a viewer is answered %d %s", status, said(text))
	}
	s.knock()
	if text := s.page(page); !hidden(text) || !strings.Contains(text, offer) {
		t.Errorf("an admin is shown %s", said(text))
	}
	status, text := s.post(page+"/open", nil)
	if status != http.StatusOK || strings.Count(text, "CH93") != 3 || !strings.Contains(text, "STEP of") || !strings.Contains(text, "[redacted]") || strings.Contains(text, canary) {
		t.Errorf("an admin who asks is answered %d %s", status, said(text))
	}
	if text := s.page(page); !hidden(text) {
		t.Errorf("afterwards the page says %s", said(text))
	}
	s.says("Open the arguments of job "+ids[1].String()+": seal: the key is not at hand", "/jobs/"+ids[1].String()+"/open", url.Values{"back": {"/jobs"}})
	all, err := s.store.Changes(t.Context(), store.ChangeFilter{Operation: ops.OpenJob.Name, Limit: 10})
	if err != nil || len(all) != 2 || all[1].Subject != ids[0].String() || all[1].By == "" || all[1].Problem != "" || all[0].Problem == "" {
		t.Errorf("the changes are %+v, %v", all, err)
	}
}
