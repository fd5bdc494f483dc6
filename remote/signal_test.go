package remote_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/remote"
)

func TestASignalIsSentOverAServer(t *testing.T) {
	onBoth(t, func(t *testing.T, st anyStore, server *remote.Store) {
		ctx, client := t.Context(), stint.NewClient(server)
		id, err := mail.Enqueue(ctx, client, nil, stint.Delay(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		for _, send := range []func() error{
			func() error {
				return client.SignalOnce(ctx, id, "k", "a <b> é", map[string]any{"n": json.Number("12345678901234567890")})
			},
			func() error { return client.SignalOnce(ctx, id, "k", "a <b> é", "another") },
			func() error { return client.Signal(ctx, id, "nothing", nil) },
			func() error { return client.Signal(ctx, id, "a <b> é", 2) },
		} {
			if err := send(); err != nil {
				t.Error(err)
			}
		}
		want := []stint.SentSignal{
			{Name: "a <b> é", Key: "k", Value: json.RawMessage(`{"n":12345678901234567890}`)}, {Name: "nothing", Value: json.RawMessage(`null`)}, {Name: "a <b> é", Value: json.RawMessage(`2`)},
		}
		got, err := st.Signals(ctx, id)
		for i := range got {
			var b bytes.Buffer
			if err := json.Compact(&b, got[i].Value); err != nil {
				t.Fatal(err)
			}
			got[i].Value = b.Bytes()
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(stint.SentSignal{}, "N", "Sent")); diff != "" || err != nil {
			t.Errorf("kept are (-want +got): %s %v", diff, err)
		}

		if err := client.With(stint.Tx{Handle: 1}).Signal(ctx, id, "a", 1); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("a transaction is answered with %v", err)
		}
		if err := server.Signal(ctx, stint.Tx{}, id, stint.Signal{Name: " a", Value: []byte("1")}); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("what is no name is answered with %v", err)
		}
		if err := client.Signal(ctx, 99, "a", 1); !errors.Is(err, stint.ErrNotFound) {
			t.Errorf("of no job the error is %v", err)
		}
		viewer := over(t, st, viewerToken)
		if e, ok := errors.AsType[*remote.Error](stint.NewClient(viewer).Signal(ctx, id, "a", 1)); !ok || e.Status != http.StatusForbidden {
			t.Errorf("a viewer is answered with %v", e)
		}
		if _, err := server.Cancel(ctx, []stint.ID{id}, ""); err != nil {
			t.Fatal(err)
		}
		if err := client.Signal(ctx, id, "a", 1); !errors.Is(err, stint.ErrEnded) {
			t.Errorf("of one that is cancelled the error is %v", err)
		}
	})
}
