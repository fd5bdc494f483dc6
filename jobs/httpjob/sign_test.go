package httpjob

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

const (
	secretA = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secretB = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

func secretFrom(t testing.TB, text string) Secret {
	t.Helper()
	s, err := ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The signatures were made by the reference library of Standard Webhooks for JavaScript, 1.1.1.
func TestRequestsAreSignedAfterStandardWebhooks(t *testing.T) {
	for _, c := range []struct{ secret, body, want string }{
		{secretA, `{"test": 2432232314}`, "v1,yzcZ2Xb0gdrJb9hLTwWkIfnJzBHN8eDEXbfopfN5EE0="},
		{secretA, "", "v1,0r89mCDEjAjP2WsiVAPFkfzTyTDz3jqh3M1YmjzX8YE="},
		{secretA + " " + secretB, `{"test": 2432232314}`, "v1,yzcZ2Xb0gdrJb9hLTwWkIfnJzBHN8eDEXbfopfN5EE0= v1,DWESA89Jjx8LX57saKGRV3u6OunURx7MOO+HiUcQ1VQ="},
	} {
		h := http.Header{}
		secretFrom(t, c.secret).sign(h, 42, []byte(c.body), time.Unix(1614265330, 999))
		if got := h.Get("Webhook-Id") + " " + h.Get("Webhook-Timestamp"); got != "job_42 1614265330" {
			t.Errorf("id and time are %q", got)
		}
		if got := h.Get("Webhook-Signature"); got != c.want {
			t.Errorf("the signature of %q is %q, want %q", c.body, got, c.want)
		}
	}
}

func TestASecretIsRefusedWithoutBeingShown(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "it is empty",
		" ":                            "it is empty",
		"MfKQ9r8GKYqrTwjUPD8ILPZIo2La": "it is not whsec_ and Base64",
		"whsec_%%%":                    "it is not whsec_ and Base64",
		"whsec_YWJj":                   "its key has 3 bytes, not 24 to 64",
		secretA + " whsec_YWJj":        "its key has 3 bytes, not 24 to 64",
	} {
		_, err := ParseSecret(text)
		if err == nil || err.Error() != "secret: "+want {
			t.Errorf("of %q the error is %v, want %q", text, err, want)
		}
	}
}

func TestEachReceiverHasItsSecretAndAnElsewhereNone(t *testing.T) {
	a, b := secretFrom(t, secretA), secretFrom(t, secretB)
	var got []string
	note := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Header.Get("Webhook-Signature")+string(body))
	}
	other, _ := serve(t, Config{}, note)
	server, _ := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		note(w, r)
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}
	})
	host := strings.TrimPrefix(server.URL, "http://")
	for _, c := range []struct {
		secrets map[string]Secret
		path    string
		want    int // of the requests that were received, how many are signed by a
		all     int
	}{
		{map[string]Secret{host: a, "127.0.0.1": b, "*": b}, "/", 1, 1},
		{map[string]Secret{"127.0.0.1": a, "*": b}, "/", 1, 1},
		{map[string]Secret{"*": a}, "/", 1, 1},
		{map[string]Secret{"example.com": a}, "/", 0, 1},
		{map[string]Secret{"*": a}, "/away", 1, 2}, // whoever is sent elsewhere takes no signature along
	} {
		got = nil
		_, h := serve(t, Config{Secrets: c.secrets}, note)
		if _, err := perform(t, t.Context(), h, Args{Method: "POST", URL: server.URL + c.path, JSON: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
		signed := 0
		for age := range 20 * time.Second / time.Second {
			header := http.Header{}
			a.sign(header, 42, []byte("{}"), time.Now().Add(-age*time.Second))
			for _, one := range got {
				if one == header.Get("Webhook-Signature")+"{}" {
					signed++
				}
			}
		}
		if signed != c.want || len(got) != c.all {
			t.Errorf("of %d requests to %s %d are signed by a, want %d of %d: %q", len(got), c.path, signed, c.want, c.all, got)
		}
	}
}

func TestWithoutAURLForCallbacksAJobThatWantsOneFails(t *testing.T) {
	sent := 0
	server, h := serve(t, Config{}, func(http.ResponseWriter, *http.Request) { sent++ })
	_, err := perform(t, t.Context(), h, Args{URL: server.URL, Callback: Duration(time.Hour)})
	if err == nil || !strings.Contains(err.Error(), "no URL for callbacks") || isFinal(err) || sent != 0 {
		t.Errorf("the error is %v, %d were sent", err, sent)
	}
}

func TestACallbackIsAResultOrAnError(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                            "",
		`{"result": [1]}`:               "",
		`{"error": "e", "final": true}`: "",
		`{"final": true}`:               "final: it is for an error",
		`{"error": "e", "result": 1}`:   "result: an error has none",
	} {
		var c Callback
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := c.Check(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("of %s the error is %q, want %q", body, got, want)
		}
	}
}

func FuzzParseSecret(f *testing.F) {
	for _, text := range []string{secretA, secretA + " " + secretB, "whsec_", "whsec_YWJj", "=", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSecret(text)
		if err != nil {
			if !errors.Is(err, stint.ErrInvalid) {
				t.Fatalf("%v is not an invalid input", err)
			}
			return
		}
		h := http.Header{}
		s.sign(h, 1, nil, time.Now())
		if got, want := len(strings.Fields(h.Get("Webhook-Signature"))), len(strings.Fields(text)); got != want {
			t.Fatalf("%d signatures of %d secrets", got, want)
		}
	})
}
